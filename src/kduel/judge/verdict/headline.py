"""A comparison in one sentence: the headline of every report, and of results.json."""

import math
from collections.abc import Sequence, Set
from typing import Literal

from kduel.core.format import effect_numbers, estimate_texts, plain_number, share_text
from kduel.core.metric_results import (
    ACCESSES,
    COUNTED,
    LOCKED,
    NO_ONE_VERDICT,
    SHARED,
    SHARING,
    TOUCHED,
    MetricResult,
)
from kduel.core.results import Headline, Results
from kduel.core.text import plural, visible
from kduel.judge.verdict.classify import WITHIN, supports
from kduel.judge.verdict.comparison import margin
from kduel.judge.verdict.rule import Rule, gating_rule
from kduel.judge.verdict.unfinished import find_unfinished

SAME = ("equivalent", "equal")
HINT = "a hint"
"""Ends a sentence about exploratory metrics."""
CONDITIONS = "conditions that should not matter"
COUNTING = {
    COUNTED: ("takes", "instructions"),
    SHARED: ("shares", "cache lines"),
    ACCESSES: ("makes", "loads and stores to shared lines"),
    LOCKED: ("makes", "locked operations on shared lines"),
    TOUCHED: ("touches", "cache lines"),
}
"""By the unit of a count, what a contender does with more or fewer of what."""

Side = Literal["better", "worse", "neutral"]


def side(metric: MetricResult) -> Side:
    """The contender's side of a decided difference: better, worse, or neither."""
    if metric.verdict in ("faster", "slower"):
        return "better" if metric.verdict == "faster" else "worse"
    if metric.verdict in ("different", "more", "fewer") and metric.better != "none" and metric.effect:
        return "better" if (metric.effect > 0) == (metric.better == "higher") else "worse"
    return "neutral"


def how_it_compares(metric: MetricResult) -> str:
    """`is slower`, `takes fewer instructions`: before `than`, for a difference that was shown."""
    if not metric.more_or_fewer:
        return f"is {metric.word}"
    verb, what = COUNTING[metric.unit]
    return f"{verb} {metric.word} {what}"


def counting_of(units: Set[str]) -> tuple[str, str] | None:
    """Words on counts in these units: what is done with more or fewer of what; None where none fit."""
    several = COUNTED if COUNTED in units else SHARED if units <= set(SHARING) else ""
    return COUNTING.get(next(iter(units)) if len(units) == 1 else several)


def shows_difference(metric: MetricResult) -> bool:
    return metric.claimed and metric.verdict not in SAME


def matters(result: MetricResult) -> bool:
    """True where a difference was shown that is not too small to matter."""
    return shows_difference(result) and not result.below_delta


def lies_within(metric: MetricResult, rule: Rule) -> bool:
    """True if a ratio's whole interval is too small to matter."""
    low, high = metric.ci_low_pct, metric.ci_high_pct
    if metric.scale != "ratio" or low is None or high is None or low <= -100:
        return False
    return bool(supports(WITHIN, math.log1p(low / 100), math.log1p(high / 100), margin("ratio", rule)))


def excludes_zero(metric: MetricResult) -> bool:
    """True if the interval, as it is shown, is on one side of 0."""
    _, low, high, _ = effect_numbers(metric)
    return low is not None and high is not None and (low > 0 or high < 0)


def compared_pairs(results: Results) -> list[tuple[str, str]]:
    """Every baseline with every contender that is compared with it."""
    names = [contender.name for contender in results.contenders]
    pairs = [*((names[0], other) for other in names[1:]), *((m.baseline, m.contender) for m in results.metrics)]
    return list(dict.fromkeys(pairs))


def headlines(results: Results) -> list[Headline]:
    return [
        Headline(baseline=baseline, contender=contender, text=headline_of(results, baseline, contender))
        for baseline, contender in compared_pairs(results)
    ]


