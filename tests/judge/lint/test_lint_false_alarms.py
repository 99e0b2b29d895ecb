"""How often each finding is raised on clean data, and how often a planted flaw is found.

Short simulations; perf/lint_calibration.py has the long ones, with the same runs.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest
from flaws import PLANTED, codes, false_alarms, sensitivity
from lint_runs import linted, table
from planted_flaws.slices_disagree import stalling
from planting import Flaw

from kduel.core.metric_results import MetricResult
from kduel.core.samples import Samples
from kduel.judge.lint.case import FALSE_ALARMS, ArmValues, Case
from kduel.judge.lint.finding import catalogue
from kduel.judge.lint.findings.first_trial import first_chance
from kduel.judge.lint.findings.two_modes import modes
from kduel.judge.verdict.rule import Rule

MOST = 0.02
LEAST = 0.9
CHANCE = {finding.name for finding in catalogue().values() if finding.chance} | {"ties", "quantised", "unreliable"}
"""The others state facts: n, a maximum, unequal numbers, a rate that no drive reaches."""


def above(share: float, rounds: int) -> float:
    """What a share of so many rounds stays below in all but one of a thousand tries."""
    return share * rounds + 3 * float(np.sqrt(share * (1 - share) * rounds))


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["normal", "t3"])
@pytest.mark.parametrize("count", [10, 20, 100])
def test_clean_runs_have_hardly_any_finding(count: int, noise: str) -> None:
    rounds = 100 if count < 100 else 50
    found = false_alarms(noise, 0.02, count, rounds)
    assert set(found.each) <= CHANCE
    assert found.any / 100 * rounds <= above(MOST, rounds), found


@pytest.mark.slow
def test_more_metrics_do_not_raise_more_alarms() -> None:
    """Ten metrics in one run share the chances that one has alone."""
    rng = np.random.default_rng(3)
    rounds, alarms = 40, 0
    for seed in range(rounds):
        tables = [table(*rng.normal(1000, 10, (2, 12)), benchmark=f"b{n}", seed=seed) for n in range(10)]
        alarms += any(metric.warnings for metric in linted(*tables, quick=True).metrics)
    assert alarms <= above(MOST, rounds)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "flaw"),
    [pytest.param(code, flaw, id=f"{code}-{flaw.blocks}") for code, flaws in PLANTED.items() for flaw in flaws],
)
def test_planted_flaws_are_found(code: str, flaw: Flaw) -> None:
    rounds = 25
    assert sensitivity(code, flaw, rounds) / 100 * rounds >= rounds - above(1 - LEAST, rounds)


@pytest.mark.slow
@pytest.mark.parametrize("count", [10, 20])
def test_clean_imported_data_raise_few_alarms(count: int) -> None:
    rng = np.random.default_rng(count)
    rounds = 250
    alarms: Counter[str] = Counter()
    for seed in range(rounds):
        # Levels anywhere between 1 s and 1,000 s, so that some of them are round by chance.
        level = 10 ** rng.uniform(0, 3)
        arms = rng.normal(level, 0.01 * level, (2, count))
        (metric,) = linted(table(*arms, unit="s", better="lower", paired=False, seed=seed), quick=True).metrics
        alarms.update(warning.code for warning in metric.warnings)
    assert set(alarms) <= CHANCE
    assert all(alarms[code] <= above(0.05, rounds) for code in CHANCE), alarms
    assert alarms.total() <= 0.15 * rounds, alarms


@pytest.mark.slow
def test_steady_times_are_round_by_chance_only_seldom() -> None:
    rng = np.random.default_rng(11)
    alarms = 0
    for seed in range(150):
        level = 10 ** rng.uniform(0, 3.5)
        arms = rng.normal(level, 0.001 * level, (2, 10))
        (metric,) = linted(table(*arms, unit="s", better="lower", seed=seed), quick=True).metrics
        alarms += "fixed-by-harness" in {warning.code for warning in metric.warnings}
    assert alarms <= above(0.05, 150)


@pytest.mark.slow
@pytest.mark.parametrize("count", [6, 7, 8, 10, 12, 15, 20, 25, 50, 200])
def test_two_modes_are_seen_in_one_clean_sample_of_a_thousand(count: int) -> None:
    rng = np.random.default_rng(count)
    rounds = 1500
    for draw in (rng.normal, lambda size: rng.standard_t(3, size=size)):
        alarms = sum(modes(draw(size=count)) is not None for _ in range(rounds))
        assert alarms <= above(0.001, rounds) + 1


@pytest.mark.parametrize(("count", "least"), [(10, 0.17), (20, 0.7), (50, 0.95)])
def test_two_real_modes_are_mostly_seen(count: int, least: float) -> None:
    """Six standard deviations apart, three of ten boots on average: two of ten are taken for a long tail."""
    rng = np.random.default_rng(count)
    seen = sum(modes(rng.normal(size=count) + 6 * (rng.random(count) < 0.3), 0.01) is not None for _ in range(500))
    assert seen >= least * 500


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["normal", "t3"])
@pytest.mark.parametrize("count", [10, 100, 15_000])
@pytest.mark.parametrize("chosen", [[True, True], [True, False]], ids=["apart", "in blocks"])
def test_first_trials_stand_out_seldom(count: int, noise: str, chosen: list[bool]) -> None:
    """Where neither first value lies beyond all others, their number alone must not make them improbable."""
    rng = np.random.default_rng([count, noise == "t3"])
    rounds, alarms = 300 if count > 100 else 1500, 0
    for _ in range(rounds):
        arms = 100 + 5 * (rng.normal(size=(2, count)) if noise == "normal" else rng.standard_t(3, (2, count)) / 9)
        old, new = (ArmValues(str(n), arm, np.arange(count), None) for n, arm in enumerate(arms))
        alarms += first_chance(case_of(old, new), chosen) < FALSE_ALARMS
    assert alarms <= above(FALSE_ALARMS, rounds)


@cache
def any_result() -> tuple[Samples, MetricResult]:
    """A metric and its result, for checks that look at the arms only."""
    samples = table([1.0, 2.0], [2.0, 3.0], paired=False)
    (result,) = linted(samples).metrics
    return samples, result


def case_of(old: ArmValues, new: ArmValues) -> Case:
    samples, result = any_result()
    return Case(
        result=result,
        metric=samples.metric,
        paired=False,
        baseline=old,
        contender=new,
        rule=Rule.of_edition(2),
        table=samples,
    )


@pytest.mark.slow
def test_interference_that_meets_both_contenders_is_no_disagreement_of_slices() -> None:
    make = stalling(0.25, both=True)
    generator = np.random.default_rng(5)
    found = sum("slices-disagree" in codes(make(generator, 12, seed)) for seed in range(150))
    assert found <= 3
