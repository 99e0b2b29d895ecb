from __future__ import annotations

import numpy as np
from planting import Flaw, Generator, Make, arms, planted

from kduel.core.samples import Samples


def following(sds: float) -> Make:
    """The trial after one of the second arm is higher."""

    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        order = planted(np.zeros((2, blocks)), seed).order
        after_new = {place + 1 for place in order["new"] if place is not None}
        shift = np.array([[place in after_new for place in order[name]] for name in ("old", "new")], dtype=float)
        return planted(arms(generator, blocks) + 0.01 * sds * shift, seed)

    return make


FLAWS = (
    Flaw("after the second contender +9 SD", 10, following(9)),
    Flaw("after the second contender +4 SD", 20, following(4)),
    Flaw("after the second contender +1.5 SD", 100, following(1.5)),
)