def headline_of(results: Results, baseline: str, contender: str) -> str:
    """One contender against one baseline: by the primary metrics, or by all where the study declared none."""
    mine = [m for m in results.metrics if (m.baseline, m.contender) == (baseline, contender)]
    primary = [m for m in mine if m.role == "primary"]
    kind = "primary metric" if primary else "metric"
    names = visible(baseline, 200), visible(contender, 200)
    rule = gating_rule(results)
    said = headline(
        primary or mine, *names, kind, results.study.delta, virtual=not results.machine.evidence.varies,
        fewest=(rule if primary else rule.for_exploring()).fewest,
        waits=unfinished.waits if primary and (unfinished := find_unfinished(results)) else "",
        each=repeated_unit(results),
    )  # fmt: skip
    hint = "" if primary or not any(m.claimed and m.hint for m in mine) else HINT
    # The metrics that the sentence does not count, as the benchmark sets them.
    left = sum(m.by_harness for m in primary or mine)
    apart = f"{left} more set by the benchmark" if 0 < left < len(primary or mine) else ""
    beside = "; ".join(filter(None, (hint, apart)))
    return said + (f" ({beside})" if beside else "") + disagreement(primary or mine, kind)


def headline(
    metrics: Sequence[MetricResult],
    baseline: str,
    contender: str,
    kind: str,
    delta: float | None,
    *,
    virtual: bool = False,
    fewest: int = 1,
    waits: str = "",
    each: str = "boots",
) -> str:
    """The sentence on which one is faster, without a number too many. `virtual`: by a clock that counts instructions;
    `fewest`: how many pairs a verdict takes; `waits`: clause on the analysis that is still to come; `each`: what was repeated."""
    if not any(m.n for m in metrics):
        return f"Nothing was measured on both {contender} and {baseline}"
    if all(m.by_harness for m in metrics if m.n):
        return f"Nothing follows on {contender} and {baseline}: the benchmark's settings determine what was measured"
    metrics = [m for m in metrics if not m.by_harness]
    large = [m for m in metrics if matters(m)]
    better = [m for m in large if side(m) == "better"]
    worse = [m for m in large if side(m) == "worse"]
    if all(m.more_or_fewer for m in large) and (counting := counting_of({m.unit for m in metrics})):
        verb, what = counting
        good, bad, less = f"{verb} fewer {what}", f"{verb} more {what}", "more"
    else:
        timed = any(m.word in ("faster", "slower") for m in large)
        good, bad, less = ("faster", "slower", "slower") if timed else ("better", "worse", "worse")
        clock = " in virtual time" if timed and virtual else ""
        good, bad = f"is {good}{clock}", f"is {bad}{clock}"
    total = plural(len(metrics), kind)

    def where(chosen: list[MetricResult]) -> str:
        return "" if len(metrics) == 1 else f" in {len(chosen)} of {total}"

    if better and worse:
        return f"{contender} {good} than {baseline}{where(better)}, and {less} in {len(worse)}"
    if better or worse:
        return f"{contender} {good if better else bad} than {baseline}{where(better or worse)}"
    if large:
        return f"{contender} differs from {baseline}{where(large)}"
    within = f" within ±{plain_number(delta)} %" if delta is not None else ""
    if all(m.verdict == "equal" for m in metrics):
        return f"{contender} and {baseline} are exactly equal" + ("" if len(metrics) == 1 else f" in all {total}")
    small = [m for m in metrics if shows_difference(m)]
    if small and any(not m.decided for m in metrics):
        return (
            f"No difference that matters shown between {contender} and {baseline}: too small to matter in {len(small)} of {total}, "
            f"{open_ones(metrics)}{former_verdicts(metrics)}"
        )
    if small:
        return f"{contender} differs from {baseline}{where(small)}, but by too little to matter"
    same = [m for m in metrics if m.verdict in SAME]
    if len(same) == len(metrics):
        everywhere = "" if len(metrics) == 1 else f" in all {total}"
        return f"{contender} and {baseline} are equivalent{within}{everywhere}{unseen_mode_text(same, each)}"
    if same:
        return (
            f"No difference shown between {contender} and {baseline}: "
            f"equivalent{within} in {len(same)} of {total}{unseen_mode_text(same, each)}, {open_ones(metrics)}{former_verdicts(metrics)}"
        )
    if any(m.depends for m in metrics):
        if len(metrics) == 1:
            return f"The sign of the difference between {contender} and {baseline} depends on {CONDITIONS}"
        return f"None of {total} differs robustly between {contender} and {baseline}: {open_ones(metrics)}"
    if any(m.contradicted for m in metrics):
        return f"Undecided: what {contender} and {baseline} showed at first is contradicted later, and a new run must tell{former_verdicts(metrics)}"
    if torn := torn_metrics(metrics) if all(m.torn for m in metrics) else []:
        return f"{NO_ONE_VERDICT.capitalize()}: they contradict each other. With {contender} against {baseline}, {machines_text(torn)}"
    return f"Undecided: {undecided_text(metrics, baseline, contender, fewest, waits)}{former_verdicts(metrics)}"


