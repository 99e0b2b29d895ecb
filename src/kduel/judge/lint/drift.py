"""The run in the order of time: drift, and a first trial that is not like the others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kduel.core.results import Warning_
from kduel.judge.lint.case import Arm, Case, amount, short
from kduel.judge.lint.statistics import t_two_sided
from kduel.judge.verdict.secondary import midranks

LEVEL = 0.01
FEWEST = 6


def drift(case: Case) -> Iterator[Warning_]:
    """Ranks of the values, arms' means taken off, that go with the order of time."""
    residuals, places = case.residuals
    if case.steady or any(arm.values.size < FEWEST for arm in case.arms):
        return
    correlation = float(np.corrcoef(midranks(residuals), midranks(places.astype(float)))[0, 1])
    freedom = residuals.size - 3
    if not np.isfinite(correlation) or abs(correlation) >= 1:
        return
    if t_two_sided(correlation * np.sqrt(freedom / (1 - correlation**2)), freedom) >= LEVEL:
        return
    slope = np.polyfit(places, residuals, 1)[0] * np.ptp(places)
    share = 100 * slope
    size = (
        f"{share:+{'.0f' if abs(share) >= 10 else '.2g'}} % of the mean"
        if case.positive
        else amount(slope, case.metric.unit)
    )
    remedy = (
        "Randomised blocks keep it out of the verdict, but it widens the interval: look for heat, a filling disk or "
        "other work on the host."
        if case.paired
        else "Nobody can tell it from a difference between the arms unless their trials took turns: measure anew in "
        "random order."
    )
    yield Warning_(
        code="drift",
        message=f"The values drift by about {size} from the first trial to the last (rank correlation with time "
        f"{correlation:+.2f}). {remedy}",
    )


def first_trial(case: Case) -> Iterator[Warning_]:
    """The run's first trial, or each arm's where the arms were measured apart, against all others."""
    if case.steady or any(arm.values.size < FEWEST for arm in case.arms):
        return
    arms = [arm for arm in case.arms if not case.paired or opens(arm)]
    if not arms:
        return
    gaps, variances = [], []
    for arm in arms:
        rest = arm.values[1:]
        gaps.append(arm.values[0] - rest.mean())
        variances.append(rest.var(ddof=1) * (1 + 1 / rest.size))
    freedom = sum(arm.values.size - 2 for arm in arms)
    spread = float(np.sqrt(np.mean(variances) / len(arms)))
    gap = float(np.mean(gaps))
    if spread == 0 or t_two_sided(gap / spread, freedom) >= LEVEL:
        return
    firsts = " and ".join(f"{short(arm.values[0])} ({arm.name})" for arm in arms)
    rests = " and ".join(amount(arm.values[1:].mean(), case.metric.unit) for arm in arms)
    yield Warning_(
        code="first-trial",
        message=f"The first trial stands out: {firsts} against a mean of {rests} in the others. Add a trial "
        "before the first that is thrown away, by a rule set beforehand.",
    )


def opens(arm: Arm) -> bool:
    """Whether the run's very first trial is this arm's."""
    return arm.positions is not None and bool(arm.positions[0] == 0)
