"""A sentence on how sure the answer of a run is: on its verdicts, or on what is possible where it has none."""

from collections.abc import Sequence

from kduel.core.format import estimate_texts, plain_number
from kduel.core.metric_results import MetricResult
from kduel.core.results import Results
from kduel.judge.verdict.comparison import is_of_time
from kduel.judge.verdict.headline import excludes_zero
from kduel.judge.verdict.unfinished import EMULATED
from kduel.report.content.evidence import evidence
from kduel.report.content.matrixtext import all_placed
from kduel.report.content.overview import too_early

SURE = "How sure: "
REPEATS = f"{SURE}exact, a repetition gives the same numbers"
TORN = "{} % confidence that the contradiction is not chance; each interval is of one machine alone"
ONCE = "not at all: each contender was measured once, so that any difference may be chance"
ONCE_OR_NOT = "not at all: nothing was measured more than once"
REAL = ": not the times of real hardware"


def certainty(results: Results) -> str:
    """The sentence without its full stop; empty where there is nothing to say."""
    judged = [m for m in results.gating if not m.by_harness]
    metrics = [m for m in judged if m.claimed]
    level = f"{plain_number(round(100 * (1 - results.study.alpha), 3))} % confidence"
    every = "both" if len(judged) == 2 else f"all {len(judged)}"
    of = f" of {len({m.metric for m in judged})} metrics" if all_placed(results) else ""
    sure = level + (f" for {every} comparisons{of} together" if len(judged) > 1 else "")
    if metrics and all(m.scale == "exact" for m in metrics):
        if evidence(results).varies:
            return ""
        if not results.machine.resolution:
            return f"{SURE}exact, in virtual time{REAL}" if any(is_of_time(m.unit) for m in metrics) else REPEATS
    if not metrics:
        sure = without_verdict(judged, sure, level)
    elif any(m.hint for m in metrics):
        sure = f"hints only, as no primary metric is named: {level} in each by itself, not in all together"
    if not sure:
        return ""
    if results.machine.resolution:
        return f"{SURE}{sure}; conditions are a sample; in virtual time{REAL}" if metrics else ""
    return f"{SURE}{sure}; {EMULATED}" if results.machine.unreal else f"{SURE}{sure}"


def without_verdict(judged: Sequence[MetricResult], sure: str, level: str) -> str:
    """Clause on which changes are possible still, where no interval hides or shows more than that; else empty."""
    measured = [m for m in judged if m.n]
    if judged and all(m.torn for m in judged):
        return TORN.format(level.removesuffix(" % confidence"))
    if any(m.scale == "exact" or m.withheld or m.contradicted for m in measured):
        return ""
    if measured and all(m.n == 1 for m in measured):
        return ONCE if len(measured) == len(judged) else ONCE_OR_NOT
    if not measured or len(measured) < len(judged):
        return ""
    ends = [
        (m.ci_low_pct, m.ci_high_pct)
        for m in measured
        if m.scale == "ratio" and not too_early(m) and not excludes_zero(m) and not m.confounded
    ]
    known = [(low, high) for low, high in ends if low is not None and high is not None]
    if len(known) < len(measured):
        return ""
    low, high = min(low for low, _ in known), max(high for _, high in known)
    together = f"{level} each" if any(m.hint for m in measured) else sure
    return f"changes from {estimate_texts(0.0, low, high, '%')[1]} are still possible ({together})"
