"""sharing: the cache lines that two CPUs share in single kernel operations (our own program and plug-in, machine icount)."""

from __future__ import annotations

from statistics import fmean, median
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Struct, structs

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw
from kduel.benchmarks.kbench import Condition, Operation
from kduel.benchmarks.support.operations import GROUP_OF, MODULES, OPERATIONS
from kduel.benchmarks.support.parameters import label_of
from kduel.benchmarks.support.reading import Natural, read_json
from kduel.core.errors import InputError
from kduel.core.experiment import Metric, Statistic
from kduel.core.metric_results import ACCESSES, LOCKED, SHARED
from kduel.core.samples import Details
from kduel.core.text import did_you_mean

SHARED_LINES = "shared-lines"
"""The trial's file in which the plug-in leaves what it counted: a line of JSON for each region, in the order of time."""
CONDITIONS = 3
"""Under which an operation is counted, unless a study says it."""
MOST_OPERATIONS = 128
"""Operations that regions are numbered for."""
KINDS: dict[str, tuple[str, str, Statistic, str]] = {
    SHARED: (SHARED, "inside", "median", "Steady: cache lines that move in the usual call."),
    "lines-mean": (SHARED, "inside", "mean", "Amortised: rarer calls and interrupts included."),
    "lines-false": (SHARED, "untrue", "mean", "Of the mean: moved for bytes that the other CPU does not use."),
    ACCESSES: (ACCESSES, "accesses", "median", "Loads and stores of the usual call to the lines that move in it."),
    LOCKED: (LOCKED, "locked", "median", "Locked operations of the usual call on the lines that move in it."),
}
"""Metrics, with unit, part of Moves, statistic over rounds, and meaning."""
WEIGHTS = (ACCESSES, LOCKED)
"""Metrics that runs of before do not have."""

Workers = Literal["processes", "threads"]
Objects = Literal["own", "directory", "common"]
WORKERS: tuple[Workers, ...] = get_args(Workers)
OBJECTS: tuple[Objects, ...] = get_args(Objects)


class KshareLine(Struct, frozen=True):
    """One line of the program's JSON: which operations were called under which condition."""

    operation: str
    other: str
    workers: Workers
    objects: Objects
    cpus: Annotated[int, Meta(ge=2, le=16)]
    rounds: Annotated[int, Meta(ge=1, le=10_000)]
    region: Natural
    """Its number in the plug-in."""
    condition: Condition


class Moves(Struct, frozen=True, array_like=True):
    """The lines that moved during one operation."""

    cpu: Natural
    inside: Natural
    """In what the operation's CPU did."""
    untrue: Natural
    """Those of them that moved for bytes which the other CPU does not use: false sharing."""
    outside: Natural
    """In what the other CPUs did meanwhile."""
    accesses: Natural | None = None
    """Loads and stores of the operation's CPU to the lines that moved inside. None where an older plug-in counted, as below."""
    locked: Natural | None = None
    """Locked operations among them."""


class Region(Struct, frozen=True):
    """One line of the plug-in's JSON."""

    region: Natural
    cpus: Natural
    operations: list[Moves]


class Visit(Struct, frozen=True):
    """An operation under one condition, by round (a call on each CPU)."""

    condition: str
    rounds: list[list[Moves]]

    def value(self, metric: str) -> float | None:
        """A metric of KINDS; None where the plug-in did not count it."""
        _, part, statistic, _ = KINDS[metric]
        each = [[getattr(one, part) for one in turn] for turn in self.rounds]
        if any(None in turn for turn in each):
            return None
        return (median if statistic == "median" else fmean)(fmean(turn) for turn in each)


def region_of(operation: str, other: str, workers: Workers, objects: Objects) -> int:
    """The number of its region in the plug-in, as the program calculates it."""
    number = OPERATIONS.index(operation) * len(WORKERS) + WORKERS.index(workers)
    return 1 + (number * len(OBJECTS) + OBJECTS.index(objects)) * MOST_OPERATIONS + OPERATIONS.index(other)


def read_visits(raw: Raw, parameters: SharingParameters) -> list[Visit]:
    """Lines of the program joined with the plug-in's counts, by condition. Raises ParseError where they do not match."""
    called = [read_json(line, KshareLine, "kshare's line") for line in raw.stdout.splitlines() or [""]]
    p = parameters
    asked = p.operation, p.other, p.workers, p.objects, region_of(p.operation, p.other, p.workers, p.objects)
    if any((one.operation, one.other, one.workers, one.objects, one.region) != asked for one in called):
        raise ParseError("kshare's lines are not of the operation that was asked for")
    if SHARED_LINES not in raw.files:
        raise ParseError("nothing was counted: that takes the machine icount with cpus = 2 or more")
    counted = [
        read_json(line, Region, "the plug-in's line")
        for line in raw.files[SHARED_LINES].splitlines()
        if line.startswith(f'{{"region":{asked[-1]},')
    ]
    if len(counted) != len(called):
        raise ParseError(f"the program has {len(called)} conditions, the plug-in {len(counted)}")
    return [read_visit(one, region) for one, region in zip(called, counted, strict=True)]


