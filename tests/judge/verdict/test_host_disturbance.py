"""Making disturbed trials again does not bias verdicts, though load comes in bursts that are longer than a trial."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "perf"))

from host_disturbance import POLICIES, Bursts, alarms, draw, judged

OFF, DEFAULT, *_ = POLICIES
RUNS = 4000


@pytest.mark.parametrize("length", [4.0, 12.0, 40.0])
def test_no_false_alarms_in_bursts(length: float) -> None:
    assert alarms(DEFAULT, Bursts(share=0.3, length=length, slowdown=0.3), RUNS) <= 0.06


def test_no_bias_towards_either_contender() -> None:
    bursts = Bursts(share=0.5, length=12.0, slowdown=0.3)
    drawn, _ = draw(DEFAULT, bursts, 0.0, 20_000, np.random.default_rng(3))
    gaps = (drawn.logs[:, 0, 1] - drawn.logs[:, 0, 0]).mean(axis=1)
    assert abs(gaps.mean()) <= 4 * gaps.std() / np.sqrt(len(gaps))


def test_a_difference_is_found_sooner_and_boots_are_bounded() -> None:
    bursts = Bursts(share=0.3, length=4.0, slowdown=0.3)
    found = {}
    for policy in (OFF, DEFAULT):
        drawn, boots = draw(policy, bursts, 0.05, RUNS, np.random.default_rng(2))
        found[policy.name] = float((judged(drawn).sides == 1).mean())
        assert boots.max() <= 40 + policy.repeats * (0.2 * 40 + 1)
    assert found[DEFAULT.name] > found[OFF.name] + 0.1
