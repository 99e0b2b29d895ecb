"""The verdict: a pure function of samples and rule. docs/statistics.md describes the method."""

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtr

from kduel.benchmarks.support.schedstat import GROUP, is_of_level
from kduel.core.metric_results import MetricResult
from kduel.core.samples import Samples
from kduel.judge.verdict.agreement import VARIED, chance_of_agreement, too_few, too_few_within
from kduel.judge.verdict.classify import ABOVE, BELOW, UNDECIDED, WITHIN, benjamini_hochberg, classify, verdict
from kduel.judge.verdict.comparison import Comparison, compare, differences, family, margin
from kduel.judge.verdict.looks import NEVER, repeated_interval
from kduel.judge.verdict.result import Assessment, write
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.sample_size import blocks_more
from kduel.judge.verdict.spending import Floats
from kduel.judge.verdict.voids import forbidden_by_missing, forbidden_by_turns


def judge(samples: Sequence[Samples], rule: Rule) -> list[MetricResult]:
    """Every metric of every contender against the baseline, in the order of `samples`. Raises InputError naming the
    metric where a table is not usable: no finite number, a block twice, one arm only."""
    comparisons = compare(samples, rule)
    share = split(samples, rule)
    hints = hinting(comparisons, rule.alpha)
    found = [
        assess_certain(c, share if c.table.primary else hints.get(kind_of(c.table), rule.alpha))
        or (assess_primary(c, share) if c.table.primary else None)
        for c in comparisons
    ]
    explored = iter(explore([c for c, one in zip(comparisons, found, strict=True) if one is None], rule))
    findings = [one or next(explored) for one in found]
    return [write(c, finding) for c, finding in zip(comparisons, findings, strict=True)]


def judge_primary(samples: Sequence[Samples], rule: Rule) -> list[MetricResult]:
    """The primary metrics only, without secondary statistics: a faster `judge` for a run in progress."""
    share = split(samples, rule)
    chosen = [c for c in compare(samples, rule) if c.table.primary]
    return [write(c, assess_certain(c, share) or assess_primary(c, share), beside=False) for c in chosen]


def assess_certain(c: Comparison, alpha: float) -> Assessment | None:
    """Assessment of what no repetition changes: counts, and something built, by size. None for a sample."""
    if c.table.evidence.varies:
        return None
    finding = assess_exact(c, alpha)
    built = not c.table.counted and finding.verdict in ("faster", "slower")
    return finding._replace(verdict="different") if built else finding


def split(samples: Sequence[Samples], rule: Rule) -> float:
    """The alpha of one primary comparison, the same for every primary metric of every contender, as any headline may
    be wrong. Bonferroni's intervals are wider than Dunnett's by 1 % for two contenders, by 3 % for nine."""
    return rule.alpha / max(1, family(samples))


def assess_primary(c: Comparison, alpha: float) -> Assessment:
    """A primary metric: the first look that decides, if the present interval still shows it."""
    finding = assess_present(c, alpha)
    if not c.looks.pairs:
        return finding
    decision = c.decision(alpha)
    if decision.look == NEVER:
        return finding
    look, side = int(decision.look), int(decision.side)
    if decision.holds[-1]:
        return call_verdict(c, finding, side, c.looks.blocks[look])
    assert finding.low is not None and finding.high is not None
    now = classify(finding.low, finding.high, c.margins[-1], c.n, c.rule.fewest, c.rule.equivalent_from)
    contradicted = int(now) not in (UNDECIDED, side)
    return finding._replace(
        former=verdict(c.scales[look], side, c.table.metric.better),
        former_at=c.looks.blocks[look],
        contradicted=contradicted,
        more=None if contradicted else more_blocks(c, alpha, side),
    )


def call_verdict(c: Comparison, finding: Assessment, side: int, blocks: int) -> Assessment:
    """The finding with the verdict that its interval shows after so many blocks, unless missing trials forbid it."""
    if side == UNDECIDED:
        return finding
    if withheld := forbidden_by_turns(c.table, c.rule) or forbidden_by_missing(c, side):
        return finding._replace(withheld=withheld, more=None)
    shown = verdict(finding.scale, side, c.table.metric.better)
    return finding._replace(verdict=shown, decided_at=blocks, more=None)


def assess_present(c: Comparison, alpha: float) -> Assessment:
    if not c.looks.pairs:
        return Assessment(scale="ratio", verdict="undecided")
    levels = c.looks.levels(c.rule, alpha)
    low, high = (float(ends[-1]) for ends in repeated_interval(c.estimates, levels))
    mean, error, freedom = (float(values[-1]) for values in c.estimates)
    return Assessment(
        scale=c.scales[-1], verdict="undecided", mean=mean, low=low, high=high, error=error, freedom=freedom,
        level=float(levels[-1]), confounded=not c.orders_vary[-1], insufficient=not c.sufficient[-1],
        more=more_blocks(c, alpha),
    )  # fmt: skip


def more_blocks(c: Comparison, alpha: float, only: int | None = None) -> int | None:
    """About how many more blocks decide, if effect and spread stay as measured; None for a class of machines, where more
    blocks are no more machines. A verdict that was lost can come back as that side `only`."""
    if c.machines is not None and c.rule.scope == "class":
        return None
    mean, spread = float(c.estimates.mean[-1]), float(c.estimates.spread(c.looks.pairs)[-1])
    share = 1.0 if c.machines is None else float(c.estimates.freedom[-1]) / max(c.n - 1.0, 1.0)
    return blocks_more(mean, spread, c.n, c.complete.size, float(c.margins[-1]), c.rule, alpha, only, share)


