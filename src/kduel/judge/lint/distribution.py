"""How values are spread: ties, steps, two modes, and the maximum as a metric."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from kduel.core.results import Warning_
from kduel.judge.lint.case import Case, Floats, Ints, amount, short
from kduel.judge.lint.findings import Code
from kduel.judge.lint.statistics import TAIL
from kduel.judge.verdict.comparison import of_time

TIED = 0.5
COARSE = 0.1
FEWEST = 4
FEWEST_FOR_MODES = 6
MOST_RARE = 0.1
"""Of all values that a rare mode holds at most."""
LEAST_SHARE = 0.2
"""Of the values that the smaller mode holds: fewer are outliers."""
APART = 4.0
"""Modes that are nearer than so many standard deviations are no two modes, however many values there are."""
CLEAN = ((6, 14.2), (7, 11.2), (8, 9.5), (10, 8.0), (12, 6.3), (15, 5.5), (20, 4.8), (30, 4.2), (40, APART))
"""By number of values: what `separation` exceeds in one of a thousand samples, of a normal distribution or of Student's
t with 3 degrees of freedom, whichever is more (20,000 simulated each; tests/lint/test_lint_false_alarms.py)."""
STEEPNESS = 1.3
"""For rarer alarms the threshold rises as the chance to the power of -STEEPNESS / number of values (same simulation)."""


def ties(case: Case) -> Iterator[Warning_]:
    """Where half of an arm's values are one and the same, or the scale's step is above 10 % of the median."""
    if case.steady and not of_time(case.metric.unit):
        return
    for arm in case.arms:
        found, counts = np.unique(arm.values, return_counts=True)
        if arm.values.size >= FEWEST and counts.max() >= TIED * arm.values.size:
            most = counts.argmax()
            yield Warning_(
                code=Code.TIES,
                message=f"{counts[most]} of {arm.values.size} values of {arm.name} are "
                f"{amount(found[most], case.metric.unit)}: the metric hardly varies, and its intervals are not reliable. Measure it "
                "for longer, or count something that happens more often.",
            )
            return
    values = np.concatenate([arm.values for arm in case.arms])
    median = float(np.median(values))
    distinct = np.unique(values)
    if values.size >= 2 * FEWEST and 1 < distinct.size < values.size and median > 0:
        step = float(np.diff(distinct).min())
        share = 100 * step / median  # of a subnormal median it may be infinite
        if 100 * COARSE < share < math.inf:
            yield Warning_(
                code=Code.QUANTISED,
                message=f"The values come in steps of {amount(step, case.metric.unit)}, {share:.0f} % of "
                f"the median {short(median)}: smaller differences cannot be detected. Measure it for longer or in a finer unit.",
            )


def maximum(case: Case) -> Iterator[Warning_]:
    """A maximum as the metric."""
    if case.metric.statistic == "max":
        yield Warning_(
            code=Code.MAXIMUM,
            message="This is a maximum: one sample decides it, and it grows with the time measured. Compare the 99th or "
            "99.9th percentile, and report the maximum as a further metric.",
        )


def two_modes(case: Case) -> Iterator[Warning_]:
    """An arm whose boots fall into two groups far apart."""
    if case.steady:
        return
    for arm in case.arms:
        found = modes(arm.values, case.level / 2)
        if found is not None:
            low, high = found
            yield Warning_(
                code=Code.TWO_MODES,
                message=f"The trials of {arm.name} fall into two groups: {low.size} around {short(low.mean())} and "
                f"{high.size} around {amount(high.mean(), case.metric.unit)}. Some property differs from boot to boot "
                "(placement in memory, clock source, interrupts): look for it in the environments, or measure more blocks.",
            )


def rare_mode(case: Case) -> Iterator[Warning_]:
    """`equivalent`, though a few trials of one arm, and none of the other, lie far beyond all others."""
    if case.result.verdict != "equivalent" or case.steady:
        return
    first, second = case.deviations
    joined = np.concatenate([first, second])
    found = far_out(joined, first.size, case.level)
    if not found.size or np.abs(joined[found]).min() <= math.log1p(case.delta_pct / 100):
        return
    arm = case.arms[int(found[0] >= first.size)]
    places = sorted(found - first.size if arm is case.contender else found)
    kind = "block" if case.paired else "trial"
    listed = ", ".join(
        f"{kind} {arm.blocks[place]}: {amount(arm.values[place], case.metric.unit)}" for place in places[:4]
    )
    yield Warning_(
        code=Code.RARE_MODE,
        message=f"Equivalent by the mean, but {len(places)} of {arm.values.size} trials of {arm.name} lie far from all others "
        f"({listed}; median {short(np.median(arm.values))}), and none of the other contender. A rare mode of one contender "
        "is a difference: read the logs of these trials, or measure more blocks.",
    )


def far_out(deviations: Floats, border: int, level: float) -> Ints:
    """The places of the few values far beyond all others, all of one arm (below or from `border`) and on one side.

    Under tails as heavy as Student's t with 3 degrees of freedom the k farthest all lie r times as far out as the next
    one with a chance of r ** -3k, whatever the number of values; half the level goes to k = 1, a quarter to k = 2, ...
    """
    order = np.argsort(-np.abs(deviations))
    distances = np.abs(deviations)[order]
    for count in range(max(1, int(MOST_RARE * deviations.size)), 0, -1):
        chosen = order[:count]
        one_arm = (chosen < border).all() or (chosen >= border).all()
        if not one_arm or np.ptp(np.sign(deviations[chosen])) or distances[count] <= 0:
            continue
        if (distances[count] / distances[count - 1]) ** (TAIL * count) < level / 2**count:
            return chosen
    return np.array([], dtype=np.int64)


def modes(values: Floats, level: float = 0.001) -> tuple[Floats, Floats] | None:
    """The two groups of a sample that is not one; None for one group. `level` is the chance of a false alarm."""
    if values.size < FEWEST_FOR_MODES or np.unique(values).size < FEWEST:
        return None
    ordered = np.sort(values)
    cut, apart = separation(ordered)
    needed = float(np.interp(ordered.size, *np.array(CLEAN).T)) * (0.001 / level) ** (STEEPNESS / ordered.size)
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
