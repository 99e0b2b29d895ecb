from __future__ import annotations

import numpy as np
from planting import Flaw, Generator, Make, arms, in_time, planted

from kduel.core.samples import Samples


def warming(sds: float) -> Make:
    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        first = np.zeros(2 * blocks)
        first[0] = sds
        return planted(arms(generator, blocks) + 0.01 * in_time(first, blocks, seed), seed)

    return make


FLAWS = (
    Flaw("12 SD", 10, warming(12)),
    Flaw("8 SD", 20, warming(8)),
    Flaw("6 SD", 100, warming(6)),
)
