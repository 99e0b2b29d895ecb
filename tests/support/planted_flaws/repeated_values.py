from __future__ import annotations

from planting import Flaw, Generator, Make, arms, planted

from kduel.core.samples import Samples


def copied(share: float) -> Make:
    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        logs = arms(generator, blocks)
        same = generator.permutation(blocks)[: round(share * blocks)]
        logs[1, same] = logs[0, same]
        return planted(logs, seed)

    return make


FLAWS = (
    Flaw("9 of 10 values identical across contenders", 10, copied(0.9)),
    Flaw("18 of 20", 20, copied(0.9)),
    Flaw("half of 100", 100, copied(0.5)),
)
