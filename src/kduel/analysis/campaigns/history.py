"""All runs of a machine over time: one series a metric and contender, with the places where its level changed."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from kduel.analysis.campaigns.attribution import attribute
from kduel.analysis.campaigns.columns import Column, columns_of
from kduel.analysis.campaigns.steps import Step, change_points
from kduel.core.errors import InputError
from kduel.core.format import MISSING, mean_and_sd, percent
from kduel.judge.verdict.wording import plural
from kduel.report.campaigns.page import Page, Section, Table
from kduel.report.plots.effects import PICTURE, Spec, base, svg

DEEPEST = 4
MOST_PICTURES = 12


class Point(Struct, kw_only=True):
    """One run's mean of a metric."""

    run: str
    when: str
    n: int
    mean: float
    sd: float | None


class Line(Struct, kw_only=True):
    """A metric of a contender over time, on one machine."""

    machine: str
    contender: str
    key: str
    unit: str
    points: list[Point]
    steps: list[Step] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    """For each step: what else changed with it."""


class History(Struct, kw_only=True):
    """All lines; `skipped` says of directories why they are not here."""

    lines: list[Line]
    runs: int
    alpha: float
    skipped: dict[str, str] = field(default_factory=dict)


def runs_below(places: Iterable[Path]) -> list[Path]:
    """The directories of runs in or below the places. Raises InputError where there is none."""
    places = list(places)
    found: dict[Path, None] = {}
    for place in places:
        if not place.is_dir():
            raise InputError(f"{place} is not a directory", "Name runs, or a directory that holds some.")
        pattern = ["*/" * depth for depth in range(DEEPEST)]
        for name in ("lock.json", "import.json"):
            for stars in pattern:
                found |= {path.parent: None for path in sorted(place.glob(f"{stars}{name}"))}
    if not found:
        raise InputError(
            f"there is no run below {', '.join(map(str, places))}",
            "Name directories made by `kduel run` or `kduel import`.",
        )
    return list(found)


def history(places: Sequence[Path], *, metric: str = "", contender: str = "", alpha: float = 0.01) -> History:
    """Every line of two points at least; `metric` and `contender` choose by a part of the name. Raises InputError."""
    gathered: dict[tuple[str, str, str, str], list[tuple[Point, Column]]] = {}
    units: dict[tuple[str, str, str, str], str] = {}
    skipped: dict[str, str] = {}
    runs = 0
    for path in runs_below(places):
        try:
            found = columns_of(path)
        except InputError as error:
            skipped[str(path)] = error.message
            continue
        runs += 1
        for column in found:
            if contender not in column.contender:
                continue
            if not column.when:
                skipped[str(path)] = "nothing says when it was measured"
                continue
            for (label, name), series in column.series.items():
                key = f"{label}/{name}"
                values = list(series.values.values())
                if metric not in key or not values:
                    continue
                # One parameter more or less makes it another quantity.
                same = msgspec.json.encode([series.metric.unit, series.parameters], order="sorted").decode()
                place = (machine_of(column), column.contender, key, same)
                sd = statistics.stdev(values) if len(values) > 1 else None
                point = Point(run=str(path), when=column.when, n=len(values), mean=statistics.fmean(values), sd=sd)
                gathered.setdefault(place, []).append((point, column))
                units[place] = series.metric.unit
    lines = [
        line_of(place, units[place], sorted(entries, key=lambda entry: (entry[0].when, entry[0].run)), alpha)
        for place, entries in gathered.items()
        if len(entries) > 1
    ]
    return History(lines=lines, runs=runs, alpha=alpha, skipped=skipped)


def line_of(place: tuple[str, str, str, str], unit: str, entries: list[tuple[Point, Column]], alpha: float) -> Line:
    """One line, its steps, and what else changed at each."""
    steps = change_points([point.mean for point, _ in entries], alpha=alpha)
    told = [attribute(entries[step.index - 1][1], entries[step.index][1]).told for step in steps]
    return Line(
        machine=place[0],
        contender=place[1],
        key=place[2],
        unit=unit,
        points=[point for point, _ in entries],
        steps=steps,
        told=told,
    )


