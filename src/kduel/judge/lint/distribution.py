"""How values are spread: ties, steps, two modes, and the maximum as a metric."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from kduel.core.results import Warning_
from kduel.judge.lint.case import Case, Floats, amount, short
from kduel.judge.verdict.comparison import TIME_UNITS

TIED = 0.5
COARSE = 0.1
FEWEST = 4
FEWEST_FOR_MODES = 6
LEAST_SHARE = 0.2
"""Of the values that the smaller mode holds: fewer are outliers."""
APART = 4.0
"""Modes that are nearer than so many standard deviations are no two modes, however many values there are."""
NORMAL_99 = ((6, 7.92), (7, 6.9), (8, 6.22), (10, 5.36), (12, 4.84), (15, 4.48), (20, 4.10), (25, APART))
"""By number of values: what `separation` exceeds in 1 % of normal samples (40,000 simulated each;
tests/lint/test_false_alarms.py holds it to that)."""


def ties(case: Case) -> Iterator[Warning_]:
    """Where half of an arm's values are one and the same, or the scale's step is above 10 % of the median."""
    if case.steady and case.metric.unit not in TIME_UNITS:
        return
    for arm in case.arms:
        found, counts = np.unique(arm.values, return_counts=True)
        if arm.values.size >= FEWEST and counts.max() >= TIED * arm.values.size:
            most = counts.argmax()
            yield Warning_(
                code="ties",
                message=f"{counts[most]} of {arm.values.size} values of {arm.name} are "
                f"{amount(found[most], case.metric.unit)}: the metric hardly moves, and intervals from it are not to be trusted. Measure it "
                "for longer, or count something that happens more often.",
            )
            return
    values = np.concatenate([arm.values for arm in case.arms])
    median = float(np.median(values))
    distinct = np.unique(values)
    if values.size >= 2 * FEWEST and 1 < distinct.size < values.size and median > 0:
        step = float(np.diff(distinct).min())
        if step > COARSE * median:
            yield Warning_(
                code="quantised",
                message=f"The values come in steps of {amount(step, case.metric.unit)}, {100 * step / median:.0f} % of "
                f"the median {short(median)}: smaller differences cannot be seen. Measure it for longer or in a finer unit.",
            )


def maximum(case: Case) -> Iterator[Warning_]:
    """A maximum as the metric."""
    if case.metric.statistic == "max":
        yield Warning_(
            code="maximum",
            message="This is a maximum: one sample decides it, and it grows with the time measured. Compare the 99th or "
            "99.9th percentile, and show the maximum beside.",
        )


def two_modes(case: Case) -> Iterator[Warning_]:
    """An arm whose boots fall into two groups far apart."""
    if case.steady:
        return
    for arm in case.arms:
        found = modes(arm.values)
        if found is not None:
            low, high = found
            yield Warning_(
                code="two-modes",
                message=f"The trials of {arm.name} fall into two groups: {low.size} around {short(low.mean())} and "
                f"{high.size} around {amount(high.mean(), case.metric.unit)}. Something is decided anew at each boot "
                "(placement in memory, clock source, interrupts): find it in the environments, or measure more blocks.",
            )


def modes(values: Floats) -> tuple[Floats, Floats] | None:
    """The two groups of a sample that is not one; None for one group."""
    if values.size < FEWEST_FOR_MODES or np.unique(values).size < FEWEST:
        return None
    ordered = np.sort(values)
    cut, apart = separation(ordered)
    needed = float(np.interp(ordered.size, *np.array(NORMAL_99).T))
    return (ordered[:cut], ordered[cut:]) if apart > needed else None


def separation(ordered: Floats) -> tuple[int, float]:
    """The best cut of sorted values, and by how many standard deviations the means of its parts differ.

    The larger deviation counts, a part's own or that within both: the long tail of one crooked group is no second one.
    """
    count = ordered.size
    least = max(2, math.ceil(LEAST_SHARE * count))
    cuts = np.arange(least, count - least + 1)
    rests = count - cuts
    centred = ordered - ordered.mean()
    sums, squares = np.cumsum(centred), np.cumsum(centred**2)
    lower, lower_squares = sums[cuts - 1], squares[cuts - 1]
    upper, upper_squares = sums[-1] - lower, squares[-1] - lower_squares
    parts = lower_squares - lower**2 / cuts, upper_squares - upper**2 / rests
    variances = np.array([parts[0] / (cuts - 1), parts[1] / (rests - 1), (parts[0] + parts[1]) / (count - 2)])
    # A scale in steps hides a spread of its own.
    step = np.diff(np.unique(ordered)).min()
    spread = np.sqrt(np.maximum(variances.max(axis=0), 0) + step**2 / 12)
    # Nothing is known more finely than a number is stored; squares of the smallest ones vanish.
    stored = np.finfo(float)
    spread = np.maximum(spread, stored.eps * np.abs(ordered).max() + stored.tiny)
    apart = (upper / rests - lower / cuts) / spread
    best = int(apart.argmax())
    return int(cuts[best]), float(apart[best])