def read_visit(called: KshareLine, region: Region) -> Visit:
    """One condition. Raises ParseError where the calls are not those of the rounds, each CPU in its turn."""
    cpus = called.cpus
    if [one.cpu for one in region.operations] != list(range(cpus)) * called.rounds or region.cpus < cpus:
        raise ParseError(
            f"the plug-in counted {len(region.operations)} operations that are not {called.rounds} rounds on {cpus} CPUs"
        )
    rounds = [region.operations[at : at + cpus] for at in range(0, len(region.operations), cpus)]
    return Visit(str(called.condition), rounds)


class SharingParameters(Parameters, frozen=True):
    """`workers`, one on each CPU, are processes or threads. Each has `objects` of its own (and a directory of its own for its
    files), its own in one `directory`, or all use what was opened once (common). `other`: every second worker calls that operation
    instead. `count` is the number of calls on each CPU (0: the program's choice), under so many `conditions` that must not matter (0:
    once, as it comes)."""

    operation: Operation
    workers: Workers = "processes"
    objects: Objects = "own"
    other: Operation = ""
    count: Annotated[int, Meta(ge=0, le=10_000)] = 0
    conditions: Annotated[int, Meta(ge=0, le=1000)] = CONDITIONS


class Sharing(Benchmark[SharingParameters]):
    name = "sharing"
    summary = "Cache lines that two CPUs share in single kernel operations, counted (our kshare; machine icount)"
    programs = ("kshare",)
    counts = True
    trial_files = (SHARED_LINES,)

    def read_parameters(self, table: dict[str, Any]) -> Any:
        found = super().read_parameters(table)
        if "other" not in table:
            found = structs.replace(found, other=found.operation)
        for operation in (found.operation, found.other):
            if operation == "futex" and (found.workers == "threads" or found.objects == "common"):
                raise InputError(
                    "futex wakes a thread of its own, which takes processes with objects of their own",
                    'Give futex-wake, or workers = "processes" and objects = "own".',
                )
        return found

    def label(self, parameters: SharingParameters) -> str:
        p = parameters
        head = "{operation}" + ("" if p.other == p.operation else f"-against-{p.other}") + "-{workers}"
        plain = structs.replace(p, conditions=CONDITIONS)
        return label_of(head, plain, objects="{}", other="", count="{}x").removesuffix("-").replace("--", "-")

    def modules_for(self, parameters: SharingParameters) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*MODULES.get(parameters.operation, ()), *MODULES.get(parameters.other, ()))))

    def metrics(self, parameters: SharingParameters) -> tuple[Metric, ...]:
        group = GROUP_OF.get(parameters.operation, "")
        how = "over rounds: the mean of a call on each CPU"
        return tuple(
            Metric(
                *(name, unit, "lower", about, statistic),
                group=group,
                optional=name in WEIGHTS,
                derived=f"{statistic} {how}",
            )
            for name, (unit, _, statistic, about) in KINDS.items()
        )

    def script(self, parameters: SharingParameters) -> str:
        p = parameters
        words = ["--workers", p.workers, "--objects", p.objects, "--with", p.other, "--cpus", '"$(nproc)"']
        words += ["--conditions", str(p.conditions or 1), "--seed", '"${KDUEL_SEED:-0}"']
        words += ["--count", str(p.count)] if p.count else []
        return f'"$KDUEL_PROGRAMS/kshare" {" ".join([*words, p.operation])}\n'

    def seconds(self, parameters: SharingParameters) -> float:
        return 0.5 + 0.3 * float(parameters.conditions or 1)

    def parse(self, raw: Raw, parameters: SharingParameters) -> dict[str, float]:
        visits = read_visits(raw, parameters)
        if len(visits) != (parameters.conditions or 1):
            raise ParseError(f"it counted under {len(visits)} conditions, not {parameters.conditions}")
        return {name: median(each.values()) for name, each in by_condition(visits).items()}

    def details(self, raw: Raw, parameters: SharingParameters) -> Details:
        return Details(conditions=by_condition(read_visits(raw, parameters)) if parameters.conditions else {})


def by_condition(visits: list[Visit]) -> dict[str, dict[str, float]]:
    each = {name: {one.condition: one.value(name) for one in visits} for name in KINDS}
    return {
        name: {condition: value for condition, value in values.items() if value is not None}
        for name, values in each.items()
        if None not in values.values()
    }


def sharing_table(wanted: str) -> dict[str, str]:
    """The [[benchmark]] table of OPERATION[+OTHER][/WORKERS][/OBJECTS]. Raises InputError."""
    operations, *words = wanted.split("/")
    operation, _, other = operations.partition("+")
    for word in words:
        if word not in (*WORKERS, *OBJECTS):
            raise InputError(
                f"{wanted}: {word!r} is neither a kind of workers nor of objects",
                f"{did_you_mean(word, (*WORKERS, *OBJECTS))}Give {', '.join(WORKERS)}; {', '.join(OBJECTS)}.",
            )
    workers = next((word for word in words if word in WORKERS), WORKERS[0])
    objects = next((word for word in words if word in OBJECTS), OBJECTS[0])
    return {
        "use": Sharing.name,
        "operation": operation,
        "other": other or operation,
        "workers": workers,
        "objects": objects,
    }


PLUGIN = Sharing()
