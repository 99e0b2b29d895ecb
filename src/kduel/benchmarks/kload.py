"""kload: N processes with the same fixed work under one policy; what the kernel accounts for them."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, structs

from kduel.benchmarks import ParseError, Raw
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.parameters import Count, Number, Seconds, label_of
from kduel.benchmarks.support.reading import Amount, Natural, read_json
from kduel.benchmarks.support.varied import VariedBenchmark, VariedParameters, over_conditions, under_conditions
from kduel.core.experiment import Metric

WORDS = {"cpu": "compute", "io": "read and write", "mixed": "compute, read and write", "messages": "send messages"}
COLUMNS = ["start_us", "end_us", "user_us", "system_us", "voluntary", "involuntary"]
WALL = "From the start of all to the end of the last one's work."
BUSY = "User and system time over wall time; 200 is two CPUs busy."
FAIRNESS = "Jain's index of the processes' speeds (1 / time to the end): 1 if all end together, less if some wait."
JAIN = "(sum of speeds)^2 / (processes x sum of their squares)"
SPREAD = "From the first process's start to the last one's."
TURNAROUND = "Time to the end for half of the processes."
PI_POINTS = 100_000
"""Points from which on all processes together must come to pi within 0.02: 12 standard errors and the seeds' luck."""


class Each(Struct):
    """A row per process, in the columns named; times from the moment when all were let go."""

    columns: list[str]
    rows: list[list[Natural]]


class Account(Struct):
    """CPU seconds and switches."""

    user_s: Amount
    system_s: Amount
    voluntary: Natural
    involuntary: Natural


class KloadOutput(Struct):
    kload: int
    kind: str
    processes: int
    iterations: int
    transfers: int
    io: str
    finished: int
    in_time: bool
    wall_s: Amount
    user_s: Amount
    system_s: Amount
    voluntary: Natural
    involuntary: Natural
    life: Account
    each: Each
    pi: Amount | None = None


class KloadParameters(VariedParameters, frozen=True):
    """`iterations`: points of pi by brute force per process; `transfers`: blocks that each reads and writes, or messages that
    each of the first half sends to each of the others, as hackbench's do."""

    kind: Literal["cpu", "io", "mixed", "messages"] = "cpu"
    processes: Annotated[int, Meta(ge=1, le=100_000)] = 10
    iterations: Number = 500_000
    transfers: Count = 256
    io: Literal["buffered", "direct", "dsync"] = "direct"
    outputs: Annotated[int, Meta(ge=1, le=64)] = 4
    block: Annotated[int, Meta(ge=512, le=1 << 26, multiple_of=512)] = 4096
    size: Annotated[int, Meta(ge=512, le=1 << 40)] = 65536
    """Bytes of the input, and most bytes of each output: transfers go round in it."""
    deadline: Seconds = 600


