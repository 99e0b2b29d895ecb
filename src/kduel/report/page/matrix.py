"""The page's part for a matrix: what the template shows, and the plots by number."""

from __future__ import annotations

from msgspec import Struct

from kduel.analysis.matrix import Matrix, shape
from kduel.analysis.matrix.growth import Growth
from kduel.analysis.matrix.shape import MatrixCell
from kduel.core.format import plain_number
from kduel.core.results import Results
from kduel.report.content.matrixtext import leads, matrix_sureness
from kduel.report.plots import effects as plots
from kduel.report.plots import matrix as matrix_plots


class FamilyPart(Struct, kw_only=True):
    """One family of benchmarks: its plots' numbers (None where it has not the metrics), cells and growth."""

    name: str
    metrics: list[str]
    units: dict[str, str]
    cells: list[MatrixCell]
    growth: list[Growth]
    times: int | None = None
    switches: int | None = None


class MatrixPart(Struct, kw_only=True):
    """Everything of the section; `specs` are compiled plots, by number, the heat map first."""

    families: list[FamilyPart]
    specs: list[plots.Spec]
    heat: bool
    sure: str
    leads: bool
    """Whether the run is a matrix above all, so that its picture comes before the lists of verdicts."""


SHOWN = 6
"""Metrics of a family in its table: the published study has so many."""


def matrix_part(results: Results) -> MatrixPart | None:
    """The section, or None for a run that is no matrix."""
    matrix = shape(results)
    if matrix is None:
        return None
    heat = bool(matrix_plots.heat_rows(matrix))
    exact = results.machine.exact
    specs = [plots.vega(matrix_plots.heat(matrix, plots.PAGE))] if heat else []
    families = [family_part(matrix, name, specs) for name in matrix.families]
    delta = results.study.delta
    small = (
        ""
        if delta is None
        else f"Pale cells with ≈ are shown to differ by less than the {plain_number(delta)} % that matter. "
    )
    return MatrixPart(
        families=families,
        specs=specs,
        heat=heat,
        sure=small + matrix_sureness(matrix, exact),
        leads=heat and leads(matrix, results),
    )


def family_part(matrix: Matrix, name: str, specs: list[plots.Spec]) -> FamilyPart:
    """One family; its plots are added to `specs`."""
    part = FamilyPart(
        name=name,
        metrics=matrix.metrics[name][:SHOWN],
        units=matrix.units[name],
        cells=[cell for cell in matrix.cells if cell.place.family == name],
        growth=[grown for grown in matrix.growth if grown.family == name],
    )
    if matrix_plots.has_times(matrix, name):
        part.times = len(specs)
        specs.append(plots.vega(matrix_plots.times(matrix, name, plots.PAGE)))
    if matrix_plots.has_switches(matrix, name):
        part.switches = len(specs)
        specs.append(plots.vega(matrix_plots.switches(matrix, name, plots.PAGE)))
    return part
