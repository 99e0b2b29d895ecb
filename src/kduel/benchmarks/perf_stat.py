"""perf stat -a: the kernel's own count of switches and migrations over a window, idle or under a declared load."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kduel.benchmarks import Benchmark, ParseError, Raw
from kduel.benchmarks.support import load
from kduel.benchmarks.support.parameters import Seconds, label_of
from kduel.benchmarks.support.reading import file, number, only_number, positive
from kduel.core.experiment import Metric

EVENTS = ("context-switches", "cpu-migrations", "task-clock")


class PerfStat(Benchmark):
    """System-wide counters. Idle they tell of the background (timers, kernel threads); what a scheduler does with
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
            Metric("context-switches", "switches", "lower", f"Task switches {window}.", "count"),
            Metric("cpu-migrations", "migrations", "lower", f"Tasks moved between CPUs {window}.", "count"),
            Metric(
                "task-clock",
                "ms/CPU",
                "none",
                "The window as perf saw it, per CPU: it is the time asked for, whatever the kernel.",
                "value",
                fixed_at=1000.0 * parameters.time,
            ),
        )

    def script(self, parameters: Any) -> str:
        return load.under(
            parameters.load,
            'nproc >"$KDUEL_STEP/cpus"\n'
            f'perf stat -a -x, -o "$KDUEL_STEP/counts.csv" -e {",".join(EVENTS)} sleep {parameters.time}\n',
        )

    def seconds(self, parameters: Any) -> float:
        return float(parameters.time) + load.seconds(parameters.load)

    def parse(self, raw: Raw, parameters: Any) -> dict[str, float]:
        text = file(raw, "counts.csv")
        values = {}
        for event in EVENTS:
            values[event] = counted(text, event)
        cpus = positive(only_number(r"(\S+)", file(raw, "cpus"), "the number of CPUs"), "the number of CPUs")
        values["task-clock"] = positive(values["task-clock"], "task-clock") / cpus
        return values


def counted(text: str, event: str) -> float:
    """An event's count from `perf stat -x,`: value, unit, event, time it ran, per cent of the window, and more.

    Raises ParseError where perf could not count it all the time, or at all.
    """
    rows = [line.split(",") for line in text.split("\n")[:-1]]
    found = [row for row in rows if len(row) >= 5 and row[2] == event]
    if len(found) != 1:
        raise ParseError(f"the output has {len(found)} whole lines with {event}, not one")
    value, _, _, _, running = found[0][:5]
    if value.startswith("<"):
        raise ParseError(f"{event} is {value}: this kernel does not let perf count it")
    if number(running, f"the share of the window in which {event} ran") != 100:
        raise ParseError(f"{event} was counted during {running} % of the window only")
    return number(value, event)


PLUGIN = PerfStat()
