from __future__ import annotations

from planting import Flaw, Generator, Make, arms, planted

from kduel.core.samples import Samples


def two_modes(sds: float) -> Make:
    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        logs = arms(generator, blocks)
        slow = generator.permutation(blocks)[: round(0.3 * blocks)]
        logs[1, slow] += 0.01 * sds
        return planted(logs, seed)

    return make


FLAWS = (
    Flaw("30 % of one contender's boots, 16 SD away", 10, two_modes(16)),
    Flaw("30 %, 8 SD", 20, two_modes(8)),
    Flaw("30 %, 6 SD", 100, two_modes(6)),
)
