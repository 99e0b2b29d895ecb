"""Trials without a value: whether the contender decides which ones, and which claims that forbids."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kduel.core.experiment import Aspect
from kduel.core.samples import Samples
from kduel.judge.verdict.classify import ABOVE, BELOW, WITHIN
from kduel.judge.verdict.comparison import Comparison
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.spending import Floats

COMMON = frozenset[Aspect](("power", "idle-power", "energy", "efficiency", "clock", "temperature"))
"""Aspects that contenders in turns have in common: one processor serves them all, and is warm from each of them."""
LEVEL = 0.05
ALL_OF_ONE_ARM = 2
"""So many missing values, all of one arm, count as dependent: Fisher's test needs five of twenty blocks to see it."""


class Missing(NamedTuple):
    missing: int
    trials: int


def missing(table: Samples, arm: str, values: Floats, blocks: Sequence[int]) -> Missing:
    """Number of trials of these blocks that were carried out, and of those with NaN in `values`. Void trials count, except
    those that never began; values beyond a histogram, which are not lost, do not."""
    gone = np.isnan(values) & ~np.isin(blocks, table.beyond.get(arm, []))
    if arm in table.order:
        position_of = dict(zip(table.blocks, table.order[arm], strict=False))
        carried_out = np.array([position_of.get(block) is not None for block in blocks], dtype=bool)
    else:
        carried_out = np.ones(gone.shape, dtype=bool)
    if arm in table.absent:
        absent = dict(zip(table.blocks, table.absent[arm], strict=True))
        carried_out &= np.array([not absent.get(block, False) for block in blocks], dtype=bool)
    return Missing(int((gone & carried_out).sum()), int(carried_out.sum()))


def missing_in(table: Samples, arm: str) -> Missing:
    """Missing values over all blocks of a table, as imported values are judged."""
    return missing(table, arm, np.array(table.values.get(arm, []), dtype=float), table.blocks)


def depends(first: Missing, second: Missing) -> str:
    """Evidence that missing values depend on the arm, or an empty string."""
    if first.trials and second.trials:
        chance = fisher(*first, *second)
        if chance < LEVEL:
            return f"Fisher's exact test: p = {chance:.2g}"
    if not min(first.missing, second.missing) and max(first.missing, second.missing) >= ALL_OF_ONE_ARM:
        return "all of one contender"
    return ""


def forbidden_by_missing(c: Comparison, side: int) -> str:
    """Reason of `forbidden`, over the blocks that count."""
    first = missing(c.table, c.baseline, c.before, c.blocks)
    counts = first, missing(c.table, c.contender, c.after, c.blocks)
    return forbidden(c.table, c.contender, counts, side, c.blocks)


def forbidden_by_turns(table: Samples, rule: Rule) -> str:
    """Reason why there is no verdict on what contenders in turns share; else empty."""
    if not rule.in_turns or table.metric.aspect not in COMMON:
        return ""
    return "the contenders took turns, so that heat, clock and power are those of all of them"


def forbidden(
    table: Samples, contender: str, counts: tuple[Missing, Missing], side: int, blocks: Sequence[int]
) -> str:
    """Reason why a verdict for this side must not be given, or an empty string. `counts` are the baseline's and the contender's, over
    `blocks`.

    What is missing may be what was slow, so that the arm that misses more looks better than it is: it may be called
    worse, but neither better nor equivalent; where no side is better, nothing may be called. What lies beyond a histogram
    is large: an arm with one such value may be called higher, if the other has none, and nothing else."""
    if reason := forbidden_by_beyond(table, contender, side, blocks):
        return reason
    first, second = counts
    evidence = depends(first, second)
    if not evidence:
        return ""
    higher = table.metric.better == "higher"
    of_contender = second.missing * first.trials > first.missing * second.trials
    worse = (BELOW if higher else ABOVE) if of_contender else (ABOVE if higher else BELOW)
    if side == worse and table.metric.better != "none" and side != WITHIN:
        return ""
    return (
        f"{second.missing} of {second.trials} trials of {contender} gave no value, and {first.missing} of "
        f"{first.trials} of {table.contenders[0]} ({evidence})"
    )


def forbidden_by_beyond(table: Samples, contender: str, side: int, blocks: Sequence[int]) -> str:
    """Reason why values beyond a histogram forbid a verdict for this side, or an empty string."""
    baseline = table.contenders[0]
    first, second = (len(set(blocks).intersection(table.beyond.get(arm, ()))) for arm in (baseline, contender))
    if not first + second or (side == ABOVE and not first) or (side == BELOW and not second):
        return ""
    return f"in {second} of {len(blocks)} blocks the value of {contender} lies beyond the histogram, and in {first} that of {baseline}"


def at_least(first: int, first_total: int, second: int, second_total: int) -> float:
    """Fisher's exact test, one-sided: the chance of `first` or more in `first_total`, given all hits of both."""
    hits = first + second
    return sum(
        hypergeometric(count, first_total, hits, second_total) for count in range(first, min(first_total, hits) + 1)
    )


def fisher(first: int, first_total: int, second: int, second_total: int) -> float:
    """Fisher's exact test, two-sided: shares of `first` in `first_total` and of `second` in `second_total`."""
    hits = first + second

    def chance(count: int) -> float:
        return hypergeometric(count, first_total, hits, second_total)

    seen = chance(first)
    possible = range(max(0, hits - second_total), min(first_total, hits) + 1)
    return min(1.0, sum(p for count in possible if (p := chance(count)) <= seen * (1 + 1e-9)))


def hypergeometric(count: int, first_total: int, hits: int, second_total: int) -> float:
    """The chance that `count` of `hits` fall among the first, when they fall anywhere alike."""
    ways = math.comb(first_total + second_total, hits)
    return math.comb(first_total, count) * math.comb(second_total, hits - count) / ways
