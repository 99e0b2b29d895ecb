"""Processes of kload steps as lines from their start to their end, in one trial of each contender."""

from pathlib import Path

from markupsafe import Markup

from kduel.core.results import Results
from kduel.core.text import visible
from kduel.report.plots.draw import Scale, bottom_axis, chart, polyline, stretched_area, tick_text
from kduel.report.plots.figures import MOST_PROCESSES, read_processes

MOST_LINES = 3000
"""Lines of all charts together, so that the page stays small."""
FEW = 40
"""Up to so many processes lines are thick."""
Panel = tuple[str, list[tuple[str, Markup]]]
"""A step, and its chart of each contender."""


def process_panels(run: Path | None, results: Results) -> list[Panel]:
    """The charts of all kload steps whose processes can be told apart; none without the run's directory."""
    panels: list[Panel] = []
    left = MOST_LINES
    for index, step in enumerate(results.steps):
        if run is None or not run.is_dir() or step.benchmark != "kload":
            continue
        rows = {one.name: sorted(read_processes(run, results, one.name, index)) for one in results.contenders}
        count = max(map(len, rows.values()), default=0)
        if not count or count > MOST_PROCESSES or sum(map(len, rows.values())) > left:
            continue
        left -= sum(map(len, rows.values()))
        scale = Scale(low=0, high=max(row[1] for column in rows.values() for row in column) / 1e6)
        charts = [
            (visible(name, 200), processes_chart(column, scale, arm))
            for arm, (name, column) in enumerate(rows.items())
        ]
        panels.append((visible(step.label, 100), charts))
    return panels


def processes_chart(rows: list[list[int]], scale: Scale, arm: int) -> Markup:
    """One line for each process, the first to start at the top."""
    lines = [
        ((scale.share(start / 1e6), y), (scale.share(end / 1e6), y))
        for number, (start, end, *_) in enumerate(rows)
        for y in [(number + 0.5) / len(rows)]
    ]
    places = [(scale.share(value), tick_text(value)) for value in scale.ticks(3)]
    label = f"{len(rows)} processes from start to end; the tables have their times."
    kind = f"process arm{arm % 6}{' few' if len(rows) <= FEW else ''}"
    return chart("processes", label, stretched_area(polyline(lines, kind)), bottom_axis(places, "seconds"))
