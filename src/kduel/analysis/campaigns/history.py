"""All runs of a machine over time: one series a metric and contender, with the places where its level changed."""

import math
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from kduel.analysis.campaigns.attribution import attribute
from kduel.analysis.campaigns.columns import Column, columns_of
from kduel.analysis.campaigns.steps import LevelChange, change_points
from kduel.analysis.machine_name import UNKNOWN, machine_name, separation_notes
from kduel.core.errors import InputError
from kduel.core.validation import DATE_FORMS, moment
from kduel.store.rundir import EXPLAIN, MARKS, MERGED

DEEPEST = 4


class Point(Struct, kw_only=True):
    """One run's mean of a metric."""

    run: str
    when: str
    """As of `in_utc`."""
    n: int
    mean: float
    sd: float | None

    @property
    def error(self) -> float:
        """The standard error of the mean; 0 where the run does not report it."""
        return 0.0 if self.sd is None else self.sd / math.sqrt(self.n)

    @property
    def time_text(self) -> str:
        """Time of measurement: a day, or a day and a time of it (UTC)."""
        return self.when[:16].replace("T", " ")


class MetricSeries(Struct, kw_only=True):
    machine: str
    contender: str
    key: str
    unit: str
    points: list[Point]
    steps: list[LevelChange] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    """For each step: what else changed with it."""


class MetricHistory(Struct, kw_only=True):
    """All series; `skipped` has the reason for each directory that was left out."""

    lines: list[MetricSeries]
    runs: int
    alpha: float
    skipped: dict[str, str] = field(default_factory=dict)
    changed: dict[str, list[str]] = field(default_factory=dict)
    """By run, what was changed in it after it had been measured."""
    apart: list[str] = field(default_factory=list)
    """Which runs are separate series though only QEMU's version differs: exact counts depend on it."""


def runs_below(places: Iterable[Path]) -> list[Path]:
    """The runs that `runs_in` finds. Raises InputError where there is none."""
    places = list(places)
    if not (runs := runs_in(places)):
        raise InputError(
            f"there is no run below {', '.join(map(str, places))}",
            "Name directories made by `kduel run` or `kduel import`.",
        )
    return runs


def runs_in(places: Iterable[Path]) -> list[Path]:
    """The directories of runs in or below the places; a merged run counts, its parts do not. Raises InputError for what is no
    directory. A run that several paths lead to, by symbolic links, is found once, by the shortest of them."""
    found: dict[Path, Path] = {}
    for place in places:
        if not place.is_dir():
            raise InputError(f"{place} is not a directory", "Name runs, or a directory that holds some.")
        level = [place]
        for _ in range(DEEPEST):
            for name in MARKS:
                for path in level:
                    if is_there(path / name):
                        found.setdefault(path.resolve(), path)
            level = sorted(below for path in level for below in directories_in(path))
    return [path for real, path in found.items() if not is_part(real)]


def directories_in(path: Path) -> list[Path]:
    """The directories in a directory; of a run without that of its trials, which are many and no runs."""
    run = any(is_there(path / name) for name in MARKS)
    try:
        return [one for one in path.iterdir() if one.is_dir() and not (run and one.name == "trials")]
    except PermissionError:
        return []


def is_there(path: Path) -> bool:
    """False for what another user hides, too."""
    try:
        return path.exists()
    except PermissionError:
        return False


def is_part(path: Path) -> bool:
    """True if a run belongs to another: a part of a merged run, or the profiled trials of a timed one."""
    above = path.parent.parent
    profiled = path.parent.name == EXPLAIN and any((above / name).is_file() for name in MARKS)
    return profiled or (above / MERGED).is_file()


def history(places: Sequence[Path], *, metric: str = "", contender: str = "", alpha: float = 0.01) -> MetricHistory:
    """Every line of two points at least; `metric` and `contender` choose by a part of the name. Raises InputError."""
    gathered: dict[tuple[str, str, str, str], list[tuple[Point, Column]]] = {}
    units: dict[tuple[str, str, str, str], str] = {}
    skipped: dict[str, str] = {}
    changed: dict[str, list[str]] = {}
    dates: dict[str, dict[str, str]] = {}
    runs = 0
    for path in runs_below(places):
        try:
            found = columns_of(path)
        except InputError as error:
            skipped[str(path)] = error.message
            continue
        runs += 1
        if found and found[0].changed:
            changed[str(path)] = found[0].changed
        dates[str(path)] = {column.contender: column.when for column in found}
        for column in found:
            if contender not in column.contender or moment(column.when) is None:
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
    skipped |= undated_runs(dates, contender)
    lines = []
    for place, entries in gathered.items():
        if len(entries) > 1:
            entries.sort(key=lambda entry: by_time(entry[0]))
            column_of = {point.run: column for point, column in entries}
            lines.append(
                line_of(
                    place[:3],
                    units[place],
                    [point for point, _ in entries],
                    alpha,
                    lambda before, after, known=column_of: attribute(known[before], known[after]).told,  # type: ignore[misc]
                )
            )
    divided = separation_notes((place[0], point.run) for place, entries in gathered.items() for point, _ in entries)
    return MetricHistory(lines=lines, runs=runs, alpha=alpha, skipped=skipped, changed=changed, apart=divided)


def undated_runs(dates: dict[str, dict[str, str]], chosen: str = "") -> dict[str, str]:
    """By run: contenders, of those `chosen`, that are left out for their dates, and why; `dates` are by run."""
    found = {}
    for run, known in dates.items():
        wrong = {
            name: f", {when!r}, is not of the form {DATE_FORMS}" if when else " is unknown"
            for name, when in known.items()
            if moment(when) is None
        }
        if len(wrong) == len(known) and len({*wrong.values()}) == 1:
            found[run] = f"its date{next(iter(wrong.values()))}"
        elif told := [f"the date of {name}{why}" for name, why in wrong.items() if chosen in name]:
            found[run] = "; ".join(told)
    return found


def line_of(
    place: tuple[str, str, str], unit: str, points: list[Point], alpha: float, told: Callable[[str, str], str]
) -> MetricSeries:
    """A line of points in order of time, its steps, and what else changed at each by `told`."""
    steps = change_points([point.mean for point in points], alpha=alpha, errors=[point.error for point in points])
    return MetricSeries(
        machine=place[0], contender=place[1], key=place[2], unit=unit, points=points, steps=steps,
        told=[told(points[step.index - 1].run, points[step.index].run) for step in steps],
    )  # fmt: skip


def by_time(point: Point) -> tuple[str, list[tuple[int, str]]]:
    """Sort key: the time; among imports of one day the name, in which run-2 comes before run-10."""
    parts = re.findall(r"\d+|\D+", point.run)
    return point.when, [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def machine_of(column: Column) -> str:
    """The machine of a column, by the first trial that reported it."""
    if not column.environments:
        return UNKNOWN
    known: dict[str, Any] = column.environments[0]
    return machine_name(known.get("machine"), known)
