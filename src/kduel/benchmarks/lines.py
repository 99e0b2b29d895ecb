"""lines: how many cache lines and pages of the kernel an operation touches, each once (our kbench and counting plug-in)."""

from statistics import median
from typing import Annotated

from msgspec import Meta, Struct, structs

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw
from kduel.benchmarks.kbench import PLUGIN as KBENCH
from kduel.benchmarks.kbench import KbenchLine, KbenchParameters, Operation, check_line, read_lines
from kduel.benchmarks.request import CLOCK
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.operations import GROUP_OF, WORDS
from kduel.benchmarks.support.parameters import label_of
from kduel.benchmarks.support.reading import Natural, read_json
from kduel.core.experiment import Metric
from kduel.core.metric_results import TOUCHED, TOUCHED_PAGES
from kduel.core.samples import Details

FOOTPRINTS = "footprints"
"""File of the trial: the plug-in's lines."""
KINDS = {
    "touched-lines": (TOUCHED, "Cache lines of kernel data, each once in a call of the usual kind."),
    "code-lines": (TOUCHED, "Cache lines of kernel code, each once."),
    "data-pages": (TOUCHED_PAGES, "Pages (4 KiB) of kernel data, each once."),
    "code-pages": (TOUCHED_PAGES, "Pages (4 KiB) of kernel code, each once."),
    "stack-lines": (TOUCHED, "Cache lines of the kernel's stacks, each once."),
    "user-lines": (TOUCHED, "Cache lines at addresses of user space, by the kernel and by the program, each once."),
}
"""Metrics in the plug-in's order, with unit and meaning."""


class LinesParameters(Parameters, frozen=True):
    """Parameters of kbench where it counts: `count` calls (0: the program's choice) under each of so many `conditions` that must not
    matter, drawn from the run's seed; 0: once, as it comes."""

    operation: Operation
    count: Annotated[int, Meta(ge=0, le=20_000)] = 0
    conditions: Annotated[int, Meta(ge=0, le=1000)] = 5

    @property
    def for_kbench(self) -> KbenchParameters:
        """Parameters of the same calls for kbench."""
        return KbenchParameters(operation=self.operation, mode="exact", count=self.count, conditions=self.conditions)


class Footprint(Struct, frozen=True):
    """The plug-in's line about one visit of an operation."""

    region: Natural
    count: Natural
    user: Natural
    kernel: Natural
    touched: list[tuple[Natural, Natural, Natural, Natural, Natural, Natural, Natural]]
    """How many calls touched so much, in the order of KINDS."""

    def usual(self, kind: int) -> float:
        """The median over calls."""
        return float(median(value for times, *touched in self.touched for value in times * [touched[kind]]))


class Lines(Benchmark[LinesParameters]):
    name = "lines"
    summary = "Cache lines and pages that an operation touches in the kernel, each once (our kbench; machine icount)"
    programs = KBENCH.programs
    counts = True
    trial_files = (FOOTPRINTS,)

    def label(self, parameters: LinesParameters) -> str:
        plain = structs.replace(parameters, conditions=5)
        return label_of("{operation}-lines", plain, count="{}x")

    def modules_for(self, parameters: LinesParameters) -> tuple[str, ...]:
        return KBENCH.modules_for(parameters.for_kbench)

    def metrics(self, parameters: LinesParameters) -> tuple[Metric, ...]:
        group = GROUP_OF.get(parameters.operation, "")
        how = "median over calls; median over conditions"
        kinds = (Metric(name, unit, "lower", about, "median", group=group) for name, (unit, about) in KINDS.items())
        return with_aspect("path-length", *kinds, derived=how, words=WORDS[parameters.operation])

    def script(self, parameters: LinesParameters) -> str:
        return KBENCH.script(parameters.for_kbench)

    def seconds(self, parameters: LinesParameters) -> float:
        return KBENCH.seconds(parameters.for_kbench)

    def parse(self, raw: Raw, parameters: LinesParameters) -> dict[str, float]:
        found = read_footprints(raw, parameters)
        return {name: median(one.usual(kind) for one in found.values()) for kind, name in enumerate(KINDS)}

    def details(self, raw: Raw, parameters: LinesParameters) -> Details:
        found = read_footprints(raw, parameters)
        values = {name: {which: one.usual(kind) for which, one in found.items()} for kind, name in enumerate(KINDS)}
        return Details(conditions=values if parameters.conditions else {})


def read_footprints(raw: Raw, parameters: LinesParameters) -> dict[str, Footprint]:
    """By condition, what the plug-in saw of the program's calls. Raises ParseError where both do not match."""
    lines = [line for line in read_lines(raw.stdout) if not line.situation]
    KBENCH.parse(raw, parameters.for_kbench)
    if FOOTPRINTS not in raw.files:
        raise ParseError("nothing was counted: that takes the machine icount")
    known = [read_json(line, Footprint, "the plug-in's line") for line in raw.files[FOOTPRINTS].splitlines()]
    region = next((line.region for line in lines), 0)
    visits = [one for one in known if one.region == region]
    for line in lines:
        check_line(line)
    # Other steps are in the file, too, and conditions may take equally long: this step's visits are those that follow one another
    # as its lines do, each with the calls of its clock.
    spans = [visits[at : at + len(lines)] for at in range(len(visits) - len(lines) + 1)]
    fitting = [span for span in spans if all(map(fits, span, lines))]
    if not fitting or any([one.touched for one in span] != [one.touched for one in fitting[0]] for span in fitting):
        raise ParseError(f"the plug-in counted {len(fitting)} times what kbench's clock saw")
    return {str(line.condition or ""): one for line, one in zip(lines, fitting[0], strict=True)}


def fits(one: Footprint, line: KbenchLine) -> bool:
    """True if these are the line's calls, and took so much by the guest's clock."""
    calls = sum(times for times, *_ in one.touched)
    return one.count == calls == line.count and 0 <= one.user + one.kernel - sum(line.samples) <= CLOCK * line.count


PLUGIN = Lines()
