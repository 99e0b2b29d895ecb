"""Output of programs for which there is a benchmark: read by the benchmark's own parser, a call being a trial."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from kduel.benchmarks import ParseError, Raw, check_values
from kduel.benchmarks.support.output import BeyondHistogramError
from kduel.core.errors import InputError
from kduel.core.experiment import Metric
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, location_text


class CallOutput(NamedTuple):
    """Output of one call, of one benchmark."""

    where: int | str
    benchmark: str
    metrics: Sequence[Metric]
    """All that it may have; what `read` does not give is left out."""
    read: Callable[[], dict[str, float]]
    """The values by metric. Raises ParseError."""
    settings: tuple[tuple[str, str], ...] = ()
    """With what the program was called, as far as the benchmark's name does not say it."""


class PrintedFormat(ForeignFormat):
    """A program's output, of which a benchmark has the parser."""

    calls = True

    @abstractmethod
    def call_outputs(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[CallOutput]:
        """Every call, or every test of it, in the order of the file."""

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        trials: Counter[str] = Counter()
        for one in self.call_outputs(path, contender, skipped):
            trials[one.benchmark] += 1
            for metric, value in values_of(path, one, skipped):
                yield ForeignRow(
                    str(contender), trials[one.benchmark], one.benchmark, metric.name, metric.unit, metric.better, value,
                    one.where, metric.statistic, least=metric.least, aspect=metric.aspect or None,
                    settings=one.settings,
                )  # fmt: skip


def values_of(path: Path, one: CallOutput, skipped: list[str]) -> Iterator[tuple[Metric, float]]:
    """The metrics that a call has. Raises InputError where it printed what the program does not print."""
    try:
        try:
            found = one.read()
        except BeyondHistogramError as error:
            found = error.known
            skipped.append(f"{location_text(path, one.where)}: percentiles that its histogram does not reach.")
        have = [metric for metric in one.metrics if metric.name in found]
        check_values(found, have)
    except ParseError as error:
        raise InputError(
            f"{location_text(path, one.where)}: {error}",
            "Check that the file is complete, remove this call from it, or measure again.",
        ) from error
    for metric in have:
        yield metric, found[metric.name]


def as_stdout(text: str) -> Raw:
    """Text that a program printed, as its benchmark's parser takes it."""
    return Raw(stdout=text, stderr="", exit_status=0)


def pieces(lines: Iterator[tuple[int, str]], begins: Callable[[str], bool]) -> Iterator[tuple[int, str]]:
    """Calls that were appended to one file: the first line of each, and its text. What comes before the first is left out."""
    first, found = 0, list[str]()
    for line, text in lines:
        if begins(text):
            if first:
                yield first, "".join(found)
            first, found = line, []
        found.append(f"{text}\n")
    if first:
        yield first, "".join(found)
