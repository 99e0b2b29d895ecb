"""Messages about wrong values of a study or of the command line, in the words of the file."""

import re
import types
import typing
from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from kduel.core.text import did_you_mean

WORDS = {
    "int": "a whole number", "float": "a number", "bool": "true or false", "str": "text", "array": "a list",
    "object": "a table",
}  # fmt: skip
"""What msgspec calls a type, as TOML has it. Its `null` has no counterpart there: leaving the key out."""
DATE_FORMS = "2026-01-31 or 2026-01-31T10:00:00+02:00"
"""The forms of a date, as told. A blank may take the place of the T; the seconds, their fraction and the offset may be left out."""
DATE = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)?)?"
)


def validation_message(error: msgspec.ValidationError, kind: type[msgspec.Struct] | None = None) -> str:
    """msgspec's message in the words of TOML (`$.a[0].b` is `a[#1].b`), with `kind`'s keys and values, if given."""
    message, _, where = str(error).partition(" - at `")
    keys = where.rstrip("`").removeprefix("$").removeprefix(".").replace("[...]", "")
    path = re.sub(r"\[(\d+)\]", lambda found: f"[#{int(found[1]) + 1}]", keys)
    if found := re.fullmatch(r"Expected `(.*?)`(.*?)(?:, got `(.*?)`)?", message):
        message = f"this must be {words(found[1])}{found[2]}" + (f", and is {words(found[3])}" if found[3] else "")
    elif found := re.fullmatch(r"Object contains unknown field `(.*)`", message):
        inner = keys_of_inner(error, kind) if kind else None
        message = no_key(found[1], inner[1] if inner else kind.__struct_fields__ if kind else ())
    elif found := re.fullmatch(r"Object missing required field `(.*)`", message):
        allowed = choices(kind, f"{keys}.{found[1]}".lstrip(".")) if kind else ()
        message = f"`{found[1]}` is missing" + (f"; give {list_choices(allowed)}" if allowed else "")
    elif found := re.fullmatch(r"Invalid enum value (.*)", message):
        allowed = choices(kind, keys) if kind else ()
        near = did_you_mean(found[1].strip("'"), allowed)
        message = f"{found[1]} is not possible"
        if allowed:
            message += f". {near}There are: {', '.join(allowed)}" if near else f"; give {list_choices(allowed)}"
    return f"{path}: {message}" if path else message


def no_key(name: str, known: Iterable[str]) -> str:
    """The sentence about a key that is none of the `known`, with the one of them that it is like."""
    near = did_you_mean(name, known)
    return f"there is no key `{name}`{near and f'. {near.rstrip()}'}"


def list_choices(allowed: tuple[str, ...]) -> str:
    """`fast or slow`; of many values `one of a, b, c, d, e`."""
    return " or ".join(allowed) if len(allowed) < 5 else f"one of {', '.join(allowed)}"


def words(types: str) -> str:
    """`float | null` as `a number`."""
    return " or ".join(WORDS.get(name, f"`{name}`") for name in types.split(" | ") if name != "null") or "nothing"


def choices(kind: object, keys: str) -> tuple[str, ...]:
    """The values that a key (`a.b` of a table in a table) may have, and what else it may be; () where it has no list of them."""
    for name in keys.split("."):
        try:
            kind = typing.get_type_hints(kind).get(name)
        except TypeError:
            return ()
    several = typing.get_origin(kind) in (typing.Union, types.UnionType)
    parts = set(typing.get_args(kind) if several else (kind,)) - {type(None)}
    values = [one for one in parts if typing.get_origin(one) is typing.Literal]
    if not values or not parts - {*values} <= {int}:
        return ()
    return (*map(str, typing.get_args(values[0])), *([WORDS["int"]] if int in parts else ()))


def keys_of_inner(error: msgspec.ValidationError, kind: type) -> tuple[str, tuple[str, ...]] | None:
    """If the error is in a table within the table, such as `host[0]`: that table's name and its keys."""
    where = str(error).partition(" - at `")[2].rstrip("`").removeprefix("$.")
    inner: object = kind
    for name in re.findall(r"[^.\[\]]+|\[", where.replace("[...]", "")):
        if name.isdigit():
            continue
        try:
            inner = typing.get_args(inner)[0] if name == "[" else typing.get_type_hints(inner)[name]
        except (TypeError, KeyError, IndexError):
            return None
        # Of a table that may be left out.
        inner = next((one for one in typing.get_args(inner) if typing.get_args(inner)[1:] == (type(None),)), inner)
    if inner is kind or not (isinstance(inner, type) and issubclass(inner, msgspec.Struct)):
        return None
    return re.sub(r"\[.*", "", where), inner.__struct_fields__


def moment(when: str) -> datetime | None:
    """A date or time stamp of DATE_FORMS, which is of UTC unless it says otherwise, in UTC; None for anything else."""
    if not DATE.fullmatch(when):
        return None
    try:
        # Python 3.11 reads no small z.
        found = datetime.fromisoformat(when.upper())
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def in_utc(when: str) -> str | None:
    """The one form of a date or time stamp, such that texts sort by time: 2026-01-31, 2026-01-31T10:00:00+00:00. A
    date stays one, and comes before every time of its day. None for what is not of DATE_FORMS."""
    found = moment(when)
    if found is None:
        return None
    return when if len(when) == len("2026-01-31") else found.isoformat()
