"""lmbench's results files (2 and 3; results/ARCH/HOST.N): a trial is one, or one of several appended."""

import re
from collections.abc import Iterator
from pathlib import Path

from kduel.core.errors import InputError
from kduel.core.experiment import Aspect, Better
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, location_text, text_lines
from kduel.store.imported.values_csv import number

BEGIN = re.compile(r"\[lmbench\d\S* results for .*\]")
LINE = re.compile(r"([^\[\]:\"]+): (\d\S*) (nanoseconds|microseconds|milliseconds|[MK]B/sec|MFLOPS)")
TITLE = re.compile(r'"(.*)')
ROW = re.compile(r"(\d\S*)[ \t]+(\d\S*)")
SOCKET = re.compile(r"Socket bandwidth using \S+")
"""The title of rows that have their unit."""
SIZED = re.compile(r"(\d\S*) (\d\S*) (MB/sec)")
CREATION = re.compile(r"(\d+k)\t\d+\t(\d+)\t(\d+)")
"""Size, number, and how many files are made and removed a second."""
SECONDS = "nanoseconds", "microseconds", "milliseconds"
TABLES: tuple[tuple[str, str, Better, Aspect], ...] = (
    (r"size=.*", "microseconds", "lower", "operation-time"),
    (r"mappings", "microseconds", "lower", "operation-time"),
    (r"stride=.*", "nanoseconds", "lower", "operation-time"),
    (
        r".*(bandwidth|bcopy|read|write|bzero|copy|rd|wr|fcp|cp|frd|fwr|bw)( .*)?",
        "MB/sec",
        "higher",
        "memory-bandwidth",
    ),
)
"""What the tables below a title are of: the second column of each row."""


class Lmbench(ForeignFormat):
    name = "lmbench"
    summary = "lmbench's results file (appended), a trial being one of them"
    calls = True
    begins = BEGIN.pattern

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        trial, title, unknown = 0, "", set[str]()
        for line, text in text_lines(path):
            text = text.strip()
            if BEGIN.fullmatch(text):
                trial, title = trial + 1, ""
            elif found := TITLE.fullmatch(text) or SOCKET.fullmatch(text):
                title = found[found.re.groups].strip()
            elif (found := SIZED.fullmatch(text)) and SOCKET.fullmatch(title):
                yield row(path, line, contender, trial, f"{title} {found[1]}", found[3], found[2])
            elif found := LINE.fullmatch(text):
                metric, value, unit = found.groups()
                yield row(path, line, contender, trial, metric, unit, value)
            elif found := CREATION.fullmatch(text):
                for what, value in (("create", found[2]), ("delete", found[3])):
                    yield row(path, line, contender, trial, f"{what} {found[1]}", "1/sec", value)
            elif (found := ROW.fullmatch(text)) and title:
                kind = next((one for one in TABLES if re.fullmatch(one[0], title)), None)
                if kind is None:
                    unknown.add(title)
                    continue
                place = title.partition(" ovr=")[0]
                yield row(path, line, contender, trial, f"{place} {found[1]}", *kind[1:2], found[2])
        if not trial:
            raise InputError(
                f"{location_text(path, 1)}: no line '[lmbench3.0 results for ...]'", "Give the whole file."
            )
        skipped += [f"{path.name}: the table {title[:60]!r}, which is of no known unit" for title in sorted(unknown)]


def row(path: Path, line: int, contender: str | None, trial: int, metric: str, unit: str, value: str) -> ForeignRow:
    """One figure; a time is to be short, anything else high."""
    short = unit in SECONDS
    return ForeignRow(
        str(contender), trial, "lmbench", metric, unit, "lower" if short else "higher", number(path, line, value), line,
        "median", least=0.0, aspect="operation-time" if short else "operation-rate",
    )  # fmt: skip


PLUGIN = Lmbench()
