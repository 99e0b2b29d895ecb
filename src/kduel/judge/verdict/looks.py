"""The looks of one comparison: prefix statistics, repeated intervals, the first look that decides.

Arrays have any leading axes (simulated runs), then one axis of pairs or of looks: the very code that judges a run is
the code that `kduel calibrate` tries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kduel.judge.verdict.rule import FEWEST_PAIRS, Rule
from kduel.judge.verdict.spending import Floats, critical_t, student_levels

ABOVE, BELOW, WITHIN = 1, -1, 0
NEVER = -1


class Looks(NamedTuple):
    """The looks at which a comparison has the two pairs or more that an interval takes."""

    blocks: tuple[int, ...]
    pairs: tuple[int, ...]
    planned: int
    """How many of them, from the first, may decide; one more at most only shows the present interval."""

    def levels(self, rule: Rule, alpha: float) -> Floats:
        """Nominal two-sided levels that together keep `alpha`."""
        return student_levels(alpha, self.blocks, self.pairs, rule.max_blocks)

    def widths(self, rule: Rule, alpha: float) -> Floats:
        """What a standard deviation of the differences is multiplied by to give half an interval."""
        return critical_t(self.levels(rule, alpha), self.pairs) / np.sqrt(self.pairs)


def plan_looks(rule: Rule, pairs_by_block: Sequence[int]) -> Looks:
    """The looks at data with so many complete pairs after 1, 2, ... blocks; the last is always the present."""
    present = len(pairs_by_block)
    planned = [look for look in rule.looks() if look <= present]
    blocks = planned if present in planned or not present else [*planned, present]
    kept = tuple(look for look in blocks if pairs_by_block[look - 1] >= 2)
    return Looks(
        blocks=kept,
        pairs=tuple(int(pairs_by_block[look - 1]) for look in kept),
        planned=sum(look in planned for look in kept),
    )


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
    even = steady(differences, pairs)
    return np.where(even, differences[..., :1], mean + centre), np.where(even, 0.0, np.sqrt(variance))


def steady(values: Floats, pairs: Sequence[int]) -> NDArray[np.bool_]:
    """Whether the first `pairs[k]` values are all the same, for each look k."""
    last = np.asarray(pairs, dtype=int) - 1
    same: NDArray[np.bool_] = np.logical_and.accumulate(values == values[..., :1], axis=-1)[..., last]
    return same


class Decision(NamedTuple):
    """Which look decided (an index, NEVER for none) and how: ABOVE, BELOW or WITHIN."""

    look: NDArray[np.int_]
    side: NDArray[np.int_]


def decide(mean: Floats, half: Floats, looks: Looks, margin: Floats | float, equivalent_from: int) -> Decision:
    """The first planned look whose interval mean +- half lies within +-margin, or else excludes 0.

    `margin` is 0 where nothing may count as equivalent; like `mean` and `half` it may have an axis of looks.
    """
    if not looks.planned:
        shape = mean.shape[:-1]
        return Decision(np.full(shape, NEVER), np.zeros(shape, dtype=int))
    chosen = slice(looks.planned)
    pairs = np.array(looks.pairs[chosen])
    mean, half = mean[..., chosen], half[..., chosen]
    margin = np.broadcast_to(margin, len(looks.pairs))[chosen]
    within = (np.abs(mean) + half <= margin) & (margin > 0) & (pairs >= equivalent_from)
    decided = within | ((np.abs(mean) > half) & (pairs >= FEWEST_PAIRS))
    first = np.argmax(decided, axis=-1)
    here = np.expand_dims(first, -1)
    side = np.where(np.take_along_axis(within, here, -1), WITHIN, np.sign(np.take_along_axis(mean, here, -1)))
    return Decision(np.where(decided.any(axis=-1), first, NEVER), side[..., 0].astype(int))
