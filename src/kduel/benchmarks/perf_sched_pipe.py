"""perf bench sched pipe: two tasks wake each other through a pipe, over and over."""

from kduel.benchmarks import Benchmark, Parameters, Raw
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Count
from kduel.benchmarks.support.reading import check_agreement, expect, find_number
from kduel.core.experiment import Metric


class PerfSchedPipeParameters(Parameters, frozen=True):
    """perf's own, but 20,000 round trips in place of a million."""

    loops: Count = 20_000
    threads: bool = False
    """Two threads of one process in place of two processes."""
    pinned: bool = False
    """Both on CPU 0."""


class PerfSchedPipe(Benchmark[PerfSchedPipeParameters]):
    """The cost of a wake-up and a switch: pinned the switch alone; free, also placement and a CPU's deep sleep."""

    name = "perf-sched-pipe"
    summary = "Cost of one wake-up and switch between two tasks over a pipe (perf bench sched pipe)"
    packages = ("linux-perf",)
    label_formats = {"loops": "{}l"}
    patterns = {"time-per-operation": r" *(\S+) usecs/op"}

    def metrics(self, parameters: PerfSchedPipeParameters) -> tuple[Metric, ...]:
        what = "both tasks on one CPU" if parameters.pinned else "the tasks placed by the scheduler"
        return with_aspect(
            "scheduling",
            Metric("time-per-operation", "us", "lower", f"A message there and one back: {what}.", "mean"),
        )

    def script(self, parameters: PerfSchedPipeParameters) -> str:
        prefix = "taskset -c 0 " if parameters.pinned else ""
        threads = " -T" if parameters.threads else ""
        return f"{prefix}perf bench sched pipe -l {parameters.loops}{threads}\n"

    def seconds(self, parameters: PerfSchedPipeParameters) -> float:
        return 0.5 + float(parameters.loops) * 30e-6

    def parse(self, raw: Raw, parameters: PerfSchedPipeParameters) -> dict[str, float]:
        text = raw.stdout
        tasks = "threads" if parameters.threads else "processes"
        executed = rf"# Executed (\S+) pipe operations between two {tasks}"
        expect(executed, text, f"the number of operations between two {tasks}", parameters.loops)
        total = find_number(r" *Total time: +(\S+) \[sec\]", text, "the total time")
        values = super().parse(raw, parameters)
        each = values["time-per-operation"]
        rate = find_number(r" *(\S+) ops/sec", text, "the operations per second")
        # The total has three decimals, the rate none: allow for what rounding took.
        check_agreement(
            each, 1e6 * total / parameters.loops, "the time per operation", 0.01 + 0.001 / max(total, 0.001)
        )
        check_agreement(each, 1e6 / max(rate, 1.0), "the time per operation", 0.01 + 1 / max(rate, 1.0))
        return values


PLUGIN = PerfSchedPipe()
