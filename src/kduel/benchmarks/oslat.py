"""oslat: how often, and for how long, a loop that never leaves user space is interrupted."""

from __future__ import annotations

import re
from collections import Counter

from msgspec import Struct

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw
from kduel.benchmarks.support import load
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Count, Seconds
from kduel.benchmarks.support.reading import Amount, Natural, read_json_file, read_whole, split_lines
from kduel.core.experiment import Metric
from kduel.core.samples import Details, Distribution

REPORT = "oslat.json"
BUCKETS = 1024
"""Microseconds up to which oslat distinguishes durations; the last bucket has all that are longer."""

ROW = re.compile(r"\s*(\d+) \(us\):\s+(\d[\d ]*?)(?: \(including overflows\))?")


class Thread(Struct):
    """One thread of oslat's JSON; microseconds, by their upper end, and seconds."""

    histogram: dict[Natural, Natural]
    min: Natural
    avg: Amount
    max: Natural
    duration: Amount


class OslatReport(Struct):
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
    name = "oslat"
    summary = "Interruptions of a loop in user space: how many a second, how long (oslat)"
    packages = ("rt-tests", *load.PACKAGES)
    distributions = ("interruption",)
    besides = 1.5
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
        return load.wrap(p.load, f'oslat -q -z -D {p.time} -b {BUCKETS} --json="$KDUEL_STEP/{REPORT}"\n')

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
        found = Distribution.from_counts(counted, "us", beyond=beyond, largest=largest)
        return Details(distributions={"interruption-max": found})


def total(threads: list[Thread]) -> Counter[int]:
    """Passes of the loop by duration, of all threads."""
    found: Counter[int] = Counter()
    for thread in threads:
        found.update(thread.histogram)
    return found


def read_threads(raw: Raw, parameters: OslatParameters) -> list[Thread]:
    """The threads of the report. Raises ParseError where figures do not fit each other, table or parameters."""
    report = read_json_file(raw, REPORT, OslatReport)
    if report.return_code != 0:
        raise ParseError(f"{REPORT}: the return code is {report.return_code}")
    threads = list(report.thread.values())
    if not len(threads) == report.num_threads > 0:
        raise ParseError(f"{REPORT} has {len(threads)} threads and names {report.num_threads}")
    printed = {
        read_whole(found[1].lstrip("0"), "a bucket"): [read_whole(one, "a count") for one in found[2].split()]
        for line in split_lines(raw.stdout, "stdout")
        if (found := ROW.fullmatch(line))
    }
    lengths = {length for thread in threads for length, count in thread.histogram.items() if count}
    counted = {length: [thread.histogram.get(length, 0) for thread in threads] for length in lengths}
    if counted != {length: counts for length, counts in printed.items() if any(counts)}:
        raise ParseError(f"the table in stdout is not the histogram in {REPORT}")
    for number, thread in report.thread.items():
        seen = [length for length, count in thread.histogram.items() if count]
        # A bucket is called after its upper end: since 2.5 the next microsecond, before that its own.
        if not seen or min(seen) - max(thread.min, 1) not in (0, 1):
            raise ParseError(f"{REPORT}: thread {number}: minimum and histogram contradict each other")
        if max(seen) - min(thread.max, BUCKETS) not in (0, 1) or not seen[0] <= thread.avg + 1 <= thread.max + 1:
            raise ParseError(f"{REPORT}: thread {number}: average, maximum and histogram contradict each other")
        if abs(thread.duration - parameters.time) > 0.1 * parameters.time + 0.5:
            raise ParseError(f"{REPORT}: thread {number} ran {thread.duration:g} s; asked for were {parameters.time}")
    return threads


PLUGIN = Oslat()
