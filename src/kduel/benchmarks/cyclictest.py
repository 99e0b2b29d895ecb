"""cyclictest: how late a task of real-time priority wakes up."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from msgspec import Meta, Struct, field

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw
from kduel.benchmarks.support import load
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.output import need_within
from kduel.benchmarks.support.parameters import Count, Threads
from kduel.benchmarks.support.reading import Amount, Natural, read_json_file
from kduel.core.experiment import Metric
from kduel.core.samples import Details, Distribution

REPORT = "cyclictest.json"


class Thread(Struct):
    """One thread of cyclictest's JSON; microseconds."""

    histogram: dict[Natural, Natural]
    cycles: Natural
    min: Natural
    max: Natural
    avg: Amount


class CyclictestReport(Struct):
    """Part of cyclictest's JSON (rt-tests 2.0 and later)."""

    num_threads: Natural
    return_code: int
    thread: dict[Natural, Thread]
    resolution_in_ns: Natural = 0
    """1 where all latencies are in nanoseconds (its option -N)."""
    cmdline: str = field(default="", name="cmdline:")


class CyclictestParameters(Parameters, frozen=True):
    """cyclictest's own, but a priority, 2,000 loops and locked memory, without which it is no measurement.

    It keeps the CPUs out of deep sleep (/dev/cpu_dma_latency) while it runs, as it always does. A histogram
    gives all threads one priority and one interval.
    """

    threads: Threads = 1
    priority: Annotated[int, Meta(ge=0, le=99)] = 80
    """0 is SCHED_OTHER."""
    interval: Count = 1000
    """Microseconds."""
    loops: Annotated[int, Meta(ge=1000, le=1_000_000_000)] = 2000
    """Loops of the first thread that finishes, which ends the test. With fewer than 1000, p99.9 is the maximum."""
    affinity: bool = False
    """Thread n on CPU n; without it the scheduler places them."""
    mlockall: bool = True
    histogram: Annotated[int, Meta(ge=1, le=1_000_000)] = 100_000
    """Microseconds up to which latencies are distinguished."""
    load: load.Load = "idle"


