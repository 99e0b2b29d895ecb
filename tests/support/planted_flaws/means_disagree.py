from __future__ import annotations

import numpy as np
from planting import Flaw, Generator, Make, planted

from kduel.core.samples import Samples


def skewed(sigma: float) -> Make:
    """Equal arithmetic means; the second arm is lognormal with that sigma."""

    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        logs = np.array([[0.02], [sigma]]) * generator.normal(size=(2, blocks)) - np.array([[0.0002], [sigma**2 / 2]])
        return planted(logs, seed)

    return make


FLAWS = (Flaw("sigma .8 against .02, equal arithmetic means", 100, skewed(0.8)),)
