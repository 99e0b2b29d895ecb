from __future__ import annotations

import numpy as np
from planting import Flaw, Floats, Generator, Make, in_time, planted

from kduel.core.samples import Samples


def autoregressive(generator: Generator, count: int, memory: float) -> Floats:
    """AR(1) of standard deviation 1."""
    values = np.empty(count)
    values[0] = generator.normal()
    for place in range(1, count):
        values[place] = memory * values[place - 1] + np.sqrt(1 - memory**2) * generator.normal()
    return values


def remembering(memory: float) -> Make:
    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        return planted(0.01 * in_time(autoregressive(generator, 2 * blocks, memory), blocks, seed), seed)

    return make


FLAWS = (
    Flaw("AR(1) .95", 20, remembering(0.95)),
    Flaw("AR(1) .8", 40, remembering(0.8)),
    Flaw("AR(1) .5", 100, remembering(0.5)),
)
