"""The few probabilities that the checks need."""

from __future__ import annotations

import math

import numpy as np

from kduel.judge.lint.case import Floats


def t_two_sided(statistic: float, freedom: float) -> float:
    """The chance of Student's t that far from 0, either way."""
    from scipy.special import stdtr

    return float(2 * stdtr(freedom, -abs(statistic)))


def outlier(values: Floats) -> tuple[int, float]:
    """The value farthest from the mean, and the chance that a normal sample has one so far (Grubbs, by Bonferroni)."""
    count = values.size
    spread = values.std(ddof=1) if count > 2 else 0.0
    if spread == 0:  # also where squares of tiny differences underflow
        return 0, 1.0
    farthest = int(np.abs(values - values.mean()).argmax())
    square = float(((values[farthest] - values.mean()) / spread) ** 2)
    room = (count - 1) ** 2 - count * square
    if room <= 0:
        return farthest, 0.0
    statistic = math.sqrt(count * (count - 2) * square / room)
    return farthest, min(1.0, count * t_two_sided(statistic, count - 2))


def fisher(first: int, first_total: int, second: int, second_total: int) -> float:
    """Fisher's exact test, two-sided: shares of `first` in `first_total` and of `second` in `second_total`."""
    hits, total = first + second, first_total + second_total
    ways = math.comb(total, hits)

    def chance(count: int) -> float:
        return math.comb(first_total, count) * math.comb(second_total, hits - count) / ways

    seen = chance(first)
    possible = range(max(0, hits - second_total), min(first_total, hits) + 1)
    return min(1.0, sum(p for count in possible if (p := chance(count)) <= seen * (1 + 1e-9)))
