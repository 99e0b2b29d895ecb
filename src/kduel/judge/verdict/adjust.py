"""Estimates at each look: the mean difference and its standard error, plain or adjusted for what is known of a pair.
Arrays have any leading axes (simulated runs), then one of pairs or looks."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kduel.judge.verdict.spending import Floats

SINGULAR = 1e-9
"""A covariate of which the others explain all but this share of its variation adds nothing."""
ROUNDED = 1e-13
"""Of the variation: what is left below this share is rounding."""


class Estimates(NamedTuple):
    """By look."""

    mean: Floats
    error: Floats
    """Standard error of the mean."""
    freedom: Floats
    """Degrees of freedom of the error."""

    def spread(self, pairs: Sequence[int]) -> Floats:
        """The standard deviation of single differences that would give the plain mean this error."""
        spread: Floats = self.error * np.sqrt(np.asarray(pairs, dtype=float))
        return spread


def estimates(
    differences: Floats, covariates: Sequence[Floats], pairs: Sequence[int], adjust_from: int | None
) -> Estimates:
    """Estimates from the first `pairs[k]` differences, for each look k: adjusted for `covariates` from `adjust_from` pairs on."""
    found = plain_means(differences, pairs)
    if not covariates or adjust_from is None or max(pairs, default=0) < adjust_from:
        return found
    use = np.asarray(pairs) >= adjust_from
    return Estimates(
        *(np.where(use, *both) for both in zip(adjusted_means(differences, covariates, pairs), found, strict=True))
    )


def plain_means(differences: Floats, pairs: Sequence[int]) -> Estimates:
    """The mean, with n - 1 degrees of freedom."""
    mean, sd = prefix_statistics(differences, pairs)
    count = np.asarray(pairs, dtype=float)
    return Estimates(mean, sd / np.sqrt(count), np.broadcast_to(count - 1, mean.shape))


def adjusted_means(differences: Floats, covariates: Sequence[Floats], pairs: Sequence[int]) -> Estimates:
    """The intercept of a linear regression, the difference where every covariate is 0, by Gaussian elimination of the
    centred cross-products. Each covariate costs a degree of freedom; one that is NaN, constant or a combination is
    left out."""
    last = np.asarray(pairs, dtype=int) - 1
    count = last + 1.0
    centre = differences.mean(axis=-1, keepdims=True)
    columns = [*(np.nan_to_num(column) for column in covariates), differences - centre]
    means = [np.cumsum(column, axis=-1)[..., last] / count for column in columns]
    products = [
        [np.cumsum(one * other, axis=-1)[..., last] - count * means[i] * means[j] for j, other in enumerate(columns)]
        for i, one in enumerate(columns)
    ]
    whole = [products[i][i] for i in range(len(columns))]
    leverage = 1 / count
    freedom = np.broadcast_to(count - 1, whole[-1].shape).copy()
    for i, column in enumerate(covariates):
        complete = np.logical_and.accumulate(np.isfinite(column), axis=-1)[..., last]
        kept = complete & (products[i][i] > SINGULAR * whole[i]) & (whole[i] > 0)
        pivot = np.where(kept, products[i][i], 1.0)
        leverage = leverage + np.where(kept, means[i] ** 2 / pivot, 0.0)
        freedom -= kept
        for j in range(i + 1, len(columns)):
            share = np.where(kept, products[i][j] / pivot, 0.0)
            means[j] = means[j] - share * means[i]
            for k in range(j, len(columns)):
                products[j][k] = products[j][k] - share * products[i][k]
    left = np.where(products[-1][-1] > ROUNDED * whole[-1], products[-1][-1], 0.0)
    even = is_constant(differences, pairs)
    variance = np.where(even, 0.0, left / np.maximum(freedom, 1.0))
    mean = np.where(even, differences[..., :1], means[-1] + centre)
    return Estimates(mean, np.sqrt(variance * leverage), np.maximum(freedom, 1.0))


def prefix_statistics(differences: Floats, pairs: Sequence[int]) -> tuple[Floats, Floats]:
    """Mean and sample standard deviation (ddof = 1) of the first `pairs[k]` differences, for each look k."""
    last = np.asarray(pairs, dtype=int) - 1
    count = last + 1.0
    centre = differences.mean(axis=-1, keepdims=True)
    centred = differences - centre
    mean = np.cumsum(centred, axis=-1)[..., last] / count
    squares = np.cumsum(centred**2, axis=-1)[..., last]
    variance = np.maximum(squares - count * mean**2, 0.0) / np.maximum(last, 1)
    # Rounding must not give a spread to what has none.
    even = is_constant(differences, pairs)
    return np.where(even, differences[..., :1], mean + centre), np.where(even, 0.0, np.sqrt(variance))


def is_constant(values: Floats, pairs: Sequence[int]) -> NDArray[np.bool_]:
    """True, for each look k, if the first `pairs[k]` values are all equal."""
    last = np.asarray(pairs, dtype=int) - 1
    same: NDArray[np.bool_] = np.logical_and.accumulate(values == values[..., :1], axis=-1)[..., last]
    return same