def undecided_text(
    metrics: Sequence[MetricResult], baseline: str, contender: str, fewest: int, waits: str = ""
) -> str:
    """Clause on why nothing is decided: too little was measured, or enough for a verdict, and no difference was seen."""
    if all(m.n < fewest and m.scale != "exact" for m in metrics):
        return f"too few trials for a verdict on {contender} against {baseline}"
    if shown := [m for m in metrics if excludes_zero(m)]:
        about = f"a verdict on {contender} against {baseline}"
        if waits:
            return f"no {about[2:]} yet: {waits}"
        if all(m.few for m in shown):
            return f"under so few conditions chance may make the difference between {contender} and {baseline}"
        if all(m.withheld and not m.torn for m in shown):
            return f"missing values forbid {about}"
        if all(m.confounded for m in shown):
            return f"the order of the trials cannot be told from the kernels, which forbids {about}"
        return f"the requirements of {about} are not met"
    return f"this run cannot distinguish {contender} from {baseline}"


def torn_metrics(metrics: Sequence[MetricResult]) -> list[MetricResult]:
    """The metrics without a verdict as a machine would have another one than the others."""
    return [m for m in metrics if m.torn]


def machines_text(torn: Sequence[MetricResult]) -> str:
    """`job/time is 5.19 % higher on rack1 (+4.67 to +5.72 %), 5.02 % lower on rack2 (−5.72 to −4.31 %); lower is better`: the first metric
    that machines contradict each other in, on those. A machine by itself has no verdict, and so neither the word better nor worse."""
    metric = torn[0]
    found = [one for one in metric.machines.effects if one.contradicts] if metric.machines else []
    unit = "%" if metric.scale == "ratio" else visible(metric.unit, 40)
    good = "" if metric.better == "none" else f"; {metric.better} is better"
    sizes = [(one.machine, *estimate_texts(one.effect, one.low, one.high, unit)) for one in found[:3]]
    # A size without a sign is none.
    ways = {"+": "higher", "−": "lower"}
    each = (
        f"{f'{size[1:]} {ways[size[0]]}' if size[0] in ways else 'the same'} on {visible(where, 100)} ({interval})"
        for where, size, interval in sizes
    )
    return f"{visible(metric.benchmark, 100)}/{visible(metric.metric, 100)} is {', '.join(each)}{good}"


def repeated_unit(results: Results) -> str:
    """Trials or boots, which were repeated: of an import nothing but that there were trials is known."""
    return "boots" if results.paired else "trials"


def disagreement(metrics: Sequence[MetricResult], kind: str) -> str:
    """End of a headline of which some metrics have no verdict for all machines."""
    torn = len(torn_metrics(metrics))
    some = f"; the machines contradict each other in {torn} of {plural(len(metrics), kind)}"
    return "" if torn in (0, len(metrics)) else some


def open_ones(metrics: Sequence[MetricResult]) -> str:
    """`2 depend on conditions that should not matter, undecided in 1`: the metrics that have no verdict."""
    depending = sum(m.depends for m in metrics)
    others = sum(m.verdict == "undecided" for m in metrics) - depending
    said = [f"{depending} {'depends' if depending == 1 else 'depend'} on {CONDITIONS}"] if depending else []
    return ", ".join([*said, f"undecided in {others}"] if others else said)


def former_verdicts(metrics: Sequence[MetricResult]) -> str:
    """Verdicts of earlier looks that did not hold, for a headline."""
    lost = [m for m in metrics if m.was]
    if len(metrics) == 1 and lost:
        return f" ({lost[0].was})"
    return f" (verdicts of earlier looks that no longer hold: {len(lost)})" if lost else ""


def unseen_mode_text(same: Sequence[MetricResult], each: str = "boots") -> str:
    """The slow mode that the verdicts of no difference cannot exclude, for a headline."""
    shares = [m.unseen_mode_pct for m in same if m.unseen_mode_pct is not None]
    return f" (a slow mode in up to {share_text(max(shares))} of {each} is not excluded)" if shares else ""
