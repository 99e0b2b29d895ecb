"""stress-ng: one kind of kernel work at a time, in bogus operations a second."""

from typing import Literal

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw
from kduel.benchmarks.support.parameters import Number, Seconds
from kduel.benchmarks.support.reading import check_agreement, check_positive, check_unique, find_number, read_file
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

STRESSORS = tuple(ABOUT)
Stressor = Literal[STRESSORS]  # type: ignore[valid-type]


class StressNgParameters(Parameters, frozen=True):
    """One second of one instance; stress-ng itself would run for a day."""

    stressor: Stressor = "switch"
    instances: Number = 1
    """0: one a CPU."""
    time: Seconds = 1
    pinned: bool = False
    """All on CPU 0."""


class StressNg(Benchmark[StressNgParameters]):
    """Its operations are comparable between kernels under one version of stress-ng, and under no other: every
    release changes what one is. List the stressors for a matrix."""

    name = "stress-ng"
    summary = "One kind of kernel work a step: switch, fork, pipe, mmap, futex and more (stress-ng)"
    packages = ("stress-ng",)
    label_template = "stress-ng-{stressor}"
    by_clock = True
    besides = 0.5
    label_formats = {"instances": "{}x", "time": "{}s"}

    def metrics(self, parameters: StressNgParameters) -> tuple[Metric, ...]:
        return stressor_metrics(ABOUT[parameters.stressor])

    def script(self, parameters: StressNgParameters) -> str:
        p = parameters
        more = " --taskset 0" if p.pinned else ""
        more += "".join(f" {option}" for option in OPTIONS.get(p.stressor, ()))
        return (
            f"stress-ng --{p.stressor} {p.instances}{more} --timeout {p.time}s --temp-path . --metrics-brief"
            f' --yaml "$KDUEL_STEP/{REPORT}"\n'
        )

    def parse(self, raw: Raw, parameters: StressNgParameters) -> dict[str, float]:
        found = read_stressors(read_file(raw, REPORT), REPORT)
        if list(found) != [parameters.stressor]:
            raise ParseError(f"{REPORT} has no metrics of the stressor {parameters.stressor} alone")
        return {name: check_positive(value, name) for name, value in found[parameters.stressor].items()}


def stressor_metrics(what: str) -> tuple[Metric, ...]:
    """The metrics of a stressor; `what` it does, in words."""
    by_cpu = "By the time on a CPU: what one costs, waiting left out; only as exact as the kernel's accounting."
    by_clock = f"By the clock: {what}."
    return (
        Metric("operations-per-second", "ops/s", "higher", by_clock, "mean", aspect="scheduling", words=what),
        Metric("operations-per-cpu-second", "ops/s", "higher", by_cpu, "mean", aspect="operation-rate"),
    )


def read_stressors(text: str, what: str) -> dict[str, dict[str, float]]:
    """The metrics by stressor of stress-ng's YAML, `what` for the error; those that counted nothing are 0. Raises ParseError."""
    if not text.startswith("---\n") or not text.endswith("\n...\n"):
        raise ParseError(f"{what} is incomplete: it lacks its beginning or its end")
    found: dict[str, dict[str, float]] = {}
    for block in text.partition("\nmetrics:\n")[2].split("    - stressor: ")[1:]:
        stressor, _, body = block.partition("\n")
        check_unique([*found, stressor], "the stressor")

        def value(key: str, body: str = body) -> float:
            # Six spaces: from 0.20 on each instance has its own figures too, further to the right.
            return find_number(rf" {{6}}{key}: (\S+)", body, key)

        rate = value("bogo-ops-per-second-real-time")
        expected = value("bogo-ops") / check_positive(value("wall-clock-time"), "wall-clock-time")
        check_agreement(rate, expected, "operations per second")
        by_cpu = value("bogo-ops-per-second-usr-sys-time")
        found[stressor] = {"operations-per-second": rate, "operations-per-cpu-second": by_cpu}
    return found


PLUGIN = StressNg()
