"""KDuel's own CSV: one value a line, read line by line."""

import math
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import get_args

from kduel.core.errors import InputError
from kduel.core.experiment import RESOLUTION, Aspect, Better, Role
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, location_text
from kduel.store.imported.support.names import Kind, kind_of, statistic
from kduel.store.imported.support.table import check_end, check_groups, first_line, plain_records, records, separator

COLUMNS = ("contender", "trial", "benchmark", "metric", "unit", "better", "value")
KIND = "kind"
"""A column that may be there, too."""
SCHEDULED = "scheduled"
"""The kind of what exact CPUs scheduled."""
KINDS: dict[str, Kind] = {
    **dict.fromkeys(("time", "rate", "other"), "measured"), **dict.fromkeys(("count", "size"), "count or size"), "exact": "exact", SCHEDULED: "scheduled",
}  # fmt: skip
"""The words of that column."""
ASPECT = "aspect"
"""Another column that may be there: what the metric measures."""
CONDITION = "condition"
"""A third one: under which of several conditions that must not matter the value was counted."""
ROLE = "role"
"""A fourth one: whether the metric decides, or only hints."""
OPTIONAL = (KIND, ASPECT, CONDITION, ROLE)
"""Which KDuel's own CSV always has."""
ASPECTS: dict[str, Aspect] = {aspect: aspect for aspect in get_args(Aspect) if aspect}
FORMULA = ("=", "+", "-", "@")
"""What a spreadsheet takes for a formula at the beginning of a name; KDuel's own CSV puts a quote before it."""
ROLES: dict[str, Role] = {role: role for role in get_args(Role)}
SIDES: dict[str, Better] = {side: side for side in get_args(Better)}
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
LARGEST_EXACT = 1 << 53
"""Up to this every whole number is a floating-point number of its own."""


class ValuesCsv(ForeignFormat):
    name = "csv"
    summary = (
        f"one value a line: {','.join(COLUMNS)} (better is higher, lower or none); optional columns: "
        f"{KIND} ({', '.join(KINDS)}), {ASPECT} (such as throughput, power, size), {CONDITION}, {ROLE} ({', '.join(ROLES)}), {RESOLUTION} "
        "(of the kind scheduled)"
    )

    general = True
    names_contenders = True

    def recognises(self, head: str) -> bool:
        first = first_line(head)
        names = {name.strip().strip('"').casefold() for name in first.split(separator(first))}
        return len({*COLUMNS} & names) >= 2 and ("value" in names or {"contender", "metric"} <= names)

    def new_rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        return self._rows(path, contender, skipped)

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        return self._rows(path, contender, None)

    def _rows(self, path: Path, contender: str | None, new: list[str] | None) -> Iterator[ForeignRow]:
        """The rows; of a new table, how its numbers were read goes to `new`."""
        if contender is not None:
            raise InputError(
                f"{path.name} names its contenders itself, in a column", f"Give it without {contender!r} before it."
            )
        table = records(path, f"Its first line must be {','.join(COLUMNS)}.")
        _, header = next(table)
        places = columns(path, header)
        forms = Forms()
        last: ForeignRow | None = None
        numbers = [places["trial"], places["value"]]
        known = None if new is None else check_groups(path, header, numbers[1:], new)
        for line, fields in plain_records(path, table, numbers, known):
            if last is not None:
                yield last
            last = value(path, line, fields, places)
            forms.add(last, fields[places["value"]].strip())
        if last is not None:
            if not (places["value"] == len(header) - 1 and forms.like_the_others()):
                check_end(path, last.where)
            yield last


class Forms:
    """Notation of the numbers of each metric, to detect that the last one of a file may be cut."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, str], tuple[set[int], int]] = {}
        """Numbers of decimals (-1 with an exponent), and the most digits before them."""
        self.last: tuple[set[int], int] | None = None
        """Of the last row's metric, without that row."""
        self.decimals = self.digits = 0
        """Of the last row."""

    def add(self, row: ForeignRow, text: str) -> None:
        whole, _, fraction = text.lstrip("+-").lower().partition("e")[0].partition(".")
        key = row.benchmark, row.metric
        self.last = self.seen.get(key)
        self.decimals, self.digits = -1 if "e" in text.lower() else len(fraction), len(whole)
        known, most = self.last or (set(), 0)
        self.seen[key] = known | {self.decimals}, max(most, self.digits)

    def like_the_others(self) -> bool:
        """True if the last number has as many decimals as all others of its metric, and if none, as many digits as the
        longest: cut, it would have fewer, or was ten times as large as any other."""
        if self.last is None:
            return False
        decimals, digits = self.last
        return decimals == {self.decimals} and (self.decimals > 0 or (self.decimals == 0 and self.digits >= digits))


