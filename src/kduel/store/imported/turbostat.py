"""turbostat's log of a session: power by RAPL's counters, clock and temperature in every interval; a trial is one file."""

from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

from kduel.benchmarks.turbostat import COLUMNS, PLACES
from kduel.core.errors import InputError
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, location_text, text_lines
from kduel.store.imported.support.headings import IDENTITY, TRIALS
from kduel.store.imported.values_csv import number

HEADED = 2
"""Columns that KDuel knows, from which on a line is a heading."""


class TurbostatLog(ForeignFormat):
    """Means over the intervals, which are as long as each other, of the rows of the whole system."""

    name = "turbostat"
    summary = (
        "turbostat's log of a session (turbostat --quiet --Summary --interval 5 --out a.txt), a trial being one file"
    )
    derived = "mean of the intervals"

    def recognises(self, head: str) -> bool:
        return any(is_heading(line) for line in head.splitlines()[:200])

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        found = read_intervals(path)
        for column, metric in COLUMNS.items():
            if values := found.get(column):
                yield ForeignRow(
                    str(contender), 1, "session", metric.name, metric.unit, metric.better, fmean(values),
                    f"{len(values)} intervals", metric.statistic, least=0.0, aspect=metric.aspect or None,
                )  # fmt: skip
        heading = next(text for _, text in text_lines(path) if is_heading(text))
        if others := [name for name in heading.split() if name not in (*COLUMNS, *PLACES)]:
            skipped.append(f"{path.name}: the columns {', '.join(others)[:300]}")


def is_heading(line: str) -> bool:
    """True if the line names turbostat's columns."""
    words = {*line.split()}
    return not words & {*TRIALS, *IDENTITY} and len(words & {*COLUMNS, "Avg_MHz", "TSC_MHz"}) >= HEADED


def read_intervals(path: Path) -> dict[str, list[float]]:
    """By column: its values of the whole system, one for each interval. Raises InputError."""
    found: dict[str, list[float]] = {}
    heading: list[str] = []
    places: set[str] = set()
    for line, text in text_lines(path):
        words = text.split()
        if is_heading(text):
            if heading and words != heading:
                raise InputError(
                    f"{location_text(path, line)}: its columns are others than before", "Give one session a file."
                )
            heading, places = words, {*PLACES} & {*words}
        elif heading and words and (not places or words[0] == "-"):
            if len(words) != len(heading):
                raise InputError(
                    f"{location_text(path, line)} has {len(words)} fields, the heading {len(heading)}",
                    "Leave out the line; the last one may be cut.",
                )
            row = dict(zip(heading, words, strict=True))
            for column in COLUMNS.keys() & row.keys():
                found.setdefault(column, []).append(number(path, line, row[column], column))
    if not found:
        raise InputError(
            f"{path.name} has no row of the whole system in a column that KDuel reads",
            f"Log at least one interval with one of {', '.join(COLUMNS)}.",
        )
    return found


PLUGIN = TurbostatLog()
