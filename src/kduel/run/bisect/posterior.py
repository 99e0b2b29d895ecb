"""The probability of each commit to be the culprit, given measurements in blocks.

The model: a measurement is the level of its block, plus the effect where the measured commit contains the culprit, plus
noise. Effect, spread of the noise and spread of the blocks' levels are unknown. For one possible culprit this is a
linear regression whose parameters integrate out in closed form: a flat prior for the level, Jeffreys' for the spread,
a normal one of SCALES spreads for the effect (Zellner and Siow 1980; Rouder et al. 2009 for the t-test). The ratio of
the blocks' variance to the noise's takes the values of RATIOS: with the largest, only differences inside a block count,
with 0 the blocks are alike. The data weigh both grids.

All of it is sums over blocks, so that a further measurement costs one pass over the commits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SCALES = np.array([0.5, 2.0, 8.0])[:, None, None]
"""Of the effect's prior, in spreads of one measurement: (scale, 1, 1)."""
RATIOS = np.array([0.0, 0.1, 1.0, 10.0, 1e3, 1e5])[:, None]
"""Variance of the blocks' levels over that of the noise: (ratio, 1)."""
SMALLEST_SPREAD = 1e-9
"""Of the noise, relative to the values: what a double holds is not exact."""


class Evidence(Struct, frozen=True, kw_only=True):
    """Probabilities of the culprit, and of there being a change at all."""

    probability: Floats
    """(commit,), sums to 1."""
    log_bayes: float
    """ln of the Bayes factor of one change between the ends, anywhere, against none."""


class Model:
    """Sums over the blocks so far, for each ratio and possible culprit.

    `resolution` is the step between neighbouring values of the metric, 0 where it is continuous.
    """

    def __init__(self, commits: int, resolution: float = 0.0) -> None:
        self.resolution = resolution
        self.offset: float | None = None
        self.count = 0
        shape = (len(RATIOS), commits)
        self.zz, self.zy, self.z1 = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.yy, self.y1, self.ones, self.volume = (np.zeros((len(RATIOS), 1)) for _ in range(4))

    def with_block(self, rows: Sequence[Floats], values: Sequence[float]) -> Model:
        """The model with one more block: for each measurement the commits that it contains, and its value."""
        more = Model.__new__(Model)
        more.resolution = self.resolution
        more.offset = values[0] if self.offset is None else self.offset
        z, y = np.array(rows), np.array(values) - more.offset
        size = len(y)
        shared = RATIOS / (1 + size * RATIOS)
        sum_z, sum_y = z.sum(axis=0), y.sum()
        more.count = self.count + size
        more.zz = self.zz + (z * z).sum(axis=0) - shared * sum_z**2
        more.zy = self.zy + y @ z - shared * sum_z * sum_y
        more.yy = self.yy + y @ y - shared * sum_y**2
        more.z1 = self.z1 + sum_z / (1 + size * RATIOS)
        more.y1 = self.y1 + sum_y / (1 + size * RATIOS)
        more.ones = self.ones + size / (1 + size * RATIOS)
        more.volume = self.volume + np.log1p(size * RATIOS)
        return more

    def evidence(self) -> Evidence:
        """The posterior given the measurements. Before the second one: all commits alike."""
        commits = self.zz.shape[1]
        if self.count < 2:
            return Evidence(probability=np.full(commits, 1 / commits), log_bayes=0.0)
        freedom = self.count - 1
        spread = max(self.resolution**2 / 12, (SMALLEST_SPREAD * abs(self.offset or 0.0)) ** 2, 1e-300)
        least = freedom * spread
        yy = np.maximum(self.yy - self.y1**2 / self.ones, 0)
        zy = self.zy - self.z1 * self.y1 / self.ones
        zz = np.maximum(self.zz - self.z1**2 / self.ones, 0)
        common = -0.5 * (self.volume + np.log(self.ones))
        none = common - 0.5 * freedom * np.log(yy + least)
        rest = np.maximum(yy - zy**2 / (zz + SCALES**-2), 0)
        change = common - 0.5 * np.log1p(SCALES**2 * zz) - 0.5 * freedom * np.log(rest + least)
        each = np.logaddexp.reduce(change.reshape(-1, commits), axis=0) - np.log(len(SCALES))
        weight = np.exp(each - each.max())
        bayes = each.max() + np.log(weight.mean()) - np.logaddexp.reduce(none.ravel())
        return Evidence(probability=weight / weight.sum(), log_bayes=float(bayes))
