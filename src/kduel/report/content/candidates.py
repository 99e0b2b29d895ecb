"""Candidates for one baseline's place: two of them set against each other by their verdicts' intervals, which hold together, and all
of them by the bound that a study sets."""

from collections.abc import Callable, Mapping, Sequence

from kduel.core.format import plain_number
from kduel.core.metric_results import MetricResult
from kduel.core.results import Results
from kduel.core.text import enumerate_names, plural, visible
from kduel.judge.ranking import is_better, ratios
from kduel.judge.verdict.rule import gating_rule

MOST_NAMED = 2
"""Metrics of one side, of which more are counted."""
BOUND_WORDS = {"violated": "violated by", "undecided": "undecided for", "holds": "kept by"}


def candidates_claim(
    metrics: Mapping[tuple[str, str], Sequence[MetricResult]],
    results: Results,
    name: Callable[[MetricResult, Sequence[MetricResult]], str],
) -> list[str]:
    """`Between the two, debian-7.1 is better in a and worse in b than debian-6.12`, of two contenders with one baseline, by the primary
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
    return (
        [f"Between the two, {visible(second, 200)} is {' and '.join(said)} than {visible(first, 200)}"]
        if said
        else []
    )


def has_place(metric: MetricResult) -> bool:
    """True if its interval is a verdict's, which holds together with all others of the study."""
    if not (metric.claimed and metric.role == "primary" and metric.better != "none" and metric.scale == "ratio"):
        return False
    return metric.ci_low_pct is not None and metric.ci_low_pct > -100 and metric.ci_high_pct is not None


def as_gain(metric: MetricResult) -> tuple[float, float, float]:
    """Low end, estimate and high end as ratios to the baseline of which more is better."""
    low, middle, high = ratios(metric)
    return (low, middle, high) if metric.better == "higher" else (1 / high, 1 / middle, 1 / low)


def bound_claims(results: Results) -> list[str]:
    """`At most 0.1 % of cyclictest/latency above 150 us: violated by b; undecided for a`: by each bound, its verdict on all."""
    found: dict[str, dict[str, list[str]]] = {}
    for tail in results.tails:
        if (bound := tail.bound) is not None:
            what = f"{visible(tail.benchmark, 100)}/{visible(tail.metric, 60)} above {plain_number(bound.limit)} {tail.unit}"
            verdicts = found.setdefault(f"At most {100 * bound.share:.10g} % of {what}", {})
            verdicts.setdefault(bound.verdict, []).append(visible(tail.contender, 200))
    said = [
        f"{what}: {'; '.join(f'{words} {enumerate_names(verdicts[one])}' for one, words in BOUND_WORDS.items() if one in verdicts)}"
        for what, verdicts in found.items()
    ]
    return [*said[:1], *([f"{plural(len(said) - 1, 'more bound')} below"] if said[1:] else [])]
