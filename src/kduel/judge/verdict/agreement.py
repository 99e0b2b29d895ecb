"""How likely conditions agree by chance: on exact CPUs a scheduler decides otherwise from the least cause, so conditions are a sample."""

import math
from collections.abc import Callable
from itertools import count

from kduel.core.text import plural
from kduel.judge.verdict.spending import Floats


def lie_apart(before: Floats, after: Floats) -> bool:
    """True if all values of one contender lie above all of the other."""
    return bool(before.max() < after.min() or after.max() < before.min())


def chance_of_sign(number: int) -> float:
    """The chance that so many differences without a cause have one sign (the sign test)."""
    return 2.0 ** (1 - number)


def chance_apart(number: int) -> float:
    """The chance that so many values of each contender, without a cause, lie apart (Wilcoxon's rank sum)."""
    return 2 / math.comb(2 * number, number)


def chance_of(before: Floats, after: Floats) -> float:
    """The chance that differences of one sign have no cause, by the values under each condition."""
    several = len(before) > 1 and lie_apart(before, after)
    return chance_apart(len(before)) if several else chance_of_sign(len(before))


def chance_within(number: int) -> float:
    """The most chance that so many differences lie within delta where most conditions' do not: each does with one half at most."""
    return 2.0**-number


def fewest_deciding(alpha: float) -> tuple[int, int]:
    """The fewest conditions that decide by one sign, and if values lie apart."""
    return fewest(chance_of_sign, alpha), fewest(chance_apart, alpha)


def fewest(chance: Callable[[int], float], alpha: float) -> int:
    """The fewest conditions that agree by chance no more often than `alpha`."""
    return next(n for n in count(2) if chance(n) <= alpha)


def too_few(before: Floats, after: Floats, alpha: float) -> str:
    """Clause on what chance shows as often, and how many conditions decide; empty where it is rarer than `alpha`."""
    if (chance := chance_of(before, after)) <= alpha:
        return ""
    one_sign, apart = fewest_deciding(alpha)
    like = "their values lie apart" if len(before) > 1 and lie_apart(before, after) else "differences have one sign"
    said = f"under {plural(len(before), 'condition')} {like} by chance in one of {1 / chance:.0f} cases"
    return (
        f"{said if len(before) > 1 else 'under one condition any difference may be chance'}, and a verdict takes one of {1 / alpha:.0f}: "
        f"give {one_sign} conditions, or {apart} if the contenders' values lie apart"
    )


def too_few_within(number: int, alpha: float) -> str:
    """The same of differences that all lie within delta."""
    if (chance := chance_within(number)) <= alpha:
        return ""
    return (
        f"under {plural(number, 'condition')} differences stay within delta by chance in one of {1 / chance:.0f} cases, and a "
        f"verdict takes one of {1 / alpha:.0f}: give {fewest(chance_within, alpha)} conditions"
    )
