"""Every value in one long table, which `kduel import` reads back."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO
from typing import ClassVar

from kduel.core.results import Results
from kduel.core.text import visible
from kduel.report import Format
from kduel.store.imported.values_csv import COLUMNS, FORMULA


class CsvFormat(Format):
    """One value a line, the baseline's first. `trial` is the block. A missing value has no line."""

    name: ClassVar[str] = "csv"
    summary: ClassVar[str] = "every value, one a line"
    suffix: ClassVar[str] = ".csv"

    def render(self, results: Results) -> str:
        out = StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows(results))
        return out.getvalue()


PLUGIN = CsvFormat()


def rows(results: Results) -> Iterator[tuple[str, ...]]:
    """The lines below the heading, by contender and block."""
    tables: dict[tuple[str, ...], dict[str, list[float | None]]] = {}
    names: dict[str, None] = {}
    for metric in results.metrics:
        words = (metric.benchmark, metric.metric, metric.unit, metric.better)
        tables.setdefault(tuple(no_formula(visible(word)) for word in words), {}).update(metric.values)
        names.update(dict.fromkeys([metric.baseline, *metric.values]))
    for name in names:
        shown = no_formula(visible(name))
        columns = [(place, values.get(name, [])) for place, values in tables.items()]
        for index, block in enumerate(results.blocks):
            for place, column in columns:
                value = column[index] if index < len(column) else None
                if value is not None:
                    yield (shown, str(block), *place, number(value))


def no_formula(text: str) -> str:
    """The text with a quote before it where a spreadsheet would take it for a formula; `kduel import` takes it off."""
    return f"'{text}" if text.lstrip("'").lstrip().startswith(FORMULA) else text


def number(value: float) -> str:
    """All digits that the value has."""
    return repr(value).removesuffix(".0")
