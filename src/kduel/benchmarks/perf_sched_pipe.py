"""perf bench sched pipe: two tasks wake each other through a pipe, over and over."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kduel.benchmarks import Benchmark, Raw
from kduel.benchmarks.support.parameters import Count, label_of
from kduel.benchmarks.support.reading import agree, expect, only_number, positive
from kduel.core.experiment import Metric


class PerfSchedPipe(Benchmark):
    """The cost of a wake-up and a switch: pinned to one CPU the switch alone; free, also where the scheduler places
    the tasks and how deep an idle CPU sleeps."""

    name = "perf-sched-pipe"
    summary = "Cost of one wake-up and switch between two tasks over a pipe (perf bench sched pipe)"
    packages = ("linux-perf",)

    class Parameters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """perf's own, but 20,000 round trips in place of a million."""

        loops: Count = 20_000
        threads: bool = False
        """Two threads of one process in place of two processes."""
        pinned: bool = False
        """Both on CPU 0."""

    def label(self, parameters: Any) -> str:
        return label_of("perf-sched-pipe", parameters, loops="{}l")

    def metrics(self, parameters: Any) -> tuple[Metric, ...]:
        what = "both tasks on one CPU" if parameters.pinned else "the tasks placed by the scheduler"
        return (
            Metric(
                "time-per-operation",
                "us",
                "lower",
                f"A message there and one back: {what}.",
                "mean",
                aspect="scheduling",
            ),
        )

    def script(self, parameters: Any) -> str:
        prefix = "taskset -c 0 " if parameters.pinned else ""
        threads = " -T" if parameters.threads else ""
        return f"{prefix}perf bench sched pipe -l {parameters.loops}{threads}\n"

    def seconds(self, parameters: Any) -> float:
        return 0.5 + float(parameters.loops) * 30e-6

    def parse(self, raw: Raw, parameters: Any) -> dict[str, float]:
        text = raw.stdout
        tasks = "threads" if parameters.threads else "processes"
        executed = rf"# Executed (\S+) pipe operations between two {tasks}"
        expect(executed, text, f"the number of operations between two {tasks}", parameters.loops)
        total = only_number(r" *Total time: +(\S+) \[sec\]", text, "the total time")
        each = positive(only_number(r" *(\S+) usecs/op", text, "the time per operation"), "the time per operation")
        rate = only_number(r" *(\S+) ops/sec", text, "the operations per second")
        # The total has three decimals, the rate none: allow for what rounding took.
        agree(each, 1e6 * total / parameters.loops, "the time per operation", 0.01 + 0.001 / max(total, 0.001))
        agree(each, 1e6 / max(rate, 1.0), "the time per operation", 0.01 + 1 / max(rate, 1.0))
        return {"time-per-operation": each}


PLUGIN = PerfSchedPipe()