class Cyclictest(Benchmark[CyclictestParameters]):
    """Timer, wake-up and switch of a SCHED_FIFO task. Its maximum grows with the number of samples and is one event
    of one boot; the percentiles, from the histogram of all threads, are what to compare."""

    name = "cyclictest"
    summary = "Wake-up latency of real-time tasks: p99, p99.9, maximum; idle or under a load (cyclictest)"
    packages = ("rt-tests", *load.PACKAGES)
    distributions = ("latency",)
    label_template = "cyclictest-{load}-{threads}t"
    label_formats = {"priority": "p{}", "interval": "{}us", "loops": "{}l", "histogram": "to{}us"}

    def metrics(self, parameters: CyclictestParameters) -> tuple[Metric, ...]:
        what = load.describe(parameters.load)
        latest = "The latest wake-up: one event, more likely the longer it runs."
        average = "mean of the threads' averages, by their wake-ups"
        return with_aspect(
            "realtime-latency",
            Metric("latency-p99", "us", "lower", f"99 of 100 wake-ups were no later, {what}.", "p99"),
            Metric("latency-p99.9", "us", "lower", f"999 of 1000 wake-ups were no later, {what}.", "p999"),
            Metric("latency-avg", "us", "lower", "Mean of all wake-ups; hides the tail.", "mean", derived=average),
            Metric("latency-min", "us", "lower", "The path itself, without anything in its way.", "min"),
            Metric("latency-max", "us", "lower", latest, "max"),
        )

    def script(self, parameters: CyclictestParameters) -> str:
        p = parameters
        options = (" -a" if p.affinity else "") + (" -m" if p.mlockall else "")
        return load.wrap(
            p.load,
            f"cyclictest -q{options} -t{p.threads} -p{p.priority} -i{p.interval} -l{p.loops} -h{p.histogram}"
            f' --histfile=/dev/null --json="$KDUEL_STEP/{REPORT}"\n',
        )

    def seconds(self, parameters: CyclictestParameters) -> float:
        return 0.5 + float(parameters.interval * parameters.loops) / 1e6 + load.extra_seconds(parameters.load)

    def parse(self, raw: Raw, parameters: CyclictestParameters) -> dict[str, float]:
        report = read_json_file(raw, REPORT, CyclictestReport)
        if report.return_code != 0:
            raise ParseError(f"{REPORT}: the return code is {report.return_code}")
        threads = list(report.thread.values())
        if not len(threads) == report.num_threads == parameters.threads:
            raise ParseError(f"{REPORT} has {len(threads)} threads; asked for were {parameters.threads}")
        if max(thread.cycles for thread in threads) != parameters.loops:
            raise ParseError(f"{REPORT}: no thread ran the {parameters.loops} loops asked for")
        for number, thread in report.thread.items():
            check_thread(thread, f"{REPORT}: thread {number}", parameters)
        latencies: Counter[int] = Counter()
        for thread in threads:
            latencies.update(thread.histogram)
        total = sum(thread.cycles for thread in threads)
        found = {
            "latency-p99": percentile(latencies, total, 990),
            "latency-p99.9": percentile(latencies, total, 999),
            "latency-avg": sum(thread.avg * thread.cycles for thread in threads) / total,
            "latency-min": float(min(thread.min for thread in threads)),
            "latency-max": float(max(thread.max for thread in threads)),
        }
        return need_within(parameters.histogram, found)

    def details(self, raw: Raw, parameters: CyclictestParameters) -> Details:
        report = read_json_file(raw, REPORT, CyclictestReport)
        latencies: Counter[int] = Counter()
        for thread in report.thread.values():
            latencies.update(thread.histogram)
        beyond = sum(thread.cycles for thread in report.thread.values()) - latencies.total()
        largest = max(thread.max for thread in report.thread.values())
        found = Distribution.from_counts(latencies, "us", beyond=beyond, largest=largest)
        return Details(distributions={"latency-p99": found})


def check_thread(thread: Thread, where: str, parameters: CyclictestParameters) -> None:
    """Raises ParseError where a thread's figures do not fit each other or the parameters."""
    seen = {latency: count for latency, count in thread.histogram.items() if count}
    counted = sum(seen.values())
    if not 0 < thread.cycles <= parameters.loops:
        raise ParseError(f"{where} ran {thread.cycles} loops; asked for were {parameters.loops}")
    if min(seen, default=0) < 0 or min(seen.values(), default=0) < 0 or counted > thread.cycles:
        raise ParseError(f"{where}: the histogram does not fit the loops")
    if not 0 <= thread.min == min(seen, default=thread.min) <= thread.avg + 0.01 <= thread.max + 0.01:
        raise ParseError(f"{where}: minimum, average, maximum and histogram contradict each other")
    overflow = thread.max >= parameters.histogram
    if (counted < thread.cycles) != overflow or (not overflow and thread.max != max(seen, default=None)):
        raise ParseError(f"{where}: the histogram does not hold all {thread.cycles} wake-ups")
    missing = thread.cycles - counted
    beyond = thread.avg * thread.cycles - sum(latency * count for latency, count in seen.items())
    rounding = 0.0051 * thread.cycles
    if not missing * parameters.histogram - rounding <= beyond <= missing * thread.max + rounding:
        raise ParseError(f"{where}: the histogram's mean is not the printed average")


def percentile(latencies: Counter[int], total: int, per_mille: int) -> float | None:
    """The latency that `per_mille` thousandths of all `total` wake-ups do not exceed (nearest rank); None where it is one of those
    that are not in `latencies`, as they lie beyond the histogram."""
    rank = -(-total * per_mille // 1000)
    reached = 0
    for latency in sorted(latencies):
        reached += latencies[latency]
        if reached >= rank:
            return float(latency)
    return None


PLUGIN = Cyclictest()
