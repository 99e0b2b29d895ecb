from __future__ import annotations

import numpy as np
from planting import Flaw, Generator, Make, arms, in_time, planted

from kduel.core.samples import Samples


def placed(sds: float) -> Make:
    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        second = in_time(np.tile([0.0, sds], blocks), blocks, seed)
        return planted(arms(generator, blocks) + 0.01 * second, seed)

    return make


FLAWS = (
    Flaw("the second place +4 SD", 10, placed(4)),
    Flaw("the second place +2.5 SD", 20, placed(2.5)),
    Flaw("the second place +1 SD", 100, placed(1)),
)
