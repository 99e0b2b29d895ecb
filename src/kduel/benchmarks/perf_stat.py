"""perf stat -a: the kernel's own count of switches and migrations over a window, idle or under a declared load."""

from __future__ import annotations

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw
from kduel.benchmarks.support import load, reading
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Seconds
from kduel.core.experiment import Metric

EVENTS = "context-switches,cpu-migrations,task-clock"
NANOSECONDS = {"msec": 1e6, "": 1.0}
"""In one unit of the task clock: perf 6.17 prints nanoseconds, and no unit with them."""


class PerfStatParameters(Parameters, frozen=True):
    """`time`: the window in seconds."""

    time: Seconds = 3
    load: load.Load = "idle"


class PerfStat(Benchmark[PerfStatParameters]):
    """System-wide counters. Idle they show the background (timers, kernel threads); what a scheduler does with
    work to be done shows only under a load, which the published study had none of."""

    name = "perf-stat"
    summary = "Context switches and migrations of the whole guest in a window, idle or under a load (perf stat -a)"
    packages = ("linux-perf", *load.PACKAGES)
    label_template = "perf-stat-{load}"
    label_formats = {"time": "{}s"}

    def metrics(self, parameters: PerfStatParameters) -> tuple[Metric, ...]:
        idle = "without load: the background, not the scheduler's work"
        window = f"in {parameters.time} s {idle if parameters.load == 'idle' else f'under {parameters.load}'}"
        about = "The measured window per CPU, by perf: the requested time, whatever the kernel."
        fixed = 1000.0 * parameters.time
        return (
            *with_aspect(
                "activity",
                Metric("context-switches", "switches", "lower", f"Task switches {window}.", "count"),
                Metric("cpu-migrations", "migrations", "lower", f"Tasks moved between CPUs {window}.", "count"),
            ),
            Metric("task-clock", "ms/CPU", "none", about, fixed_at=fixed, derived="task-clock / number of CPUs"),
        )

    def script(self, parameters: PerfStatParameters) -> str:
        return load.wrap(
            parameters.load,
            'nproc >"$KDUEL_STEP/cpus"\n'
            f'perf stat -a -x, -o "$KDUEL_STEP/counts.csv" -e {EVENTS} sleep {parameters.time}\n',
        )

    def parse(self, raw: Raw, parameters: PerfStatParameters) -> dict[str, float]:
        text = reading.read_file(raw, "counts.csv")
        cpus = reading.check_positive(
            reading.find_whole(r"(\S+)", reading.read_file(raw, "cpus"), "the number of CPUs"), "the number of CPUs"
        )
        return {
            "context-switches": read_count(text, "context-switches"),
            "cpu-migrations": read_count(text, "cpu-migrations"),
            "task-clock": reading.check_positive(read_task_clock(text), "task-clock") / cpus,
        }


def read_count(text: str, event: str) -> int:
    """An event's count. Raises ParseError where it has a unit, or perf could not count it all the time, or at all."""
    value, unit, _ = read_row(text, event)
    if unit:
        raise ParseError(f"{event} is in {unit[:20]!r}, where a plain count is expected")
    return reading.read_whole(value, event)


def read_task_clock(text: str) -> float:
    """CPU time of the window in ms. Raises ParseError for an unknown unit, or a time that the event did not run."""
    value, unit, ran = read_row(text, "task-clock")
    if unit not in NANOSECONDS:
        raise ParseError(f"task-clock is in {unit[:20]!r}, a unit that is not known")
    nanoseconds = reading.read_number(value, "task-clock") * NANOSECONDS[unit]
    reading.check_agreement(nanoseconds, ran, "task-clock in nanoseconds")
    return nanoseconds / 1e6


def read_row(text: str, event: str) -> tuple[str, str, int]:
    """An event's value, unit, and nanoseconds that it ran (`perf stat -x,`). Raises ParseError if not always counted."""
    rows = [line.split(",") for line in reading.split_lines(text, "the output of perf stat")]
    found = [row for row in rows if len(row) >= 5 and row[2] == event]
    if len(found) != 1:
        raise ParseError(f"the output has {len(found)} complete lines with {event}, not one")
    value, unit, _, ran, running = found[0][:5]
    if value.startswith("<"):
        raise ParseError(f"{event} is {value}: this kernel does not let perf count it")
    if reading.read_number(running, f"the share of the window in which {event} ran") != 100:
        raise ParseError(f"{event} was counted during {running} % of the window only")
    return value, unit, reading.read_whole(ran, f"the time in which {event} ran")


PLUGIN = PerfStat()
