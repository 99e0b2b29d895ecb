"""Growth of a cost with the number of processes: the exponent b of cost = a * count^b, with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from kduel.analysis.matrix.grid import GridPoint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEAST_BLOCKS = 3
"""Fewer slopes give no interval worth the name."""


class Growth(Struct, kw_only=True):
    family: str
    contender: str
    metric: str
    counts: list[int]
    means: list[float]
    n: int
    """Blocks that gave a slope."""
    exponent: float
    low: float
    high: float
    """Of Student's interval; on a deterministic machine the lowest and the highest slope."""
    varies: bool = True
    steps: list[float] = field(default_factory=list)
    """The exponent from each count to the next, mean of the blocks."""
    rise: float | None = None
    """The last step's exponent less the first one's: above 0 the cost grows ever faster; null for two counts."""
    rise_low: float | None = None
    rise_high: float | None = None
    told: str = ""


def growth(
    places: Sequence[GridPoint],
    contender: str,
    metric: str,
    values: Mapping[str, Sequence[float | None]],
    *,
    varies: bool = True,
    times: bool = False,
) -> Growth | None:
    """From the values of each label by block: one slope a block (log-log, least squares), then Student's interval of
    their mean, so that the unit is the block and not the point.

    None where fewer than LEAST_BLOCKS blocks have a positive value at every count; `exact`, on a deterministic
    machine, one is enough. `times`: the metric is the time that the whole load takes, of which a published study
    claims that it grows exponentially."""
    import numpy as np

    from kduel.judge.verdict.spending import mean_interval

    counts = [place.count for place in places]
    table = [values.get(place.label, []) for place in places]
    rows = [row for row in zip(*table, strict=False) if all(value is not None and value > 0 for value in row)]
    if len(rows) < (LEAST_BLOCKS if varies else 1) or len(set(counts)) < 2:
        return None
    x = np.log(counts)
    y = np.log(np.array(rows, dtype=float))
    centred = x - x.mean()
    slopes = (y * centred).sum(axis=1) / (centred**2).sum()

    def bounds(values: NDArray[np.float64]) -> tuple[float, float, float]:
        estimate = mean_interval(values) if varies else None
        return estimate or (float(values.mean()), float(values.min()), float(values.max()))

    exponent, low, high = bounds(slopes)
    found = Growth(
        family=places[0].family, contender=contender, metric=metric, counts=counts,
        means=[float(column) for column in np.array(rows, dtype=float).mean(axis=0)], n=len(rows), exponent=exponent,
        low=low, high=high, varies=varies,
    )  # fmt: skip
    steps = np.diff(y, axis=1) / np.diff(x)
    found.steps = [float(step) for step in steps.mean(axis=0)]
    if len(counts) > 2:
        found.rise, found.rise_low, found.rise_high = bounds(steps[:, -1] - steps[:, 0])
    found.told = growth_sentence(found, times)
    return found


def growth_sentence(found: Growth, times: bool = False) -> str:
    """The growth in words, no stronger than its interval."""
    if not found.varies:
        told = f"{found.metric} grows as n^{found.exponent:.3f} (counted, not estimated"
        told += f"; {found.low:.3f} to {found.high:.3f} over {found.n} blocks)" if found.n > 1 else ")"
        if len(found.steps) > 1:
            told += ": " + ", ".join(
                f"n^{step:.3f} from {first} to {last}"
                for step, first, last in zip(found.steps, found.counts, found.counts[1:], strict=False)
            )
        return told
    what = f"{found.metric} grows as n^{found.exponent:.2f} [{found.low:.2f}, {found.high:.2f}]"
    # By the digits that are shown: n^1.001 is linear to everybody but a test.
    if round(found.low, 2) > 1:
        kind = "faster than linear"
    elif round(found.high, 2) < 1:
        kind = "slower than linear"
    else:
        kind = "a linear growth is not excluded"
    if found.rise is None or found.rise_low is None or found.rise_high is None:
        return f"{what}: {kind}"
    first, last = found.counts[0], found.counts[-1]
    if found.rise_low > 0:
        bend = f"the growth steepens from {first} to {last}"
    elif found.rise_high < 0:
        bend = f"the growth flattens from {first} to {last}"
    else:
        bend = "no sign that it steepens"
    return f"{what}: {kind}; {bend}{exponential(found) if times else ''}"


def exponential(found: Growth) -> str:
    """Value at the last count of an exponential through the first two: the claim, put to the test."""
    (c0, c1), cz = found.counts[:2], found.counts[-1]
    m0, m1, mz = found.means[0], found.means[1], found.means[-1]
    if c1 == cz or m1 <= m0:
        return ""
    power = math.log(m1 / m0) / (c1 - c0) * (cz - c0) + math.log(m0) - math.log(mz)
    if power < math.log(2):
        return "; an exponential fits too"
    return (
        f"; an exponential through the first two would be 10^{power / math.log(10):.0f} times the last one measured"
    )
