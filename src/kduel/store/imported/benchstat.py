"""Input of benchstat (the text of `go test -bench`: a value a line) and the tables that it prints (medians)."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from kduel.core.errors import InputError
from kduel.core.experiment import Better
from kduel.store.imported.support.foreign import (
    ForeignFormat,
    ForeignRow,
    beginning,
    file_stem,
    location_text,
    text_lines,
)
from kduel.store.imported.values_csv import number

RESULT = re.compile(r"Benchmark(\S+)\s+\d+((?:\s+\S+\s+\S+)+)", re.ASCII)
CONFIGURATION = re.compile(r"([a-z][\w.-]*):\s+(.*)")
FAILED = re.compile(r"(?:\s*--- (?:FAIL|SKIP): (Benchmark\S*).*|(Benchmark\S*)\s+--- (?:FAIL|SKIP): .*)")
MEDIAN = re.compile(r"(\d[\d.]*)([a-zA-Zµ]*)\s+±\s")
NANOSECONDS = {"n": 1.0, "µ": 1e3, "m": 1e6, "": 1e9}
END = r"ok\s+\S+\s+\d+\.\d{3}s"
"""The last line of a package that go test has tested."""
BORDER = "│"
METRICS = {
    "ns/op": "time", "sec/op": "time", "MB/s": "throughput", "B/s": "throughput", "B/op": "allocated",
    "allocs/op": "allocations",
}  # fmt: skip


class Benchstat(ForeignFormat):
    name = "benchstat"
    summary = "go test -bench with -count, as benchstat reads it, or benchstat's tables (one median a contender)"

    def recognises(self, head: str) -> bool:
        return any(RESULT.match(line) or (BORDER in line and "/" in line) for line in head.splitlines())

    def contender_of(self, path: Path, given: str | None, alone: bool) -> str | None:
        return given or (None if BORDER in beginning(path).decode(errors="replace") else file_stem(path))

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        lines = list(text_lines(path, whole=END))
        packages = {text for _, text in lines if text.startswith("pkg:")}
        prefix, settings = "", dict[str, str]()
        table: Table | None = None
        medians = False
        seen: dict[str, int] = {}
        for line, text in lines:
            if (found := CONFIGURATION.fullmatch(text)) and found[1] == "pkg":
                prefix = f"{found[2]}." if len(packages) > 1 else ""
            elif found:
                settings[found[1]] = found[2]
            elif BORDER in text:
                table = table.with_units(path, line, text) if table else Table(path, line, text, contender)
            elif not text.strip():
                table = None
            elif table:
                medians = True
                yield from table.rows(path, line, text, prefix)
            elif result := RESULT.fullmatch(text.rstrip()):
                name = prefix + result[1]
                seen[name] = seen.get(name, 0) + 1
                fields = result[2].split()
                for value, unit in zip(fields[::2], fields[1::2], strict=True):
                    if value.lstrip("+-") in ("NaN", "Inf"):
                        skipped.append(f"{location_text(path, line)}: {name[:80]}, {unit[:40]} is no number.")
                        continue
                    given = row(str(contender), seen[name], name, unit, unit, number(path, line, value), line)
                    yield given._replace(settings=(*settings.items(),))
            elif failed := FAILED.fullmatch(text):
                skipped.append(f"{location_text(path, line)}: {(failed[1] or failed[2])[:80]} failed or was skipped.")
            elif text.startswith("Benchmark") and len(text.split()) > 1:
                raise InputError(
                    f"{location_text(path, line)}: {text[:60]!r} is not a name, a count, and values with units",
                    "Remove what the program printed between, or measure again.",
                )
        if medians:
            skipped.append(
                f"{path.name}: the intervals and p-values; a median is one value, which decides nothing. "
                "Give the files that benchstat read."
            )

    def environments(self, path: Path, contender: str | None) -> dict[str, dict[str, Any]]:
        if contender is None:
            return {}
        found = (CONFIGURATION.fullmatch(text) for _, text in text_lines(path, whole=END))
        return {contender: {"go": {match[1]: match[2] for match in found if match and match[1] != "pkg"}}}


class Table:
    """A table that benchstat printed: a line of contenders, a line of units, and benchmarks."""

    def __init__(self, path: Path, line: int, text: str, contender: str | None) -> None:
        self.borders = [place for place, character in enumerate(text) if character == BORDER]
        self.names = self.cells(text)
        self.units: list[str] = []
        if contender is not None:
            if len(self.names) != 1:
                raise InputError(
                    f"{location_text(path, line)}: the table has {len(self.names)} contenders, so it cannot be {contender!r} alone",
                    "Give it without a name.",
                )
            self.names = [contender]

    def cells(self, text: str) -> list[str]:
        return [text[start + 1 : end].strip() for start, end in pairwise(self.borders)]

    def with_units(self, path: Path, line: int, text: str) -> "Table":
        """The table with its second line read. Raises InputError where that does not fit the first."""
        borders = [place for place, character in enumerate(text) if character == BORDER]
        self.units = [(cell.split() or [""])[0] for cell in self.cells(text)]
        if self.borders != borders or not all(self.units) or len(set(self.units)) > 1:
            raise InputError(
                f"{location_text(path, line)}: the units do not stand below the names", "Give the file unchanged."
            )
        return self

    def rows(self, path: Path, line: int, text: str, prefix: str) -> Iterator[ForeignRow]:
        """The medians of a line; footnotes and the geometric mean have none of their own."""
        benchmark = text[: self.borders[0]].strip()
        if not benchmark or benchmark == "geomean" or text[0] in "¹²³⁴⁵⁶⁷⁸⁹":
            return
        if not self.units:
            raise InputError(f"{location_text(path, line)}: the table has no units", "Give the file unchanged.")
        for name, unit, cell in zip(self.names, self.units, self.cells(text), strict=True):
            if found := MEDIAN.match(cell):
                value, scaled = number(path, line, found[1]), found[2] + unit
                if unit == "sec/op" and found[2] in NANOSECONDS:
                    # Tables choose a prefix each; metrics have one unit.
                    value, scaled = float(f"{value * NANOSECONDS[found[2]]:.12g}"), "nsec/op"
                yield row(name, 1, prefix + benchmark, unit, scaled, value, line)._replace(statistic="median")
            elif cell:
                raise InputError(
                    f"{location_text(path, line)}: {cell[:60]!r} is not a median ± a share",
                    "Give the file unchanged.",
                )


def row(contender: str, trial: int, benchmark: str, kind: str, unit: str, value: float, line: int) -> ForeignRow:
    """A value; `kind` is its unit without a prefix such as µ."""
    better: Better = "higher" if kind.endswith("/s") else "lower" if kind.endswith("/op") else "none"
    metric = METRICS.get(kind, kind)
    return ForeignRow(contender, trial, benchmark, metric, unit, better, value, line)


PLUGIN = Benchstat()
