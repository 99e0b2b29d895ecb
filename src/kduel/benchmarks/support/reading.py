"""Reading programs' output strictly: a number is there whole, once, plain and finite, or there is a ParseError."""

from __future__ import annotations

import itertools
import math
import re
from typing import TypeVar

import msgspec

from kduel.benchmarks import ParseError, Raw

T = TypeVar("T")
SHOWN = 60
"""Characters of the output that an error quotes at most: it is not to be trusted."""


def only(pattern: str, text: str, what: str) -> str:
    """The one group of `pattern` in the one whole line of `text` that is like it; `what` it is, for the error.

    A line counts only with its end, so that a cut number is never taken for a number.
    Raises ParseError where there is no such line, or more than one.
    """
    found = re.findall(rf"^{pattern}\n", text, re.MULTILINE | re.ASCII)
    if not found:
        raise ParseError(f"the output has no line with {what}")
    if len(found) > 1:
        raise ParseError(f"the output has {len(found)} lines with {what}, not one")
    return str(found[0])


def number(text: str, what: str) -> float:
    """A plain decimal number, finite and not negative. Raises ParseError for anything else."""
    value = float(text) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text, re.ASCII) else math.nan
    if not math.isfinite(value):
        raise ParseError(f"{what} is {text[:SHOWN]!r}, not a plain number")
    return value


def only_number(pattern: str, text: str, what: str) -> float:
    """`only`, as a number: its group is best a lavish `(\\S+)`, so that the error can quote what stands there."""
    return number(only(pattern, text, what), what)


def expect(pattern: str, text: str, what: str, wanted: object) -> None:
    """Raises ParseError unless the output says that it ran with the parameter that it was asked to run with."""
    seen = only(pattern, text, what)
    if seen != str(wanted):
        raise ParseError(f"{what} is {seen[:SHOWN]!r} in the output; asked for was {wanted}")


def agree(one: float, other: float, what: str, share: float = 0.1) -> None:
    """Raises ParseError where two figures of one output that say the same lie further apart than `share`.

    Programs take them at slightly different moments; what must not pass is a figure that lost a digit.
    """
    if abs(one - other) > share * max(abs(one), abs(other)):
        raise ParseError(f"the output contradicts itself: {what} is {one:g} in one place and {other:g} in another")


def ascending(values: dict[str, float], rounding: float = 0.0) -> None:
    """Raises ParseError unless the values rise, or stay, in the order given; by `rounding` one may be too large."""
    pairs = list(values.items())
    for (lower, low), (upper, high) in itertools.pairwise(pairs):
        if low > high + rounding:
            raise ParseError(f"the output contradicts itself: {lower} is {low:g}, above {upper}, {high:g}")


def positive(value: float, what: str) -> float:
    """The value. Raises ParseError where it is not above 0, as it must be after any work done."""
    if not value > 0:
        raise ParseError(f"{what} is {value:g}: nothing was measured")
    return value


def file(raw: Raw, name: str) -> str:
    """A file that the step left. Raises ParseError where it did not."""
    if name not in raw.files:
        raise ParseError(f"the step left no file {name}")
    return raw.files[name]


def json_file(raw: Raw, name: str, shape: type[T]) -> T:
    """A JSON file that the step left, as `shape`. Raises ParseError where it is cut or lacks something."""
    try:
        return msgspec.json.decode(file(raw, name), type=shape)
    except msgspec.ValidationError as error:
        raise ParseError(f"{name}: {error}") from error
    except msgspec.DecodeError as error:
        raise ParseError(f"{name} is not whole JSON: {error}") from error
