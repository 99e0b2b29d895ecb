"""The order of runs in a history, and which of them are one series."""

from __future__ import annotations

from pathlib import Path

from made_runs import make_run

from kduel.analysis.campaigns.history import Point, by_time, history
from kduel.core.turns import Turns


def test_runs_of_one_day_are_in_the_order_of_the_numbers_in_their_names() -> None:
    names = ["run-10", "2²", "run-2", "²", "½-1", "run-x"]
    points = [Point(run=name, when="2026-01-31", n=1, mean=1.0, sd=None) for name in names]
    found = [point.run for point in sorted(points, key=by_time)]
    assert sorted(found) == sorted(names)
    assert found.index("run-2") < found.index("run-10")


MODES: list[Turns | None] = [None, "off", 50, 50]


def test_runs_in_turns_are_a_series_of_their_own(tmp_path: Path) -> None:
    """Caches are cold after each turn, so that levels fall."""
    for day, mode in enumerate(MODES, 1):
        make_run(tmp_path / f"run-{day}", day=day, blocks=4, turns=mode)
    series = [one for one in history([tmp_path]).lines if one.contender == "new"]
    assert [(one.machine.endswith(", in turns"), [Path(each.run).name for each in one.points]) for one in series] == [
        (False, ["run-1", "run-2"]),
        (True, ["run-3", "run-4"]),
    ]
