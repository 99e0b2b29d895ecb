"""The ranking of contenders by aspect: the geometric mean of its primary metrics within a boot, judged as one metric
with a primary comparison's share of alpha, so that all intervals hold together (docs/statistics.md)."""

from collections.abc import Collection, Sequence

import numpy as np

from kduel.core.experiment import Aspect, Metric
from kduel.core.metric_results import AspectRanking, MetricResult, Rank
from kduel.core.samples import Samples
from kduel.core.text import plural
from kduel.judge.verdict.classify import WITHIN
from kduel.judge.verdict.comparison import Comparison, compare
from kduel.judge.verdict.judge import assess_primary, split
from kduel.judge.verdict.result import write
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.voids import forbidden_by_missing

MEAN = "geometric mean"
"""The metric that a ranking judges."""


def rankings(samples: Sequence[Samples], rule: Rule, by_harness: Collection[str] = ()) -> list[AspectRanking]:
    """A ranking for each aspect with two primary metrics or three contenders, but for those in `by_harness`."""
    groups: dict[Aspect, list[Samples]] = {}
    for table in samples:
        if table.primary and table.metric.aspect and table.metric.better != "none" and table.evidence.varies:
            groups.setdefault(table.metric.aspect, []).append(table)
    means: dict[Aspect, Samples] = {}
    entering: dict[Aspect, list[str]] = {}
    for aspect, tables in groups.items():
        chosen = [
            table
            for table in tables
            if table.key not in by_harness
            and all(value is None or value > 0 for column in table.values.values() for value in column)
        ]
        if chosen and (len(chosen) > 1 or len(chosen[0].contenders) > 2):
            means[aspect] = mean_table(aspect, chosen)
            entering[aspect] = [table.key for table in chosen]
    share = split(samples, rule)
    judged: dict[str, list[Comparison]] = {aspect: [] for aspect in means}
    # The primary metrics are there for their number alone.
    for c in compare([*samples, *means.values()], rule):
        if any(c.table is table for table in means.values()):
            judged[c.table.benchmark].append(c)
    return [
        AspectRanking(
            aspect=aspect,
            metrics=entering[aspect],
            left_out=[table.key for table in groups[aspect] if table.key not in entering[aspect]],
            ranks=rank_contenders(judged[aspect], results),
            results=results,
        )
        for aspect in means
        for results in ([write(c, assess_primary(c, share), beside=False) for c in judged[aspect]],)
    ]


def mean_table(aspect: Aspect, tables: Sequence[Samples]) -> Samples:
    """By contender and block, the geometric mean of these metrics; None where a boot lacks one of them."""
    first = tables[0]
    signs = [1 if table.metric.better == "higher" else -1 for table in tables]
    values: dict[str, list[float | None]] = {}
    for name in first.contenders:
        columns = np.array([table.values[name] for table in tables], dtype=float)
        means = np.exp(np.mean(np.log(columns) * np.array(signs)[:, None], axis=0))
        values[name] = [None if np.isnan(mean) else float(mean) for mean in means]
    return Samples(
        benchmark=aspect, metric=Metric(name=MEAN, unit="", better="higher", aspect=aspect), blocks=first.blocks,
        values=values, machines=first.machines, parts=first.parts, order=first.order, absent=first.absent,
        covariates=first.covariates,
    )  # fmt: skip


def rank_contenders(comparisons: Sequence[Comparison], results: Sequence[MetricResult]) -> list[Rank]:
    """The ranks that the comparisons of one aspect with the baseline leave open, which have these results."""
    intervals = {comparisons[0].baseline: (1.0, 1.0, 1.0)}
    unranked = []
    for c, result in zip(comparisons, results, strict=True):
        if reason := reason_against(c, result):
            unranked.append(Rank(contender=c.contender, first=None, last=None, reason=reason))
        else:
            intervals[c.contender] = ratios(result)
    delta = comparisons[0].rule.delta_pct
    ranks = [
        Rank(
            contender=name,
            first=1 + sum(is_better(other, own, delta) for other in intervals.values()),
            last=len(intervals) - sum(is_better(own, other, delta) for other in intervals.values()),
        )
        for name, own in intervals.items()
    ]
    if unranked and len(ranks) == 1:
        # Without anybody to compare with, the baseline is not the first.
        ranks = [Rank(contender=comparisons[0].baseline, first=None, last=None, reason="nothing to compare with")]
    ranks.sort(key=lambda rank: (rank.first, rank.last, -intervals[rank.contender][1]))
    return [*ranks, *unranked]


def ratios(result: MetricResult) -> tuple[float, float, float]:
    """Low end, estimate and high end as ratios to the baseline. The result has an interval."""
    low, middle, high = (
        1 + (value or 0.0) / 100 for value in (result.ci_low_pct, result.effect_pct, result.ci_high_pct)
    )
    return low, middle, high


def is_better(one: tuple[float, float, float], other: tuple[float, float, float], delta_pct: float) -> bool:
    """True if the whole interval of the first lies above that of the second, and not within delta of it."""
    return one[0] > other[2] and one[2] > other[0] * (1 + delta_pct / 100)


def reason_against(c: Comparison, result: MetricResult) -> str:
    """Reason why the comparison gives no rank, or an empty string: what would forbid a verdict."""
    if result.n < c.rule.fewest:
        return f"{plural(result.n, 'complete pair')}, and it takes {c.rule.fewest}"
    if c.looks.planned < len(c.looks.pairs):
        return f"no analysis is planned after {plural(c.looks.blocks[-1], 'block')}"
    if missing := forbidden_by_missing(c, WITHIN):
        return missing
    if not c.orders_vary[-1]:
        return "in all pairs the contenders had one order"
    if not c.sufficient[-1]:
        return "too few pairs on each machine"
    if result.scale != "ratio" or result.ci_low_pct is None or result.ci_high_pct is None:
        return "no interval: the values do not vary"
    return ""
