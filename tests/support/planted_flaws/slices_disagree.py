from __future__ import annotations

import numpy as np
from planting import Flaw, Generator, Make, arms, planted

from kduel.core.samples import Samples
from kduel.core.slices import SliceValue


def stalling(share: float, slices: int = 8, *, both: bool = False) -> Make:
    """The second arm, or `both`, is 30 % slower in that share of its slices, which the better half does not show."""

    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        made = planted(arms(generator, blocks), seed)
        for number, (name, column) in enumerate(made.values.items()):
            made.slices[name] = []
            for value in column:
                assert value is not None
                noise = np.exp(0.01 * generator.normal(size=slices))
                stalls = np.where(generator.random(slices) < share * (both or number), 0.7, 1.0)
                made.slices[name].append([SliceValue(None, float(value * one)) for one in noise * stalls])
        return made

    return make


FLAWS = (
    Flaw("an eighth of the slices 30 % slower", 20, stalling(0.125)),
    Flaw("a quarter of the slices 30 % slower", 15, stalling(0.25)),
)
