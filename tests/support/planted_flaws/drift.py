from __future__ import annotations

import numpy as np
from planting import Flaw, Generator, Make, arms, in_time, planted

from kduel.core.samples import Samples


def drifting(sds: float) -> Make:
    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        ramp = np.linspace(0, sds, 2 * blocks)
        return planted(arms(generator, blocks) + 0.01 * in_time(ramp, blocks, seed), seed)

    return make


FLAWS = (
    Flaw("4 SD from the first trial to the last", 10, drifting(4)),
    Flaw("3 SD", 20, drifting(3)),
    Flaw("1.5 SD", 100, drifting(1.5)),
)
