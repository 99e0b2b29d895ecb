"""Figures for a paper, each a file: the values of every metric, the effects, the processes of a policy, the boot's stages."""

import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from kduel.analysis.boot import WORDS, read_boots
from kduel.analysis.matrix import shape
from kduel.benchmarks import ParseError, Raw
from kduel.benchmarks.kload import COLUMNS, KloadOutput
from kduel.benchmarks.support.reading import read_json
from kduel.benchmarks.support.varied import plain_output
from kduel.core.errors import InputError
from kduel.core.metric_results import MetricResult
from kduel.core.results import Results
from kduel.core.text import visible
from kduel.report.content.evidence import evidence
from kduel.report.content.matrixtext import kinds_of
from kduel.report.content.notes import key
from kduel.report.plots.effects import (
    PICTURE,
    Row,
    Spec,
    base,
    drawable_metrics,
    forest,
    layer,
    nominal,
    quantitative,
)
from kduel.report.plots.engine import drawing
from kduel.report.plots.matrix import switch_rows, switches_of, time_rows, times_of
from kduel.report.plots.values import has_boxes, strip, value_rows
from kduel.store.collect import step_directory

FORMATS = ("svg", "png", "pdf")
WIDTHS = {"1": 241, "2": 504}
"""Points of one and of two columns of a page."""
PIXELS_A_POINT = 3
NAMES = 100
"""Points beside bars for the names of contenders."""
MOST_PROCESSES = 200
"""Bars that a figure can show."""


def figure_specs(run: Path, results: Results, width: int) -> Iterator[tuple[str, str, Spec]]:
    """Name, caption and specification of each figure that the run has data for."""
    found: dict[str, MetricResult] = {}
    for metric in results.metrics:
        first = found.setdefault(key(metric), metric)
        first.values.update(metric.values)
    for name, metric in found.items():
        if rows := value_rows(results, metric):
            unit = visible(f"{name}, {metric.unit}" if metric.unit else name, 120)
            caption = f"{unit}: every trial" + (", over the quartiles and the range." if has_boxes(rows) else ".")
            yield f"values-{name}", caption, strip(list(metric.values), PICTURE, rows, unit=unit, width=width)
    for contender in results.contenders[1:]:
        own = [metric for metric in results.metrics if metric.contender == contender.name]
        if drawable_metrics(own):
            caption = f"{visible(contender.name, 60)} against {visible(results.contenders[0].name, 60)}: each change with its interval."
            yield f"effects-{contender.name}", caption, forest(own, results.study.delta, PICTURE, width)
    yield from matrix_specs(results, width)
    if run.is_dir() and evidence(results).paired:
        yield from process_specs(run, results, width)
        if rows := boot_rows(run):
            yield "boot", "Stages of the boot, medians.", boot_spec(rows, width)


def matrix_specs(results: Results, width: int) -> Iterator[tuple[str, str, Spec]]:
    """Bars of each family of a matrix, a panel for each number of processes: times, and context switches."""
    if (matrix := shape(results)) is None:
        return
    for family in matrix.families:
        if times_of(matrix, family) and (rows := time_rows(matrix, family)):
            caption = (
                f"{visible(family, 60)}: elapsed time with its standard deviation, below it user and system time."
            )
            yield f"times-{family}", caption, bars_spec(rows, width, "bar", "seconds")
        if (switches := switches_of(matrix, family)) and (rows := switch_rows(matrix, family)):
            kinds, noun = kinds_of(switches)
            caption = f"{visible(family, 60)}: {' and '.join(kinds)} {noun}, on a logarithmic axis."
            yield f"switches-{family}", caption, bars_spec(rows, width, "part", noun or "number", log=True)


def bars_spec(rows: list[Row], width: int, beside: str, title: str, *, log: bool = False) -> Spec:
    """A group of bars for each contender, one for each value of the field `beside`; what shares one is stacked."""
    ticks = {"values": [1, 100, 10_000, 1_000_000], "labelExpr": "format(datum.value, ',')"}
    scale: Spec = {"scale": {"type": "symlog"}, "axis": ticks} if log else {}
    parts, bars = ([*dict.fromkeys(row[field] for row in rows)] for field in ("part", beside))
    # Vega counts rows where a field is called `count`.
    drawn = [{**row, "processes": row["count"], "place": parts.index(row["part"])} for row in rows]
    where = {"y": nominal("contender", sort=None, title=None), "yOffset": nominal(beside, sort=bars)}
    lengths: Spec = {
        "x": quantitative("mean", title=title, stack=None if log else "zero", **scale),
        "color": nominal("part", title=None, scale={"scheme": "greys", "domain": parts}, legend={"orient": "bottom"}),
        "order": quantitative("place"),
    }
    spread: Spec = {"x": quantitative("low"), "x2": {"field": "high"}}
    known = [row for row in drawn if row.get("low") is not None]
    spec = base(PICTURE, width, {"step": 11}, drawn)
    inner = {
        "width": spec.pop("width") - NAMES,
        "height": spec.pop("height"),
        "layer": [
            layer({"type": "bar", "stroke": PICTURE.ink, "strokeWidth": 0.5}, {**where, **lengths}),
            {"transform": [{"filter": "isValid(datum.low)"}], **layer({"type": "rule"}, {**where, **spread})},
        ][: 2 if known else 1],
    }
    header = {"labelOrient": "top", "labelExpr": "datum.value + ' processes'", "labelColor": PICTURE.dim}
    spec |= {
        "facet": {"row": {"field": "processes", "type": "ordinal", "title": None, "header": header}},
        "spec": inner,
    }
    spec |= {"resolve": {"scale": {"x": "shared" if log else "independent"}}, "autosize": {"type": "pad"}}
    return spec


