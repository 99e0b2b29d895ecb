"""Boots that fall into two groups."""

import math
from collections.abc import Iterator

import numpy as np

from kduel.core.evidence import Evidence
from kduel.core.format import amount, quantity
from kduel.judge.lint.case import Case, Floats
from kduel.judge.lint.finding import Cause, Finding

FEWEST = 4
FEWEST_FOR_MODES = 6
LEAST_SHARE = 0.2
"""Of the values that the smaller mode holds: fewer are outliers."""
APART = 4.0
"""Modes that are nearer than so many standard deviations are no two modes, however many values there are."""
CLEAN = ((6, 14.2), (7, 11.2), (8, 9.5), (10, 8.0), (12, 6.3), (15, 5.5), (20, 4.8), (30, 4.2), (40, APART))
"""By number of values: what `separation` exceeds in one of a thousand samples, of a normal distribution or of Student's
t with 3 degrees of freedom, whichever is more (20,000 simulated each; tests/judge/lint/test_lint_false_alarms.py)."""
LEAST_VALUES = 3
"""Of a mode: two values of a skewed distribution's long tail lie close to each other by chance."""
STEEPNESS = 1.3
"""For rarer alarms the threshold rises as the chance to the power of -STEEPNESS / number of values (same simulation)."""


def two_modes(case: Case) -> Iterator[str]:
    for arm in case.arms:
        found = modes(arm.values, case.level / 2)
        if found is not None:
            low, high = found
            yield (
                f"The trials of {arm.name} fall into two groups: {low.size} around {amount(low.mean())} and "
                f"{high.size} around {quantity(high.mean(), case.metric.unit)}. Some property differs from boot to boot "
                "(placement in memory, clock source, interrupts): look for it in the environments, or measure more blocks."
            )


def modes(values: Floats, level: float = 0.001) -> tuple[Floats, Floats] | None:
    """The two groups of a sample that is not one; None for one group. `level` is the chance of a false alarm."""
    if values.size < FEWEST_FOR_MODES or np.unique(values).size < FEWEST:
        return None
    ordered = np.sort(values)
    cut, apart = separation(ordered)
    needed = float(np.interp(ordered.size, *np.array(CLEAN).T)) * (0.001 / level) ** (STEEPNESS / ordered.size)
    return (ordered[:cut], ordered[cut:]) if apart > needed else None


def separation(ordered: Floats) -> tuple[int, float]:
    """The best cut of sorted values, and by how many standard deviations the means of its parts differ. The larger
    deviation counts, a part's own or that within both: the long tail of one crooked group is no second one."""
    count = ordered.size
    least = max(LEAST_VALUES, math.ceil(LEAST_SHARE * count))
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


PLUGIN = Finding(
    name="two-modes", cause=Cause.MODES, weight=66,
    meaning="The trials of a contender fall into two groups far apart. Some property differs from boot to boot.",
    remedy="Compare the environments and logs of the two groups: memory placement, clock source, interrupts, CPU.",
    chance=True, check=two_modes, least=Evidence.VARYING, levelled=True,
    undecided="the boots fall into two groups: find what differs between them",
)  # fmt: skip
