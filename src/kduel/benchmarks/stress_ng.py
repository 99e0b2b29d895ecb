"""stress-ng: one kind of kernel work at a time, in bogus operations a second."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from kduel.benchmarks import Benchmark, ParseError, Raw
from kduel.benchmarks.support.parameters import Number, Seconds, label_of
from kduel.benchmarks.support.reading import agree, file, only_number, positive
from kduel.core.experiment import Metric

REPORT = "metrics.yaml"
ABOUT = {
    "switch": "task switches over a pipe",
    "context": "switches of user contexts (signal masks in the kernel, no scheduler)",
    "yield": "sched_yield",
    "pipe": "writes and reads through a pipe",
    "futex": "waits and wakes on a futex",
    "sem": "POSIX semaphores between threads",
    "eventfd": "messages over an eventfd",
    "sock": "connections over a local socket",
    "fork": "fork, exit and wait",
    "vfork": "vfork, exit and wait",
    "clone": "clone with many sets of flags",
    "pthread": "threads started and joined",
    "mmap": "mappings made, touched, protected, removed",
    "fault": "page faults",
    "timer": "POSIX timers that fire",
    "nanosleep": "short sleeps",
}
"""The stressors that measure the kernel rather than the processor, and what one does."""

OPTIONS = {"mmap": ("--mmap-bytes 1m",)}
"""stress-ng's own 256 MiB are about one operation a second: too few to count."""

Stressor = Literal[
    "switch", "context", "yield", "pipe", "futex", "sem", "eventfd", "sock", "fork", "vfork", "clone", "pthread",
    "mmap", "fault", "timer", "nanosleep",
]  # fmt: skip


class StressNg(Benchmark):
    """Its operations are comparable between kernels under one version of stress-ng, and under no other: every
    release changes what one is. List the stressors for a matrix."""

    name = "stress-ng"
    summary = "One kind of kernel work a step: switch, fork, pipe, mmap, futex and more (stress-ng)"
    packages = ("stress-ng",)

    class Parameters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """One second of one instance; stress-ng itself would run for a day."""

        stressor: Stressor = "switch"
        instances: Number = 1
        """0: one a CPU."""
        time: Seconds = 1
        pinned: bool = False
        """All on CPU 0."""

    def label(self, parameters: Any) -> str:
        return label_of("stress-ng-{stressor}", parameters, instances="{}x", time="{}s")

    def metrics(self, parameters: Any) -> tuple[Metric, ...]:
        what = ABOUT[parameters.stressor]
        return (
            Metric("operations-per-second", "ops/s", "higher", f"By the clock: {what}.", "mean", aspect="scheduling"),
            Metric(
                "operations-per-cpu-second",
                "ops/s",
                "higher",
                "By the time on a CPU: what one costs, waiting left out; only as exact as the kernel's accounting.",
                "mean",
                aspect="operation-rate",
            ),
        )

    def script(self, parameters: Any) -> str:
        p = parameters
        more = " --taskset 0" if p.pinned else ""
        more += "".join(f" {option}" for option in OPTIONS.get(p.stressor, ()))
        return (
            f"stress-ng --{p.stressor} {p.instances}{more} --timeout {p.time}s --temp-path . --metrics-brief"
            f' --yaml "$KDUEL_STEP/{REPORT}"\n'
        )

    def seconds(self, parameters: Any) -> float:
        return float(parameters.time) + 0.5

    def parse(self, raw: Raw, parameters: Any) -> dict[str, float]:
        text = file(raw, REPORT)
        if not text.startswith("---\n") or not text.endswith("\n...\n"):
            raise ParseError(f"{REPORT} is incomplete: it lacks its beginning or its end")
        metrics = text.partition("\nmetrics:\n")[2]
        stressors = metrics.count("    - stressor: ")
        if stressors != 1 or f"- stressor: {parameters.stressor}\n" not in metrics:
            raise ParseError(f"{REPORT} has no metrics of the stressor {parameters.stressor} alone")

        def value(key: str) -> float:
            # Six spaces: from 0.20 on each instance has its own figures too, further to the right.
            return only_number(rf" {{6}}{key}: (\S+)", metrics, key)

        rate = value("bogo-ops-per-second-real-time")
        agree(
            rate, value("bogo-ops") / positive(value("wall-clock-time"), "wall-clock-time"), "operations per second"
        )
        return {
            "operations-per-second": positive(rate, "operations per second"),
            "operations-per-cpu-second": positive(
                value("bogo-ops-per-second-usr-sys-time"), "operations per second on a CPU"
            ),
        }


PLUGIN = StressNg()
