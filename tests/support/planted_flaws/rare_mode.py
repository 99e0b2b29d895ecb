from __future__ import annotations

from planting import Flaw, Generator, Make, arms, planted

from kduel.core.samples import Samples


def rare(boots: int, far: float, cv: float) -> Make:
    """A few slow boots of the second arm."""

    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        logs = arms(generator, blocks, cv)
        logs[1, generator.permutation(blocks)[:boots]] += far
        return planted(logs, seed)

    return make


FLAWS = (
    Flaw("one boot of 20 4.5 % slower, CV 0.1 %", 20, rare(1, 0.045, 0.001)),
    Flaw("two boots of 100 10 % slower, CV 0.5 %", 100, rare(2, 0.1, 0.005)),
)