def machine_of(column: Column) -> str:
    """What tells machines apart: kind, place, product and processor, as far as they are known."""
    if not column.environments:
        return "unknown machine"
    known: dict[str, Any] = column.environments[0]
    machine = known.get("machine") if isinstance(known.get("machine"), dict) else {}
    assert isinstance(machine, dict)
    settings = machine.get("settings")
    place = settings.get("place") if isinstance(settings, dict) else None
    product = known.get("settings", {})
    product = product.get("/sys/class/dmi/id/product_name") if isinstance(product, dict) else None
    words = [machine.get("kind"), machine.get("accelerator"), place, product, known.get("cpu_model")]
    return " ".join(str(word) for word in words if word) or "unknown machine"


def page_of(found: History) -> Page:
    """Tables of all lines, those with a change first."""
    changed = sum(bool(line.steps) for line in found.lines)
    about = (
        f"{plural(found.runs, 'run')}, {plural(len(found.lines), 'line')}, {changed} with a change. A line without any "
        f"change is called changed with a chance of {100 * found.alpha:g} %; it takes six runs at the very least."
    )
    sections = [Section(heading="Lines", sentences=[about])]
    for line in sorted(found.lines, key=lambda line: not line.steps):
        rows = [
            [point.when, Path(point.run).name, mean_and_sd(point.mean, point.sd), str(point.n), mark(line, number)]
            for number, point in enumerate(line.points)
        ]
        bullets = [
            f"Changed by {change(step)} on {line.points[step.index].when} (p = {step.p:.2g}). {told}"
            for step, told in zip(line.steps, line.told, strict=True)
        ]
        table = Table(head=["day", "run", line.unit, "n", "change"], rows=rows, numbers_from=2)
        heading = f"{line.key}, {line.contender}, {line.machine}"
        sections.append(Section(heading=heading, table=table, bullets=bullets))
    if found.skipped:
        bullets = [f"{run}: {why}" for run, why in found.skipped.items()]
        sections.append(Section(heading="Left out", bullets=bullets))
    return Page(title="History", sections=sections)


def change(step: Step) -> str:
    """In per cent where that means something."""
    if step.before > 0:
        return percent(100 * (step.after / step.before - 1))
    return f"{step.after - step.before:+g}"


def mark(line: Line, number: int) -> str:
    """The change that a point begins, or a dash."""
    return next((change(step) for step in line.steps if step.index == number), MISSING)


def picture(found: History) -> Spec:
    """The lines as panels, the changed ones first; a rule at each change."""
    lines = sorted(found.lines, key=lambda line: not line.steps)[:MOST_PICTURES]
    panels: list[Spec] = []
    for line in lines:
        rows: list[dict[str, Any]] = [
            {
                "when": point.when,
                "mean": point.mean,
                "low": point.mean - (point.sd or 0),
                "high": point.mean + (point.sd or 0),
                "run": Path(point.run).name,
            }
            for point in line.points
        ]
        steps = [{"when": line.points[step.index].when} for step in line.steps]
        x: Spec = {"field": "when", "type": "temporal", "title": None}
        y: Spec = {"type": "quantitative", "title": line.unit, "scale": {"zero": False}}
        colour = PICTURE.arms[0]
        panels.append(
            {
                "title": {"text": f"{line.key}, {line.contender}", "anchor": "start", "color": PICTURE.ink},
                "width": 640,
                "height": 140,
                "data": {"values": rows},
                "layer": [
                    {
                        "data": {"values": steps},
                        "mark": {"type": "rule", "color": PICTURE.arms[1], "strokeWidth": 2},
                        "encoding": {"x": x},
                    },
                    {
                        "mark": {"type": "rule", "color": PICTURE.dim},
                        "encoding": {"x": x, "y": {"field": "low", **y}, "y2": {"field": "high"}},
                    },
                    {
                        "mark": {"type": "line", "point": True, "color": colour},
                        "encoding": {"x": x, "y": {"field": "mean", **y}},
                    },
                ],
            }
        )
    spec = base(PICTURE, 640, 140, [])
    for key in ("width", "height", "data", "autosize"):
        spec.pop(key)
    spec["vconcat"] = panels
    return spec


def drawn(found: History) -> str:
    """The picture as SVG, empty where there is no series."""
    return svg(picture(found)) if found.lines else ""
