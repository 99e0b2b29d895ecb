"""How often each finding cries wolf: simulated on clean normal data, where nothing is to be found."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from lint_runs import linted, table

from kduel.judge.lint.distribution import modes

ROUNDS = 250
MOST = 0.05
HEURISTICS = {"one-trial", "two-modes", "first-trial", "drift", "unreliable", "fixed-by-harness", "ties", "quantised"}
"""Of these an alarm is a guess. The others state facts: n, a maximum, unequal numbers, a rate that no drive reaches."""


@pytest.mark.parametrize("paired", [True, False], ids=["blocks", "apart"])
@pytest.mark.parametrize("count", [10, 20])
def test_clean_normal_data_raise_few_alarms(count: int, paired: bool) -> None:
    rng = np.random.default_rng([count, paired])
    alarms: Counter[str] = Counter()
    for seed in range(ROUNDS):
        # Levels anywhere between 1 s and 1,000 s, so that some of them are round by chance.
        level = 10 ** rng.uniform(0, 3)
        arms = rng.normal(level, 0.01 * level, (2, count))
        (metric,) = linted(table(*arms, unit="s", better="lower", paired=paired, seed=seed), quick=True).metrics
        alarms.update(warning.code for warning in metric.warnings)
    unexpected = set(alarms) - HEURISTICS
    assert not unexpected
    # 5 % and three standard errors.
    assert all(alarms[code] <= MOST * ROUNDS + 3 * np.sqrt(MOST * ROUNDS) for code in HEURISTICS), alarms
    # Each of the calibrated ones is set to 1 or 2 %; together they may not annoy.
    assert alarms.total() <= 0.15 * ROUNDS, alarms


def test_steady_times_are_round_by_chance_only_seldom() -> None:
    rng = np.random.default_rng(11)
    alarms = 0
    for seed in range(150):
        level = 10 ** rng.uniform(0, 3.5)
        arms = rng.normal(level, 0.001 * level, (2, 10))
        (metric,) = linted(table(*arms, unit="s", better="lower", seed=seed), quick=True).metrics
        alarms += "fixed-by-harness" in {warning.code for warning in metric.warnings}
    assert alarms <= MOST * 150 + 3 * np.sqrt(MOST * 150)


@pytest.mark.parametrize("count", [6, 7, 8, 10, 12, 15, 20, 25, 50, 200])
def test_two_modes_are_seen_in_one_normal_sample_of_a_hundred(count: int) -> None:
    rng = np.random.default_rng(count)
    rounds = 2000
    alarms = sum(modes(rng.normal(size=count)) is not None for _ in range(rounds))
    assert alarms <= 0.01 * rounds + 3 * np.sqrt(0.01 * rounds)


@pytest.mark.parametrize(("count", "least"), [(10, 0.3), (20, 0.7), (50, 0.95)])
def test_two_real_modes_are_mostly_seen(count: int, least: float) -> None:
    rng = np.random.default_rng(count)
    seen = sum(modes(rng.normal(size=count) + 6 * (rng.random(count) < 0.3)) is not None for _ in range(500))
    assert seen >= least * 500
