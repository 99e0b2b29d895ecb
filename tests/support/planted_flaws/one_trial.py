from __future__ import annotations

from planting import Flaw, Generator, Make, arms, planted

from kduel.core.samples import Samples


def hidden(effect: float, far: float) -> Make:
    """A true effect of the second arm, and one trial far out the other way, before any look could decide."""

    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        logs = arms(generator, blocks)
        logs[1] += effect
        logs[1, generator.integers(1, 4)] -= far
        return planted(logs, seed)

    return make


FLAWS = (
    Flaw("an effect of 3 % hidden by one trial 30 % off", 10, hidden(0.03, 0.3)),
    Flaw("3 % hidden by one trial 60 % off", 20, hidden(0.03, 0.6)),
)