def columns(path: Path, header: list[str]) -> dict[str, int]:
    """Position of each column. Raises InputError unless the header has each of COLUMNS once and nothing else but those of OPTIONAL."""
    named = [name.strip().casefold() for name in header]
    missing = [name for name in COLUMNS if name not in named]
    extra = [name for name in named if name not in (*COLUMNS, *OPTIONAL, RESOLUTION)]
    twice = sorted({name for name in named if named.count(name) > 1})
    wrong = [
        f"{words} {', '.join(map(repr, found))}"
        for words, found in (("lacks", missing), ("has besides", extra), ("has twice", twice))
        if found
    ]
    if wrong:
        raise InputError(
            f"{location_text(path, 1)}: the header {'; '.join(wrong)}", f"It must be {','.join(COLUMNS)}."
        )
    return {name: place for place, name in enumerate(named)}


def value(path: Path, line: int, fields: list[str], places: dict[str, int]) -> ForeignRow:
    """One line as a row. Raises InputError for anything that is not meant to be there."""
    contender, trial, benchmark, metric, unit, better, text = (fields[places[name]].strip() for name in COLUMNS)
    contender, benchmark, metric, unit = map(without_quote, (contender, benchmark, metric, unit))
    kind = fields[places[KIND]].strip() if KIND in places else ""
    for column, field in (("contender", contender), ("benchmark", benchmark), ("metric", metric)):
        if not field:
            raise InputError(f"{location_text(path, line)}: the {column} is empty", "Name it.")
    if not (trial.isascii() and trial.isdigit() and len(trial) <= 9):
        raise InputError(
            f"{location_text(path, line)}: the trial is {trial!r}, not a whole number", "Number the trials 1, 2, 3."
        )
    if better not in SIDES:
        raise InputError(
            f"{location_text(path, line)}: better is {better!r}", f"Give the better direction: {', '.join(SIDES)}."
        )
    if kind and kind not in KINDS:
        raise InputError(
            f"{location_text(path, line)}: the kind is {kind!r}", f"It is {', '.join(KINDS)}, or nothing."
        )
    aspect = fields[places[ASPECT]].strip() if ASPECT in places else ""
    if aspect and aspect not in ASPECTS:
        raise InputError(
            f"{location_text(path, line)}: the aspect is {aspect!r}", f"It is {', '.join(ASPECTS)}, or nothing."
        )
    role = fields[places[ROLE]].strip() if ROLE in places else ""
    if role and role not in ROLES:
        raise InputError(
            f"{location_text(path, line)}: the role is {role!r}", f"It is {', '.join(ROLES)}, or nothing."
        )
    condition = without_quote(fields[places[CONDITION]].strip()) if CONDITION in places else ""
    if condition and kind not in ("exact", SCHEDULED):
        raise InputError(
            f"{location_text(path, line)}: a value of the kind {kind or 'none'!r} has the condition {condition[:60]!r}",
            "Conditions are of counts on a deterministic machine: give the kind exact or scheduled, or no condition.",
        )
    resolution = fields[places[RESOLUTION]].strip() if RESOLUTION in places else ""
    if (kind == SCHEDULED) != (resolution.isascii() and resolution.isdigit() and 0 < int(resolution) < 10**9):
        raise InputError(
            f"{location_text(path, line)}: a value of the kind {kind or 'none'!r} has the {RESOLUTION} {resolution[:60]!r}",
            "What exact CPUs scheduled has the nanoseconds below which they resolve no time, such as 20000; nothing else has any.",
        )
    known = KINDS[kind] if kind else kind_of(benchmark, metric, unit)
    found = number(path, line, text)
    if known != "measured" and abs(found) >= LARGEST_EXACT and Decimal(text) != Decimal(found):
        raise InputError(
            f"{location_text(path, line)}: {text[:60]} has more digits than are kept ({found:.0f})",
            f"An exact count or size is kept up to {LARGEST_EXACT}: use a larger unit, or another kind.",
        )
    return ForeignRow(
        contender,
        int(trial),
        benchmark,
        metric,
        unit,
        SIDES[better],
        found,
        line,
        statistic(metric),
        kind=known,
        resolution=int(resolution or 0),
        # KDuel's own export, which has all columns, states by an empty one that there is none.
        aspect=ASPECTS[aspect] if aspect else "" if CONDITION in places else None,
        condition=condition,
        numbered=True,
        role=ROLES[role] if role else None,
    )


def without_quote(text: str) -> str:
    """A field without the quote that KDuel's own CSV puts before what looks like a formula."""
    return text[1:] if text.startswith("'") and text.lstrip("'").lstrip().startswith(FORMULA) else text


def number(path: Path, line: int, text: str, what: str = "the value") -> float:
    """The value; `what` it is, for the error. Raises InputError for text, NaN and what is too large or too small to be kept."""
    if not NUMBER.fullmatch(text):
        remedy = "Leave the line out where there is no value." if not text else "Write a plain number, such as 12.5."
        raise InputError(f"{location_text(path, line)}: {what} is {text[:60]!r}, not a number", remedy)
    found = float(text)
    if not math.isfinite(found):
        raise InputError(
            f"{location_text(path, line)}: {what} is {text[:60]}, which is too large", "Use a larger unit."
        )
    if found == 0 and re.search("[1-9]", text.lower().partition("e")[0]):
        raise InputError(
            f"{location_text(path, line)}: {what} is {text[:60]}, which is too small", "Use a smaller unit."
        )
    return found


PLUGIN = ValuesCsv()
