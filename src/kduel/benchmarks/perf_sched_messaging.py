"""perf bench sched messaging: groups of senders and receivers, every sender writing to every receiver."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kduel.benchmarks import Benchmark, Raw
from kduel.benchmarks.support.parameters import Count, Threads, label_of
from kduel.benchmarks.support.reading import expect, only_number, positive
from kduel.core.experiment import Metric

TASKS = 40
"""perf's own: 20 senders and 20 receivers a group."""


class PerfSchedMessaging(Benchmark):
    """Hundreds of tasks that are woken and switched all the time: the scheduler and the sockets (or pipes)."""

    name = "perf-sched-messaging"
    summary = "Time until many senders and receivers have passed their messages (perf bench sched messaging)"
    packages = ("linux-perf",)

    class Parameters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """perf's own."""

        groups: Threads = 10
        loops: Count = 100
        threads: bool = False
        pipe: bool = False
        """Pipes in place of socket pairs."""

    def label(self, parameters: Any) -> str:
        return label_of("perf-sched-messaging-{groups}g", parameters, loops="{}l")

    def metrics(self, parameters: Any) -> tuple[Metric, ...]:
        return (
            Metric(
                "total-time",
                "s",
                "lower",
                "All messages of all groups; printed in milliseconds.",
                "total",
                aspect="scheduling",
            ),
        )

    def script(self, parameters: Any) -> str:
        options = (" -t" if parameters.threads else "") + (" -p" if parameters.pipe else "")
        return f"perf bench sched messaging -g {parameters.groups} -l {parameters.loops}{options}\n"

    def seconds(self, parameters: Any) -> float:
        # 20 senders write to 20 receivers: 400 messages a group and loop.
        return 0.5 + float(400 * parameters.groups * parameters.loops) * 6e-6

    def parse(self, raw: Raw, parameters: Any) -> dict[str, float]:
        text = raw.stdout
        tasks = "threads" if parameters.threads else "processes"
        groups = rf"# (\S+) groups == [^ \n]+ {tasks} run"
        expect(groups, text, f"the number of groups of {tasks}", parameters.groups)
        run = rf"# [^ \n]+ groups == (\S+) {tasks} run"
        expect(run, text, f"the number of {tasks}", TASKS * parameters.groups)
        total = only_number(r" *Total time: +(\S+) \[sec\]", text, "the total time")
        return {"total-time": positive(total, "the total time")}


PLUGIN = PerfSchedMessaging()
