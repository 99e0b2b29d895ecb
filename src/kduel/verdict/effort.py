"""What a verdict costs: what so many pairs could find, how many blocks more would decide, boots against iterations."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.special import nctdtrinc, stdtrit

from kduel.verdict.bounds import student_levels
from kduel.verdict.rule import FEWEST_PAIRS, Rule

POWER = 0.8
MOST_BLOCKS = 1_000_000


def detectable(sd: float, pairs: int, level: float, power: float = POWER) -> float | None:
    """The mean difference that a two-sided t test at `level` finds with `power`, in the unit of `sd`."""
    if pairs < 2:
        return None
    freedom = pairs - 1.0
    shift = float(nctdtrinc(freedom, 1 - power, -stdtrit(freedom, level / 2)))
    return sd / math.sqrt(pairs) * shift if math.isfinite(shift) else None


def reach(sd: float, pairs: int, level: float, power: float = POWER) -> float:
    """Half an interval and what chance may add to it with `power`: estimates nearer than this to a border of the
    region of equivalence, or to 0, are likely to stay undecided."""
    freedom = pairs - 1.0
    return float(stdtrit(freedom, power) - stdtrit(freedom, level / 2)) * sd / math.sqrt(pairs)


def fewest(enough: Callable[[int], bool], start: int) -> int | None:
    """The least number from `start` on that is enough; None where a million is not."""
    high = max(start, 2)
    while not enough(high):
        if high > MOST_BLOCKS:
            return None
        high *= 2
    low = max(start, 2, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low


def blocks_more(
    mean: float, sd: float, pairs: int, blocks: int, margin: float, rule: Rule, alpha: float
) -> int | None:
    """About how many more blocks would decide, if mean and spread are as the pairs so far say.

    First the looks that the rule still has, then a longer run's single look. A decision comes when half the interval
    falls below the distance to 0, or below the distance to the border of the region of equivalence (+-margin),
    whichever is farther.
    """
    if pairs < FEWEST_PAIRS:
        return None
    distance = max(abs(mean), margin - abs(mean))
    if not distance > 0:
        return None
    floor = FEWEST_PAIRS if abs(mean) >= margin - abs(mean) else rule.equivalent_from
    missed = blocks - pairs
    ahead = [look for look in rule.looks() if look > blocks]
    before = [look for look in rule.looks() if FEWEST_PAIRS <= look - missed <= pairs]
    looks = before + ahead
    levels = student_levels(alpha, looks, [look - missed for look in looks], rule.max_blocks).tolist()
    for look, level in list(zip(looks, levels, strict=True))[len(before) :]:
        if look - missed >= floor and reach(sd, look - missed, level) <= distance:
            return look - blocks
    last = levels[-1] if levels else alpha
    start = max(floor, pairs + (ahead[-1] - blocks if ahead else 0) + 1)
    total = fewest(lambda count: reach(sd, count, last) <= distance, start)
    return None if total is None else total - pairs
