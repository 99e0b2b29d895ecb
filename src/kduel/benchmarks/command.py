"""A benchmark of the user's own, given in the study: a command, and a regular expression for each metric."""

from __future__ import annotations

import hashlib
import operator
import re
import statistics
from collections.abc import Callable
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from kduel.benchmarks import Benchmark, ParseError, Raw
from kduel.benchmarks.support.parameters import slug
from kduel.benchmarks.support.reading import SHOWN
from kduel.core.experiment import Aspect, Better, Metric, Statistic
from kduel.core.samples import within_reason

REDUCERS: dict[str, Callable[[list[float]], float]] = {
    "last": operator.itemgetter(-1),
    "first": operator.itemgetter(0),
    "mean": statistics.fmean,
    "median": statistics.median,
    "min": min,
    "max": max,
}
Reduce = Literal["only", "last", "first", "mean", "median", "min", "max"]
STATISTICS: dict[str, Statistic] = {"mean": "mean", "median": "median", "min": "min", "max": "max"}


NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
LONGEST_NUMBER = 100
BEFORE = re.compile(r"[0-9][.,]?$|(?:^|[\s=:(\[])[+-]$|\.$", re.ASCII)
AFTER = re.compile(r"[.,]?[0-9]|[eE][+-]?[0-9]", re.ASCII)
"""What stands before or after the group of a regular expression where that takes a part of a number."""


class OutputPattern(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One metric: what it is called, and where its number stands."""

    name: Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=60)]
    unit: Annotated[str, Meta(min_length=1, max_length=20)]
    better: Better
    regex: str
    """Python's, `^` and `$` at every line; its one group is the number."""
    reduce: Reduce = "only"
    """Where it matches more than once, what becomes of the numbers; "only": that is an error."""
    of: Literal["stdout", "stderr"] = "stdout"
    about: str = ""
    aspect: Aspect = ""
    """What it measures, such as throughput: summaries, trade-offs and advice go by this."""

    def __post_init__(self) -> None:
        try:
            groups = re.compile(self.regex, re.MULTILINE).groups
        except re.error as error:
            raise ValueError(f"regex {self.regex!r} is no regular expression: {error}") from error
        if groups != 1:
            raise ValueError(
                f"regex {self.regex!r} has {groups} groups; it needs one, around the number: (?:...) is none"
            )


class Command(Benchmark):
    """Runs in an empty directory; the scratch disk is there as $KDUEL_SCRATCH."""

    name = "command"
    summary = "A command of your own, with a regular expression for each metric"
    needs_scratch = True

    class Parameters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        """`command` is shell; the step fails where it ends with another status than 0."""

        command: Annotated[str, Meta(pattern=r"\S")]
        metrics: Annotated[tuple[OutputPattern, ...], Meta(min_length=1)]
        time: Annotated[float, Meta(gt=0, le=86_400)] = 5.0
        """About how many seconds it takes, for the ETA."""
        packages: tuple[Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9.+-]+$")], ...] = ()
        """Debian packages that it needs in the guest."""

        def __post_init__(self) -> None:
            names = [metric.name for metric in self.metrics]
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(f"two metrics are called {name!r}")

    def label(self, parameters: Any) -> str:
        """The command's words made short, and a mark that distinguishes it from others; a study's `label` is better."""
        mark = hashlib.sha256(parameters.command.encode()).hexdigest()[:6]
        return f"command-{slug(parameters.command)[:30].strip('-.')}-{mark}"

    def metrics(self, parameters: Any) -> tuple[Metric, ...]:
        return tuple(
            Metric(
                m.name,
                m.unit,
                m.better,
                m.about,
                STATISTICS.get(m.reduce, "value"),
                least=None,
                derived=f"{m.reduce} of all matches" if m.reduce in ("mean", "median") else "",
                aspect=m.aspect,
            )
            for m in parameters.metrics
        )

    def packages_for(self, parameters: Any) -> tuple[str, ...]:
        return tuple(parameters.packages)

    def script(self, parameters: Any) -> str:
        return f"{parameters.command.strip()}\n"

    def parse(self, raw: Raw, parameters: Any) -> dict[str, float]:
        return {metric.name: read(metric, raw) for metric in parameters.metrics}


def read(metric: OutputPattern, raw: Raw) -> float:
    """The metric's value. Raises ParseError where its regular expression finds nothing, or no finite number."""
    text = raw.stdout if metric.of == "stdout" else raw.stderr
    found = list(re.finditer(metric.regex, text, re.MULTILINE))
    if not found:
        raise ParseError(f"{metric.name}: nothing in {metric.of} is like {metric.regex!r}")
    values = [finite(match, metric) for match in found]
    if metric.reduce != "only":
        return float(REDUCERS[metric.reduce](values))
    if len(values) > 1:
        raise ParseError(
            f"{metric.name}: {len(values)} places in {metric.of} are like {metric.regex!r}; choose one: reduce"
        )
    return values[0]


def finite(match: re.Match[str], metric: OutputPattern) -> float:
    """A number as a program may print it, with sign and exponent, and the whole of it.

    Raises ParseError for all else, NaN among it; where the expression takes only a part of a number, and where the
    number is the very end of the output, which may have been cut there.
    """
    text = match[1] or ""
    if not (len(text) <= LONGEST_NUMBER and NUMBER.fullmatch(text) and within_reason(value := float(text))):
        raise ParseError(f"{metric.name}: {text[:SHOWN]!r} is not a finite number")
    before, after = (
        match.string[max(0, match.start(1) - 2) : match.start(1)],
        match.string[match.end(1) : match.end(1) + 3],
    )
    if not after:
        raise ParseError(
            f"{metric.name}: {metric.of} ends in the number {text}, which may be cut there: print a line end after it"
        )
    if BEFORE.search(before) or AFTER.match(after):
        raise ParseError(f"{metric.name}: {metric.regex!r} takes only a part of the number {before}{text}{after!r}")
    return value


PLUGIN = Command()
