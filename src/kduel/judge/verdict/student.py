"""Student's interval of a mean: for estimates that are reported next to verdicts, and for steps of a search."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from kduel.judge.verdict.spending import critical_t

REPORTED_LEVEL = 0.05
"""1 less the coverage of an interval that is reported as an estimate and gates nothing."""


def mean_interval(values: ArrayLike, level: float = REPORTED_LEVEL) -> tuple[float, float, float] | None:
    """The mean of independent values with both ends of the two-sided interval; None for fewer than two values.

    `values` has one axis; the ends are in the unit of the values.
    """
    array = np.asarray(values, dtype=float)
    if array.size < 2:
        return None
    mean = float(array.mean())
    half = float(critical_t(np.asarray(level), array.size - 1) * array.std(ddof=1) / math.sqrt(array.size))
    return mean, mean - half, mean + half
