"""Reading programs' output strictly: a number is there whole, once, plain and within reason, or there is a ParseError.

The rules that all parsers share:

- A number counts only with what ends it: its unit, its bracket or the end of its line. A number that is the last thing
  of the output may be the beginning of a longer one.
- It is plain ASCII, not negative, and no larger than a counter of 64 bits can be.
- A percentile counts only with the samples that carry it.
- A unit is recognised, or the number is refused.
- What stands there twice, or contradicts another figure of the output, is refused.

What a metric may be at all is its own `least` and `most`: `kduel.benchmarks.check_values` sees to that.
"""

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Annotated, TypeVar

from msgspec import Meta

from kduel.benchmarks.support.output import ParseError, Raw
from kduel.core.untrusted import MalformedError, decode

T = TypeVar("T")
SHOWN = 60
SHOWN_LINE = 200
"""Characters of the output that an error quotes at most: it is not to be trusted."""
LARGEST_FIGURE = 2.0**64
PLAIN = re.compile(r"[0-9]{1,20}(\.[0-9]{1,30})?", re.ASCII)
DIGITS = re.compile(r"[0-9]{1,18}", re.ASCII)

Natural = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""A count in a program's JSON."""
Amount = Annotated[float, Meta(ge=0, le=LARGEST_FIGURE)]
"""A duration, rate or size in a program's JSON."""


def find_one(pattern: str, text: str, what: str) -> str:
    """The one group of `pattern` in the one whole line of `text` that is like it; `what` it is, for the error. A line
    counts only with its end, so that no number is cut. Raises ParseError for none or several."""
    found = re.findall(rf"^{pattern}\n", text, re.MULTILINE | re.ASCII)
    if not found:
        raise ParseError(f"the output has no line with {what}")
    if len(found) > 1:
        raise ParseError(f"the output has {len(found)} lines with {what}, not one")
    return str(found[0])


def read_number(text: str, what: str) -> float:
    """A plain decimal number, not negative and no larger than a counter. Raises ParseError for anything else."""
    if not PLAIN.fullmatch(text) or (value := float(text)) > LARGEST_FIGURE:
        raise ParseError(f"{what} is {text[:SHOWN]!r}, not a plain number")
    return value


def read_whole(text: str, what: str) -> int:
    """A plain whole number, not negative. Raises ParseError for anything else."""
    if not DIGITS.fullmatch(text):
        raise ParseError(f"{what} is {text[:SHOWN]!r}, not a whole number")
    return int(text)


def find_number(pattern: str, text: str, what: str) -> float:
    """`find_one`, as a number: its group is best a lavish `(\\S+)`, so that the error can quote what stands there."""
    return read_number(find_one(pattern, text, what), what)


def find_whole(pattern: str, text: str, what: str) -> int:
    """`find_one`, as a whole number."""
    return read_whole(find_one(pattern, text, what), what)


def split_lines(text: str, what: str) -> list[str]:
    """The lines of `text`, without their ends. Raises ParseError where the last one has no end: it may be cut."""
    lines = text.split("\n")
    if lines.pop():
        raise ParseError(f"a line of {what} is cut: the text ends inside it")
    return lines


def expect(pattern: str, text: str, what: str, wanted: object) -> None:
    """Raises ParseError unless the output reports the requested parameter."""
    seen = find_one(pattern, text, what)
    if seen != str(wanted):
        raise ParseError(f"{what} is {seen[:SHOWN]!r} in the output; asked for was {wanted}")


def check_agreement(one: float, other: float, what: str, share: float = 0.1) -> None:
    """Raises ParseError where two figures of one output for the same quantity lie further apart than `share`: times
    of reading differ slightly, but a figure that lost a digit must not pass."""
    if abs(one - other) > share * max(abs(one), abs(other)):
        raise ParseError(f"the output contradicts itself: {what} is {one:g} in one place and {other:g} in another")


def check_ascending(values: dict[str, float], rounding: float = 0.0) -> None:
    """Raises ParseError unless the values rise, or stay, in the order given; by `rounding` one may be too large."""
    pairs = list(values.items())
    for (lower, low), (upper, high) in itertools.pairwise(pairs):
        if low > high + rounding:
            raise ParseError(f"the output contradicts itself: {lower} is {low:g}, above {upper}, {high:g}")


def check_positive(value: float, what: str) -> float:
    """The value. Raises ParseError where it is not above 0, as it must be after any work done."""
    if not value > 0:
        raise ParseError(f"{what} is {value:g}: nothing was measured")
    return value


def check_samples(samples: float, per_mille: int, what: str) -> None:
    """Raises ParseError where a percentile (`per_mille` thousandths) has too few samples for one to lie above it."""
    needed = -(-1000 // (1000 - per_mille))
    if samples < needed:
        raise ParseError(f"{what} is of {samples:g} samples, and takes {needed}: measure longer")


def read_table(text: str, columns: Sequence[str], what: str) -> list[list[str]]:
    """The rows of a table with commas and these headings, all quoted or none. Raises ParseError where it is another one."""
    rows = [line.split(",") for line in split_lines(text, what)]
    if rows and all(len(cell) > 1 and cell[0] == cell[-1] == '"' for row in rows for cell in row):
        rows = [[cell[1:-1] for cell in row] for row in rows]
    if not rows or rows[0] != list(columns) or any(len(row) != len(columns) for row in rows):
        raise ParseError(f"{what} is not a table of {', '.join(columns)}")
    return rows[1:]


def percentile_of(ascending_values: Sequence[int], per_mille: int, what: str) -> float:
    """The smallest of ascending values that so many thousandths do not exceed. Raises ParseError for too few."""
    check_samples(len(ascending_values), per_mille, what)
    return float(ascending_values[-(-len(ascending_values) * per_mille // 1000) - 1])


def check_unique(names: Iterable[str], what: str) -> None:
    """Raises ParseError where a name occurs twice: it is unknown which one counts."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ParseError(f"the output has {what} {name[:SHOWN]!r} twice")
        seen.add(name)


def read_file(raw: Raw, name: str) -> str:
    """A file that the step left. Raises ParseError where it did not."""
    if name not in raw.files:
        raise ParseError(f"the step left no file {name}")
    return raw.files[name]


def read_json(text: str, shape: type[T], what: str) -> T:
    """A program's JSON as `shape`, unknown keys passed over. Raises ParseError if cut, invalid or too deep."""
    try:
        return decode(text, shape)
    except MalformedError as error:
        first = text.lstrip().partition("\n")[0]
        if first and first[0] not in "{[":
            # What a program says before its JSON is why that is not what was wanted.
            raise ParseError(f"{what} begins with {first[:SHOWN_LINE]!r}, and not as JSON") from error
        raise ParseError(f"{what} is incomplete: {error}") from error


def read_json_file(raw: Raw, name: str, shape: type[T]) -> T:
    """A JSON file that the step left, as `shape`. Raises ParseError as `read_json` does."""
    return read_json(read_file(raw, name), shape, name)
