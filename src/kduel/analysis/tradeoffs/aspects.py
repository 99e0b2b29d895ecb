"""The summary of a comparison: one row for each aspect measured, one column for each contender, the best marked."""

from collections.abc import Sequence
from statistics import stdev
from typing import Literal

from msgspec import Struct

from kduel.analysis.tradeoffs.duels import Duels, duels
from kduel.core.experiment import Aspect as Measured
from kduel.core.experiment import Statistic
from kduel.core.metric_results import MetricResult
from kduel.core.results import Results

LATENCIES: tuple[Measured, ...] = ("wakeup-latency", "realtime-latency", "frame-latency", "request-latency")
ROWS: dict[str, tuple[tuple[Measured, ...], Statistic | None]] = {
    "CPU throughput": (("throughput",), None), "memory bandwidth": (("memory-bandwidth",), None),
    "file I/O": (("storage-throughput",), None), "switching and waking": (("scheduling",), None),
    "latency, 99 %": (LATENCIES, "p99"), "latency, longest": (LATENCIES, "max"), "boot time": (("boot-time",), None),
    "work per energy": (("efficiency",), None), "power under load": (("power",), None),
    "power, idle": (("idle-power",), None), "modules loaded": (("modules",), None), "size": (("size",), None),
}  # fmt: skip
"""By title, in the order of the table: which aspects a row shows and, where it matters, which of their statistics."""

Standing = Literal["best", "shared", ""]
"""best: better than every other. shared: better than the rest, equal among themselves. Empty: not shown."""


class Aspect(Struct, kw_only=True):
    """One row. Means and SDs are of the values that the verdicts rest on."""

    name: str
    benchmark: str
    metric: str
    unit: str
    better: str
    means: dict[str, float | None]
    sds: dict[str, float | None]
    standing: dict[str, Standing]
    told: str
    """Why somebody is marked, or why nobody is."""


def row_of(metric: MetricResult) -> str | None:
    """The row in which a metric is shown, if any."""
    return next(
        (
            title
            for title, (measured, statistic) in ROWS.items()
            if metric.aspect in measured and statistic in (None, metric.statistic)
        ),
        None,
    )


def aspects(results: Results) -> list[Aspect]:
    """The rows, in the order of ROWS; empty where fewer than two contenders were measured."""
    if len(results.contenders) < 2:
        return []
    found = {(metric.benchmark, metric.metric): title for metric in results.metrics if (title := row_of(metric))}
    rank = list(ROWS)
    wanted = sorted(found, key=lambda key: rank.index(found[key]))
    return [row(found[one.key], one) for one in duels(results, wanted)]


def row(name: str, one: Duels) -> Aspect:
    there = [contender for contender in one.contenders if one.mean(contender) is not None]
    standing, told = best_of(one, there)
    return Aspect(
        name=name, benchmark=one.first.benchmark, metric=one.first.metric, unit=one.first.unit,
        better=one.first.better, means={contender: one.mean(contender) for contender in one.contenders},
        sds={name: stdev(mine) if len(mine := one.values[name]) > 1 else None for name in one.contenders},
        standing={contender: standing.get(contender, "") for contender in one.contenders}, told=told,
    )  # fmt: skip


def best_of(one: Duels, there: Sequence[str]) -> tuple[dict[str, Standing], str]:
    """Contenders that are marked, and why. None is where a verdict that the mark needs is missing."""
    if one.first.better == "none":
        return {}, "neither way is better"
    if len(there) < 2:
        return {}, "measured for one contender only"
    top = [a for a in there if not any(one.relation(b, a) == "better" for b in there)]
    rest = [b for b in there if b not in top]
    if not all(one.relation(a, b) == "better" for a in top for b in rest):
        return {}, "not decided between all that could be best"
    if len(top) == 1:
        return {top[0]: "best"}, "shown better than every other"
    if not all(one.relation(a, b) == "same" for a in top for b in top if a != b):
        return {}, "not decided" if not rest else "not decided between all that could be best"
    if not rest:
        return {}, "no difference that matters"
    return dict.fromkeys(top, "shared"), "shown better than the rest, without a difference that matters among them"
