"""Runs in turns: tables with the records that real ones have."""

from __future__ import annotations

import msgspec
import numpy as np

from kduel.core.samples import Samples
from kduel.core.slices import SliceValue
from kduel.core.turns import StepTurns

TURN = 0.05


def turns_of(place: int, begin: float, *, turns: int = 20, guests: int = 2) -> StepTurns:
    """A slice in turns without fault: the guest at this place of each round, 1 ms between two turns."""
    step = TURN + 0.001
    return StepTurns(
        turns=turns,
        running_seconds=turns * TURN,
        held_seconds=turns * step * guests - turns * TURN,
        longest_stop_seconds=0.001,
        alone_seconds=0.0,
        overlap_seconds=0.0,
        guest_seconds=turns * TURN,
        windows=[(round(begin + (guests * one + place) * step, 6), TURN) for one in range(turns)],
    )


def in_turns(samples: Samples, slices: int = 4) -> Samples:
    """The run as one in turns, its steps in so many slices of a second."""
    blocks = range(len(samples.blocks))
    turns = {
        name: [[turns_of(place, 10.0 + 5 * number) for number in range(slices)] for _ in blocks]
        for place, name in enumerate(samples.contenders)
    }
    return msgspec.structs.replace(samples, turns=turns)


def with_slices(
    samples: Samples, draw: np.random.Generator, *, own: float, shared: float, slices: int = 4
) -> Samples:
    """The run with slices that vary by this much of their own, and by this much together."""
    together = draw.normal(0, shared, (len(samples.blocks), slices))
    found = {}
    for name, column in samples.values.items():
        logs = together + draw.normal(0, own, together.shape)
        found[name] = [
            [SliceValue(None, float((value or 0) * np.exp(one))) for one in row]
            for value, row in zip(column, logs, strict=True)
        ]
    return msgspec.structs.replace(in_turns(samples, slices), slices=found)


def change_turns(samples: Samples, name: str, block: int, number: int, **fields: object) -> None:
    """Other figures of one slice's record; `block` and `number` count from 0."""
    row = samples.turns[name][block]
    row[number] = msgspec.structs.replace(row[number], **fields)
