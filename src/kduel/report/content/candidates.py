"""Two candidates for one baseline's place, set against each other by their verdicts' intervals, which hold together."""

from collections.abc import Callable, Mapping, Sequence

from kduel.core.metric_results import MetricResult
from kduel.core.results import Results
from kduel.core.text import enumerate_names, plural, visible
from kduel.judge.ranking import is_better, ratios
from kduel.judge.verdict.rule import gating_rule

MOST_NAMED = 2
"""Metrics of one side, of which more are counted."""


def candidates_claim(
    metrics: Mapping[tuple[str, str], Sequence[MetricResult]],
    results: Results,
    name: Callable[[MetricResult, Sequence[MetricResult]], str],
) -> list[str]:
    """`debian-7.1 is better in a and worse in b than debian-6.12`, of two contenders with one baseline, by the primary
    metrics with a verdict on both: one is better where its whole interval is, by more than does not matter. Else nothing."""
    if len(metrics) != 2 or len({baseline for baseline, _ in metrics}) != 1:
        return []
    (_, first), (_, second) = metrics
    mine, others = ({(m.benchmark, m.metric): m for m in held if has_place(m)} for held in metrics.values())
    both = [(mine[key], others[key]) for key in mine if key in others]
    delta = gating_rule(results).delta_pct
    sides = [
        ("better", [one for one, other in both if is_better(as_gain(other), as_gain(one), delta)]),
        ("worse", [one for one, other in both if is_better(as_gain(one), as_gain(other), delta)]),
    ]
    among = [one for one, _ in both]
    said = [
        f"{word} in {enumerate_names([name(m, among) for m in found]) if len(found) <= MOST_NAMED else plural(len(found), 'metric')}"
        for word, found in sides
        if found
    ]
    return [f"{visible(second, 200)} is {' and '.join(said)} than {visible(first, 200)}"] if said else []


def has_place(metric: MetricResult) -> bool:
    """True if its interval is a verdict's, which holds together with all others of the study."""
    if not (metric.claimed and metric.role == "primary" and metric.better != "none" and metric.scale == "ratio"):
        return False
    return metric.ci_low_pct is not None and metric.ci_low_pct > -100 and metric.ci_high_pct is not None


def as_gain(metric: MetricResult) -> tuple[float, float, float]:
    """Low end, estimate and high end as ratios to the baseline of which more is better."""
    low, middle, high = ratios(metric)
    return (low, middle, high) if metric.better == "higher" else (1 / high, 1 / middle, 1 / low)
