"""perf stat -a: the kernel's own count of switches and migrations over a window, idle or under a declared load."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kduel.benchmarks import Benchmark, ParseError, Raw
from kduel.benchmarks.support import load
from kduel.benchmarks.support.parameters import Seconds, label_of
from kduel.benchmarks.support.reading import agree, file, number, only_whole, positive, whole, whole_lines
from kduel.core.experiment import Metric

EVENTS = "context-switches,cpu-migrations,task-clock"
NANOSECONDS = {"msec": 1e6, "": 1.0}
"""In one unit of the task clock: perf 6.17 prints nanoseconds, and no unit with them."""


class PerfStat(Benchmark):
    """System-wide counters. Idle they show the background (timers, kernel threads); what a scheduler does with
    work to be done shows only under a load, which the published study had none of."""

    name = "perf-stat"
    summary = "Context switches and migrations of the whole guest in a window, idle or under a load (perf stat -a)"
    packages = ("linux-perf", *load.PACKAGES)

    class Parameters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """`time`: the window in seconds."""

        time: Seconds = 3
        load: load.Load = "idle"

    def label(self, parameters: Any) -> str:
        return label_of("perf-stat-{load}", parameters, time="{}s")

    def metrics(self, parameters: Any) -> tuple[Metric, ...]:
        window = f"in {parameters.time} s " + (
            "without load: the background, not the scheduler's work"
            if parameters.load == "idle"
            else f"under {parameters.load}"
        )
        return (
            Metric("context-switches", "switches", "lower", f"Task switches {window}.", "count", aspect="activity"),
            Metric(
                "cpu-migrations",
                "migrations",
                "lower",
                f"Tasks moved between CPUs {window}.",
                "count",
                aspect="activity",
            ),
            Metric(
                "task-clock",
                "ms/CPU",
                "none",
                "The measured window per CPU, by perf: the requested time, whatever the kernel.",
                "value",
                fixed_at=1000.0 * parameters.time,
                derived="task-clock / number of CPUs",
            ),
        )

    def script(self, parameters: Any) -> str:
        return load.under(
            parameters.load,
            'nproc >"$KDUEL_STEP/cpus"\n'
            f'perf stat -a -x, -o "$KDUEL_STEP/counts.csv" -e {EVENTS} sleep {parameters.time}\n',
        )

    def seconds(self, parameters: Any) -> float:
        return float(parameters.time) + load.seconds(parameters.load)

    def parse(self, raw: Raw, parameters: Any) -> dict[str, float]:
        text = file(raw, "counts.csv")
        cpus = positive(only_whole(r"(\S+)", file(raw, "cpus"), "the number of CPUs"), "the number of CPUs")
        return {
            "context-switches": counted(text, "context-switches"),
            "cpu-migrations": counted(text, "cpu-migrations"),
            "task-clock": positive(task_clock(text), "task-clock") / cpus,
        }


def counted(text: str, event: str) -> int:
    """An event's count. Raises ParseError where it has a unit, or perf could not count it all the time, or at all."""
    value, unit, _ = row(text, event)
    if unit:
        raise ParseError(f"{event} is in {unit[:20]!r}, where a plain count is expected")
    return whole(value, event)


def task_clock(text: str) -> float:
    """CPU time of the window in milliseconds.

    Raises ParseError where its unit is none that is known, or it is not the time that the event itself ran.
    """
    value, unit, ran = row(text, "task-clock")
    if unit not in NANOSECONDS:
        raise ParseError(f"task-clock is in {unit[:20]!r}, a unit that is not known")
    nanoseconds = number(value, "task-clock") * NANOSECONDS[unit]
    agree(nanoseconds, ran, "task-clock in nanoseconds")
    return nanoseconds / 1e6


def row(text: str, event: str) -> tuple[str, str, int]:
    """An event's value, its unit, and the nanoseconds that it ran, from `perf stat -x,`: value, unit, event, time it
    ran, per cent of the window, and more.

    Raises ParseError where perf could not count it all the time, or at all.
    """
    rows = [line.split(",") for line in whole_lines(text, "the output of perf stat")]
    found = [row for row in rows if len(row) >= 5 and row[2] == event]
    if len(found) != 1:
        raise ParseError(f"the output has {len(found)} complete lines with {event}, not one")
    value, unit, _, ran, running = found[0][:5]
    if value.startswith("<"):
        raise ParseError(f"{event} is {value}: this kernel does not let perf count it")
    if number(running, f"the share of the window in which {event} ran") != 100:
        raise ParseError(f"{event} was counted during {running} % of the window only")
    return value, unit, whole(ran, f"the time in which {event} ran")


PLUGIN = PerfStat()
