"""Histograms as rtla prints them: a column for each CPU, or two, and below them what is beyond, count, least, mean and largest."""

import re
from collections import Counter

from msgspec import Struct

from kduel.benchmarks.support.output import ParseError
from kduel.benchmarks.support.reading import read_whole, split_lines

PACKAGE = "rtla"
COLUMN = re.compile(r"(CPU|IRQ|Thr|Usr)-[0-9]+")
FEET = ("over:", "count:", "min:", "avg:", "max:")


class Histogram(Struct, kw_only=True):
    """Microseconds, counted, of all columns of a kind."""

    counts: Counter[int]
    beyond: int
    largest: int


def read_histogram(text: str, kind: str) -> Histogram:
    """The columns whose name begins with `kind`, such as Thr of Thr-000. Raises ParseError where a column contradicts itself."""
    rows = [line.split() for line in split_lines(text, "the output of rtla")]
    heads = [place for place, row in enumerate(rows) if row[:1] == ["Index"]]
    if len(heads) != 1:
        raise ParseError("the output of rtla has not one table with an Index")
    names, body = rows[heads[0]], rows[heads[0] + 1 :]
    end = next((place for place, row in enumerate(body) if row[:1] == ["over:"]), 0)
    values, feet = body[:end], body[end : end + len(FEET)]
    if [row[0] for row in feet if row] != list(FEET) or any(len(row) != len(names) for row in (*values, *feet)):
        raise ParseError(f"the table of rtla does not end in {' '.join(FEET)} with a figure for each column")
    index = [read_whole(row[0], "an index") for row in values]
    if damaged := next((name for name in names[1:] if not COLUMN.fullmatch(name)), None):
        raise ParseError(f"the table of rtla has a column {damaged!r}")
    columns = [place for place, name in enumerate(names) if name.startswith(f"{kind}-")]
    if not columns or index != sorted(set(index)):
        raise ParseError(f"the table of rtla has no columns {kind}, or its index does not rise")
    found = Histogram(counts=Counter(), beyond=0, largest=0)
    for column in columns:
        counts = {at: read_whole(row[column], "a count") for at, row in zip(index, values, strict=True)}
        if feet[1][column] == "0":
            continue
        over, count, least, mean, most = (read_whole(row[column], row[0]) for row in feet)
        seen = [at for at, number in counts.items() if number]
        fits = bool(seen) and min(seen) == least <= mean <= most and (over > 0 or max(seen) == most)
        if sum(counts.values()) + over != count or not fits:
            raise ParseError(f"the column {names[column]} of rtla's table contradicts itself")
        found.counts.update(counts)
        found.beyond += over
        found.largest = max(found.largest, most)
    if not found.counts.total():
        raise ParseError(f"rtla measured nothing in the columns {kind}")
    return found
