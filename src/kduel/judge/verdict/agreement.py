"""Chance that conditions agree: on exact CPUs a scheduler decides otherwise from the least cause, so conditions are a sample."""

import math
from collections.abc import Callable
from itertools import count

import numpy as np

from kduel.benchmarks.support.varied import VariedParameters
from kduel.core.plugins import plugins
from kduel.core.text import plural
from kduel.judge.verdict.spending import Floats

ALIKE = 3.0
"""Spreads that differ by a larger factor are not alike."""
VARIED = "conditions"
"""The parameter of benchmarks that run under several conditions."""


def lie_apart(before: Floats, after: Floats) -> bool:
    """True if all values of one contender lie above all of the other, and both spread alike: the rank sum's chance is that of equal
    distributions. Four values lie apart by chance in 3 % of cases then, with equal medians and ten times the spread in 9 %."""
    apart = before.max() < after.min() or after.max() < before.min()
    by_ratio = min(before.min(), after.min()) > 0
    spreads = sorted(float(np.ptp(np.log(one) if by_ratio else one)) for one in (before, after))
    return bool(apart and spreads[1] <= ALIKE * spreads[0])


def chance_of_sign(number: int) -> float:
    """The chance that so many differences without a cause have one sign (the sign test)."""
    return 2.0 ** (1 - number)


def chance_apart(number: int) -> float:
    """The chance that so many values of each contender, of one distribution, lie apart (Wilcoxon's rank sum)."""
    return 2 / math.comb(2 * number, number)


def chance_of_agreement(before: Floats, after: Floats) -> float:
    """The chance that differences of one sign have no cause, by the values under each condition."""
    return (chance_apart if lie_apart(before, after) else chance_of_sign)(len(before))


def chance_within(number: int) -> float:
    """The most chance that so many differences lie within delta where most conditions' do not: each does with one half at most."""
    return 2.0**-number


def fewest(chance: Callable[[int], float], alpha: float) -> int:
    """The fewest conditions that agree by chance no more often than `alpha`."""
    return next(n for n in count(2) if chance(n) <= alpha)


def varied_benchmarks() -> list[str]:
    """The benchmarks that have conditions of exact CPUs, by their parameter."""
    every = sorted(plugins("benchmarks").items())
    return [name for name, one in every if issubclass(one.Parameters, VariedParameters)]


def too_few(before: Floats, after: Floats, alpha: float, varies: bool = True) -> str:
    """Clause on what chance shows as often, and how many conditions decide; empty where it is rarer than `alpha`."""
    if (chance := chance_of_agreement(before, after)) <= alpha:
        return ""
    if len(before) == 1:
        said = "under one condition any difference may be chance"
        if not varies:
            return (
                f"{said}, and this benchmark has no conditions: its figures are shown and give no verdict; "
                f"{', '.join(varied_benchmarks())} have them"
            )
    else:
        like = "their values lie apart" if lie_apart(before, after) else "differences have one sign"
        said = f"under {plural(len(before), 'condition')} {like} by chance in one of {1 / chance:.0f} cases"
    return (
        f"{said}, and a verdict takes one of {1 / alpha:.0f}: give {fewest(chance_of_sign, alpha)} conditions, or "
        f"{fewest(chance_apart, alpha)} if the contenders' values lie apart and spread alike"
    )


def too_few_within(number: int, alpha: float) -> str:
    """Clause of that kind on differences that all lie within delta."""
    if (chance := chance_within(number)) <= alpha:
        return ""
    return (
        f"under {plural(number, 'condition')} differences stay within delta by chance in one of {1 / chance:.0f} cases, and a "
        f"verdict takes one of {1 / alpha:.0f}: give {fewest(chance_within, alpha)} conditions"
    )
