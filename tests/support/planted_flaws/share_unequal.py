from __future__ import annotations

from planting import Flaw, Generator, Make, arms, planted
from taken_turns import change_turns, in_turns

from kduel.core.samples import Samples


def held_late(share: float) -> Make:
    """The second contender gets this much more of the host's time for a second of its clock, which is read in steps of 10 ms."""

    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        made = in_turns(planted(arms(generator, blocks), seed))
        for name in made.contenders:
            for block in range(blocks):
                for number in range(4):
                    guest = 1 + float(generator.uniform(-0.01, 0.01))
                    longer = (1 + share * (name == "new")) * float(generator.normal(1, 0.002))
                    change_turns(made, name, block, number, running_seconds=longer, guest_seconds=round(guest, 2))
        return made

    return make


FLAWS = (Flaw("2 % more running time", 10, held_late(0.02)), Flaw(".7 %", 20, held_late(0.007)))
