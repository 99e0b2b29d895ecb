from __future__ import annotations

from planting import Flaw, Generator, arms, planted

from kduel.core.samples import Samples


def shuffled(generator: Generator, blocks: int, seed: int) -> Samples:
    """The second arm has the values of the first, in another order."""
    logs = arms(generator, blocks)
    logs[1] = generator.permutation(logs[0])
    return planted(logs, seed)


FLAWS = (Flaw("all of 10, in another order", 10, shuffled), Flaw("all of 20", 20, shuffled))
