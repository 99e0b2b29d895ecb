"""timerlat: how late the kernel's own tracer sees its timer's interrupt, and the thread that it wakes (rtla)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from kduel.benchmarks import Benchmark, Parameters, Raw
from kduel.benchmarks.cyclictest import percentile
from kduel.benchmarks.support import load
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.output import need_within
from kduel.benchmarks.support.parameters import Count, Seconds
from kduel.benchmarks.support.rtla import PACKAGE, Histogram, read_histogram
from kduel.core.experiment import Metric
from kduel.core.samples import Details, Distribution

COUNTED = "nearest rank in the histograms of all CPUs"


class TimerlatParameters(Parameters, frozen=True):
    """rtla's own, but a period that a slow machine keeps up with."""

    time: Seconds = 3
    period: Count = 2000
    """Microseconds."""
    priority: Annotated[int, Meta(ge=1, le=99)] = 80
    histogram: Annotated[int, Meta(ge=10, le=9_999_999)] = 20_000
    """Microseconds up to which durations are distinguished."""
    load: load.Load = "idle"


class Timerlat(Benchmark[TimerlatParameters]):
    """The threads are the kernel's. The interrupt's latency is a part of the thread's: what lies between them is the scheduler's."""

    name = "timerlat"
    summary = "Latency of a timer's interrupt and of the thread it wakes, by the kernel's tracer (rtla timerlat)"
    packages = (PACKAGE, *load.PACKAGES)
    kernel_options = ("TIMERLAT_TRACER",)
    distributions = ("latency", "interrupt")
    besides = 1.0
    label_template = "timerlat-{load}"
    label_formats = {"time": "{}s", "period": "{}us", "priority": "p{}", "histogram": "to{}us"}
    declared_metrics = with_aspect(
        "realtime-latency",
        Metric("latency-p99", "us", "lower", "99 of 100 threads ran no later.", "p99", derived=COUNTED),
        Metric("interrupt-p99", "us", "lower", "99 of 100 interrupts came no later.", "p99", derived=COUNTED),
        Metric("latency-max", "us", "lower", "The latest thread; grows with the time.", "max"),
    )

    def script(self, parameters: TimerlatParameters) -> str:
        p = parameters
        return load.wrap(
            p.load, f"rtla timerlat hist -d {p.time}s -p {p.period} -P f:{p.priority} -E {p.histogram}\n"
        )

    def parse(self, raw: Raw, parameters: TimerlatParameters) -> dict[str, float]:
        threads, interrupts = read_both(raw)
        found = {
            "latency-p99": read_p99(threads),
            "interrupt-p99": read_p99(interrupts),
            "latency-max": float(threads.largest),
        }
        return need_within(parameters.histogram, found)

    def details(self, raw: Raw, parameters: TimerlatParameters) -> Details:
        names = ("latency-p99", "interrupt-p99")
        return Details(
            distributions={
                name: Distribution.from_counts(one.counts, "us", beyond=one.beyond, largest=one.largest)
                for name, one in zip(names, read_both(raw), strict=True)
            }
        )


def read_both(raw: Raw) -> tuple[Histogram, Histogram]:
    """Threads, and interrupts."""
    return read_histogram(raw.stdout, "Thr"), read_histogram(raw.stdout, "IRQ")


def read_p99(found: Histogram) -> float | None:
    """The value that 99 of 100 do not exceed; None beyond the histogram."""
    return percentile(found.counts, found.counts.total() + found.beyond, 990)


PLUGIN = Timerlat()
