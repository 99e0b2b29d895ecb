"""kbench: what single kernel operations cost, under the names that lmbench made common (our own program)."""

import math
from functools import partial
from statistics import median, stdev
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.operations import GROUP_OF, MODULES, OPERATIONS, WORDS
from kduel.benchmarks.support.parameters import cut_time, label_of
from kduel.benchmarks.support.reading import LARGEST_FIGURE, Amount, Natural, read_json
from kduel.core.experiment import Metric
from kduel.core.samples import Details, Mode

Operation = Literal[OPERATIONS]  # type: ignore[valid-type]


Figure = Annotated[float, Meta(ge=-LARGEST_FIGURE, le=LARGEST_FIGURE)]
"""Less an empty call's cost, which may be larger than that of the cheapest operation: what is negative is no value of
a metric."""
APART = frozenset(("pipe", "unix", "tcp", "switch-8-0k"))
"""Those that are counted in situations and whose partners are processes, which may be in another session."""
SITUATED = APART | {"futex", "fork-exit"}
"""Those that wake other tasks, one of each way to do so, and are counted in situations of the tasks, too."""
SITUATIONS = {
    "session": "each partner in a session of its own",
    "cgroup": "all in a control group two levels deep",
    "fifo": "all under SCHED_FIFO",
}
MODE_WIDTH = 0.01
"""Two values that differ by less than this share of themselves belong to one mode."""
MODE_LEAST = 0.02
"""The share of calls below which a group of values is no mode but an accident, such as an interrupt."""


class Condition(Struct, frozen=True):
    """Circumstances that must not matter, as the program drew them from the seed. Number 0 is none of them."""

    number: int
    phase: int
    """Instructions before the operation is opened."""
    times: int
    """Factor by which there are more calls."""
    environment: int
    """Bytes of environment more."""
    layout: int
    """Pages by which mappings lie lower."""
    held: int
    """Pages that another process holds."""
    before: str
    """The operation that ran before in the same process."""

    def __str__(self) -> str:
        if not self.number:
            return "plain"
        words = [
            f"after {self.before}" if self.before else "",
            f"x{self.times}" if self.times > 1 else "",
            f"phase {self.phase / 1e6:.2f} ms",
            f"mappings {self.layout / 256:.1f} MiB lower",
            f"{self.environment} B more environment",
            f"{self.held} pages held",
        ]
        return f"{self.number}: {', '.join(filter(None, words))}"


class KbenchLine(Struct, frozen=True):
    """One line of the program's JSON: one condition or situation. Values are per operation, in `unit`; samples are as measured."""

    operation: str
    mode: str
    unit: str
    count: Natural
    empty: Amount
    median: Figure
    mean: Figure
    min: Figure
    max: Figure
    samples: list[Amount]
    region: Natural = 0
    """Its number in the counting plug-in."""
    hops: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    """Operations in a call: median, mean, min and max are (sample - empty) / hops."""
    resolution: Amount = 0.0
    clock_error_pct: Amount = 0.0
    condition: Condition | None = None
    situation: str = ""
    rounds: Natural = 0
    """Number of rounds of calls that it took to warm up."""
    steady: bool = True
    """True if the last two of them had the same median and mean."""
    sleeps: Natural | None = None
    """How often the process slept in all calls; None, as of the next two, where the program is older."""
    preemptions: Natural | None = None
    """How often it was switched away from while it could run."""
    faults: Natural | None = None
    """How many page faults it took."""


PRINTED = 1e-9
"""More than what is lost where numbers are printed with twelve digits, as a share of the largest."""


def read_lines(text: str) -> list[KbenchLine]:
    """Read the program's output: a line for each condition, then one for each situation. Raises ParseError."""
    lines = [read_json(line, KbenchLine, "kbench's line") for line in text.splitlines() or [""]]
    for line in lines:
        if line.count < 1 or len(line.samples) != line.count:
            raise ParseError(f"kbench announces {line.count} samples and gives {len(line.samples)}")
    if all(line.situation for line in lines):
        raise ParseError("kbench's output has lines of situations only, and none of the operation itself")
    return lines


def read_line(text: str) -> KbenchLine:
    """All conditions as one. Raises ParseError."""
    return merge_conditions(read_lines(text))


def merge_conditions(lines: list[KbenchLine]) -> KbenchLine:
    """Merge all conditions into one: their calls together, the median of their values."""
    lines = [line for line in lines if not line.situation]
    if len(lines) == 1:
        return lines[0]
    return msgspec.structs.replace(
        lines[0],
        count=sum(line.count for line in lines),
        samples=[sample for line in lines for sample in line.samples],
        median=median(line.median for line in lines),
        mean=median(line.mean for line in lines),
        min=min(line.min for line in lines),
        max=max(line.max for line in lines),
    )


