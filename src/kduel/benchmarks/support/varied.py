"""Timed workloads under conditions that must not matter (our kvary): the same program several times in one trial of an exact machine."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from statistics import median
from typing import Annotated, TypeVar

from msgspec import Meta, Struct, structs

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw
from kduel.benchmarks.support.metrics import with_aspect
from kduel.benchmarks.support.reading import Natural, read_json
from kduel.core.experiment import Metric
from kduel.core.samples import Details

MARK = '{"kvary":'
"""The beginning of each line that states a condition."""
SWITCHES = with_aspect(
    "activity",
    Metric("involuntary", "count", "none", "Preemptions, all processes from start to end.", "count"),
    Metric("voluntary", "count", "none", "Waits, all processes from start to end.", "count"),
)
"""The metrics that come with conditions."""


def over_conditions(metrics: Iterable[Metric]) -> tuple[Metric, ...]:
    """The metrics of a step under conditions, with those that come with them; each is the median over conditions."""
    return tuple(
        structs.replace(metric, derived=metric.derived or "median over conditions")
        for metric in (*metrics, *SWITCHES)
    )


class VariedParameters(Parameters, frozen=True):
    """`conditions`: under so many conditions that must not matter the program runs, in a trial of an exact machine with
    scheduling; 0: once, as it comes."""

    conditions: Annotated[int, Meta(ge=0, le=1000)] = 0


class VariedCondition(Struct, frozen=True):
    """A condition as kvary drew it. Number 0 changes nothing."""

    kvary: Natural
    phase: Natural
    """Nanoseconds before the program starts."""
    cpu: Natural
    """On which it starts."""
    halvings: Natural
    """Number of times that the machine's turns are halved."""
    environment: Natural
    layout: Natural

    def __str__(self) -> str:
        if not self.kvary:
            return "plain"
        words = (
            f"phase {self.phase / 1e6:.2f} ms",
            f"from CPU {self.cpu}",
            f"turns / {2**self.halvings}",
            f"{self.environment} B more environment",
            f"mappings {self.layout / 256:.1f} MiB lower",
        )
        return f"{self.kvary}: {', '.join(words)}"


class Switches(Struct, frozen=True):
    """kvary's last line of a condition."""

    voluntary: Natural
    involuntary: Natural


P = TypeVar("P", bound=VariedParameters)


class VariedBenchmark(Benchmark[P]):
    """A benchmark of one program of ours, whose `parse_once` reads what it prints; with conditions each value is the median over them."""

    @abstractmethod
    def parse_once(self, raw: Raw, parameters: P) -> dict[str, float]:
        """Values of one run of the program."""

    def counts_instructions(self, parameters: P) -> bool:
        return bool(parameters.conditions)

    def parse(self, raw: Raw, parameters: P) -> dict[str, float]:
        if not parameters.conditions:
            return self.parse_once(raw, parameters)
        found = self.by_condition(raw, parameters)
        return {name: median(values.values()) for name, values in found.items()}

    def details(self, raw: Raw, parameters: P) -> Details:
        return Details(conditions=self.by_condition(raw, parameters) if parameters.conditions else {})

    def by_condition(self, raw: Raw, parameters: P) -> dict[str, dict[str, float]]:
        """By metric: its values by the condition's description. Raises ParseError where conditions are missing."""
        found: dict[str, dict[str, float]] = {}
        for condition, text, switches in read_conditions(raw.stdout, parameters.conditions):
            values = self.parse_once(structs.replace(raw, stdout=text), parameters)
            values |= {"involuntary": float(switches.involuntary), "voluntary": float(switches.voluntary)}
            for name, value in values.items():
                found.setdefault(name, {})[str(condition)] = value
        return found


def read_conditions(text: str, count: int) -> Iterator[tuple[VariedCondition, str, Switches]]:
    """Each condition with what the program printed under it. Raises ParseError unless there are `count`, in their order."""
    before, *parts = text.split(MARK)
    if before.strip() or len(parts) != count:
        raise ParseError(f"the output has {len(parts)} conditions, asked for were {count}")
    for number, part in enumerate(parts):
        first, _, rest = (MARK + part).partition("\n")
        body, _, last = rest.rstrip("\n").rpartition("\n")
        condition = read_json(first, VariedCondition, "kvary's condition")
        if condition.kvary != number:
            raise ParseError(f"condition {number} of the output says that it is {condition.kvary}")
        yield condition, body, read_json(last, Switches, "kvary's account of switches")


def plain_output(text: str) -> str:
    """Output of the program under the first condition, which changes nothing; all of it where it ran once."""
    return next(read_conditions(text, text.count(MARK)))[1] if text.startswith(MARK) else text


def under_conditions(parameters: VariedParameters) -> str:
    """Words before a program's command that run it under conditions; none where it runs once."""
    if not parameters.conditions:
        return ""
    seed = '"${KDUEL_SEED:-1}"'  # A block's: further blocks have other conditions.
    return f'"$KDUEL_PROGRAMS/kvary" --conditions {parameters.conditions} --seed {seed} --cpus "$(nproc)" -- '
