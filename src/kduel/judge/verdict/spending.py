"""Group-sequential bounds by alpha spending: how extreme a look must be.

Of the two-sided alpha a rule has spent alpha * t**2 when the fraction t of its blocks is there (the power family of
Kim and DeMets, 1987, with rho = 2; Lan and DeMets, 1983, for the principle). Each side of the test spends half. The
bounds follow by the recursion of Armitage, McPherson and Rowe (1969): the density of the sum of standard normal
differences that no look has stopped yet is carried from look to look on a grid.

Spending follows the blocks of the plan, information the complete pairs: a void trial changes neither the number of
looks nor the alpha of a look, only how much the looks have in common."""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri, stdtrit

Floats = NDArray[np.float64]

RHO = 2.0
STEPS_PER_SD = 4.0
"""Grid steps in the standard deviation of the smallest gain of information. The trapezoid's error within is far
below 1e-9 by then; what remains comes from the end, and Gregory's weights see to that."""
GREGORY = np.array([95 / 288, 317 / 240, 23 / 30, 793 / 720, 157 / 160])
PRECISION = 1e-9
REACH = 8.0
"""Standard deviations beyond which a normal density is nothing."""


def normal_levels(alpha: float, looks: Sequence[int], pairs: Sequence[float], max_blocks: int) -> Floats:
    """Per look, the two-sided level of a plain z test that together keep `alpha`. `looks` are numbers of blocks,
    `pairs` the complete ones (not falling); a look without a new pair has the level of the one before."""
    seen: dict[float, float] = {}
    for blocks, count in zip(looks, pairs, strict=True):
        # The part of alpha that may be used up by then.
        seen.setdefault(count, alpha * math.pow(min(blocks / max_blocks, 1.0), RHO))
    bounds = one_sided_bounds(tuple(seen), tuple(total / 2 for total in seen.values()))
    level = dict(zip(seen, 2.0 * ndtr(-np.array(bounds)), strict=True))
    return np.array([level[count] for count in pairs])


def student_levels(alpha: float, looks: Sequence[int], pairs: Sequence[int], max_blocks: int) -> Floats:
    """Levels as of `normal_levels`, for t tests.

    The t statistics of neighbouring looks have less in common than z statistics, the less the farther out they are.
    Near a bound of z they behave as if n pairs held the information of n exp(-z**2 / 2n). Without that the looks
    together give 10 to 25 % more false alarms than alpha, with it alpha to within about 3 %
    (perf/verdict_calibration.py)."""
    return known_levels(alpha, tuple(looks), tuple(pairs), max_blocks)


@lru_cache(maxsize=4096)
def known_levels(alpha: float, looks: tuple[int, ...], pairs: tuple[int, ...], max_blocks: int) -> Floats:
    """Cached `student_levels`, as most metrics of a run have the same looks. Not to be written to."""
    count = np.asarray(pairs, dtype=float)
    normal = ndtri(normal_levels(alpha, looks, pairs, max_blocks) / 2)
    information = np.maximum.accumulate(count * np.exp(-(normal**2) / (2 * count)))
    levels = normal_levels(alpha, looks, [round(value, 9) for value in information.tolist()], max_blocks)
    levels.flags.writeable = False
    return levels


def critical_t(levels: ArrayLike, freedom: ArrayLike) -> Floats:
    """The quantile of Student's t that a two-sided test at these levels needs, with so many degrees of freedom."""
    quantile: Floats = -stdtrit(np.asarray(freedom, dtype=float), np.asarray(levels, dtype=float) / 2)
    return quantile


@lru_cache(maxsize=4096)
def one_sided_bounds(information: tuple[float, ...], total: tuple[float, ...]) -> tuple[float, ...]:
    """Upper bounds in z that are first crossed with probability `total` by each look; `information` rises."""
    if not information:
        return ()
    gains = np.diff(np.array(information))
    # The grid may grow coarser as the looks go on, never finer.
    steps = np.sqrt(np.minimum.accumulate(np.append(gains, information[-1])[::-1])[::-1]) / STEPS_PER_SD
    sd, step = math.sqrt(information[0]), min(float(steps[0]), math.sqrt(information[0]) / STEPS_PER_SD)
    bound = -float(ndtri(total[0])) * sd
    sums = grid(bound, bound + REACH * sd, step)
    density: Floats = np.exp(-0.5 * (sums / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
    bounds = [bound / sd]
    for look in range(1, len(information)):
        density[: GREGORY.size] *= GREGORY
        sd, gain_sd = math.sqrt(information[look]), math.sqrt(gains[look - 1])
        before, bound = bound, crossing(sums, density * step, gain_sd, total[look] - total[look - 1], bounds[-1] * sd)
        bounds.append(bound / sd)
        reach = int((REACH * gain_sd + abs(bound - before)) / step) + 1
        kernel = np.exp(-0.5 * ((bound - before - step * np.arange(-reach, reach + 1)) / gain_sd) ** 2)
        carried = np.convolve(density, kernel * (step / (gain_sd * np.sqrt(2 * np.pi))))[reach:]
        while 2 * step <= steps[look]:
            carried, step = carried[::2], 2 * step
        sums = grid(bound, bound + REACH * sd, step)[: carried.size]
        density = carried[: sums.size].copy()
    return tuple(bounds)


def grid(top: float, depth: float, step: float) -> Floats:
    """Points from `top` downwards over `depth`, and a few more for the weights of the end."""
    points: Floats = top - step * np.arange(int(depth / step) + GREGORY.size, dtype=np.float64)
    return points


def crossing(sums: Floats, weights: Floats, gain_sd: float, probability: float, guess: float) -> float:
    """The bound that a walk, now at `sums` with `weights`, passes with `probability` in one more normal step."""
    near = sums > sums[0] - 2 * REACH * gain_sd
    sums, weights = sums[near], weights[near]
    low, high = float(sums[0]) - 2 * REACH * gain_sd, float(sums[0]) + 40 * gain_sd
    bound = float(min(max(guess, low), high))
    for _ in range(200):
        distance = (sums - bound) / gain_sd
        beyond = float(weights @ ndtr(distance))
        slope = float(weights @ np.exp(-0.5 * distance**2)) / (gain_sd * math.sqrt(2 * math.pi))
        low, high = (bound, high) if beyond > probability else (low, bound)
        # Newton's step on the logarithm, which is nearly a parabola in the tail; halving where it leaves the bracket.
        newton = bound + math.log(beyond / probability) * beyond / slope if beyond > 0 < slope else math.inf
        if abs(newton - bound) < PRECISION * gain_sd or high - low < PRECISION * gain_sd:
            break
        bound = newton if low < newton < high else (low + high) / 2
    return bound


REPORTED_LEVEL = 0.05
"""1 less the coverage of an interval that is reported as an estimate and gates nothing."""


def mean_interval(values: ArrayLike, level: float = REPORTED_LEVEL) -> tuple[float, float, float] | None:
    """The mean of independent values (one axis) with its two-sided interval; None for fewer than two values."""
    array = np.asarray(values, dtype=float)
    if array.size < 2:
        return None
    mean = float(array.mean())
    half = float(critical_t(np.asarray(level), array.size - 1) * array.std(ddof=1) / math.sqrt(array.size))
    return mean, mean - half, mean + half
