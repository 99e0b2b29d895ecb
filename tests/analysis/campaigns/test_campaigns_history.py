"""The order of runs in a history."""

from __future__ import annotations

from kduel.analysis.campaigns.history import Point, by_time


def test_runs_of_one_day_are_in_the_order_of_the_numbers_in_their_names() -> None:
    names = ["run-10", "2²", "run-2", "²", "½-1", "run-x"]
    points = [Point(run=name, when="2026-01-31", n=1, mean=1.0, sd=None) for name in names]
    found = [point.run for point in sorted(points, key=by_time)]
    assert sorted(found) == sorted(names)
    assert found.index("run-2") < found.index("run-10")