def modes_of(lines: list[KbenchLine]) -> list[Mode]:
    """Groups of single calls that took about the same, per operation, the most frequent first."""
    values = sorted((sample - line.empty) / line.hops for line in lines for sample in line.samples)
    groups: list[list[float]] = []
    for value in values:
        if groups and value - groups[-1][-1] <= MODE_WIDTH * abs(value):
            groups[-1].append(value)
        else:
            groups.append([value])
    found = [Mode(median(group), len(group) / len(values)) for group in groups]
    return sorted((mode for mode in found if mode.share >= MODE_LEAST), key=lambda mode: -mode.share)


def work_of(lines: list[KbenchLine]) -> dict[str, float]:
    """Times that an operation does each kind of work; none where the program is older and says nothing. Whether a task that wakes another
    sleeps or is preempted by it is the scheduler's choice, and the same work."""
    switches = faults = 0
    for line in lines:
        if line.sleeps is None or line.preemptions is None or line.faults is None:
            return {}
        switches += line.sleeps + line.preemptions
        faults += line.faults
    operations = sum(line.count * line.hops for line in lines)
    return {"switches tasks": switches / operations, "takes page faults": faults / operations}


def errors_of(line: KbenchLine) -> dict[str, float]:
    """Relative standard errors of the median and the mean of a line's batches; none of a single one."""
    if line.count < 2 or min(line.median, line.mean) <= 0:
        return {}
    ordered, root = sorted(line.samples), math.sqrt(line.count)
    # The order statistics one standard error of the rank beside the median (binomial).
    low, high = (ordered[min(line.count - 1, max(0, round((line.count - 1 + s * root) / 2)))] for s in (-1, 1))
    return {
        "time": (high - low) / 2 / line.hops / line.median,
        "time-mean": stdev(ordered) / root / line.hops / line.mean,
    }


def check_line(line: KbenchLine) -> None:
    """Raises ParseError where the figures are not those of the samples."""
    least, most = min(line.samples), max(line.samples)
    figures = (
        ("min", line.min, least),
        ("mean", line.mean, math.fsum(line.samples) / line.count),
        ("max", line.max, most),
    )
    for name, seen, sample in figures:
        if abs(seen - (sample - line.empty) / line.hops) > PRINTED * (most + line.empty):
            raise ParseError(f"kbench's {name} is {seen:g}, which is not that of its samples")
    if not line.min <= line.median <= line.max:
        raise ParseError(f"kbench's median is {line.median:g}, outside its minimum and maximum")


class KbenchParameters(Parameters, frozen=True):
    """`mode`: "time" repeats until the clock errs by less than 1 %; "exact" counts instructions, on the machine
    icount only. `count` is how often in exact mode (0: the program's choice), `time` how long in the other, in
    seconds. `cpu` pins all processes to one CPU (-1: none). With `threaded` a second thread of the process sleeps, so that
    the kernel takes the paths of files and memory that threads share. In exact mode each operation is counted under so many
    `conditions` that must not matter, drawn from the run's seed; 0: once, as it comes."""

    operation: Operation
    mode: Literal["time", "exact"] = "time"
    count: Annotated[int, Meta(ge=0, le=20_000)] = 0
    time: Annotated[float, Meta(gt=0, le=3600)] = 1.0
    cpu: Annotated[int, Meta(ge=-1, le=1023)] = -1
    threaded: bool = False
    conditions: Annotated[int, Meta(ge=0, le=1000)] = 5


