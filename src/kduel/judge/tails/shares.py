"""Shares of samples beyond a threshold, and quantiles, with intervals that respect the boot as the unit.

The samples of a boot are not independent of each other. The interval of a share is that of Clopper and Pearson for the number of
independent samples that would give the variance seen between boots, never more than there are (Korn and Graubard, Survey
Methodology, 1998): where boots do not differ it is the exact binomial interval, a little widened for the few boots that show it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from kduel.core.samples import Distribution
from kduel.core.tail_results import QuantileResult
from kduel.judge.verdict.spending import Floats, critical_t

FEWEST_BOOTS = 10
"""Fewer boots may all have missed a mode that every fourth boot is in."""
FOR_SKEWNESS = 0.5
"""Part of the level that boots use: shares are skewed, intervals too short (docs/evidence/tails.md)."""


class BootShares(NamedTuple):
    """Several boots over one axis of values."""

    values: Floats
    """Distinct values in rising order."""
    above: Floats
    """By boot and value: the share of the boot's samples above the value."""
    samples: Floats
    """By boot."""

    @property
    def total(self) -> int:
        return int(self.samples.sum())


def pool(boots: list[Distribution]) -> BootShares:
    """Boots on common values; what a boot counts beyond its last value stands at infinity."""
    values = np.unique(np.concatenate([np.asarray(boot.values, dtype=float) for boot in boots]))
    above = np.empty((len(boots), values.size))
    for row, boot in enumerate(boots):
        reached = np.concatenate([[0.0], np.cumsum(boot.counts)])
        above[row] = 1 - reached[np.searchsorted(boot.values, values, side="right")] / boot.samples
    return BootShares(values, np.clip(above, 0, 1), np.array([boot.samples for boot in boots], dtype=float))


def share_interval(shares: Floats, samples: Floats, level: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Mean share of the boots with its interval at 1 - `level`; `shares` are by boot (first axis) and threshold."""
    boots, total = shares.shape[0], float(samples.sum())
    mean = shares.mean(axis=0)
    variance = shares.var(axis=0, ddof=1) / boots
    with np.errstate(divide="ignore", invalid="ignore"):
        independent = np.where(variance > 0, mean * (1 - mean) / variance, total)
    few = (critical_t(level, total - 1) / critical_t(FOR_SKEWNESS * np.asarray(level), boots - 1)) ** 2
    count = np.minimum(independent, total) * few
    hits = count * mean
    half = np.asarray(level) / 2
    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1e-12), np.maximum(count - hits + 1, 1e-12), half), 0.0)
    rest = count - hits
    high = np.where(rest > 1e-9, betaincinv(hits + 1, np.maximum(rest, 1e-9), 1 - half), 1.0)
    return mean, low, high


def quantiles(found: BootShares, shares: Sequence[float], level: float) -> list[QuantileResult]:
    """Values that these shares of all samples do not exceed: of the mean distribution over boots, each counted once. The interval holds
    the thresholds whose share of samples above is not shown to be another."""
    if found.samples.size < FEWEST_BOOTS:
        return [QuantileResult(share=share, value=None, low=None, high=None) for share in shares]
    mean, low, high = share_interval(found.above, found.samples, level)

    def first(reached: np.ndarray) -> float | None:
        return float(found.values[int(np.argmax(reached))]) if reached.any() else None

    result = []
    for share in shares:
        rest = (1 - share) * (1 + 1e-12)
        value, least, most = ends = first(mean <= rest), first(low <= rest), first(high <= rest)
        if None in ends:
            value = least = most = None
        result.append(QuantileResult(share=share, value=value, low=least, high=most))
    return result
