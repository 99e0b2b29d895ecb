"""KDuel's own CSV: one value a line, read line by line."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, get_args

from kduel.core.errors import InputError
from kduel.core.experiment import Better, Statistic
from kduel.store.imported.support.foreign import ForeignFormat, Row, at

COLUMNS = ("contender", "trial", "benchmark", "metric", "unit", "better", "value")
SIDES: dict[str, Better] = {side: side for side in get_args(Better)}
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
LONGEST_LINE = 16 << 10
IN_NAMES: dict[str, Statistic] = {
    "max": "max", "maximum": "max", "worst": "max", "min": "min", "minimum": "min", "mean": "mean", "avg": "mean",
    "average": "mean", "median": "median", "p50": "median", "p95": "p95", "p99": "p99", "p999": "p999",
}  # fmt: skip


class ValuesCsv(ForeignFormat):
    """contender,trial,benchmark,metric,unit,better,value"""

    name = "csv"
    summary = f"one value a line: {','.join(COLUMNS)} (better is higher, lower or none)"

    def recognises(self, head: str) -> bool:
        first = head.split("\n", 1)[0]
        return first.count(",") >= 2 and not first.lstrip().startswith(("{", "[", "<"))

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[Row]:
        if contender is not None:
            raise InputError(
                f"{path.name} names its contenders itself, in a column", f"Give it without {contender!r} before it."
            )
        try:
            with path.open("r", encoding="utf-8-sig", errors="strict", newline="") as stream:
                yield from values(path, stream)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror or error}", "Name a readable file.") from error


def values(path: Path, stream: IO[str]) -> Iterator[Row]:
    """The rows of an open file."""
    reader = csv.reader(lines(path, stream), strict=True)
    try:
        header = next(reader, None)
        if header is None:
            raise InputError(f"{path.name} is empty", f"Its first line must be {','.join(COLUMNS)}.")
        places = columns(path, header)
        for fields in reader:
            if fields:
                yield value(path, reader.line_num, fields, places, header)
    except csv.Error as error:
        raise InputError(
            f"{at(path, reader.line_num)}: {error}", 'Put a field that holds a comma or a quote in "quotes".'
        ) from error


def lines(path: Path, stream: IO[str]) -> Iterator[str]:
    """The lines, each bounded. Raises InputError for one that is too long or not UTF-8."""
    number = 0
    while True:
        number += 1
        try:
            line = stream.readline(LONGEST_LINE)
        except UnicodeDecodeError as error:
            # The decoder works ahead in pieces, so the line is sought anew.
            raise InputError(
                f"{at(path, undecodable_line(path))}: a byte that is not UTF-8 ({error.reason})",
                "Save the file in the encoding UTF-8.",
            ) from error
        if not line:
            return
        if len(line) == LONGEST_LINE and not line.endswith("\n"):
            raise InputError(
                f"{at(path, number)} is longer than {LONGEST_LINE} characters",
                "Write one value a line, seven fields.",
            )
        if "\0" in line:
            raise InputError(f"{at(path, number)} holds a NUL character", "Save the file as text, in UTF-8.")
        yield line


def undecodable_line(path: Path) -> int:
    """The number of the first line that is not UTF-8."""
    number = 1
    with path.open("rb") as stream:
        while line := stream.readline(LONGEST_LINE):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                break
            number += line.endswith(b"\n")
    return number


def columns(path: Path, header: list[str]) -> list[int]:
    """Where each of COLUMNS is. Raises InputError unless the header has each of them once and nothing else."""
    named = [name.strip() for name in header]
    missing = [name for name in COLUMNS if name not in named]
    extra = [name for name in named if name not in COLUMNS]
    twice = sorted({name for name in named if named.count(name) > 1})
    wrong = [
        f"{words} {', '.join(map(repr, found))}"
        for words, found in (("lacks", missing), ("has besides", extra), ("has twice", twice))
        if found
    ]
    if wrong:
        raise InputError(f"{at(path, 1)}: the header {'; '.join(wrong)}", f"It must be {','.join(COLUMNS)}.")
    return [named.index(name) for name in COLUMNS]


def value(path: Path, line: int, fields: list[str], places: list[int], header: list[str]) -> Row:
    """One line as a row. Raises InputError for anything that is not meant to be there."""
    if len(fields) != len(header):
        raise InputError(
            f"{at(path, line)} has {len(fields)} fields, not {len(header)}",
            'Write one value a line; put a field that holds a comma in "quotes".',
        )
    contender, trial, benchmark, metric, unit, better, text = (fields[place].strip() for place in places)
    for column, field in (("contender", contender), ("benchmark", benchmark), ("metric", metric)):
        if not field:
            raise InputError(f"{at(path, line)}: the {column} is empty", "Name it.")
    if not (trial.isascii() and trial.isdigit() and len(trial) <= 9):
        raise InputError(
            f"{at(path, line)}: the trial is {trial!r}, not a whole number", "Number the trials 1, 2, 3."
        )
    if better not in SIDES:
        raise InputError(f"{at(path, line)}: better is {better!r}", f"Say which way is better: {', '.join(SIDES)}.")
    return Row(
        contender,
        int(trial),
        benchmark,
        metric,
        unit,
        SIDES[better],
        number(path, line, text),
        line,
        statistic(metric),
    )


def number(path: Path, line: int, text: str) -> float:
    """The value. Raises InputError for text, NaN and what is beyond all bounds."""
    if not NUMBER.fullmatch(text):
        remedy = "Leave the line out where there is no value." if not text else "Write a plain number, such as 12.5."
        raise InputError(f"{at(path, line)}: the value is {text[:60]!r}, not a number", remedy)
    found = float(text)
    if not math.isfinite(found):
        raise InputError(f"{at(path, line)}: the value {text[:60]} is too large", "Use a larger unit.")
    return found


def statistic(metric: str) -> Statistic:
    """How the metric's name says that many samples became one number."""
    for word in re.split(r"[^a-z0-9]+", metric.lower()):
        if word in IN_NAMES:
            return IN_NAMES[word]
    return "value"


PLUGIN = ValuesCsv()
