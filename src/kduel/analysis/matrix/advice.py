"""Advice per use, no stronger than the verdicts: every sentence names those that it rests on."""

from collections.abc import Mapping

from msgspec import Struct, field, structs

from kduel.core.experiment import Aspect, Statistic
from kduel.core.format import MISSING, amount, effect_with_interval, percent
from kduel.core.metric_results import MetricResult
from kduel.core.results import Results
from kduel.core.text import list_few, plural
from kduel.judge.verdict.headline import matters

USES: dict[str, dict[Aspect, tuple[Statistic, ...]]] = {
    "desktop": {"frame-latency": ("p99", "max", "value"), "wakeup-latency": ("p99",)},
    "gaming": {"frame-latency": ("p99", "value"), "background-throughput": (), "wakeup-latency": ("p999",)},
    "audio": {"realtime-latency": ("p999", "max"), "wakeup-latency": ("p999", "max")},
    "power": {"efficiency": (), "power": (), "idle-power": ()},
    "throughput": {"throughput": (), "background-throughput": (), "scheduling": ()},
}
"""By use: the aspects that matter to it, each with the statistics that count (all, where none is named)."""
MANY = 3.0
"""From so large a change on, "5 times" is clearer than "+400 %"."""


class Support(Struct, frozen=True):
    """A verdict that a sentence rests on."""

    benchmark: str
    metric: str
    verdict: str
    effect: str


class Advice(Struct, kw_only=True):
    use: str
    contender: str
    baseline: str
    told: str
    """Empty support means that nothing is decided, as `told` states."""
    better: list[Support] = field(default_factory=list)
    worse: list[Support] = field(default_factory=list)
    same: list[Support] = field(default_factory=list)


def advise(results: Results) -> list[Advice]:
    """For every use that the run's gating metrics measured, and every contender, one sentence."""
    found = []
    for use, wanted in USES.items():
        for contender in [contender.name for contender in results.contenders[1:]]:
            speaking = [
                metric
                for metric in results.gating
                if metric.contender == contender
                and metric.better != "none"
                and not metric.by_harness
                and concerns(metric, wanted)
            ]
            if speaking:
                found.append(sentence(use, contender, speaking))
    return found


def concerns(metric: MetricResult, wanted: Mapping[Aspect, tuple[Statistic, ...]]) -> bool:
    statistics = wanted.get(metric.aspect)
    return statistics is not None and (not statistics or metric.statistic in statistics)


def sentence(use: str, contender: str, metrics: list[MetricResult]) -> Advice:
    baseline = metrics[0].baseline
    better = [support(m) for m in metrics if matters(m) and m.verdict in ("faster", "fewer")]
    worse = [support(m) for m in metrics if matters(m) and m.verdict in ("slower", "more")]
    same = [structs.replace(support(m), verdict="equivalent") for m in metrics if no_matter(m)]
    rest = other_metrics_text(len(same), len(metrics) - len(better) - len(worse) - len(same))
    if better and not worse:
        told = f"For {use}, {contender} is better than {baseline}: {list_supports(better)}{rest}."
    elif worse and not better:
        told = f"For {use}, {contender} is worse than {baseline}: {list_supports(worse)}{rest}."
    elif better:
        told = (
            f"For {use}, {contender} against {baseline} is a trade: better in {list_supports(better)}; "
            f"worse in {list_supports(worse)}{rest}."
        )
    elif len(same) == len(metrics):
        told = f"For {use}, {contender} and {baseline} make no difference that matters: {list_supports(same)}."
    else:
        told = f"For {use}, nothing is decided between {contender} and {baseline} ({plural(len(metrics), 'metric')} examined)."
    return Advice(use=use, contender=contender, baseline=baseline, told=told, better=better, worse=worse, same=same)


def no_matter(metric: MetricResult) -> bool:
    """True if it is shown that the difference, if any, is below the smallest one that matters."""
    decided = metric.verdict in ("faster", "slower", "more", "fewer")
    return metric.claimed and (metric.verdict in ("equivalent", "equal") or (decided and metric.below_delta))


def other_metrics_text(same: int, undecided: int) -> str:
    """Verdicts on the other metrics of the use: a sentence rests on all, not on the few that stand out."""
    words = [f"no difference that matters in {same} more"] if same else []
    words += [f"{undecided} more undecided"] if undecided else []
    return f" ({', '.join(words)})" if words else ""


def support(metric: MetricResult) -> Support:
    effect = effect_with_interval(metric)
    if metric.scale == "exact" and metric.effect is not None and metric.baseline_mean:
        share = metric.effect / abs(metric.baseline_mean)
        effect = f"{amount(1 + share, 1 + share)} times" if share > MANY else percent(100 * share)
    elif metric.scale == "difference" and metric.unit == "%":
        effect = effect.replace(" %", " percentage points")
    return Support(metric.benchmark, metric.metric, metric.verdict, "" if effect == MISSING else effect)


def list_supports(supports: list[Support]) -> str:
    """Names with effects, the first four."""
    return list_few([f"{s.benchmark} {s.metric} {s.effect}".strip() for s in supports], 4)
