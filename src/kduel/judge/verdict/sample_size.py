"""Sample size: minimum detectable effects, blocks still needed for a verdict, boots against iterations."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import Struct
from scipy.special import chdtri, nctdtrinc, stdtrit

from kduel.judge.verdict.classify import WITHIN, deciding_half
from kduel.judge.verdict.comparison import Comparison, log_ratios, margin
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.spending import student_levels

POWER = 0.8
EITHER_POWER = 1 - (1 - POWER) / 2
"""Equivalence can be missed on both sides, so that each may cost half of what power leaves over."""
SURE = 0.8
"""How sure the upper bound of a pilot's spread is."""
MOST_BLOCKS = 1_000_000
MOST_ITERATIONS = 100
LEVELS_UP_TO = 200
INTERACTION = "ratio"
"""The unit of an interaction: its arms are ratios already."""
FEWEST_FOR_SPREAD = 5
"""Pairs without which a pilot has no estimate of the spread."""


def detectable(error: float, freedom: float, level: float, power: float = POWER) -> float | None:
    """The mean difference that a two-sided t test at `level` finds with `power`, in the unit of `error`, which is the
    standard error of the mean, known with so many degrees of freedom."""
    shift = float(nctdtrinc(freedom, 1 - power, -stdtrit(freedom, level / 2)))
    return error * shift if math.isfinite(shift) else None


def reach(sd: float, pairs: int, level: float, power: float = POWER, share: float = 1.0) -> float:
    """Half an interval and what chance may add to it with `power`: estimates nearer than this to a border of the
    region of equivalence, or to 0, are likely to stay undecided. `share` of the pairs' degrees of freedom counts."""
    freedom = max(share * (pairs - 1.0), 1.0)
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
    mean: float,
    sd: float,
    pairs: int,
    blocks: int,
    margin: float,
    rule: Rule,
    alpha: float,
    only: int | None = None,
    share: float = 1.0,
) -> int | None:
    """About how many more blocks would decide, at the mean and spread of the pairs so far; as the side `only`, where an
    earlier look has decided. `share` of the degrees of freedom counts: less than 1 where one of several machines is noisier.

    First the looks that the rule still has, then a longer run's single look. A decision comes when half the interval
    falls below the distance to 0, or below the distance to the border of the region of equivalence (+-margin),
    whichever is farther."""
    if pairs < rule.fewest:
        return None
    distance, side = deciding_half(mean, margin, only)
    if not distance > 0:
        return None
    floor = rule.equivalent_from if side == WITHIN else rule.fewest
    missed = blocks - pairs
    ahead = [look for look in rule.looks() if look > blocks]
    before = [look for look in rule.looks() if rule.fewest <= look - missed <= pairs]
    looks = before + ahead
    levels = student_levels(alpha, looks, [look - missed for look in looks], rule.max_blocks).tolist()
    for look, level in list(zip(looks, levels, strict=True))[len(before) :]:
        if look - missed >= floor and reach(sd, look - missed, level, share=share) <= distance:
            return look - blocks
    last = levels[-1] if levels else alpha
    start = max(floor, pairs + (ahead[-1] - blocks if ahead else 0) + 1)
    total = fewest(lambda count: reach(sd, count, last, share=share) <= distance, start)
    return None if total is None else total - pairs


class VerdictCost(Struct, kw_only=True):
    """Cost of a verdict at delta for one metric of one contender. Blocks are what to give as --max-blocks."""

    benchmark: str
    metric: str
    contender: str
    pairs: int
    """Complete pairs of the pilot; where nothing pairs its values, those of the arm that has fewer."""
    paired: bool = True
    spread_pct: float
    """Standard deviation of the paired ratio."""
    spread_high_pct: float
    """What it may well be (upper bound at 80 %): a pilot of few pairs estimates the spread badly."""
    no_difference: int | None
    """Blocks that find "equivalent" with 80 % power if there is no difference; null beyond a million."""
    no_difference_safe: int | None
    """The same if the spread is as high as it may well be."""
    delta_difference: int | None
    """Blocks that find a difference as large as delta with 80 % power."""
    interaction: int | None = None
    """Blocks that find an interaction as large as delta with 80 % power, in a study that crosses the pair with a factor of two
    levels: a difference of two such differences. null for what is one already."""
    delta_reached_pct: float
    """The smallest delta for which the rule's own maximum of blocks would do."""
    seen_effect: int | None = None
    """Blocks of which a run like the pilot, at its effect and spread, is decided; null where it is decided, or no number is
    enough. Reports state these less the blocks that are there."""
    seconds: float | None = None
    """For `no_difference` blocks; null where the duration of a block was not given."""


