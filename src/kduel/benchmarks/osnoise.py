"""osnoise: how long the kernel's own tracer is kept from running, by interrupts, threads and the host (rtla)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from kduel.benchmarks import Benchmark, Parameters, Raw
from kduel.benchmarks.support import load
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Count, Seconds
from kduel.benchmarks.support.rtla import PACKAGE, read_histogram
from kduel.core.experiment import Metric
from kduel.core.samples import Details, Distribution


class OsnoiseParameters(Parameters, frozen=True):
    """Each period of 50 ms the tracer watches for 45 ms, so that the kernel's own threads can run."""

    time: Seconds = 4
    over: Count = 20
    """Microseconds from which on a gap counts as noise: an emulator translates, which takes some."""
    histogram: Annotated[int, Meta(ge=10, le=9_999_999)] = 20_000
    """Microseconds up to which durations are distinguished."""
    load: load.Load = "idle"


class Osnoise(Benchmark[OsnoiseParameters]):
    name = "osnoise"
    summary = "Gaps in a kernel thread's loop on every CPU: how many a second, how long (rtla osnoise)"
    packages = (PACKAGE, *load.PACKAGES)
    kernel_options = ("OSNOISE_TRACER",)
    distributions = ("noise",)
    besides = 1.0
    label_template = "osnoise-{load}"
    label_formats = {"time": "{}s", "over": "over{}us", "histogram": "to{}us"}

    def metrics(self, parameters: OsnoiseParameters) -> tuple[Metric, ...]:
        many = f"Gaps of {parameters.over} us and more, a second, of all CPUs together."
        return with_aspect(
            "realtime-latency",
            Metric("gaps", "1/s", "lower", many, "mean", derived="counted / seconds"),
            Metric("noise-max", "us", "lower", "The longest gap; grows with the time.", "max"),
        )

    def script(self, parameters: OsnoiseParameters) -> str:
        p = parameters
        return load.wrap(p.load, f"rtla osnoise hist -d {p.time}s -p 50000 -r 45000 -E {p.histogram}\n")

    def parse(self, raw: Raw, parameters: OsnoiseParameters) -> dict[str, float]:
        found = read_histogram(raw.stdout, "CPU")
        gaps = sum(count for length, count in found.counts.items() if length >= parameters.over) + found.beyond
        return {"gaps": gaps / parameters.time, "noise-max": float(found.largest)}

    def details(self, raw: Raw, parameters: OsnoiseParameters) -> Details:
        found = read_histogram(raw.stdout, "CPU")
        kept = Distribution.from_counts(found.counts, "us", beyond=found.beyond, largest=found.largest)
        return Details(distributions={"noise-max": kept})


PLUGIN = Osnoise()
