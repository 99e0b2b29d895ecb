"""hackbench, from rt-tests: groups of senders and receivers, with the number of tasks and the size of messages free."""

from kduel.benchmarks import Benchmark, Parameters, Raw
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Count, Threads
from kduel.benchmarks.support.reading import expect
from kduel.core.experiment import Metric


class HackbenchParameters(Parameters, frozen=True):
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


class Hackbench(Benchmark[HackbenchParameters]):
    name = "hackbench"
    summary = "Time until many senders and receivers have passed their messages; number and size of the groups are parameters (hackbench)"
    packages = ("rt-tests",)
    label_template = "hackbench-{groups}g"
    label_formats = {"fds": "{}f", "loops": "{}l", "datasize": "{}b"}
    declared_metrics = with_aspect(
        "scheduling", Metric("time", "s", "lower", "All messages of all groups; printed in milliseconds.", "total")
    )
    patterns = {"time": r"Time: (\S+)"}

    def script(self, parameters: HackbenchParameters) -> str:
        p = parameters
        options = (" -T" if p.threads else " -P") + (" -p" if p.pipe else "")
        return f"hackbench -g {p.groups} -f {p.fds} -l {p.loops} -s {p.datasize}{options}\n"

    def seconds(self, parameters: HackbenchParameters) -> float:
        return 0.5 + float(parameters.groups * parameters.fds**2 * parameters.loops) * 6e-6

    def parse(self, raw: Raw, parameters: HackbenchParameters) -> dict[str, float]:
        text = raw.stdout
        p = parameters
        mode = "threaded" if p.threads else "process"
        fds = 2 * p.fds
        head = rf"Running in {mode} mode with (\S+) groups using {fds} file descriptors each \(== {p.groups * fds} tasks\)"
        expect(head, text, f"the number of groups in {mode} mode", p.groups)
        passed = rf"Each sender will pass (\S+) messages of {p.datasize} bytes"
        expect(passed, text, "the number of messages", p.loops)
        return super().parse(raw, parameters)


PLUGIN = Hackbench()
