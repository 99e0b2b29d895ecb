from __future__ import annotations

from planting import Flaw, Generator, Make, arms, planted

from kduel.core.samples import Samples


def computed(ratio: float) -> Make:
    """The second arm is a multiple of the first, rounded to two decimals."""

    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        samples = planted(arms(generator, blocks), seed)
        samples.values["new"] = [
            None if value is None else round(ratio * value, 2) for value in samples.values["old"]
        ]
        return samples

    return make


FLAWS = (Flaw("5 % more than the first contender", 10, computed(1.05)), Flaw("2 % less", 20, computed(0.98)))