def reachable_delta_pct(c: Comparison, alpha: float) -> float | None:
    """The smallest delta for which the rule's maximum of blocks would do at the measured spread; None without ratios."""
    sd, _ = ratio_spread(c)
    if sd is None:
        return None
    level = last_level(c.rule, alpha, c.rule.max_blocks)
    return 100 * math.expm1(min(reach(sd, max(c.rule.max_blocks, 2), level, EITHER_POWER), 700))


def cost(c: Comparison, alpha: float, seconds_per_block: float | None = None) -> VerdictCost | None:
    """The cost of a verdict, by the pairs that are there as a pilot; None where they give no spread of ratios."""
    sd, pairs = ratio_spread(c)
    if sd is None:
        return None
    high = sd * math.sqrt((pairs - 1) / float(chdtri(pairs - 1, SURE)))
    border = margin("ratio", c.rule)
    none = blocks_for(sd, border, c.rule, alpha, EITHER_POWER, c.rule.equivalent_from)
    return VerdictCost(
        benchmark=c.table.benchmark, metric=c.table.metric.name, contender=c.contender, pairs=pairs,
        paired=c.table.paired, spread_pct=100 * sd, spread_high_pct=100 * high, no_difference=none,
        no_difference_safe=blocks_for(high, border, c.rule, alpha, EITHER_POWER, c.rule.equivalent_from),
        delta_difference=blocks_for(sd, border, c.rule, alpha, POWER, c.rule.fewest),
        interaction=None
        if c.table.metric.unit == INTERACTION
        else blocks_for(math.sqrt(2) * sd, border, c.rule, alpha, POWER, c.rule.fewest),
        delta_reached_pct=reachable_delta_pct(c, alpha) or 0.0,
        seconds=None if seconds_per_block is None or none is None else none * seconds_per_block,
    )  # fmt: skip


def ratio_spread(c: Comparison) -> tuple[float | None, int]:
    """The standard deviation of the ratio within a block of a coming run, at most that of independent ratios where
    nothing pairs the pilot's values, and their number; None below FEWEST_FOR_SPREAD or if not positive."""
    arms = list(c.pairs) if c.table.paired else [values[~np.isnan(values)] for values in (c.before, c.after)]
    pairs = min(arm.size for arm in arms)
    if pairs < FEWEST_FOR_SPREAD or any((arm <= 0).any() for arm in arms):
        return None, pairs
    if c.table.paired:
        return float(log_ratios(*arms).std(ddof=1)), pairs
    return math.sqrt(sum(float(np.log(arm).var(ddof=1)) for arm in arms)), pairs


def blocks_for(sd: float, border: float, rule: Rule, alpha: float, power: float, least: int) -> int | None:
    """The least maximum of blocks whose last look reaches `border` with `power`."""
    total: int | None = least
    for _ in range(3):
        level = last_level(rule, alpha, total or LEVELS_UP_TO)
        total = fewest(partial(reaches, sd, border, level, power), least)
    return total


def reaches(sd: float, border: float, level: float, power: float, pairs: int) -> bool:
    return reach(sd, pairs, level, power) <= border


def last_level(rule: Rule, alpha: float, blocks: int) -> float:
    """The nominal level of the last look of a run of so many blocks; it hardly changes beyond LEVELS_UP_TO."""
    if rule.first_look == rule.max_blocks:
        return alpha
    looks = msgspec.structs.replace(rule, max_blocks=min(blocks, LEVELS_UP_TO)).looks()
    return float(student_levels(alpha, looks, looks, looks[-1])[-1])


