"""Records that the checks of runs in turns read: those of both contenders, slice by slice."""

from collections.abc import Sequence
from typing import NamedTuple

from kduel.core.turns import StepTurns
from kduel.judge.lint.case import Case


class SharedSlice(NamedTuple):
    block: int
    number: int
    """From 1."""
    turns: tuple[StepTurns, StepTurns]
    """The baseline's and the contender's."""


def shared_slices(case: Case) -> list[SharedSlice]:
    """The slices that are recorded of both, in the order of blocks."""
    table = case.table
    before, after = (table.turns.get(arm.name, []) for arm in case.arms)
    return [
        SharedSlice(block, number, turns)
        for block, first, second in zip(table.blocks, before, after, strict=False)
        for number, turns in enumerate(zip(first, second, strict=False), 1)
    ]


def seconds_in_common(first: Sequence[tuple[float, float]], second: Sequence[tuple[float, float]]) -> float:
    """Seconds in which a turn of each was under way; turns are (begin, length), in the order of time."""
    ends = [[(begin, begin + length) for begin, length in turns] for turns in (first, second)]
    total, place = 0.0, 0
    for begin, end in ends[0]:
        while place < len(ends[1]) and ends[1][place][1] <= begin:
            place += 1
        for other_begin, other_end in ends[1][place:]:
            if other_begin >= end:
                break
            total += min(end, other_end) - max(begin, other_begin)
    return total
