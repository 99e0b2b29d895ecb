from __future__ import annotations

import numpy as np
from planting import Flaw, Generator, Make, arms, planted

from kduel.core.samples import Samples


def voided(share: float) -> Make:
    """The slowest of the second arm give no value."""

    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        logs = arms(generator, blocks)
        samples = planted(logs, seed)
        for block in np.argsort(-logs[1])[: round(share * blocks)]:
            samples.values["new"][block] = None
        return samples

    return make


FLAWS = (
    Flaw("the slowest 30 % of one contender give no value", 10, voided(0.3)),
    Flaw("the slowest 20 %", 20, voided(0.2)),
    Flaw("the slowest 5 %", 100, voided(0.05)),
)
