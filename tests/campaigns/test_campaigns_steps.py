"""Change points: found where planted, called seldom where there are none."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kduel.analysis.campaigns.steps import FEWEST, change_points


def test_a_planted_step_is_found_at_its_place() -> None:
    rng = np.random.default_rng(3)
    values = [*(100 + rng.normal(0, 1, 12)), *(106 + rng.normal(0, 1, 12))]
    (step,) = change_points(values)
    assert step.index == 12
    assert 99 < step.before < 101 and 105 < step.after < 107


def test_two_steps_are_found_in_their_order() -> None:
    rng = np.random.default_rng(4)
    values = [*(100 + rng.normal(0, 1, 15)), *(110 + rng.normal(0, 1, 15)), *(100 + rng.normal(0, 1, 15))]
    assert [step.index for step in change_points(values)] == [15, 30]


def test_one_outlier_is_no_change() -> None:
    rng = np.random.default_rng(5)
    values = list(100 + rng.normal(0, 1, 20))
    values[10] = 1e6
    assert change_points(values) == []


def test_false_alarms_are_as_rare_as_promised() -> None:
    rng = np.random.default_rng(6)
    alarms = sum(bool(change_points(rng.lognormal(0, 0.5, 16), alpha=0.05, seed=n)) for n in range(200))
    # 5 % of 200 is 10; 20 or more have a chance below 0.3 %.
    assert alarms < 20


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), max_size=30))
def test_any_series_gives_steps_inside_it_and_always_the_same(values: list[float]) -> None:
    found = change_points(values)
    assert found == change_points(values)
    edges = [0, *(step.index for step in found), len(values)]
    assert all(later - earlier >= FEWEST for earlier, later in itertools.pairwise(edges)) or not found
