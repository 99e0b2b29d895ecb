"""Every value in one long table, which `kduel import` reads back."""

import csv
from collections.abc import Iterator
from io import StringIO
from typing import ClassVar

from msgspec import Struct, field

from kduel.core.experiment import RESOLUTION
from kduel.core.metric_results import BYTES, MetricResult
from kduel.core.results import Results
from kduel.core.samples import SECONDS
from kduel.core.text import visible
from kduel.judge.verdict.comparison import is_of_time
from kduel.report import DEFAULTS, Format, ReportOptions
from kduel.store.imported.values_csv import COLUMNS, FORMULA, OPTIONAL, SCHEDULED


class CsvFormat(Format):
    """One value a line, the baseline's first. `trial` is the block. A missing value has no line. Of a metric that was counted
    under several conditions each of these has a line, and no value stands for all of them."""

    name: ClassVar[str] = "csv"
    summary: ClassVar[str] = "every value, one a line"
    suffix: ClassVar[str] = ".csv"

    def render(self, results: Results, options: ReportOptions = DEFAULTS) -> str:
        out = StringIO()
        writer = csv.writer(out, lineterminator="\n")
        coarsest = resolution(results)
        writer.writerow((*COLUMNS, *OPTIONAL, *([RESOLUTION] if coarsest else [])))
        for row in rows(results):
            writer.writerow((*row, *([coarsest if row[len(COLUMNS)] == SCHEDULED else ""] if coarsest else [])))
        return out.getvalue()


PLUGIN = CsvFormat()


class Column(Struct):
    """A metric of the run, with its values by contender and block, and by condition where there are any."""

    kind: str
    aspect: str
    role: str
    values: dict[tuple[str, int], dict[str, float]] = field(default_factory=dict)


def rows(results: Results) -> Iterator[tuple[str, ...]]:
    """The lines below the heading, by contender and block."""
    columns: dict[tuple[str, ...], Column] = {}
    names: dict[str, None] = {}
    for metric in results.metrics:
        words = (metric.benchmark, metric.metric, metric.unit, metric.better)
        found = columns.setdefault(
            tuple(no_formula(visible(word)) for word in words),
            Column(kind(results, metric), metric.aspect, metric.role),
        )
        names.update(dict.fromkeys([metric.baseline, *metric.values]))
        for one in metric.conditions:
            for name, value in ((metric.baseline, one.baseline), (metric.contender, one.contender)):
                found.values.setdefault((name, one.block), {})[one.name] = value
    for metric in results.metrics:
        words = (metric.benchmark, metric.metric, metric.unit, metric.better)
        found = columns[tuple(no_formula(visible(word)) for word in words)]
        for name, values in metric.values.items():
            for block, plain in zip(results.blocks, values, strict=False):
                if plain is not None:
                    found.values.setdefault((name, block), {"": plain})
    for name in names:
        for block in results.blocks:
            for place, column in columns.items():
                for condition, value in column.values.get((name, block), {}).items():
                    yield (
                        no_formula(visible(name)),
                        str(block),
                        *place,
                        repr(value).removesuffix(".0"),
                        column.kind,
                        column.aspect,
                        no_formula(visible(condition)),
                        column.role,
                    )


def kind(results: Results, metric: MetricResult) -> str:
    """Kind of the metric, as `kduel import` reads it: whether chance has a part in it."""
    if metric.scale != "exact" or (is_of_time(metric.unit) and results.machine.evidence.varies):
        return "other"
    if not results.machine.evidence.varies or metric.conditions:
        return SCHEDULED if results.machine.resolution else "exact"
    return "size" if metric.unit in BYTES else "count"


def resolution(results: Results) -> int:
    """Nanoseconds that exact CPUs resolve, by the coarsest of the trials; 0 for any other machine."""
    machine = results.machine.resolution
    trials = [one.resolution * SECONDS[one.unit] for one in results.metrics if one.unit in SECONDS]
    return round(1e9 * max([machine, *trials])) if machine else 0


def no_formula(text: str) -> str:
    """The text with a quote before it where a spreadsheet would take it for a formula; `kduel import` takes it off."""
    return f"'{text}" if text.lstrip("'").lstrip().startswith(FORMULA) else text
