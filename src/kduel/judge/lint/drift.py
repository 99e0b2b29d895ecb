"""The run in the order of time: drift, successive trials that are alike, a first trial that is not like the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kduel.core.format import plus
from kduel.core.results import Warning_
from kduel.judge.lint.case import ArmValues, Case, Floats, amount, short
from kduel.judge.lint.findings import Code
from kduel.judge.lint.statistics import beyond, combined, serial, t_two_sided
from kduel.judge.verdict.secondary import midranks

FEWEST = 6
FEWEST_FOR_MEMORY = 8


def drift(case: Case) -> Iterator[Warning_]:
    """Ranks of the values, arms' means taken off, that go with the order of time."""
    residuals, places = case.residuals
    if case.steady or any(arm.values.size < FEWEST for arm in case.arms):
        return
    correlation = float(np.corrcoef(midranks(residuals), midranks(places.astype(float)))[0, 1])
    freedom = residuals.size - 3
    if not np.isfinite(correlation) or abs(correlation) >= 1:
        return
    if t_two_sided(correlation * np.sqrt(freedom / (1 - correlation**2)), freedom) >= case.level:
        return
    slope = np.polyfit(places, residuals, 1)[0] * np.ptp(places)
    share = 100 * slope
    size = (
        f"{plus(share, '.0f' if abs(share) >= 10 else '.2g')} % of the mean"
        if case.positive
        else amount(slope, case.metric.unit)
    )
    remedy = (
        "Randomised blocks keep it out of the verdict, but it widens the interval: look for heat, a filling disk or "
        "other work on the host."
        if case.paired
        else "It cannot be distinguished from a difference between the contenders unless their trials alternated: measure again in "
        "random order."
    )
    yield Warning_(
        code=Code.DRIFT,
        message=f"The values drift by about {size} from the first trial to the last (rank correlation with time "
        f"{plus(correlation, '.2f')}). {remedy}",
    )


def autocorrelation(case: Case) -> Iterator[Warning_]:
    """Successive trials that are alike once arms' means and a straight drift are taken off."""
    if case.steady or any(arm.values.size < FEWEST_FOR_MEMORY for arm in case.arms):
        return
    if all(arm.positions is not None for arm in case.arms):
        residuals, places = case.residuals
        sequences = [residuals[np.argsort(places)]]
    else:
        sequences = [arm.values - arm.values.mean() for arm in case.arms]
    correlation, chance = serial(sequences)
    if chance < case.level:
        yield Warning_(
            code=Code.AUTOCORRELATION,
            message=f"Successive trials are alike (lag-1 correlation of ranks {plus(correlation, '.2f')}, p = {chance:.1g}): a "
            "disturbance lasted longer than one trial. Look for other work on the host, heat, or frequency changes.",
        )


def first_trial(case: Case) -> Iterator[Warning_]:
    """The run's first trial, or each arm's where the arms were measured apart, farther out than any other."""
    if case.steady or any(arm.values.size < FEWEST for arm in case.arms):
        return
    arms = [arm for arm in case.arms if not case.paired or opens(arm)]
    if not arms or first_chance(case, [any(arm is one for one in arms) for arm in case.arms]) >= case.level:
        return
    firsts = " and ".join(f"{short(arm.values[0])} ({arm.name})" for arm in arms)
    rests = " and ".join(amount(arm.values[1:].mean(), case.metric.unit) for arm in arms)
    yield Warning_(
        code=Code.FIRST_TRIAL,
        message=f"The first trial stands out: {firsts} against a mean of {rests} in the others. Add a trial "
        "before the first that is discarded, by a rule set beforehand.",
    )


def first_chance(case: Case, chosen: Sequence[bool]) -> float:
    """The chance that the first value of each chosen arm lies as far beyond all others as it does."""
    deviations = case.deviations
    if not all(chosen):
        own, other = deviations if chosen[0] else deviations[::-1]
        return farthest_first(np.abs(np.concatenate([own, other])))
    if deviations[0][0] * deviations[1][0] <= 0:
        return 1.0
    chances = [farthest_first(np.abs(own)) for own in deviations]
    return combined(*chances) if max(chances) < 1 else 1.0


def farthest_first(distances: Floats) -> float:
    """The chance that of all distances the first is the largest, and by so much; 1 where it is not, however many there
    are."""
    chance = beyond(distances, 0)
    return chance / distances.size if chance < 1 else 1.0


def opens(arm: ArmValues) -> bool:
    """Whether the run's very first trial is this arm's."""
    return arm.positions is not None and bool(arm.positions[0] == 0)
