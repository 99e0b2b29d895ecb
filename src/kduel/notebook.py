"""Python interface for scripts and notebooks: `kduel.load(RUN)` gives typed results, tables and plots.

The names here are stable: they change only with a new major version.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from kduel.core.errors import InputError
from kduel.core.metric_results import AspectRanking, MetricResult
from kduel.core.results import Results
from kduel.report.plots import effects, values

if TYPE_CHECKING:
    import pandas

VEGA_LITE = "application/vnd.vegalite.v6+json"
VALUE_COLUMNS = ("benchmark", "metric", "unit", "better", "contender", "block", "value")
VERDICT_COLUMNS = (
    "benchmark", "metric", "unit", "role", "baseline", "contender", "n", "verdict",
    "effect_pct", "ci_low_pct", "ci_high_pct", "baseline_mean", "mean",
)  # fmt: skip


class Plot(Struct, frozen=True):
    """A plot as a Vega-Lite specification, with its data. A notebook shows it by itself."""

    spec: dict[str, Any]

    def to_svg(self) -> str:
        return effects.svg(self.spec)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Representations for IPython (IPython.display, "_repr_mimebundle_"): the specification, and SVG for viewers
        without Vega."""
        return {VEGA_LITE: self.spec, "image/svg+xml": self.to_svg()}


class LoadedRun:
    """A run with its results. `path` is what was loaded, `results` are those of `kduel report --format json`."""

    def __init__(self, path: Path, results: Results) -> None:
        self.path = path
        self.results = results

    def __repr__(self) -> str:
        return "\n".join(headline.text for headline in self.results.headlines) or f"{self.path}: no verdict"

    def to_text(self) -> str:
        """The report for a terminal, without colours."""
        from kduel.report.text import TextFormat

        return TextFormat().render(self.results)

    @property
    def metrics(self) -> list[MetricResult]:
        """Each metric of each contender against the baseline, in the study's order."""
        return self.results.metrics

    @property
    def rankings(self) -> list[AspectRanking]:
        """The contenders by aspect; empty for a run of two contenders without an aspect of several primary metrics."""
        return self.results.rankings

    def metric(self, benchmark: str, name: str = "", contender: str = "") -> MetricResult:
        """The result of a benchmark's metric; of its first one, and of the first contender, if none is named.

        Raises InputError if there is none, with the names that exist.
        """
        for metric in self.metrics:
            if metric.benchmark == benchmark and name in ("", metric.metric) and contender in ("", metric.contender):
                return metric
        known = dict.fromkeys(f"{metric.benchmark} {metric.metric} ({metric.contender})" for metric in self.metrics)
        raise InputError(
            f"{self.path} has no metric {' '.join(filter(None, (benchmark, name, contender)))}",
            f"It has: {'; '.join(known) or 'none'}.",
        )

    def to_frame(self) -> pandas.DataFrame:
        """Values, one a row: columns as in VALUE_COLUMNS. A missing value has no row. Raises InputError without pandas."""
        rows: dict[tuple[object, ...], None] = {}
        for metric in self.metrics:
            for name, column in metric.values.items():
                for block, value in zip(self.results.blocks, column, strict=False):
                    if value is not None:
                        words = (metric.benchmark, metric.metric, metric.unit, metric.better)
                        rows[*words, name, block, value] = None
        return make_frame(list(rows), VALUE_COLUMNS)

    def verdicts_frame(self) -> pandas.DataFrame:
        """Verdicts, one a row: columns as in VERDICT_COLUMNS; `verdict` as reports print it. Raises InputError without
        pandas."""
        rows = []
        for metric in self.metrics:
            row = structs.asdict(metric) | {"verdict": metric.word}
            rows.append(tuple(row[column] for column in VERDICT_COLUMNS))
        return make_frame(rows, VERDICT_COLUMNS)

    def forest(self, contender: str = "", width: int = 640) -> Plot:
        """Effects of a contender with their intervals; of the first contender, if none is named. `width` in pixels.

        Of more than 40 metrics the decided ones come first. Raises InputError for an unknown contender, and if there is no
        interval in per cent to plot.
        """
        names = list(dict.fromkeys(m.contender for m in self.metrics))
        if contender and contender not in names:
            raise InputError(f"{self.path} has no contender {contender}", f"It compares: {', '.join(names)}.")
        drawable = effects.drawable_metrics([m for m in self.metrics if contender in ("", m.contender)])
        if not drawable:
            raise InputError(f"{self.path} has no interval of {contender or 'any contender'} in per cent to plot")
        drawable = [m for m in drawable if m.contender == drawable[0].contender]
        chosen = effects.forest_metrics(drawable)
        spec = effects.forest(chosen, self.results.study.delta, effects.PICTURE, width)
        part = f", {len(chosen)} of {len(drawable)} metrics" if len(chosen) < len(drawable) else ""
        return Plot(spec | {"title": f"{chosen[0].contender} against {chosen[0].baseline}{part}"})

    def strip(self, benchmark: str, name: str = "", width: int = 640) -> Plot:
        """Values of a benchmark's metric, a point for each trial. `width` in pixels. Raises InputError like `metric`."""
        metric = self.metric(benchmark, name)
        same = [m for m in self.metrics if (m.benchmark, m.metric) == (metric.benchmark, metric.metric)]
        columns: dict[str, list[float | None]] = {}
        for one in same:
            columns |= one.values
        rows = values.value_rows(self.results, structs.replace(metric, values=columns))
        return Plot(values.strip(list(columns), effects.PICTURE, rows, unit=metric.unit, width=width))


def load(run: str | Path) -> LoadedRun:
    """A run's directory, or a file that `kduel import` reads, judged again from its raw files. Raises InputError."""
    from kduel.judge.evaluate import judge_path

    path = Path(run)
    if not str(run):
        raise InputError("the run's path is empty", 'Give its directory; "." is the current one.')
    try:
        return LoadedRun(path, judge_path(path))
    except OSError as error:
        raise InputError(f"{str(path)[:200]} cannot be read: {error.strerror or error}") from error


def make_frame(rows: list[tuple[object, ...]], columns: tuple[str, ...]) -> pandas.DataFrame:
    """A pandas table. Raises InputError if pandas is not installed."""
    try:
        import pandas
    except ImportError:
        raise InputError("pandas is not installed", "Install it: pip install pandas.") from None
    return pandas.DataFrame(rows, columns=list(columns))