class Parts(NamedTuple):
    """Variation of a metric between boots, and between iterations of one boot, as shares of its mean."""

    between: float
    within: float
    boots: int
    iterations: float
    """Per boot, on average."""


def variance_parts(boots: Sequence[Sequence[float]]) -> Parts | None:
    """Split the variation of one arm, each boot's iterations, into relative standard deviations: unbiased analysis of
    variance on logarithms (Kalibera and Jones, 2013). None where a part cannot be estimated."""
    logs = [np.log(values) for values in boots if len(values) and min(values) > 0]
    counts = np.array([len(values) for values in logs])
    if len(logs) < 2 or len(logs) < sum(bool(len(values)) for values in boots) or counts.max() < 2:
        return None
    total = counts.sum()
    means = np.array([values.mean() for values in logs])
    within = sum(float(((values - values.mean()) ** 2).sum()) for values in logs) / (total - len(logs))
    grand = float((counts * means).sum() / total)
    between = float((counts * (means - grand) ** 2).sum()) / (len(logs) - 1)
    typical = (total - float((counts**2).sum()) / total) / (len(logs) - 1)
    return Parts(
        between=math.sqrt(max(0.0, (between - within) / typical)),
        within=math.sqrt(within),
        boots=len(logs),
        iterations=float(counts.mean()),
    )


def pool_parts(arms: Sequence[Parts]) -> Parts:
    """Several arms as one: the root mean squares of their parts."""
    return Parts(
        between=math.sqrt(sum(arm.between**2 for arm in arms) / len(arms)),
        within=math.sqrt(sum(arm.within**2 for arm in arms) / len(arms)),
        boots=sum(arm.boots for arm in arms),
        iterations=sum(arm.iterations for arm in arms) / len(arms),
    )


def best_iterations(parts: Parts, boot_seconds: float, iteration_seconds: float) -> int:
    """Number of iterations in each boot that gives the narrowest interval for a time: the root of the ratios of costs
    and of variances within and between; MOST_ITERATIONS where boots do not differ at all."""
    if parts.between == 0 or iteration_seconds <= 0:
        return MOST_ITERATIONS
    best = math.sqrt(boot_seconds / iteration_seconds) * parts.within / parts.between
    return max(1, min(MOST_ITERATIONS, math.ceil(best)))


def boot_spread(parts: Parts, iterations: int) -> float:
    """The standard deviation of a boot's mean over so many iterations, as a share of the mean."""
    return math.sqrt(parts.between**2 + parts.within**2 / iterations)


class Division(Struct, kw_only=True):
    """Boots against iterations within a boot, for one metric over all arms. What needs the time that a boot and an
    iteration take is null where that is not given; `blocks` and `seconds` are for a verdict where nothing differs."""

    metric: str
    boots: int
    iterations: float
    between_boots_pct: float
    within_boots_pct: float
    best_iterations: int | None = None
    blocks: int | None = None
    seconds: float | None = None


def divide(
    metric: str,
    arms: Sequence[Sequence[Sequence[float]]],
    rule: Rule,
    alpha: float,
    boot_seconds: float | None,
    iteration_seconds: float | None,
) -> Division | None:
    """Division of the time: `arms` has boots, each a list of iterations. None without two, or if not positive."""
    known = [parts for parts in map(variance_parts, arms) if parts is not None]
    if not known:
        return None
    parts = pool_parts(known)
    found = Division(
        metric=metric,
        boots=parts.boots,
        iterations=parts.iterations,
        between_boots_pct=100 * parts.between,
        within_boots_pct=100 * parts.within,
    )
    if boot_seconds is not None and iteration_seconds is not None:
        found.best_iterations = best_iterations(parts, boot_seconds, iteration_seconds)
        spread = math.sqrt(2) * boot_spread(parts, found.best_iterations)
        found.blocks = blocks_for(spread, margin("ratio", rule), rule, alpha, EITHER_POWER, rule.equivalent_from)
        if found.blocks is not None:
            each = boot_seconds + found.best_iterations * iteration_seconds
            found.seconds = found.blocks * len(arms) * each
    return found
