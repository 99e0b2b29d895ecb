"""Tables of the page with every value, and with the figures of each metric that its verdict's row has no place for."""

import itertools

from msgspec import Struct

from kduel.core.format import MISSING, amount
from kduel.core.metric_results import MetricResult
from kduel.core.results import Results
from kduel.report.page.charts import MetricGroup

FIELDS = {
    "median": "median",
    "baseline_median": "baseline's median",
    "decided_at": "decided at block",
    "blocks_more": "blocks still needed, about",
    "unseen_mode_pct": "share of an unseen slow mode, up to, %",
    "q_value": "false discovery q",
}
COMPONENTS = {
    "blocks_pct": "spread between blocks, %",
    "boots_pct": "between boots, %",
    "slices_pct": "between slices of a boot, %",
    "within_pct": "within slices, %",
}


class Table(Struct, frozen=True):
    """Column titles, and rows: metric, contender, cells."""

    columns: list[str]
    rows: list[tuple[str, str, list[str]]]

    @property
    def groups(self) -> list[tuple[str, list[tuple[str, str, list[str]]]]]:
        """The rows by metric, so that its name stands once."""
        return [(name, list(rows)) for name, rows in itertools.groupby(self.rows, key=lambda row: row[0])]


def further_figures(groups: list[MetricGroup]) -> Table:
    """One row for each metric and contender; a column for each figure that any of them has."""
    found = [(group.name, metric, figures_of(metric)) for group in groups for metric in group.results]
    columns = [title for title in (*FIELDS.values(), *COMPONENTS.values()) if any(title in row for *_, row in found)]
    columns += dict.fromkeys(title for *_, row in found for title in row if title not in columns)
    return Table(
        columns=columns,
        rows=[(name, metric.contender, [amount(row.get(title)) for title in columns]) for name, metric, row in found],
    )


def figures_of(metric: MetricResult) -> dict[str, float | None]:
    """The known figures by title; what is shown without deciding has its name in results.json."""
    known: dict[str, float | None] = {title: getattr(metric, field) for field, title in FIELDS.items()}
    known |= {title: getattr(metric.components, field, None) for field, title in COMPONENTS.items()}
    return {title: value for title, value in (known | metric.beside).items() if value is not None}


def every_value(results: Results, groups: list[MetricGroup], most: int) -> Table | None:
    """One row for each metric and contender, a column for each block; None for more than `most` values."""
    if sum(len(column) for group in groups for column in group.values) > most:
        return None
    names = [contender.name for contender in results.contenders]
    return Table(
        columns=[str(block) for block in results.blocks],
        rows=[
            (group.name, name, [MISSING if value is None else f"{value:.10g}" for value in column])
            for group in groups
            for name, column in zip(names, group.values, strict=True)
            if column
        ],
    )
