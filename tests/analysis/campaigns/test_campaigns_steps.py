"""Change points: found where planted, called seldom where there are none."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kduel.analysis.campaigns.steps import FEWEST, change_points, prune_cuts


def test_a_planted_step_is_found_at_its_place() -> None:
    rng = np.random.default_rng(3)
    values = [*(100 + rng.normal(0, 1, 12)), *(106 + rng.normal(0, 1, 12))]
    (step,) = change_points(values)
    assert step.index == 12
    assert 99 < step.before < 101 and 105 < step.after < 107


def test_two_steps_are_found_in_their_order() -> None:
    rng = np.random.default_rng(4)
    values = [*(100 + rng.normal(0, 1, 15)), *(110 + rng.normal(0, 1, 15)), *(95 + rng.normal(0, 1, 15))]
    steps = change_points(values)
    assert [step.index for step in steps] == [15, 30]
    # Each level is that of the stretch next to the change, not of all before or after it.
    first, second, third = (np.median(values[start : start + 15]) for start in (0, 15, 30))
    assert [(step.before, step.after) for step in steps] == [(first, second), (second, third)]


def test_one_outlier_is_no_change() -> None:
    rng = np.random.default_rng(5)
    values = list(100 + rng.normal(0, 1, 20))
    values[10] = 1e6
    assert change_points(values) == []


def test_false_alarms_are_as_rare_as_promised() -> None:
    rng = np.random.default_rng(6)
    alarms = sum(bool(change_points(rng.lognormal(0, 0.5, 16), alpha=0.05)) for _ in range(200))
    # 5 % of 200 is 10; 20 or more have a chance below 0.3 %.
    assert alarms < 20


def correlated(rng: np.random.Generator, count: int, neighbours: float) -> list[float]:
    """AR(1) of standard deviation 1."""
    values = [rng.normal()]
    while len(values) < count:
        values.append(neighbours * values[-1] + np.sqrt(1 - neighbours**2) * rng.normal())
    return values


@pytest.mark.parametrize("count", [6, 12, 24, 40])
def test_false_alarms_are_as_rare_where_neighbours_are_alike(count: int) -> None:
    """Permuted ranks called 8 to 38 % of such series changed at a nominal 1 %."""
    rng = np.random.default_rng([count, 1])
    alarms = sum(bool(change_points(correlated(rng, count, 0.5), alpha=0.05)) for _ in range(300))
    # 5 % of 300 is 15, with a standard deviation of 3.8.
    assert alarms < 27


@pytest.mark.parametrize("count", [6, 8, 11])
def test_short_series_can_change(count: int) -> None:
    """Permuted ranks cannot call a change of any size in fewer than twelve values."""
    rng = np.random.default_rng(count)
    found = 0
    for _ in range(40):
        values = rng.normal(size=count)
        values[count // 2 :] += 10
        found += [step.index for step in change_points(values.tolist())] == [count // 2]
    assert found >= 36


def test_what_the_values_own_errors_explain_is_no_change() -> None:
    values = [100.0, 100.1, 99.9, 103.0, 103.1, 102.9]
    assert [step.index for step in change_points(values, errors=[0.1] * 6)] == [3]
    assert change_points(values, errors=[2.0] * 6) == []


def test_the_cut_whose_sides_do_not_differ_is_the_one_that_goes() -> None:
    rng = np.random.default_rng(8)
    values = np.concatenate([rng.normal(level, 1, 12) for level in (0, 10, 10, 0)])
    assert prune_cuts(values, np.zeros(values.size), [12, 24, 36], 0.01) == [12, 36]


def test_the_errors_beside_a_cut_are_those_that_count_for_it() -> None:
    """The last cut is explained by the errors behind it, the first one is not."""
    rng = np.random.default_rng(7)
    values = np.concatenate([rng.normal(level, 0.1, 12) for level in (0, 10, 12)])
    variances = np.concatenate([np.zeros(24), np.full(12, 8.0)])
    assert prune_cuts(values, variances, [12, 24], 0.01) == [12]
    assert prune_cuts(values, np.zeros(36), [12, 24], 0.01) == [12, 24]


def test_of_two_cuts_that_hide_each_other_the_stronger_stays() -> None:
    """A cut beside the step and one behind it: neither differs by itself while the other is there."""
    rng = np.random.default_rng(9)
    values = np.concatenate([rng.normal(0, 1, 16), rng.normal(10, 1, 16)])
    assert prune_cuts(values, np.zeros(values.size), [15, 18], 0.01) == [15]
    assert prune_cuts(values, np.zeros(values.size), [10, 22], 0.01) == []


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), max_size=30))
def test_any_series_gives_steps_inside_it_and_always_the_same(values: list[float]) -> None:
    found = change_points(values)
    assert found == change_points(values)
    edges = [0, *(step.index for step in found), len(values)]
    assert all(later - earlier >= FEWEST for earlier, later in itertools.pairwise(edges)) or not found
