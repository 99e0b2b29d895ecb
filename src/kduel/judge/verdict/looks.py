"""The looks of one comparison: when they are, how wide their intervals are, and the first that decides."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kduel.judge.verdict.adjust import Estimates, is_constant
from kduel.judge.verdict.classify import UNDECIDED, Sides, classify, supports
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.spending import Floats, critical_t, student_levels

NEVER = -1


class Looks(NamedTuple):
    """The looks at which a comparison has the two pairs or more that an interval takes."""

    blocks: tuple[int, ...]
    pairs: tuple[int, ...]
    planned: int
    """How many of them, from the first, may decide; one more at most only shows the present interval."""

    def levels(self, rule: Rule, alpha: float) -> Floats:
        return student_levels(alpha, self.blocks, self.pairs, rule.max_blocks)


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


def repeated_interval(found: Estimates, levels: Floats) -> tuple[Floats, Floats]:
    half = critical_t(levels, found.freedom) * found.error
    return found.mean - half, found.mean + half


def orders_vary(order: Floats, pairs: Sequence[int], rule: Rule) -> NDArray[np.bool_]:
    """By look: whether arms and places are not confounded. They are while `order` (how many places the contender
    came after the baseline; NaN where that is not known) has had one value only: there is no verdict then. A value of 0
    means that both arms have the same places in every block."""
    if rule.adjusts_from is None:
        return np.ones((*order.shape[:-1], len(pairs)), dtype=bool)
    vary: NDArray[np.bool_] = ~is_constant(order, pairs) | (order[..., :1] == 0)
    return vary


class Decision(NamedTuple):
    """The look that decided (an index, NEVER for none) and its side: ABOVE, BELOW, WITHIN, or UNDECIDED for none."""

    look: NDArray[np.int_]
    side: Sides
    holds: NDArray[np.bool_]
    """By look: whether it has been decided by then, and the interval of that look still shows it."""


def decide(
    low: Floats, high: Floats, looks: Looks, margin: Floats | float, rule: Rule, may: NDArray[np.bool_]
) -> Decision:
    """The first planned look that decides, among those that `may`; `margin` may have an axis of looks."""
    place = np.arange(len(looks.pairs))
    sides = classify(low, high, margin, np.array(looks.pairs), rule.fewest, rule.equivalent_from)
    sides = np.where(may & (place < looks.planned), sides, UNDECIDED)
    decided = sides != UNDECIDED
    ever = decided.any(axis=-1)
    first = np.argmax(decided, axis=-1)
    side = np.where(ever, np.take_along_axis(sides, np.expand_dims(first, -1), -1)[..., 0], UNDECIDED)
    since = np.expand_dims(ever, -1) & (place >= np.expand_dims(first, -1))
    return Decision(np.where(ever, first, NEVER), side, since & supports(np.expand_dims(side, -1), low, high, margin))
