"""A benchmark of the user's own, given in the study: a command, and a regular expression for each metric."""

import hashlib
import operator
import re
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw
from kduel.benchmarks.support.parameters import slug
from kduel.benchmarks.support.reading import LARGEST_FIGURE, SHOWN
from kduel.core.errors import InputError
from kduel.core.experiment import Aspect, Better, Metric, Statistic
from kduel.core.manifest import digest, sha256_of
from kduel.core.untrusted import MalformedError

MOST_MEMORY = 1 << 18
"""Bytes of an expression when it is compiled, which bound the time a byte of text."""
MOST_CPU_SECONDS = 10.0
"""CPU time of all matches of a step: each is found in linear time, and there may be as many as bytes."""
MOST_WORK = 2_000_000_000
"""Characters times instructions of the expression: about 10 s of CPU time for the worst expressions, which keep as many
states as instructions. An expression of 100 instructions may search all that is read of a file."""

REDUCERS: dict[str, Callable[[list[float]], float]] = {
    "last": operator.itemgetter(-1), "first": operator.itemgetter(0), "mean": statistics.fmean,
    "median": statistics.median, "min": min, "max": max,
}  # fmt: skip
Reduce = Literal["only", "last", "first", "mean", "median", "min", "max"]
STATISTICS: dict[str, Statistic] = {"mean": "mean", "median": "median", "min": "min", "max": "max"}


NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
LONGEST_NUMBER = 100
BEFORE = re.compile(r"[0-9][.,]?\Z|(?:^|[\s=:(\[])[+-]\Z|\.\Z", re.ASCII)
AFTER = re.compile(r"[.,]?[0-9]|[eE][+-]?[0-9]", re.ASCII)
"""Text before or after the group of a regular expression that takes a part of a number."""


class OutputPattern(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One metric: what it is called, and where its number stands."""

    name: Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=60)]
    unit: Annotated[str, Meta(min_length=1, max_length=20)]
    better: Better
    regex: str
    """RE2's, `^` and `$` at every line; its one group is the number."""
    reduce: Reduce = "only"
    """Reduction of several matches to one number; "only": several are an error."""
    of: Literal["stdout", "stderr"] = "stdout"
    about: str = ""
    aspect: Aspect = ""
    """Quantity that it measures, such as throughput: summaries, trade-offs and advice go by this."""

    def __post_init__(self) -> None:
        groups = compile_expression(self.regex).groups
        if groups != 1:
            raise ValueError(
                f"regex {self.regex!r} has {groups} groups; it needs one, around the number: (?:...) is none"
            )


class CommandParameters(Parameters, frozen=True):
    """`command` is shell; the step fails where it ends with another status than 0."""

    command: Annotated[str, Meta(pattern=r"\S")]
    metrics: Annotated[tuple[OutputPattern, ...], Meta(min_length=1)]
    time: Annotated[float, Meta(gt=0, le=86_400)] = 5.0
    """About how many seconds it takes, for the ETA."""
    packages: tuple[Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9.+-]+$")], ...] = ()
    """Debian packages that it needs in the guest."""
    files: dict[str, Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]] = {}
    """Files of this host, such as a program, each with its SHA-256. The command finds them in its PATH, by their names."""

    def __post_init__(self) -> None:
        names = [metric.name for metric in self.metrics]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two metrics are called {name!r}")


