"""The page's part for a matrix: its verdicts as a table of colours, and the plots and tables of each family."""

from collections import Counter
from itertools import groupby

from markupsafe import Markup
from msgspec import Struct

from kduel.analysis.matrix import Matrix, shape
from kduel.analysis.matrix.grid import GridPoint
from kduel.analysis.matrix.growth import Growth
from kduel.analysis.matrix.shape import MatrixCell
from kduel.core.format import plain_number, relative_pct, signed_number
from kduel.core.metric_results import MetricResult
from kduel.core.results import Results
from kduel.core.text import plural, visible
from kduel.judge.verdict.headline import shows_difference, side
from kduel.report.content.answer import named_time
from kduel.report.content.digest import SIGNS, sign_of
from kduel.report.content.evidence import evidence
from kduel.report.content.matrixtext import column_of, kinds_of, leads
from kduel.report.plots import effects as plots
from kduel.report.plots import matrix as matrix_plots


class HeatCell(Struct, frozen=True):
    """One verdict: benchmark and number, what is compared, and sign and change. `strength` is 0 to 4."""

    row: str
    column: str
    tone: str
    word: str
    strength: int
    said: str


class FamilyPart(Struct, kw_only=True):
    """One family of benchmarks: its plots by number (empty where it has not the metrics), cells and growth."""

    name: str
    metrics: list[str]
    units: dict[str, str]
    cells: list[MatrixCell]
    growth: list[Growth]
    times: list[tuple[int, Markup]]
    time_parts: list[str]
    switches: list[tuple[int, Markup]]
    switch_parts: list[str]


class MatrixPart(Struct, kw_only=True):
    families: list[FamilyPart]
    heat: list[HeatCell]
    sure: str
    exploratory: bool
    """Whether the cells have an error rate of their own."""
    subject: str
    """The metrics that are shown, and against what."""
    reference: str
    """What every comparison is against; empty where they differ."""
    leads: bool
    """Whether the run is a matrix above all, so that its picture comes before the lists of verdicts."""

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(cell.column for cell in self.heat))

    @property
    def heads(self) -> list[str]:
        """The comparisons as heads of columns, without a reference that all have."""
        return [column.replace(f" against {self.reference}", "", 1) for column in self.columns]

    @property
    def rows(self) -> list[tuple[str, list[HeatCell | None]]]:
        """Each benchmark with its verdict of each column."""
        found = {(cell.row, cell.column): cell for cell in self.heat}
        rows = dict.fromkeys(cell.row for cell in self.heat)
        return [(row, [found.get((row, column)) for column in self.columns]) for row in rows]

    @property
    def headlines(self) -> list[str]:
        """A sentence for each comparison, counted over the cells."""
        ordered = sorted(self.heat, key=lambda cell: self.columns.index(cell.column))
        grouped = groupby(ordered, key=lambda cell: cell.column)
        return [headline(head, list(cells)) for head, (_, cells) in zip(self.heads, grouped, strict=True)]


def headline(head: str, cells: list[HeatCell]) -> str:
    """`A: faster in 4 of 9 cells, slower in 1, undecided in 4`."""
    (first, number), *others = Counter(cell.word for cell in cells).most_common()
    words = [f"{first} in {number} of {plural(len(cells), 'cell')}", *(f"{word} in {n}" for word, n in others)]
    return f"{head}: {', '.join(words)}"


SHOWN = 6
"""Metrics of a family in its table: the published study has so many."""


def matrix_part(results: Results) -> MatrixPart | None:
    """The section, or None for a run that is no matrix."""
    matrix = shape(results)
    if matrix is None:
        return None
    heat = heat_cells(matrix)
    delta = results.study.delta
    small = (
        ""
        if delta is None or all(cell.tone != "same" for cell in heat)
        else f"Pale cells with ≈ are shown to differ by less than the {plain_number(delta)} % that matter. "
    )
    firsts = {
        (metrics[0], matrix.units[name].get(metrics[0], "")) for name, metrics in matrix.metrics.items() if metrics
    }
    whole = {pair.levels[0] for pair in matrix.pairs}
    reference = visible(whole.pop(), 200) if len(whole) == 1 else ""
    subject = (
        f"Change of {named_time(*firsts.pop())}" if len(firsts) == 1 else "Change of each benchmark's first metric"
    )
    return MatrixPart(
        families=[family_part(matrix, name) for name in matrix.families],
        heat=heat,
        subject=f"{subject} against {reference}" if reference else subject,
        reference=reference,
        sure=small + evidence(results).cells(len(matrix.judged), matrix.apart, matrix.hints),
        exploratory=matrix.apart and evidence(results).varies,
        leads=bool(heat) and leads(matrix, results),
    )


def family_part(matrix: Matrix, name: str) -> FamilyPart:
    times, switches = matrix_plots.times_of(matrix, name), matrix_plots.switches_of(matrix, name)
    return FamilyPart(
        name=name, metrics=matrix.metrics[name][:SHOWN], units=matrix.units[name],
        cells=[cell for cell in matrix.cells if cell.place.family == name],
        growth=[grown for grown in matrix.growth if grown.family == name],
        times=matrix_plots.times(matrix, name) if len(times) == 3 else [], time_parts=times,
        switches=matrix_plots.switches(matrix, name) if switches else [], switch_parts=kinds_of(switches)[0],
    )  # fmt: skip


def heat_cells(matrix: Matrix) -> list[HeatCell]:
    """The verdict of each cell on its family's main metric, in the matrix's order."""
    found = []
    for family, metrics in matrix.metrics.items():
        for judged in matrix.verdicts(family, metrics[0]) if metrics else []:
            result = judged.result
            share = relative_pct(result)
            size = "" if share is None else f"{signed_number(share, 0 if abs(share) >= 9.95 else 1)} %"
            matters = not result.size
            cell = HeatCell(
                row=row_words(judged.place),
                column=column_of(judged),
                tone=plots.tone(result),
                word=result.word if matters else result.size,
                strength=strength(share) if result.claimed and matters else 0,
                said=cell_words(result, size),
            )
            place = (matrix.families[family].index(judged.place), matrix.pairs.index(judged.pair))
            found.append((list(matrix.metrics).index(family), *place, cell))
    return [cell for *_, cell in sorted(found, key=lambda one: one[:3])]


def cell_words(result: MetricResult, size: str) -> str:
    """`−27 % better`: the change and the side that it lies on; the sign of the verdict where it shows none that matters."""
    if result.size or not shows_difference(result):
        return f"{SIGNS['equivalent'] if result.size else sign_of(result)} {size}"
    return f"{size} {result.word if (kind := side(result)) == 'neutral' else kind}".strip()


def row_words(place: GridPoint) -> str:
    """`io 100 (io-medium)`: a family with its number, and the benchmark where its name has another."""
    words = f"{place.family} {place.count}"
    return visible(words if str(place.count) in place.label else f"{words} ({place.label})", 200)


def strength(effect_pct: float | None) -> int:
    """Strength of a decided cell's colour, 1 to 4: full from 40 per cent on."""
    return 3 if effect_pct is None else 1 + min(3, int(abs(effect_pct) / 40 * 3))