def explore(comparisons: list[Comparison], rule: Rule) -> list[Assessment]:
    """Exploratory metrics: Benjamini and Hochberg's procedure on repeated p-values, valid whenever the run stopped; for each kind by
    itself, so that the scheduler's many counters widen no interval of a benchmark's own metrics."""
    kinds = [kind_of(c.table) for c in comparisons]
    p_values = [repeated_p(c) for c in comparisons]
    families = {
        kind: benjamini_hochberg([p for p, own in zip(p_values, kinds, strict=True) if own == kind], rule.alpha)
        for kind in set(kinds)
    }
    q_values = {kind: iter(family.q_values) for kind, family in families.items()}
    found = []
    for c, kind in zip(comparisons, kinds, strict=True):
        discoveries, q_value = families[kind], next(q_values[kind])
        finding = assess_present(c, discoveries.level)._replace(q_value=q_value)
        if finding.low is not None and finding.high is not None and not finding.confounded | finding.insufficient:
            side = classify(
                finding.low, finding.high, c.margins[-1], c.n, c.rule.for_exploring().fewest, rule.equivalent_from
            )
            finding = call_verdict(c, finding, int(side), int(c.complete.size))
        found.append(finding)
    return found


def kind_of(table: Samples) -> str:
    """The kind of an exploratory metric: a benchmark's own, a counter of the scheduler, or one of a single level of domains."""
    if is_of_level(table.metric.group, table.metric.name):
        return "level"
    return GROUP if table.metric.group == GROUP else ""


REPEATED = (1.0, 0.2, 0.05, 0.01, 1e-3, 1e-6, 1e-12)
"""Values of alpha between which the repeated p-value is interpolated, on logarithms."""


def repeated_p(c: Comparison) -> float | None:
    """The least alpha with which the present look calls a difference; None if nothing varies or place confounds."""
    if not c.looks.pairs or c.scales[-1] == "exact" or not c.orders_vary[-1]:
        return None
    mean, error, freedom = (float(values[-1]) for values in c.estimates)
    if error == 0:
        return 0.0 if mean else 1.0
    p = float(2 * stdtr(freedom, -abs(mean) / error))
    if p == 0:
        return 0.0
    levels = [float(c.looks.levels(c.rule, alpha)[-1]) for alpha in REPEATED]
    if p <= levels[-1]:
        return p / levels[-1] * REPEATED[-1]
    return float(np.exp(np.interp(np.log(p), np.log(levels[::-1]), np.log(REPEATED[::-1]))))


def hinting(comparisons: Sequence[Comparison], alpha: float) -> dict[str, float]:
    """Chance at which an agreement of conditions is rare enough for a hint of an exploratory metric (Benjamini and Hochberg), by its kind."""
    chances: dict[str, list[float | None]] = {}
    for c in comparisons:
        if c.table.scheduled and not c.table.primary and c.n:
            gaps = resolved_gaps(c)
            one_sign = gaps.min() > 0 or gaps.max() < 0
            chance = chance_of_agreement(*c.conditions_or_pairs) if one_sign else 1.0
            chances.setdefault(kind_of(c.table), []).append(chance)
    return {kind: benjamini_hochberg(own, alpha).level for kind, own in chances.items()}


def resolved_gaps(c: Comparison) -> Floats:
    """The differences under each condition; 0 where the machine's clock does not resolve them."""
    gaps = differences(*c.conditions_or_pairs)
    gaps[np.abs(gaps) <= c.table.resolution] = 0.0
    return gaps


def has_conditions(table: Samples) -> bool:
    """True if the table has conditions, or could: its benchmark has the parameter, or is not known."""
    return bool(table.conditions) or table.step is None or VARIED in table.step.parameters


def assess_exact(c: Comparison, alpha: float) -> Assessment:
    """A deterministic machine's values: nothing to estimate. Several pairs give a range in place of the interval. What a scheduler
    decided is a difference, or equivalent, only where chance makes so many conditions agree more rarely than `alpha`."""
    if not c.n:
        return Assessment(scale="exact", verdict="undecided")
    before, after = c.conditions_or_pairs
    gaps = resolved_gaps(c)
    low, high = float(gaps.min()), float(gaps.max())
    side = int(classify(low, high, margin("exact", c.rule), c.n, fewest=1, equivalent_from=1))
    few = (
        too_few(before, after, alpha, has_conditions(c.table)) if c.table.scheduled and side in (ABOVE, BELOW) else ""
    )
    side = UNDECIDED if few else side
    called = verdict("exact", side, c.table.metric.better)
    if side == UNDECIDED and c.conditions and before.all():
        shares = 100 * gaps / np.abs(before)
        side = int(classify(shares.min(), shares.max(), c.rule.delta_pct, c.n, fewest=1, equivalent_from=1))
        if side == WITHIN:
            few = too_few_within(len(gaps), alpha) if c.table.scheduled else ""
            called = called if few else "equivalent"
    return Assessment(
        scale="exact", verdict=called, mean=float(np.median(gaps) if c.conditions else gaps.mean()), low=low, high=high,
        decided_at=None if called == "undecided" else int(c.complete.size), withheld=few if called == "undecided" else "",
    )  # fmt: skip
