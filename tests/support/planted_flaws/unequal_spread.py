from __future__ import annotations

import numpy as np
from planting import Flaw, Make, arms, planted


def spread(times: float) -> Make:
    return lambda generator, blocks, seed: planted(arms(generator, blocks) * np.array([[1.0], [times]]), seed)


FLAWS = (
    Flaw("10 times", 20, spread(10)),
    Flaw("2 times", 100, spread(2)),
)
