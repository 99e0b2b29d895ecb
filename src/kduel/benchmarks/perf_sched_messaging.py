"""perf bench sched messaging: groups of senders and receivers, every sender writing to every receiver."""

from kduel.benchmarks import Benchmark, Parameters, Raw
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Count, Threads
from kduel.benchmarks.support.reading import expect
from kduel.core.experiment import Metric

TASKS = 40
"""perf's own: 20 senders and 20 receivers a group."""


class PerfSchedMessagingParameters(Parameters, frozen=True):
    """perf's own."""

    groups: Threads = 10
    loops: Count = 100
    threads: bool = False
    pipe: bool = False
    """Pipes in place of socket pairs."""


class PerfSchedMessaging(Benchmark[PerfSchedMessagingParameters]):
    name = "perf-sched-messaging"
    summary = "Time until many senders and receivers have passed their messages (perf bench sched messaging)"
    packages = ("linux-perf",)
    label_template = "perf-sched-messaging-{groups}g"
    label_formats = {"loops": "{}l"}
    declared_metrics = with_aspect(
        "scheduling",
        Metric("total-time", "s", "lower", "All messages of all groups; printed in milliseconds.", "total"),
    )
    patterns = {"total-time": r" *Total time: +(\S+) \[sec\]"}

    def script(self, parameters: PerfSchedMessagingParameters) -> str:
        options = (" -t" if parameters.threads else "") + (" -p" if parameters.pipe else "")
        return f"perf bench sched messaging -g {parameters.groups} -l {parameters.loops}{options}\n"

    def seconds(self, parameters: PerfSchedMessagingParameters) -> float:
        # 20 senders write to 20 receivers: 400 messages a group and loop.
        return 0.5 + float(400 * parameters.groups * parameters.loops) * 6e-6

    def parse(self, raw: Raw, parameters: PerfSchedMessagingParameters) -> dict[str, float]:
        text = raw.stdout
        tasks = "threads" if parameters.threads else "processes"
        groups = rf"# (\S+) groups == [^ \n]+ {tasks} run"
        expect(groups, text, f"the number of groups of {tasks}", parameters.groups)
        run = rf"# [^ \n]+ groups == (\S+) {tasks} run"
        expect(run, text, f"the number of {tasks}", TASKS * parameters.groups)
        return super().parse(raw, parameters)


PLUGIN = PerfSchedMessaging()
