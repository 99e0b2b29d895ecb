"""The scheduler's own counters around each step, as one table a step: wake-ups, waits, and balancing by level of domains."""

import itertools
from collections.abc import Iterator, Sequence

from msgspec import Struct

from kduel.benchmarks.support import delays
from kduel.benchmarks.support.schedstat import GROUP, LEVELS, of_level
from kduel.core.format import MISSING, arms, effect, interval_text, shown_unit
from kduel.core.metric_results import MetricResult
from kduel.core.results import Results
from kduel.core.text import align_columns, plural, visible

PREFIX = "sched-"
WAKEUPS = ("wakeups", "wakeups-local", "local-share", "wakeups-remote", "wakeups-affine")
WAITS = (
    *("schedules", "idle-switches", "switches", "time-slices", "run-time", "run-delay", "delay-per-slice", "yields"),
    *("pressure-cpu", "pressure-io", "pressure-memory"),
)
OF_LEVEL = (
    *("newidle-calls", "newidle-failed", "newidle-pulled", "idle-pulled", "busy-pulled", "active-pushed"),
    *("wakeups-remote", "remote-share", "wakeups-affine"),
)


class CounterRow(Struct, frozen=True, kw_only=True):
    """A counter in both contenders; cells as they are shown."""

    name: str
    about: str
    before: str
    after: str
    change: str
    interval: str
    word: str

    @property
    def cells(self) -> tuple[str, ...]:
        return self.name, self.before, self.after, self.change, self.interval, self.word


class CounterTable(Struct, frozen=True, kw_only=True):
    """The counters around one step, of one contender against the baseline."""

    step: str
    baseline: str
    contender: str
    parts: list[tuple[str, list[CounterRow]]]
    """What a part is about, and its rows."""

    @property
    def title(self) -> str:
        return f"{self.step}: {self.contender} against {self.baseline}"


def counter_tables(results: Results) -> list[CounterTable]:
    """A table for each step whose counters were kept, and each contender."""
    found: dict[tuple[str, str, str], dict[str, MetricResult]] = {}
    for metric in results.metrics:
        if metric.group == GROUP and metric.metric.startswith(PREFIX):
            key = metric.benchmark, metric.baseline, metric.contender
            found.setdefault(key, {})[metric.metric.removeprefix(PREFIX)] = metric
    return [
        CounterTable(
            step=visible(step, 200),
            baseline=visible(baseline, 200),
            contender=visible(contender, 200),
            parts=list(_parts(counters, level_names(results, (baseline, contender)))),
        )
        for (step, baseline, contender), counters in found.items()
    ]


def _parts(counters: dict[str, MetricResult], levels: Sequence[str]) -> Iterator[tuple[str, list[CounterRow]]]:
    several = any(of_level(name, 1) in counters for name in OF_LEVEL)
    whole = () if several else OF_LEVEL
    chosen = [("wake-ups", {name: name for name in WAKEUPS}), ("running and waiting", {name: name for name in WAITS})]
    # A kernel that does not count a kind of delay has no 0 of it; where neither has any, the program may not have been there.
    counted = [name for name in delays.ABOUT if name in counters and counters[name].n]
    missing = ", ".join(name for name in delays.ABOUT if name not in counted)
    waits = f"delays of tasks{missing and f'; not counted by both: {missing}'}"
    if not counted:
        waits = "delays of tasks: not counted by both kernels (CONFIG_TASKSTATS, CONFIG_TASK_DELAY_ACCT)"
    chosen.append((waits, {name: name for name in counted}))
    chosen.append(("balancing", {name: name for name in whole if name not in WAKEUPS}))
    for level in range(LEVELS):
        size = levels[level] if level < len(levels) else ""
        heading = f"domains of level {level}{size and f', {size}'}"
        chosen.append((heading, {of_level(name, level): name for name in OF_LEVEL}))
    for heading, names in chosen:
        rows = [_row(counters[key], name) for key, name in names.items() if key in counters]
        if rows or (heading is waits and any(name in counters for name in delays.ABOUT)):
            yield heading, rows


def _row(metric: MetricResult, name: str) -> CounterRow:
    unit = "" if metric.unit == "count" else f", {shown_unit(metric)}"
    (before, _), (after, _) = arms(metric)
    if metric.baseline_mean == metric.mean == 0:
        return CounterRow(name=f"{name}{unit}", about="", before="0", after="0", change="", interval="", word="")
    interval = interval_text(metric)
    return CounterRow(
        name=f"{name}{unit}", about=metric.about.partition(", ")[0], before=before, after=after,
        change=effect(metric), interval="" if interval == MISSING else interval,
        word="" if metric.n < 2 else metric.word,
    )  # fmt: skip


def level_names(results: Results, contenders: Sequence[str]) -> list[str]:
    """Number of CPUs in the domains of each level, by what the contenders' kernels showed; empty where they showed none."""
    sizes: dict[int, set[int]] = {}
    for name in contenders:
        topology = results.environment.get(name, {}).get("topology")
        lines = topology.get("domains", []) if isinstance(topology, dict) else []
        for line in map(str, lines if isinstance(lines, list) else []):
            for level, word in enumerate(line.partition(":")[2].split()):
                if word.isdecimal():
                    sizes.setdefault(level, set()).add(int(word))
    ordered = [sorted(sizes[level]) for level in sorted(sizes)]
    return [" or ".join([*map(str, found[:-1]), plural(found[-1], "CPU")]) for found in ordered]


def counters_text(tables: Sequence[CounterTable]) -> str:
    lines = []
    for table in tables:
        head = ("", table.baseline, table.contender, "change", "interval", "")
        rows = [head, *(row.cells for _, rows in table.parts for row in rows)]
        aligned = (f"  {line}".rstrip() for line in align_columns(rows, left=(0, len(head) - 1)))
        lines += [table.title, "", next(aligned)]
        for heading, part in table.parts:
            lines += [heading, *itertools.islice(aligned, len(part))]
        lines.append("")
    return "\n".join(line.rstrip() for line in lines)
