"""oslat: how often, and for how long, a loop that never leaves user space is interrupted."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw
from kduel.benchmarks.support import load
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Count, Seconds
from kduel.benchmarks.support.reading import Amount, Natural, read_json_file
from kduel.core.experiment import Metric
from kduel.core.samples import Details, Distribution

REPORT = "oslat.json"
BUCKETS = 1024
"""Microseconds up to which oslat distinguishes durations; the last bucket has all that are longer."""


class Thread(Struct):
    """One thread of oslat's JSON; microseconds, by their upper end, and seconds."""

    histogram: dict[Natural, Natural]
    min: Natural
    avg: Amount
    max: Natural
    duration: Amount


class OslatReport(Struct):
    """Part of oslat's JSON."""

    num_threads: Natural
    return_code: int
    thread: dict[Natural, Thread]


class OslatParameters(Parameters, frozen=True):
    """A loop on every CPU, at normal priority: at real-time priority it would starve the kernel's own threads."""

    time: Seconds = 3
    over: Count = 20
    """Microseconds from which on a pass of the loop counts as an interruption."""
    load: load.Load = "idle"


class Oslat(Benchmark[OslatParameters]):
    """Interruptions that the kernel and its host cause, as a task sees them that polls and makes no system call."""

    name = "oslat"
    summary = "Interruptions of a loop in user space: how many a second, how long (oslat)"
    packages = ("rt-tests", *load.PACKAGES)
    distributions = ("interruption",)
    label_template = "oslat-{load}"
    label_formats = {"time": "{}s", "over": "over{}us"}

    def metrics(self, parameters: OslatParameters) -> tuple[Metric, ...]:
        rate = f"Interruptions of {parameters.over} us and more, a second and CPU."
        return with_aspect(
            "realtime-latency",
            Metric("interruptions", "1/s", "lower", rate, "mean", derived="counted / (seconds of all CPUs)"),
            Metric("interruption-max", "us", "lower", "The longest one; grows with the time.", "max"),
        )

    def script(self, parameters: OslatParameters) -> str:
        p = parameters
        return load.wrap(p.load, f'oslat -q -D {p.time} -b {BUCKETS} --json="$KDUEL_STEP/{REPORT}" >/dev/null\n')

    def seconds(self, parameters: OslatParameters) -> float:
        return 1.5 + parameters.time + load.extra_seconds(parameters.load)

    def parse(self, raw: Raw, parameters: OslatParameters) -> dict[str, float]:
        threads = read_threads(raw, parameters)
        counted = total(threads)
        return {
            "interruptions": sum(count for length, count in counted.items() if length >= parameters.over)
            / sum(thread.duration for thread in threads),
            "interruption-max": float(max(thread.max for thread in threads)),
        }

    def details(self, raw: Raw, parameters: OslatParameters) -> Details:
        threads = read_threads(raw, parameters)
        counted = total(threads)
        beyond = counted.pop(BUCKETS, 0)
        largest = max(thread.max for thread in threads)
        found = Distribution.of(counted, "us", beyond=beyond, largest=largest)
        return Details(distributions={"interruption-max": found})


def total(threads: list[Thread]) -> Counter[int]:
    """Passes of the loop by duration, of all threads."""
    found: Counter[int] = Counter()
    for thread in threads:
        found.update(thread.histogram)
    return found


def read_threads(raw: Raw, parameters: OslatParameters) -> list[Thread]:
    """The threads of the report. Raises ParseError where their figures do not fit each other or the parameters."""
    report = read_json_file(raw, REPORT, OslatReport)
    if report.return_code != 0:
        raise ParseError(f"{REPORT}: the return code is {report.return_code}")
    if not len(report.thread) == report.num_threads > 0:
        raise ParseError(f"{REPORT} has {len(report.thread)} threads and names {report.num_threads}")
    for number, thread in report.thread.items():
        where = f"{REPORT}: thread {number}"
        passes = sum(thread.histogram.values())
        seen = [length for length, count in thread.histogram.items() if count]
        if (
            not seen
            or min(seen) != max(thread.min, 1)
            or (max(seen) != thread.max and not max(seen) == BUCKETS <= thread.max)
        ):
            raise ParseError(f"{where}: minimum, maximum and histogram contradict each other")
        mean = sum(length * count for length, count in thread.histogram.items()) / passes
        longer = thread.histogram.get(BUCKETS, 0) * (thread.max - BUCKETS) / passes
        if not mean - 1e-5 <= thread.avg <= mean + longer + 1e-5:
            raise ParseError(f"{where}: the histogram's mean is {mean:g}, and the average {thread.avg:g}")
        if not parameters.time <= thread.duration + 0.05 * parameters.time:
            raise ParseError(f"{where} ran {thread.duration:g} s; asked for were {parameters.time}")
    return list(report.thread.values())


PLUGIN = Oslat()
