"""Successive trials that are alike once arms' means and a straight drift are taken off."""

from collections.abc import Iterator

import numpy as np

from kduel.core.evidence import Evidence
from kduel.core.format import with_sign
from kduel.judge.lint.case import Case
from kduel.judge.lint.finding import Cause, Finding
from kduel.judge.lint.statistics import serial_correlation

FEWEST_FOR_MEMORY = 8


def autocorrelation(case: Case) -> Iterator[str]:
    if any(arm.values.size < FEWEST_FOR_MEMORY for arm in case.arms):
        return
    if case.rule.in_turns and case.gaps.size < FEWEST_FOR_MEMORY:
        return
    if case.rule.in_turns or all(arm.positions is not None for arm in case.arms):
        residuals, places = case.residuals
        sequences = [residuals[np.argsort(places)]]
    else:
        sequences = [arm.values - arm.values.mean() for arm in case.arms]
    correlation, chance = serial_correlation(sequences)
    if chance < case.level and case.rule.in_turns:
        yield (
            f"The differences of successive blocks are alike (lag-1 correlation of ranks {with_sign(correlation, '.2f')}, p = "
            f"{chance:.1g}), which the interval takes for independent: it is too narrow. Look for what only one contender meets."
        )
    elif chance < case.level:
        yield (
            f"Successive trials are alike (lag-1 correlation of ranks {with_sign(correlation, '.2f')}, p = {chance:.1g}): a "
            "disturbance lasted longer than one trial. Look for other work on the host, heat, or frequency changes."
        )


PLUGIN = Finding(
    name="autocorrelation", cause=Cause.TIME, weight=48,
    meaning="Successive trials are alike (lag-1 correlation of the ranks, after a linear drift is removed): a "
    "disturbance lasted longer than one trial. Random orders keep it out of the verdict. Where contenders take "
    "turns it is about the differences of successive blocks, which the verdict takes for independent.",
    remedy="Look for other work on the host during the run, heat, or frequency changes.",
    chance=True, check=autocorrelation, least=Evidence.VARYING, levelled=True,
    undecided="the machine changed during the run: stop other work on the host",
)  # fmt: skip
