"""hackbench, from rt-tests: groups of senders and receivers, with the number of tasks and the size of messages free."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kduel.benchmarks import Benchmark, Raw
from kduel.benchmarks.support.parameters import Count, Threads, label_of
from kduel.benchmarks.support.reading import expect, only_number, positive
from kduel.core.experiment import Metric


class Hackbench(Benchmark):
    """Like perf-sched-messaging, from which it differs by its knobs."""

    name = "hackbench"
    summary = "Time until many senders and receivers have passed their messages; number and size of the groups are parameters (hackbench)"
    packages = ("rt-tests",)

    class Parameters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """hackbench's own."""

        groups: Threads = 10
        fds: Threads = 20
        """Senders a group, and as many receivers."""
        loops: Count = 100
        datasize: Count = 100
        """Bytes of a message."""
        threads: bool = False
        pipe: bool = False
        """Pipes in place of socket pairs."""

    def label(self, parameters: Any) -> str:
        return label_of("hackbench-{groups}g", parameters, fds="{}f", loops="{}l", datasize="{}b")

    def metrics(self, parameters: Any) -> tuple[Metric, ...]:
        return (
            Metric(
                "time",
                "s",
                "lower",
                "All messages of all groups; printed in milliseconds.",
                "total",
                aspect="scheduling",
            ),
        )

    def script(self, parameters: Any) -> str:
        p = parameters
        options = (" -T" if p.threads else " -P") + (" -p" if p.pipe else "")
        return f"hackbench -g {p.groups} -f {p.fds} -l {p.loops} -s {p.datasize}{options}\n"

    def seconds(self, parameters: Any) -> float:
        return 0.5 + float(parameters.groups * parameters.fds**2 * parameters.loops) * 6e-6

    def parse(self, raw: Raw, parameters: Any) -> dict[str, float]:
        text = raw.stdout
        p = parameters
        mode = "threaded" if p.threads else "process"
        fds = 2 * p.fds
        head = rf"Running in {mode} mode with (\S+) groups using {fds} file descriptors each \(== {p.groups * fds} tasks\)"
        expect(head, text, f"the number of groups in {mode} mode", p.groups)
        passed = rf"Each sender will pass (\S+) messages of {p.datasize} bytes"
        expect(passed, text, "the number of messages", p.loops)
        return {"time": positive(only_number(r"Time: (\S+)", text, "the time"), "the time")}


PLUGIN = Hackbench()
