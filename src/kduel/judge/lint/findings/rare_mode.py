"""A rare mode that only one contender has."""

import math
from collections.abc import Iterator

import numpy as np

from kduel.core.evidence import Evidence
from kduel.core.format import amount, quantity
from kduel.judge.lint.case import Case, Floats, Ints
from kduel.judge.lint.finding import Cause, Finding
from kduel.judge.lint.statistics import TAIL

MOST_RARE = 0.1
"""Of all values that a rare mode holds at most."""


def rare_mode(case: Case) -> Iterator[str]:
    if case.result.verdict != "equivalent":
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
        f"{kind} {arm.blocks[place]}: {quantity(arm.values[place], case.metric.unit)}" for place in places[:4]
    )
    yield (
        f"Equivalent by the mean, but {len(places)} of {arm.values.size} trials of {arm.name} lie far from all others "
        f"({listed}; median {amount(np.median(arm.values))}), and none of the other contender. A rare mode of one contender "
        "is a difference: read the logs of these trials, or measure more blocks."
    )


def far_out(deviations: Floats, border: int, level: float) -> Ints:
    """The places of the few values far beyond all others, all of one arm (below or from `border`) and on one side.

    Under tails as heavy as Student's t with 3 degrees of freedom the k farthest all lie r times as far out as the next
    one with a chance of r ** -3k, whatever the number of values; half the level goes to k = 1, a quarter to k = 2, ..."""
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


PLUGIN = Finding(
    name="rare-mode", cause=Cause.MODES, weight=86,
    meaning="The verdict is `equivalent`, but a few trials of one contender, and none of the other, lie far away from "
    "all others. A rare slow mode that only one contender has is a difference.",
    remedy="Read the logs of these trials, and measure more blocks, to estimate the share of slow boots.",
    chance=True, check=rare_mode, least=Evidence.VARYING, levelled=True,
)  # fmt: skip