class Kload(VariedBenchmark[KloadParameters]):
    """The workload of the study of scheduling policies: many processes at once, each with a fixed amount of work, so
    that policies differ in nothing but the order in which the CPUs are given."""

    name = "kload"
    summary = "10, 100, 1000 processes with fixed work (CPU, I/O, both, messages): wall, CPU time, switches, fairness (our kload)"
    programs = ("kload", "kvary")
    takes_policy = True
    needs_scratch = True

    def label(self, parameters: KloadParameters) -> str:
        files = ("io", "outputs", "size")
        unused = {
            "cpu": ("transfers", "block", *files),
            "io": ("iterations",),
            "messages": ("iterations", *files),
        }.get(parameters.kind, ())
        plain = structs.replace(parameters, **{name: getattr(self.Parameters(), name) for name in unused})
        return label_of(
            "kload-{kind}-{processes}", plain, iterations="{}i", transfers="{}t", io="{}", conditions="{}c"
        )

    declared_metrics = (
        *with_aspect("scheduling", Metric("wall", "s", "lower", WALL)),
        *with_aspect(
            "cpu-time",
            Metric("user", "s", "lower", "User time of the work, all processes.", "total"),
            Metric("system", "s", "lower", "System time of the work, all processes.", "total"),
        ),
        Metric("cpu", "%", "none", BUSY, derived="100 (user + system) / wall"),
        *with_aspect(
            "activity",
            Metric("involuntary_switches", "count", "none", "Preemptions in the work, all processes.", "count"),
            Metric("voluntary_switches", "count", "none", "Waits in the work, all processes.", "count"),
        ),
        *with_aspect("fairness", Metric("fairness", "1", "higher", FAIRNESS, most=1.0, derived=JAIN)),
        Metric("start_spread", "s", "none", SPREAD, "max", derived="last start - first start"),
        Metric("turnaround_median", "s", "lower", TURNAROUND, "median", derived="median of the processes' ends"),
    )

    def script(self, parameters: KloadParameters) -> str:
        p = parameters
        words = [f"--kind {p.kind} --processes {p.processes} --iterations {p.iterations} --deadline {p.deadline}"]
        if p.kind != "cpu":
            words.append(f"--transfers {p.transfers} --block {p.block}")
        if p.kind in ("io", "mixed"):
            words.append(f'--io {p.io} --outputs {p.outputs} --size {p.size} --dir "$KDUEL_SCRATCH"')
        return (
            "set --\n"
            "[ ! -f /sys/fs/cgroup/cgroup.controllers ] || set -- --cgroup /sys/fs/cgroup\n"
            f'{under_conditions(p)}"$KDUEL_PROGRAMS/kload" {" ".join(words)} "$@"\n'
        )

    def seconds(self, parameters: KloadParameters) -> float:
        p = parameters
        arithmetic = p.iterations * 4e-9 if p.kind in ("cpu", "mixed") else 0.0
        transfer = {"cpu": 0.0, "messages": p.processes * 1e-6}.get(p.kind, 1e-4)
        return min(float(p.deadline), 1.0 + float(p.processes) * (arithmetic + p.transfers * transfer + 1e-3))

    def timeout(self, parameters: KloadParameters) -> float:
        # Its own deadline ends it, with a message; a thousand deadline processes may need all of it.
        return 60.0 + float(parameters.deadline)

    def metrics(self, parameters: KloadParameters) -> tuple[Metric, ...]:
        wall, *rest = self.declared_metrics
        words = f"the last of {parameters.processes} processes that {WORDS[parameters.kind]}"
        found = (structs.replace(wall, words=words), *rest)
        return over_conditions(found) if parameters.conditions else found

    def policy_tasks(self, parameters: KloadParameters) -> int | None:
        return int(parameters.processes)

    def parse_once(self, raw: Raw, parameters: KloadParameters) -> dict[str, float]:
        out = read_json(raw.stdout, KloadOutput, "kload's output")
        check_output(out, parameters)
        ends = sorted(row[1] for row in out.each.rows)
        starts = [row[0] for row in out.each.rows]
        return {
            "wall": out.wall_s, "user": out.user_s, "system": out.system_s,
            "cpu": 100 * (out.user_s + out.system_s) / out.wall_s, "involuntary_switches": float(out.involuntary),
            "voluntary_switches": float(out.voluntary), "fairness": jain_index([1e6 / end for end in ends]),
            "start_spread": (max(starts) - min(starts)) / 1e6,
            "turnaround_median": (ends[(len(ends) - 1) // 2] + ends[len(ends) // 2]) / 2e6,
        }  # fmt: skip


def check_output(out: KloadOutput, parameters: KloadParameters) -> None:
    """Raises ParseError where the output is not of this work, or contradicts itself."""
    p = parameters
    for what in ("kind", "processes", "iterations"):
        if getattr(out, what) != getattr(p, what):
            raise ParseError(f"{what} is {getattr(out, what)!r} in the output; asked for was {getattr(p, what)!r}")
    if p.kind != "cpu" and out.transfers != p.transfers:
        raise ParseError(f"the output is of {out.transfers} transfers, asked for were {p.transfers}")
    if p.kind in ("io", "mixed") and out.io != p.io:
        raise ParseError(f"the output is of {out.io} transfers, asked for were {p.io} ones")
    if not out.in_time or out.finished != p.processes or len(out.each.rows) != p.processes:
        raise ParseError(f"only {out.finished} of {p.processes} processes finished their work")
    if out.each.columns != COLUMNS or any(len(row) != len(COLUMNS) for row in out.each.rows):
        raise ParseError("the table of processes does not have the columns that it should")
    sums = [sum(column) for column in zip(*out.each.rows, strict=True)]
    if (sums[4], sums[5]) != (out.voluntary, out.involuntary):
        raise ParseError("the processes' switches do not add up to the total")
    # A row is rounded to microseconds.
    rounding = 1e-6 * (p.processes + 1)
    if abs(sums[2] / 1e6 - out.user_s) > rounding or abs(sums[3] / 1e6 - out.system_s) > rounding:
        raise ParseError("the processes' CPU times do not add up to the total")
    if out.wall_s <= 0 or abs(max(row[1] for row in out.each.rows) / 1e6 - out.wall_s) > 2e-6:
        raise ParseError("the wall time is not the last process's end")
    if any(row[1] < max(row[0], 1) for row in out.each.rows):
        raise ParseError("a process ended before it began")
    if (
        p.kind in ("cpu", "mixed")
        and p.iterations >= PI_POINTS
        and (out.pi is None or abs(out.pi - 3.14159265) > 0.02)
    ):
        raise ParseError(f"the processes computed {out.pi} instead of pi: the work was not done")


def jain_index(rates: list[float]) -> float:
    """Jain's fairness index: (sum x)^2 / (n sum x^2); 1 when all are equal, 1/n when one has all."""
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))


PLUGIN = Kload()
