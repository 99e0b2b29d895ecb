"""The summary of a comparison: a row for each aspect that was measured, a column a contender, the best ones marked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from kduel.analysis.matrix.shape import deviation
from kduel.analysis.tradeoffs.duels import Duels, duels
from kduel.core.results import Results

ASPECTS: dict[str, str] = {
    "CPU throughput": r"(?!power|turbostat).*/events-per-second",
    "memory bandwidth": r".*memory.*/throughput",
    "file I/O": r".*/((read|write)-bandwidth|read|written)|.*file.*/throughput",
    "switching and waking": r"(hackbench|context-switch).*/time|perf-sched.*/(total-time|time-per-operation)"
    r"|kload.*/wall|stress-ng.*/operations-per-second|.*/requests-per-second",
    "latency, 99 %": r".*/((latency|wakeup|frame|request)-p99)",
    "latency, longest": r"(cyclictest|wakeup|latency|desktop).*/((latency|frame)-max|max-latency)",
    "boot time": r"boot.*/(total|time)",
    "work per energy": r".*/events-per-joule",
    "power under load": r"power.*/load(-power)?|turbostat.*/package-power",
    "power, idle": r"power.*/idle(-power)?",
    "modules loaded": r".*/modules",
    "initramfs": r".*/initramfs",
}
"""By aspect, in the order of the table: a regular expression of the metrics, BENCHMARK/METRIC, that speak of it."""

Standing = Literal["best", "shared", ""]
"""best: shown better than every other. shared: shown better than the rest, and none of those that share it shown to differ
by what matters. Empty: the verdicts carry neither."""


class Aspect(Struct, kw_only=True):
    """One row."""

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


def aspect_of(benchmark: str, metric: str) -> str | None:
    """The aspect that a metric speaks of, if any. Imported metrics may be written with underscores."""
    name = f"{benchmark}/{metric}".replace("_", "-")
    return next((aspect for aspect, pattern in ASPECTS.items() if re.fullmatch(pattern, name)), None)


def aspects(results: Results) -> list[Aspect]:
    """The rows, in the order of ASPECTS; empty where fewer than two contenders were measured."""
    if len(results.contenders) < 2:
        return []
    found: dict[tuple[str, str], str] = {}
    for metric in results.metrics:
        name = aspect_of(metric.benchmark, metric.metric)
        if name is not None:
            found[metric.benchmark, metric.metric] = name
    rank = list(ASPECTS)
    wanted = sorted(found, key=lambda key: rank.index(found[key]))
    return [row(found[one.key], one) for one in duels(results, wanted)]


def row(name: str, one: Duels) -> Aspect:
    """One metric's row."""
    there = [contender for contender in one.contenders if one.mean(contender) is not None]
    standing, told = best_of(one, there)
    return Aspect(
        name=name,
        benchmark=one.first.benchmark,
        metric=one.first.metric,
        unit=one.first.unit,
        better=one.first.better,
        means={contender: one.mean(contender) for contender in one.contenders},
        sds={
            contender: deviation([value for value in one.values[contender] if value is not None])
            for contender in one.contenders
        },
        standing={contender: standing.get(contender, "") for contender in one.contenders},
        told=told,
    )


def best_of(one: Duels, there: Sequence[str]) -> tuple[dict[str, Standing], str]:
    """Who is marked, and why. Nobody is where a verdict that the mark needs is missing."""
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
