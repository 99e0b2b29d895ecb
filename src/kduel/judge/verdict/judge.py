"""The verdict: a pure function of samples and rule. docs/statistics.md says in words what happens here."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import stdtr

from kduel.core.results import MetricResult, Verdict
from kduel.core.samples import Samples
from kduel.judge.verdict.comparison import Comparison, compare, differences, verdict
from kduel.judge.verdict.looks import ABOVE, BELOW, WITHIN
from kduel.judge.verdict.result import Finding, write
from kduel.judge.verdict.rule import FEWEST_PAIRS, Rule
from kduel.judge.verdict.sample_size import blocks_more


def judge(samples: Sequence[Samples], rule: Rule, *, exact: bool = False) -> list[MetricResult]:
    """Every metric of every contender against the baseline, in the order of `samples`.

    `exact` says that the machine is deterministic: values are counted, not estimated, and one pair is enough.
    Raises InputError naming the metric where a table is not usable: no finite number, a block twice, one arm only.
    """
    comparisons = compare(samples, rule)
    if exact:
        return [write(c, count(c)) for c in comparisons]
    share = split(samples, rule)
    explored = iter(explore([c for c in comparisons if not c.table.primary and not determined(c.table)], rule))
    findings = (
        built(c) if determined(c.table) else gate(c, share) if c.table.primary else next(explored)
        for c in comparisons
    )
    return [write(c, finding) for c, finding in zip(comparisons, findings, strict=True)]


def judge_primary(samples: Sequence[Samples], rule: Rule, *, exact: bool = False) -> list[MetricResult]:
    """As `judge`, of the primary metrics only and without the statistics beside: quick, for a run that goes on."""
    share = split(samples, rule)
    chosen = [c for c in compare(samples, rule) if c.table.primary]
    return [
        write(c, count(c) if exact else built(c) if determined(c.table) else gate(c, share), beside=False)
        for c in chosen
    ]


def determined(table: Samples) -> bool:
    """Whether chance has no part in these values: the benchmark says so, and no repetition speaks against it."""
    return table.metric.exact and all(
        len({value for value in values if value is not None}) <= 1 for values in table.values.values()
    )


def built(c: Comparison) -> Finding:
    """As `count`; but larger or smaller is not slower or faster."""
    finding = count(c)
    return finding._replace(verdict="different") if finding.verdict in ("faster", "slower") else finding


def split(samples: Sequence[Samples], rule: Rule) -> float:
    """The alpha of one primary comparison: every primary metric of every contender has the same share.

    Contenders count too: what the run may claim wrongly is any of its headlines. Sharing alpha (Bonferroni) among
    contenders measured against one baseline makes intervals wider than Dunnett's exact way by 1 % for two of them,
    by 3 % for nine.
    """
    judged = [table for table in samples if table.primary and not determined(table)]
    return rule.alpha / max(1, sum(len(table.values) - 1 for table in judged))


def gate(c: Comparison, alpha: float) -> Finding:
    """A primary metric: the first look that decides, and the present interval."""
    decision = c.decision(alpha)
    finding = examine(c, alpha)
    if decision is None:
        return finding
    look, side = decision
    called = verdict(c.scales[look], side, c.table.metric.better)
    return finding._replace(verdict=called, decided_at=c.looks.blocks[look], more=None)


def examine(c: Comparison, alpha: float) -> Finding:
    """The present interval, undecided."""
    if not c.looks.pairs:
        return Finding(scale="ratio", verdict="undecided")
    mean, sd = (float(values[-1]) for values in c.statistics)
    level = float(c.looks.levels(c.rule, alpha)[-1])
    half = float(c.looks.widths(c.rule, alpha)[-1]) * sd
    return Finding(
        scale=c.scales[-1],
        verdict="undecided",
        mean=mean,
        low=mean - half,
        high=mean + half,
        level=level,
        more=blocks_more(mean, sd, c.n, c.complete.size, float(c.margins[-1]), c.rule, alpha),
    )


def explore(comparisons: list[Comparison], rule: Rule) -> list[Finding]:
    """Exploratory metrics: Benjamini and Hochberg's procedure, with the intervals that belong to it.

    The p-values are repeated ones, valid whenever the run stopped. With R of m called, each interval is at
    1 - alpha R/m (Benjamini and Yekutieli, 2005): it excludes 0 exactly where the procedure calls the metric.
    """
    p_values = [repeated_p(c, rule) for c in comparisons]
    ranked = sorted(p for p in p_values if p is not None)
    called = max((place for place, p in enumerate(ranked, 1) if p <= rule.alpha * place / len(ranked)), default=0)
    alpha = rule.alpha * max(called, 1) / max(len(ranked), 1)
    q_values = q_of(ranked)
    found = []
    for c, p in zip(comparisons, p_values, strict=True):
        finding = examine(c, alpha)
        side = settled(c, finding)
        if side is not None:
            called_so = verdict(finding.scale, side, c.table.metric.better)
            finding = finding._replace(verdict=called_so, decided_at=int(c.complete.size), more=None)
        found.append(finding._replace(q_value=None if p is None else q_values[p]))
    return found


def settled(c: Comparison, finding: Finding) -> int | None:
    """The side to which the present interval decides, or None."""
    if finding.low is None or finding.high is None:
        return None
    if max(-finding.low, finding.high) <= c.margins[-1] and c.n >= c.rule.equivalent_from:
        return WITHIN
    if c.n >= FEWEST_PAIRS and (finding.low > 0 or finding.high < 0):
        return ABOVE if finding.low > 0 else BELOW
    return None


REPEATED = (1.0, 0.2, 0.05, 0.01, 1e-3, 1e-6, 1e-12)
"""Values of alpha between which the repeated p-value is interpolated, on logarithms."""


def repeated_p(c: Comparison, rule: Rule) -> float | None:
    """The least alpha with which the present look would have called a difference; None where nothing varies."""
    if not c.looks.pairs or c.scales[-1] == "exact":
        return None
    mean, sd = (float(values[-1]) for values in c.statistics)
    if sd == 0:
        return 0.0 if mean else 1.0
    p = float(2 * stdtr(c.n - 1, -abs(mean) / sd * math.sqrt(c.n)))
    if p == 0:
        return 0.0
    levels = [float(c.looks.levels(rule, alpha)[-1]) for alpha in REPEATED]
    if p <= levels[-1]:
        return p / levels[-1] * REPEATED[-1]
    return float(np.exp(np.interp(np.log(p), np.log(levels[::-1]), np.log(REPEATED[::-1]))))


def q_of(ranked: list[float]) -> dict[float, float]:
    """Benjamini and Hochberg's q of each p-value, given in rising order."""
    least = 1.0
    found: dict[float, float] = {}
    for place in range(len(ranked), 0, -1):
        least = min(least, ranked[place - 1] * len(ranked) / place)
        found.setdefault(ranked[place - 1], least)
    return found


def count(c: Comparison) -> Finding:
    """A deterministic machine's values: nothing to estimate. Several pairs (conditions that must not matter, address
    layouts) give a range; where they differ in sign and one of them by more than delta, nothing is decided."""
    if not c.n:
        return Finding(scale="exact", verdict="undecided")
    before, after = c.pairs
    if c.conditions:
        before = np.array([one.baseline for one in c.conditions])
        after = np.array([one.contender for one in c.conditions])
    gaps = differences(before, after)
    signs = set(np.sign(gaps).tolist())
    called: Verdict = "undecided"
    if len(signs) == 1:
        called = verdict("exact", int(signs.pop()), c.table.metric.better)
    elif c.conditions and bool((100 * np.abs(gaps) <= c.rule.delta_pct * np.abs(before)).all()):
        called = "equivalent"
    return Finding(
        scale="exact",
        verdict=called,
        mean=float(np.median(gaps) if c.conditions else gaps.mean()),
        low=float(gaps.min()),
        high=float(gaps.max()),
        decided_at=None if called == "undecided" else int(c.complete.size),
    )
