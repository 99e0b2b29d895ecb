"""kbench: what single kernel operations cost, under the names that lmbench made common (our own program)."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from kduel.benchmarks import Benchmark, ParseError, Raw
from kduel.benchmarks.support.parameters import label_of
from kduel.benchmarks.support.reading import LARGEST_FIGURE, Amount, Natural, json
from kduel.core.experiment import Metric

OPERATIONS = (
    "empty", "null-call", "read", "write", "stat", "fstat", "open-close", "create-delete", "select-10", "select-100",
    "poll-10", "poll-100", "epoll-10", "epoll-100", "signal-install", "signal-deliver", "fault-protection", "pipe",
    "unix", "tcp", "udp", "switch-2-0k", "switch-2-16k", "switch-8-0k", "switch-8-16k", "switch-16-64k", "futex",
    "fork-exit", "fork-exec", "shell", "clone", "mmap", "fault-anonymous", "fault-file", "timer",
)  # fmt: skip
"""In the program's own order, which numbers the regions that the counting plug-in knows (from 1)."""

Operation = Literal[OPERATIONS]  # type: ignore[valid-type]


Figure = Annotated[float, Meta(ge=-LARGEST_FIGURE, le=LARGEST_FIGURE)]
"""Less an empty call's cost, which may be larger than that of the cheapest operation: what is negative is no value of
a metric."""


class Line(Struct, frozen=True):
    """The program's one line of JSON. Values are per operation, in `unit`; samples are as measured."""

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
    """By which the counting plug-in knows it."""
    hops: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    """Operations in a call: median, mean, min and max are (sample - empty) / hops."""
    resolution: Amount = 0.0
    clock_error_pct: Amount = 0.0


PRINTED = 1e-9
"""More than what is lost where numbers are printed with twelve digits, as a share of the largest."""


def read_line(text: str) -> Line:
    """What the program printed. Raises ParseError where it is damaged."""
    line = json(text, Line, "kbench's line")
    if line.count < 1 or len(line.samples) != line.count:
        raise ParseError(f"kbench announces {line.count} samples and gives {len(line.samples)}")
    return line


def check(line: Line) -> None:
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


class Kbench(Benchmark):
    """One operation. On the machine icount every call is counted alone, by a clock that counts instructions."""

    name = "kbench"
    summary = (
        "Costs of single kernel operations (null call, pipe, fork, page fault, ...), timed or counted (our kbench)"
    )
    programs = ("kbench",)

    class Parameters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """`mode`: "time" repeats until the clock errs by less than 1 %; "exact" counts instructions, on the machine
        icount only. `count` is how often in exact mode (0: the program's choice), `time` how long in the other, in
        seconds. `cpu` pins all processes to one CPU (-1: none)."""

        operation: Operation
        mode: Literal["time", "exact"] = "time"
        count: Annotated[int, Meta(ge=0, le=20_000)] = 0
        time: Annotated[float, Meta(gt=0, le=3600)] = 1.0
        cpu: Annotated[int, Meta(ge=-1, le=1023)] = -1

    def label(self, parameters: Any) -> str:
        # Not the mode: a study is all exact or all timed, and the names are to be the same in both.
        plain = msgspec.structs.replace(parameters, mode="time")
        return label_of("{operation}", plain, count="{}x", time="{}s", cpu="cpu{}")

    def metrics(self, parameters: Any) -> tuple[Metric, ...]:
        if parameters.mode == "exact":
            return (
                Metric("instructions", "instructions", "lower", "Path length of the usual call.", "median"),
                Metric(
                    "instructions-mean",
                    "instructions",
                    "lower",
                    "Mean path length: rarer, longer calls and interrupts included.",
                    "mean",
                ),
            )
        return (
            Metric("time", "ns", "lower", "One operation: the median of batches.", "median"),
            Metric("time-mean", "ns", "lower", "One operation: the mean of batches.", "mean"),
            Metric("time-min", "ns", "lower", "One operation in the fastest batch.", "min"),
        )

    def script(self, parameters: Any) -> str:
        p = parameters
        words = ["--exact"] if p.mode == "exact" else ["--time", f"{p.time:g}"]
        words += ["--count", str(p.count)] if p.count else []
        words += ["--cpu", str(p.cpu)] if p.cpu >= 0 else []
        return f'"$KDUEL_PROGRAMS/kbench" {" ".join([*words, p.operation])}\n'

    def seconds(self, parameters: Any) -> float:
        return 0.5 if parameters.mode == "exact" else 0.2 + float(parameters.time)

    def parse(self, raw: Raw, parameters: Any) -> dict[str, float]:
        line = read_line(raw.stdout)
        if line.operation != parameters.operation or line.mode != parameters.mode:
            raise ParseError(f"the output is of {line.operation} ({line.mode}), not what was asked for")
        check(line)
        if parameters.mode == "exact":
            if line.resolution != 1:
                raise ParseError(
                    f"the machine's counter goes in steps of {line.resolution:g}: it does not count instructions"
                )
            return {"instructions": line.median, "instructions-mean": line.mean}
        if line.clock_error_pct > 1:
            raise ParseError(f"the clock errs by {line.clock_error_pct:.1f} % over the longest batch that can be")
        return {"time": line.median, "time-mean": line.mean, "time-min": line.min}


PLUGIN = Kbench()
