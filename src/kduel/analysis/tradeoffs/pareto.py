"""Throughput against latency against power: which contenders no other one beats, and where each stands."""

from collections.abc import Sequence

from msgspec import Struct, field

from kduel.analysis.tradeoffs.duels import Duels, duels
from kduel.core.experiment import Aspect, Statistic
from kduel.core.metric_results import MetricResult
from kduel.core.results import Results
from kduel.core.text import enumerate_names

AXES: dict[str, tuple[tuple[Aspect, ...], Statistic | None]] = {
    "throughput": (("throughput", "background-throughput", "scheduling"), None),
    "latency": (("wakeup-latency", "realtime-latency", "frame-latency"), "p99"),
    "power": (("power",), None),
}
"""By axis: its aspects, the better choice first, and their statistics; primary metrics go first."""


class Position(Struct, kw_only=True):
    """Position of a contender on an axis: its change against the baseline in per cent, with its interval."""

    contender: str
    effect: float
    low: float | None = None
    high: float | None = None
    """Both None for the baseline, which stands at 0 by definition."""
    verdict: str = ""


class Scale(Struct, kw_only=True):
    """An axis with the metric that stands for it."""

    axis: str
    benchmark: str
    metric: str
    better: str
    places: dict[str, Position]


class Front(Struct, kw_only=True):
    """Two or three scales, and the relation of the contenders on all of them together, by verdicts."""

    scales: list[Scale]
    contenders: list[str]
    beaten: dict[str, list[str]] = field(default_factory=dict)
    """By contender: by whom it is beaten, that is in no scale shown better, in one shown worse, in the others the same."""
    undecided: bool = False
    """Whether a verdict is missing that could still make somebody beaten."""

    @property
    def unbeaten(self) -> list[str]:
        """Those that no other is shown to beat."""
        return [name for name in self.contenders if name not in self.beaten]

    @property
    def statements(self) -> list[str]:
        over = enumerate_names([f"{scale.benchmark}/{scale.metric}" for scale in self.scales])
        said = [
            f"{name} is beaten by {enumerate_names(by)} over {over}: nowhere better, somewhere worse."
            for name, by in self.beaten.items()
        ]
        if len(self.unbeaten) == 1:
            said.append(f"{self.unbeaten[0]} beats every other over {over}.")
            return said
        rest = enumerate_names(self.unbeaten)
        if self.undecided:
            said.append(f"Not shown to be beaten over {over}: {rest}. Verdicts are missing for more.")
        else:
            said.append(f"Choosing among {rest} depends on preference: none beats another over {over}.")
        return said


def front(results: Results) -> Front | None:
    """The view, or None where fewer than two of the three were measured with intervals."""
    chosen = {axis: key for axis, wanted in AXES.items() if (key := metric_for(results, *wanted))}
    if len(chosen) < 2:
        return None
    held = {one.key: one for one in duels(results, list(dict.fromkeys(chosen.values())))}
    scales = []
    for axis, key in chosen.items():
        if key in held and (scale := scale_of(axis, held[key])):
            scales.append(scale)
    if len(scales) < 2:
        return None
    names = [name for name in held[next(iter(held))].contenders if all(name in scale.places for scale in scales)]
    if len(names) < 2:
        return None
    found = Front(scales=scales, contenders=names)
    judge_front(found, [held[scale.benchmark, scale.metric] for scale in scales])
    return found


def metric_for(results: Results, measured: Sequence[Aspect], statistic: Statistic | None) -> tuple[str, str] | None:
    """The metric that stands for an axis: primary before exploratory, then by the order of the aspects."""
    fitting = [
        metric
        for metric in results.metrics
        if metric.aspect in measured and statistic in (None, metric.statistic) and metric.scale == "ratio"
    ]
    if not fitting:
        return None
    best = min(fitting, key=lambda metric: (metric.role != "primary", measured.index(metric.aspect)))
    return best.benchmark, best.metric


def scale_of(axis: str, one: Duels) -> Scale | None:
    """The scale, or None where no contender has an interval on it."""
    baseline = one.contenders[0]
    places = {baseline: Position(contender=baseline, effect=0.0)}
    for name in one.contenders[1:]:
        result = one.results.get((baseline, name))
        if result is not None and (place := place_of(result)):
            places[name] = place
    if len(places) < 2:
        return None
    return Scale(
        axis=axis, benchmark=one.first.benchmark, metric=one.first.metric, better=one.first.better, places=places
    )


def place_of(result: MetricResult) -> Position | None:
    """Position of a result on its axis; None where its interval is unknown."""
    effect, low, high = result.effect_pct, result.ci_low_pct, result.ci_high_pct
    if effect is None or low is None or high is None:
        return None
    return Position(contender=result.contender, effect=effect, low=low, high=high, verdict=result.verdict)


def judge_front(found: Front, scales: Sequence[Duels]) -> None:
    """Fill in who is beaten by whom, and whether more could be."""
    for a in found.contenders:
        for b in found.contenders:
            if a == b:
                continue
            relations = [one.relation(b, a) for one in scales]
            if "worse" in relations:
                continue
            if "undecided" in relations:
                found.undecided = True
            elif "better" in relations:
                found.beaten.setdefault(a, []).append(b)