def process_specs(run: Path, results: Results, width: int) -> Iterator[tuple[str, str, Spec]]:
    """The processes of each kload step, from start to end, in one trial of each contender."""
    for index, step in enumerate(results.steps):
        rows = [
            {"c": contender.name, "p": number, "start": one[0] / 1e6, "end": one[1] / 1e6, "busy": busy_share(one)}
            for contender in results.contenders
            for number, one in enumerate(sorted(read_processes(run, results, contender.name, index)), 1)
        ]
        if step.benchmark == "kload" and rows and len(rows) <= MOST_PROCESSES * len(results.contenders):
            caption = f"{step.label}: each process from start to end; the darker, the longer it was on a CPU."
            yield f"processes-{step.label}", caption, processes_spec(rows, width)


def read_processes(run: Path, results: Results, contender: str, index: int) -> list[list[int]]:
    """A row for each process of the first complete trial of a contender; none where the step is no kload."""
    step = results.steps[index]
    trial = next((one for one in results.trials if one.contender == contender and one.status == "ok"), None)
    if step.benchmark != "kload" or trial is None or trial.directory is None:
        return []
    try:
        raw = Raw.read(step_directory(run / trial.directory, index, step.label))
        each = read_json(plain_output(raw.stdout), KloadOutput, "kload's output").each
    except ParseError:
        return []
    return each.rows if each.columns == COLUMNS else []


def busy_share(row: list[int]) -> float:
    start, end, user, system = row[:4]
    return min(1.0, (user + system) / max(1, end - start))


def processes_spec(rows: list[Row], width: int) -> Spec:
    """One bar for each process, a panel for each contender; the darker, the longer it was on a CPU."""
    greys, legend = {"scheme": "greys", "domain": [-0.4, 1]}, {"orient": "bottom", "values": [0, 0.5, 1]}
    spec = base(PICTURE, width, {"step": 5}, rows)
    spec |= {
        "mark": {"type": "bar"},
        "encoding": {
            "row": nominal("c", sort=None, title=None, header={"labelOrient": "top"}),
            "y": {"field": "p", "type": "ordinal", "axis": None, "title": "process"},
            "x": quantitative("start", title="seconds from the start"),
            "x2": {"field": "end"},
            "color": quantitative("busy", title="share on a CPU", scale=greys, legend=legend),
        },
    }
    spec["autosize"] = {"type": "pad"}
    return spec


def boot_rows(run: Path) -> list[Row]:
    """The median of each stage of each contender's boots; none without consoles."""
    try:
        boots = read_boots(run)
    except InputError:
        return []
    return [
        {"c": boot.name, "stage": WORDS[stage], "v": median(times), "n": number}
        for boot in boots
        for number, stage in enumerate(WORDS)
        if (times := boot.stage(stage))
    ]


def boot_spec(rows: list[Row], width: int) -> Spec:
    """One bar for each contender, in the stages of its boot."""
    legend = {"orient": "bottom", "columns": 1 if width < 2 * WIDTHS["1"] else 2}
    spec = base(PICTURE, width - NAMES, {"step": 34}, rows)
    spec |= {
        "mark": {"type": "bar", "stroke": PICTURE.paper, "size": 20},
        "encoding": {
            "y": nominal("c", sort=None, title=None),
            "x": quantitative("v", stack="zero", title="seconds (median)"),
            "order": quantitative("n"),
            "color": nominal("stage", sort=None, title=None, scale={"scheme": "greys"}, legend=legend),
        },
    }
    return spec


def write_figures(run: Path, results: Results, directory: Path, form: str, columns: str) -> dict[Path, str]:
    """Draw every figure into the directory, which is made; each file with its caption. Raises InputError where there is none
    to draw, HostError."""
    from kduel.store.whole_files import as_disk_error, write_whole

    written: dict[Path, str] = {}
    with as_disk_error(directory, "Free some space, correct the permissions, or name another directory."):
        directory.mkdir(parents=True, exist_ok=True)
        for name, caption, spec in figure_specs(run, results, WIDTHS[columns]):
            plain = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-")[:100]
            path = directory / f"{plain}.{form}"
            if path in written:
                path = directory / f"{plain}-{len(written)}.{form}"
            write_whole(path, draw_figure(spec, form))
            written[path] = caption
    if not written:
        raise InputError("there is nothing to draw: the run has no values", "Wait for its first trials.")
    return written


def draw_figure(spec: Spec, form: str) -> bytes:
    """One figure. A PDF holds its fonts."""
    engine = drawing()
    if form == "svg":
        return str(engine.vegalite_to_svg(spec)).encode()
    if form == "png":
        return bytes(engine.vegalite_to_png(spec, scale=PIXELS_A_POINT))
    return bytes(engine.vegalite_to_pdf(spec))