class Kbench(Benchmark[KbenchParameters]):
    name = "kbench"
    by_clock = True
    summary = (
        "Costs of single kernel operations (null call, pipe, fork, page fault, ...), timed or counted (our kbench)"
    )
    programs = ("kbench",)

    def label(self, parameters: KbenchParameters) -> str:
        # Not the mode: a study is all exact or all timed, and the names are to be the same in both.
        plain = msgspec.structs.replace(parameters, mode="time", conditions=5)
        return label_of("{operation}", plain, count="{}x", time="{}s", cpu="cpu{}")

    def modules_for(self, parameters: KbenchParameters) -> tuple[str, ...]:
        return MODULES.get(parameters.operation, ())

    def metrics(self, parameters: KbenchParameters) -> tuple[Metric, ...]:
        words = WORDS[parameters.operation] + (" beside a sleeping thread" if parameters.threaded else "")
        if parameters.mode == "time":
            return with_aspect(
                "operation-time",
                Metric("time", "ns", "lower", "One operation: the median of batches.", "median"),
                Metric("time-mean", "ns", "lower", "One operation: the mean of batches.", "mean"),
                Metric("time-min", "ns", "lower", "One operation in the fastest batch.", "min"),
                words=words,
            )
        counted = partial(Metric, unit="instructions", better="lower")
        group = GROUP_OF.get(parameters.operation, "")
        mean = "Mean path length: rarer, longer calls and interrupts included."
        situations = [
            counted(f"instructions-{name}", about=f"The usual call, {about}.", statistic="median", optional=True)
            for name, about in SITUATIONS.items()
            if parameters.conditions and parameters.operation in (APART if name == "session" else SITUATED)
        ]
        return with_aspect(
            "path-length",
            counted("instructions", about="Path length of the usual call.", statistic="median", group=group),
            counted("instructions-mean", about=mean, statistic="mean", group=group),
            *situations,
            words=words,
        )

    def counts_instructions(self, parameters: KbenchParameters) -> bool:
        return bool(parameters.mode == "exact")

    def cut(self, parameters: KbenchParameters, slices: int) -> list[KbenchParameters]:
        return [parameters] if parameters.mode == "exact" else cut_time(parameters, slices, whole=False)

    def script(self, parameters: KbenchParameters) -> str:
        p = parameters
        words = ["--exact"] if p.mode == "exact" else ["--time", f"{p.time:g}"]
        if p.mode == "exact" and p.conditions:
            words += ["--conditions", str(p.conditions), "--seed", '"${KDUEL_SEED:-0}"']
        words += ["--threaded"] if p.threaded else []
        words += ["--count", str(p.count)] if p.count else []
        words += ["--cpu", str(p.cpu)] if p.cpu >= 0 else []
        return f'"$KDUEL_PROGRAMS/kbench" {" ".join([*words, p.operation])}\n'

    def seconds(self, parameters: KbenchParameters) -> float:
        return 0.5 + 0.2 * parameters.conditions if parameters.mode == "exact" else 0.2 + float(parameters.time)

    def parse(self, raw: Raw, parameters: KbenchParameters) -> dict[str, float]:
        lines = read_lines(raw.stdout)
        line = merge_conditions(lines)
        if line.operation != parameters.operation or line.mode != parameters.mode:
            raise ParseError(f"the output is of {line.operation} ({line.mode}), not what was asked for")
        for one in lines:
            check_line(one)
        conditions = [one.condition for one in lines if not one.situation]
        situations = [one.situation for one in lines if one.situation]
        if (
            any((one.operation, one.mode, one.unit) != (line.operation, line.mode, line.unit) for one in lines)
            or len(set(conditions)) != len(conditions)
            or len(set(situations)) != len(situations)
            or (parameters.mode == "time" and len(lines) != 1)
        ):
            raise ParseError(f"kbench's {len(lines)} lines are not of one operation, each condition once")
        if parameters.mode == "exact":
            if line.resolution != 1:
                raise ParseError(
                    f"the machine's counter goes in steps of {line.resolution:g}: it does not count instructions"
                )
            counted = sum(not one.situation for one in lines)
            # Without a condition: a run from before there were any.
            if lines[0].condition and counted != (parameters.conditions or 1):
                raise ParseError(f"it counted under {counted} conditions, not {parameters.conditions}")
            values = {"instructions": line.median, "instructions-mean": line.mean}
            return values | {f"instructions-{one.situation}": one.median for one in lines if one.situation}
        if line.clock_error_pct > 1:
            raise ParseError(f"the clock errs by {line.clock_error_pct:.1f} % over the longest batch that can be")
        return {"time": line.median, "time-mean": line.mean, "time-min": line.min}

    def details(self, raw: Raw, parameters: KbenchParameters) -> Details:
        if parameters.mode != "exact":
            return Details(errors=errors_of(read_line(raw.stdout)))
        lines = [line for line in read_lines(raw.stdout) if not line.situation]
        values = {
            "instructions": {str(line.condition or ""): line.median for line in lines},
            "instructions-mean": {str(line.condition or ""): line.mean for line in lines},
        }
        return Details(
            conditions=values if parameters.conditions else {},
            modes={"instructions": modes_of(lines)},
            work={"instructions": work_of(lines)},
        )


PLUGIN = Kbench()
