"""Classification of an interval: the one place that decides between higher, lower, within delta and undecided.
Numbers are on a comparison's own scale (logarithms for a ratio); arrays may have any shape."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kduel.core.experiment import Better
from kduel.core.metric_results import Scale, Verdict

ABOVE, BELOW, WITHIN, UNDECIDED = 1, -1, 0, 2

ROUNDED = 1 + 1e-12
"""Times a margin: a value of exactly +-delta lies within it, however its logarithm is rounded."""

Sides = NDArray[np.int_]
Floats = NDArray[np.float64]


def supports(side: ArrayLike, low: ArrayLike, high: ArrayLike, margin: ArrayLike) -> NDArray[np.bool_]:
    """True if an interval still shows what was decided: lies within +-margin, or excludes 0 on that side."""
    low, high, margin = np.asarray(low), np.asarray(high), np.asarray(margin)
    within = (np.maximum(-low, high) <= margin * ROUNDED) & (margin > 0)
    found: NDArray[np.bool_] = np.select(
        [np.equal(side, WITHIN), np.equal(side, ABOVE), np.equal(side, BELOW)], [within, low > 0, high < 0], False
    )
    return found


def classify(
    low: ArrayLike, high: ArrayLike, margin: ArrayLike, pairs: ArrayLike, fewest: int, equivalent_from: int
) -> Sides:
    """WITHIN where the interval lies within +-margin, else ABOVE or BELOW where it excludes 0, else UNDECIDED.
    Nothing is decided below `fewest` pairs, WITHIN not below `equivalent_from`."""
    count = np.asarray(pairs)
    found: Sides = np.select(
        [
            supports(WITHIN, low, high, margin) & (count >= equivalent_from),
            supports(ABOVE, low, high, margin) & (count >= fewest),
            supports(BELOW, low, high, margin) & (count >= fewest),
        ],
        [WITHIN, ABOVE, BELOW],
        UNDECIDED,
    )
    return found


def deciding_means(half: Floats, margin: ArrayLike) -> tuple[Floats, Floats]:
    """For intervals of this half-width around an estimate: beyond which absolute estimate they exclude 0, and up to
    which they lie within +-margin (negative: never). `supports`, solved for the estimate; predictions use it."""
    return half, np.asarray(margin) - half


def deciding_half(mean: float, margin: float, only: int | None = None) -> tuple[float, int]:
    """The half-width below which an interval around `mean` decides, and as which side; as `only`, where nothing else can be
    decided. `supports`, solved for the half-width; estimates of a sample size use it."""
    if only is not None:
        return {ABOVE: mean, BELOW: -mean, WITHIN: margin - abs(mean)}[only], only
    excludes, lies_within = abs(mean), margin - abs(mean)
    if lies_within > excludes:
        return lies_within, WITHIN
    return excludes, ABOVE if mean > 0 else BELOW


def verdict(scale: Scale, side: int, better: Better) -> Verdict:
    if side == UNDECIDED:
        return "undecided"
    if side == WITHIN:
        return "equal" if scale == "exact" else "equivalent"
    if better == "none":
        return "different" if scale == "exact" else "higher" if side == ABOVE else "lower"
    return "faster" if (side == ABOVE) == (better == "higher") else "slower"


class Discoveries(NamedTuple):
    """Result of Benjamini and Hochberg's procedure for many p-values."""

    level: float
    """The level of the intervals that belong to it: with R of m called, 1 - alpha R/m (Benjamini and Yekutieli,
    2005). Such an interval excludes 0 exactly where the procedure calls the metric."""
    q_values: list[float | None]
    """By metric, in the order given."""


def benjamini_hochberg(p_values: Sequence[float | None], alpha: float) -> Discoveries:
    """The procedure over those that have a p-value."""
    ranked = sorted(p for p in p_values if p is not None)
    count = len(ranked)
    called = max((place for place, p in enumerate(ranked, 1) if p <= alpha * place / count), default=0)
    least = 1.0
    q_of: dict[float, float] = {}
    for place in range(count, 0, -1):
        least = min(least, ranked[place - 1] * count / place)
        q_of.setdefault(ranked[place - 1], least)
    return Discoveries(alpha * max(called, 1) / max(count, 1), [None if p is None else q_of[p] for p in p_values])
