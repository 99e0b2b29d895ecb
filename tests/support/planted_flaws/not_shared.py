from __future__ import annotations

from planting import Flaw, Generator, Make, arms, planted
from taken_turns import with_slices

from kduel.core.samples import Samples


def apart(correlation: float) -> Make:
    """Slices of two contenders in turns with this correlation, boots that vary by 5 %, which decides nothing."""

    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        made = planted(arms(generator, blocks, 0.05), seed)
        own, shared = 0.02 * (1 - correlation) ** 0.5, 0.02 * correlation**0.5
        return with_slices(made, generator, own=own, shared=shared)

    return make


FLAWS = (Flaw("no correlation of the slices", 34, apart(0.0)), Flaw("a correlation of .2", 100, apart(0.2)))
