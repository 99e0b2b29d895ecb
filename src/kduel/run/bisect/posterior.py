"""The probability of each commit to be the culprit, given measurements in blocks.

The model: a measurement is the level of its block, plus the effect where the measured commit contains the culprit, plus
noise of Student's t with FREEDOM degrees of freedom, whose variance may change with the culprit by a factor of
VARIANCES. Effect, spread of the noise and spread of the blocks' levels are unknown. The priors: flat for the level,
Jeffreys' for the spread, normal with SCALES spreads for the effect (Zellner and Siow 1980; Rouder et al. 2009 for the
t-test). The ratio of the blocks' variance to the noise's takes the values of RATIOS: with the largest, only differences
inside a block count, with 0 the blocks are alike. The data weigh the grids.

For one culprit Student's density is bounded from below by normal ones of a precision of its own for each measurement
(Jaakkola and Jordan 2000). With these precisions, fitted in STEPS steps, all parameters integrate out in closed form.
Culprits that no measured commit tells apart have one likelihood, so that few are weighed, however long the history.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FREEDOM = 4.0
"""Degrees of freedom of the noise. With few degrees of freedom one value far off hardly counts; normal noise costs little more."""
STEPS = 5
VARIANCES = np.array([0.1, 1.0, 10.0])[:, None, None, None]
"""Variance of the noise after the culprit over that before it: (variance, 1, 1, 1)."""
RATIOS = np.array([0.0, 0.1, 1.0, 10.0, 1e3, 1e5])[:, None, None]
"""Variance of the blocks' levels over that of the noise before the culprit: (ratio, 1, 1)."""
SCALES = (0.5, 2.0, 8.0)
"""Scales of the effect's prior, in spreads of one measurement."""
SMALLEST_SPREAD = 1e-9
"""Spread of the noise, relative to the values: a double is not exact."""


class Evidence(Struct, frozen=True, kw_only=True):
    """Probabilities of the culprit, and of there being a change at all."""

    probability: Floats
    """(commit,), sums to 1."""
    log_bayes: float
    """ln of the Bayes factor of one change between the ends, anywhere, against none."""


class Sums(NamedTuple):
    """Squares and products for each variance, ratio and culprit, level fitted; `constant`: the log density's rest."""

    constant: Floats
    yy: Floats
    zy: Floats
    zz: Floats


class Model:
    """The measurements so far; `resolution` is the metric's step, 0 where it is continuous."""

    def __init__(self, commits: int, resolution: float = 0.0) -> None:
        self.resolution = resolution
        self.classes: NDArray[np.intp] = np.zeros(commits, dtype=np.intp)
        self.contained = np.zeros((1, 0))
        self.values: tuple[float, ...] = ()
        self.starts: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        return len(self.values)

    def with_block(self, rows: Sequence[Floats], values: Sequence[float]) -> Model:
        """The model with one more block: for each measurement the commits that it contains, and its value."""
        more = Model(len(self.classes), self.resolution)
        more.classes = self.classes
        for row in rows:
            more.classes = np.unique(2 * more.classes + row.astype(np.intp), return_inverse=True)[1]
        _, example = np.unique(more.classes, return_index=True)
        fresh = np.array(rows)[:, example].T
        more.contained = np.hstack([self.contained[self.classes[example]], fresh])
        more.values = (*self.values, *values)
        more.starts = (*self.starts, self.count)
        return more

    def evidence(self) -> Evidence:
        """The posterior given the measurements. Before the second one: all commits alike."""
        commits = len(self.classes)
        if self.count < 2:
            return Evidence(probability=np.full(commits, 1 / commits), log_bayes=0.0)
        size = np.bincount(self.classes)
        freedom = self.count - 1
        change, none = self.sums(SCALES[-1]), self.sums(0.0)
        free = none.constant - 0.5 * freedom * np.log(none.yy + self.least)
        each = []
        for scale in SCALES:
            rest = np.maximum(change.yy - change.zy**2 / (change.zz + scale**-2), 0) + self.least
            each.append(change.constant - 0.5 * np.log1p(scale**2 * change.zz) - 0.5 * freedom * np.log(rest))
        found = np.logaddexp.reduce(np.array(each).reshape(-1, len(size)), axis=0) - np.log(len(SCALES))
        weight = np.exp(found - found.max())
        without = np.logaddexp.reduce((free + np.log(size / commits)).ravel())
        bayes = found.max() + np.log(weight @ size / commits) - without
        return Evidence(probability=(weight / (weight @ size))[self.classes], log_bayes=float(bayes))

    @property
    def least(self) -> float:
        """The sum of squares that the values' resolution alone leaves."""
        spread = max(self.resolution**2 / 12, (SMALLEST_SPREAD * abs(self.values[0])) ** 2, 1e-300)
        return (self.count - 1) * spread

    def sums(self, scale: float) -> Sums:
        """The sums at the precisions that fit best, with an effect of the prior `scale`; 0 for no effect."""
        y, z = np.array(self.values) - self.values[0], self.contained
        variance = np.where(z > 0, VARIANCES, 1.0)
        volume = np.log(variance).sum(axis=-1)
        weight = np.ones((len(VARIANCES), len(RATIOS), *z.shape))
        lengths = np.diff((*self.starts, self.count))

        def total(values: Floats) -> Floats:
            summed: Floats = np.add.reduceat(values, self.starts, axis=-1)
            return summed

        for step in range(STEPS + 1):
            precision = weight / variance
            p1, py, pz = precision, precision * y, precision * z
            b1, by, bz = total(p1), total(py), total(pz)
            shared = RATIOS / (1 + RATIOS * b1)
            ones, y1, z1 = ((b * (1 - shared * b1)).sum(axis=-1) for b in (b1, by, bz))
            yy = (py @ y) - (shared * by * by).sum(axis=-1) - y1 * y1 / ones
            zy = (pz @ y) - (shared * by * bz).sum(axis=-1) - y1 * z1 / ones
            zz = (pz * z).sum(axis=-1) - (shared * bz * bz).sum(axis=-1) - z1 * z1 / ones
            yy, zz = np.maximum(yy, 0), np.maximum(zz, 0)
            if step == STEPS:
                break
            effect = zy / (zz + scale**-2) if scale else np.zeros_like(zy)
            spread = (np.maximum(yy - effect * zy, 0) + self.least) / self.count
            level = (y1 - effect * z1) / ones
            error = y - level[..., None] - effect[..., None] * z
            error -= np.repeat(shared * total(precision * error), lengths, axis=-1)
            weight = (FREEDOM + 1) / (FREEDOM + error**2 / (variance * spread[..., None]))
        bound = (FREEDOM + 1) * np.log((FREEDOM + 1) / (FREEDOM * weight)) - (FREEDOM + 1) + FREEDOM * weight
        blocks = np.log1p(RATIOS * b1).sum(axis=-1)
        constant = -0.5 * (volume + blocks + np.log(ones) + bound.sum(axis=-1))
        return Sums(constant, yy, zy, zz)
