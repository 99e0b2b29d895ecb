"""A metric's series of an index as Apache Otava's CSV importer reads it."""

from pathlib import Path
from typing import Any

import msgspec

from kduel.analysis.campaigns.history import undated_runs
from kduel.analysis.index import open_index
from kduel.core.errors import InputError
from kduel.core.format import parameter_text
from kduel.core.progress import Progress
from kduel.core.toml import shorten
from kduel.core.validation import moment


def otava(path: Path, benchmark: str, metric: str, progress: Progress) -> list[list[str | int | float | None]]:
    """A metric's series as Apache Otava's CSV importer reads it, with a header: time, the run as attribute, a column
    for each contender, machine, unit and parameters. Runs without a date are left out with a warning. Raises
    InputError."""
    if not benchmark or not metric:
        raise InputError(
            f"--series {benchmark or metric} names no metric",
            "Give BENCHMARK/METRIC; `kduel query DIR verdicts` shows both.",
        )
    with open_index(path) as connection:
        found = connection.execute(
            "SELECT time, path, contender, mean, machine, quantity FROM series WHERE benchmark = ? AND metric = ? "
            "ORDER BY time, path, contender",
            (benchmark, metric),
        ).fetchall()
    if not found:
        raise InputError(f"the index has no {benchmark}/{metric}", "`kduel query DIR verdicts` shows what it has.")
    rows = [row for row in found if moment(row[0] or "")]
    if not rows:
        raise InputError(
            f"no run with {benchmark}/{metric} says when it was measured",
            "Give the `date` of imported results in a file with `kduel import --conditions`.",
        )
    dates: dict[str, dict[str, str]] = {}
    for time, run, contender, *_ in found:
        dates.setdefault(run, {})[contender] = time or ""
    if undated := undated_runs(dates):
        progress.warn(f"left out: {shorten(', '.join(f'{run} ({why})' for run, why in sorted(undated.items())))}")
    several = len({row[4] for row in rows}) > 1
    words = {quantity: words_of(quantity) for quantity in {row[5] for row in rows}}
    common = set.intersection(*map(set, words.values()))
    particulars = {quantity: [word for word in found if word not in common] for quantity, found in words.items()}
    points: dict[tuple[str, str], dict[str, float]] = {}
    for time, run, contender, mean, machine, quantity in rows:
        name = ", ".join([contender, *([machine] if several else []), *particulars[quantity]])
        points.setdefault((time, run), {})[name] = mean
    names = sorted({name for held in points.values() for name in held})
    return [["time", "run", *names], *([*key, *(held.get(name) for name in names)] for key, held in points.items())]


def words_of(quantity: str) -> list[str]:
    """The unit, and the parameters of the benchmark where they are known."""
    unit, step = msgspec.json.decode(quantity, type=tuple[str, tuple[str, dict[str, Any]] | None])
    if step is None:
        return [f"in {unit}"]
    benchmark, parameters = step
    return [f"in {unit}", benchmark, *(f"{key}={parameter_text(value)}" for key, value in parameters.items())]
