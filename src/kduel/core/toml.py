"""Reading TOML that somebody wrote: bounded in size and depth, with values that can be meant."""

import math
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kduel.core.errors import InputError

MOST_BYTES = 1 << 20
DEEPEST = 32
"""Tables and lists within one another; ours have 4."""
MOST_LETTERS = 64 << 10
"""Of one text."""
LARGEST = 2**63
TOO_DOTTED = re.compile(r"(?<![\w\"'-])(?:[\w\"'-]+\s*\.\s*){64}")
"""A key of very many parts, for which the parser takes quadratic time. Without the look behind, this would itself take
as long for a word of very many letters: half a minute for 100,000."""
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""All control characters but tab and newline."""


def read_text(path: Path, what: str, remedy: str) -> str:
    """A file that `what` names, as UTF-8. Raises InputError where it is unreadable, not regular or too large."""
    try:
        if not path.is_file() and path.exists():
            raise InputError(f"cannot read {what} {path}: it is no regular file", remedy)
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise InputError(f"cannot read {what} {path}: it is larger than {MOST_BYTES >> 20} MiB", remedy)
        return data.decode()
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else reason_of(error)
        raise InputError(f"cannot read {what} {shorten(path)}: {reason}", remedy) from error


def table_beside(module: str) -> dict[str, Any]:
    """The table of KDuel's own that a module has beside itself, in the TOML file of its name."""
    return tomllib.loads(Path(module).with_suffix(".toml").read_text("utf-8"))


def parse_toml(text: str, origin: str, remedy: str) -> dict[str, Any]:
    """The content of a TOML text; `origin` is named in errors. Raises InputError naming the line or the key."""
    if text.startswith("\ufeff"):
        raise InputError(
            f"{origin} begins with a byte order mark, which TOML has not", "Save it as UTF-8 without one."
        )
    try:
        if TOO_DOTTED.search(text):
            raise RecursionError
        # Without the line's end, the line of an error at the end of the file is not named.
        table = tomllib.loads(f"{text}\n")
    except tomllib.TOMLDecodeError as error:
        reason = re.sub(r"^Cannot declare .* twice", "a table is there twice", str(error))
        reason = reason.replace("Cannot overwrite a value", "a key is there twice")
        raise InputError(f"{origin} is not TOML: {reason}", remedy) from error
    except (RecursionError, ValueError) as error:
        # ValueError: an integer of thousands of digits, a date that no calendar has.
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InputError(f"{origin} cannot be read: {reason}", remedy) from error
    check_values(table, origin)
    return table


def check_values(table: dict[str, Any], origin: str) -> None:
    """Raises InputError, naming the key, for an infinite number, NaN, or a text with control characters."""
    for where, value in _values(table):
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{origin}: {where} is {value}, which is no number", "Give a finite number.")
        if isinstance(value, int) and not -LARGEST <= value < LARGEST:
            raise InputError(f"{origin}: {where} is too large a number", "Give one of 64 bits at most.")
        if isinstance(value, str) and (found := CONTROL.search(value)):
            raise InputError(
                f"{origin}: {where} holds the control character U+{ord(found[0]):04X}", "Write printable text."
            )
        if isinstance(value, str) and len(value) > MOST_LETTERS:
            raise InputError(f"{origin}: {where} has {len(value)} characters", f"Give {MOST_LETTERS} at most.")


def _values(table: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """All keys and values with where they are, counted from one as people do."""
    waiting: list[tuple[str, Any, int]] = [("", table, 0)]
    while waiting:
        where, value, depth = waiting.pop()
        if depth > DEEPEST:
            raise InputError(f"{shorten(where)} is nested too deeply", f"Give {DEEPEST} levels at most.")
        if isinstance(value, dict):
            for key, item in value.items():
                yield f"a key of {where or 'the file'}", key
                waiting.append((f"{where}.{key}".lstrip("."), item, depth + 1))
        elif isinstance(value, list):
            waiting += [(f"{where}[#{number}]", item, depth + 1) for number, item in enumerate(value, 1)]
        else:
            yield shorten(where), value


def shorten(text: object, most: int = 200) -> str:
    """Both ends of a text that is too long to be shown."""
    whole = str(text)
    return whole if len(whole) <= most else f"{whole[: most // 2]}...{whole[-most // 4 :]}"


def reason_of(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
