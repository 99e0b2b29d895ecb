"""Exactly delta is within delta, and an exact difference is held to each condition's own count."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kduel.judge.verdict.classify import ABOVE, WITHIN, classify
from kduel.judge.verdict.judge import Assessment
from kduel.judge.verdict.result import below_delta
from kduel.judge.verdict.rule import Rule


@pytest.mark.parametrize("old", [100.0, 300.0, 7.0, 1e-9, 12345.0])
def test_a_constant_ratio_of_exactly_delta_is_within_it(old: float) -> None:
    gap, margin = math.log(old * 1.01 / old), math.log1p(0.01)
    assert int(classify(gap, gap, margin, 12, fewest=4, equivalent_from=10)) == WITHIN
    beyond = math.log(1.0100001)
    assert int(classify(beyond, beyond, margin, 12, fewest=4, equivalent_from=10)) == ABOVE


@pytest.mark.parametrize(
    ("pairs", "small"),
    [
        ([(1000.0, 1010.0), (500.0, 505.0)], True),
        ([(1000.0, 1005.0), (500.0, 505.3)], False),
        ([(500.0, 505.3), (1000.0, 1005.0)], False),
        ([(1000.0, 1009.0), (2000.0, 2019.0)], True),
        ([(0.0, 1.0), (1000.0, 1001.0)], False),
    ],
)
def test_an_exact_difference_is_held_to_the_count_of_its_own_condition(
    pairs: list[tuple[float, float]], small: bool
) -> None:
    gaps = [after - before for before, after in pairs]
    finding = Assessment(scale="exact", verdict="more", mean=gaps[0], low=min(gaps), high=max(gaps))
    assert below_delta(np.array([pairs[0][0]]), finding, Rule(), pairs) is small