class Command(Benchmark[CommandParameters]):
    """Runs in an empty directory; the scratch disk is there as $KDUEL_SCRATCH."""

    name = "command"
    summary = "A command of your own, with a regular expression for each metric"
    needs_scratch = True

    def label(self, parameters: CommandParameters) -> str:
        """The command's words made short, and a mark that distinguishes it from others; a study's `label` is better."""
        mark = hashlib.sha256(parameters.command.encode()).hexdigest()[:6]
        return f"command-{slug(parameters.command)[:30].strip('-.')}-{mark}"

    def metrics(self, parameters: CommandParameters) -> tuple[Metric, ...]:
        derived = {reduce: f"{reduce} of all matches" for reduce in ("mean", "median")}
        return tuple(
            Metric(
                m.name, m.unit, m.better, m.about, STATISTICS.get(m.reduce, "value"),
                least=None, derived=derived.get(m.reduce, ""), aspect=m.aspect,
            )
            for m in parameters.metrics
        )  # fmt: skip

    def packages_for(self, parameters: CommandParameters) -> tuple[str, ...]:
        return tuple(parameters.packages)

    def files_for(self, parameters: CommandParameters) -> list[tuple[str, Path]]:
        for name, sha256 in parameters.files.items():
            path = Path(name)
            if not path.is_file():
                raise InputError(
                    f"{path}, which the command needs, is not there", "Start in the directory that has it."
                )
            # A study's author takes the first, `kduel run --command` the digest of manifests.
            if sha256 not in (sha256_of(path), digest(path)):
                raise InputError(
                    f"{path} is not the file with the SHA-256 {sha256} that the study names",
                    "Restore it, or start a new run with the SHA-256 that sha256sum prints.",
                )
        return [(Path(name).name, Path(name)) for name in parameters.files]

    def script(self, parameters: CommandParameters) -> str:
        return f"{parameters.command.strip()}\n"

    def parse(self, raw: Raw, parameters: CommandParameters) -> dict[str, float]:
        started = time.thread_time()
        return {metric.name: read_metric(metric, raw, started) for metric in parameters.metrics}


def read_metric(metric: OutputPattern, raw: Raw, started: float) -> float:
    """The metric's value; `started` as in `find_matches`. Raises ParseError where its regular expression finds nothing, or no finite number."""
    text = raw.stdout if metric.of == "stdout" else raw.stderr
    try:
        found = list(find_matches(metric.regex, text, started))
    except MalformedError as error:
        raise ParseError(f"{metric.name}: {error}") from error
    if not found:
        raise ParseError(f"{metric.name}: nothing in {metric.of} is like {metric.regex!r}")
    values = [read_number(match, metric) for match in found]
    if metric.reduce != "only":
        return float(REDUCERS[metric.reduce](values))
    if len(values) > 1:
        raise ParseError(
            f"{metric.name}: {len(values)} places in {metric.of} are like {metric.regex!r}; choose one: reduce"
        )
    return values[0]


def read_number(match: Any, metric: OutputPattern) -> float:
    """A number as a program may print it, with sign and exponent, and the whole of it. Raises ParseError for all
    else, for a part of a number, and at the very end of the output, which may be cut."""
    text = match[1] or ""
    if not (len(text) <= LONGEST_NUMBER and NUMBER.fullmatch(text) and abs(value := float(text)) <= LARGEST_FIGURE):
        raise ParseError(f"{metric.name}: {text[:SHOWN]!r} is not a finite number up to 2^64")
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


def compile_expression(text: str) -> Any:
    """The expression with `^` and `$` at every line. Raises ValueError where it is none of RE2's, or too large."""
    import re2

    options = re2.Options()
    options.max_mem = MOST_MEMORY
    options.log_errors = False
    try:
        return re2.compile(f"(?m){text}", options=options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        # Where a parenthesis is missing, the part is the whole, with the flag.
        what, _, part = reason.partition(": ")
        where = f" at character {text.index(part) + 1}: {part}" if part and text.count(part) == 1 else ""
        raise ValueError(
            f"regex {text!r} is no regular expression of RE2 ({what}{where}), which has neither look-around nor "
            "back-references"
        ) from error


def find_matches(text: str, within: str, started: float) -> Iterator[Any]:
    """Each match. Raises MalformedError where they take too long since the thread's CPU time `started`."""
    expression = compile_expression(text)
    if expression.programsize * len(within) > MOST_WORK:
        raise MalformedError(
            f"regex {text[:100]!r} is too large for {len(within):,} characters: make it or the output shorter"
        )
    for match in expression.finditer(within):
        yield match
        if time.thread_time() - started > MOST_CPU_SECONDS:
            break
    if time.thread_time() - started > MOST_CPU_SECONDS:
        raise MalformedError(
            f"regex {text[:100]!r}, with those before it, takes more than {MOST_CPU_SECONDS:g} s of CPU time on "
            f"{len(within):,} characters"
        )


PLUGIN = Command()
