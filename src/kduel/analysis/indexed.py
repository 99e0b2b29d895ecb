"""A history read from the index of many runs: the points are there, and only runs at a change are opened."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from kduel.analysis.campaigns.attribution import attribute
from kduel.analysis.campaigns.columns import columns_of
from kduel.analysis.campaigns.history import MetricHistory, MetricSeries, Point, by_time, line_of, undated_runs
from kduel.analysis.index import open_index, run_query
from kduel.analysis.machine_name import separation_notes
from kduel.core.errors import KduelError
from kduel.core.validation import moment

POINTS = """
SELECT run.path, contender.measured, point.machine, point.contender, point.benchmark || '/' || point.metric, point.unit,
       point.quantity, point.n, point.mean, point.sd
FROM point JOIN run ON run.id = point.run
JOIN contender ON contender.run = run.id AND contender.name = point.contender WHERE run.merged = 0
"""


def indexed_history(
    index: Path, *, metric: str = "", contender: str = "", alpha: float = 0.01, attributed: bool = True
) -> MetricHistory:
    """History as of `kduel.analysis.campaigns.history.history`, of the runs as they were indexed. `attributed`: runs
    at a change are opened to find what else changed. Raises InputError."""
    skipped = {str(path): str(reason) for path, reason in run_query(index, "skipped").rows}
    with open_index(index) as connection:
        (runs,) = connection.execute("SELECT count(*) FROM run WHERE merged = 0").fetchone()
        rows = connection.execute(POINTS).fetchall()
    gathered: dict[tuple[str, str, str, str], list[Point]] = {}
    units: dict[tuple[str, str, str, str], str] = {}
    dates: dict[str, dict[str, str]] = {}
    for path, when, machine, name, key, unit, quantity, n, mean, sd in rows:
        dates.setdefault(path, {})[name] = when or ""
        if metric not in key or contender not in name or moment(when or "") is None:
            continue
        place = (machine, name, key, quantity)
        gathered.setdefault(place, []).append(Point(run=path, when=when, n=n, mean=mean, sd=sd))
        units[place] = unit
    skipped |= undated_runs(dates, contender)
    divided = separation_notes((place[0], point.run) for place, points in gathered.items() for point in points)
    lines: list[MetricSeries] = []
    for place, points in gathered.items():
        if len(points) > 1:
            points.sort(key=by_time)
            told: Callable[[str, str], str] = (
                partial(changes_between, index.parent, place[1]) if attributed else lambda *_: ""
            )
            lines.append(line_of(place[:3], units[place], points, alpha, told))
    return MetricHistory(lines=lines, runs=runs, alpha=alpha, skipped=skipped, apart=divided)


def changes_between(place: Path, contender: str, before: str, after: str) -> str:
    """Other changes between two runs; or why they are unknown, where one cannot be read any more."""
    try:
        columns = [
            next(column for column in columns_of(place / run) if column.contender == contender)
            for run in (before, after)
        ]
    except KduelError as error:
        return f"What else changed is not known: {error.message}."
    except StopIteration:
        return "What else changed is not known: a run was changed since it was indexed."
    return attribute(*columns).told
