"""Histories and measurements made up for the tests and for perf/bisect_calibration.py."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from kduel.run.bisect.history import History
from kduel.run.bisect.noisy import Search
from kduel.run.bisect.outcome import SearchOutcome
from kduel.run.bisect.terms import SearchSettings, Unmeasurable

LEVEL = 100.0
SCENES = (
    "steady",
    "drift",
    "random walk",
    "heavy tails",
    "outliers",
    "skips",
    "two changes",
    "lognormal",
    "noise grows",
    "two equal changes",
)


def linear(count: int) -> History:
    """A history without merges."""
    names = [f"{number:040x}" for number in range(count + 1)]
    return History(names[0], names[-1], {name: [names[number]] for number, name in enumerate(names[1:])})


def noise_of(scene: str, random: np.random.Generator) -> Callable[[], float]:
    """Noise of variance 1 and the host's drift, both of one measurement after the other."""
    clock, walked, phase = 0, 0.0, random.uniform(0, 2 * math.pi)

    def one() -> float:
        nonlocal clock, walked
        clock += 1
        if scene == "heavy tails":  # Student's t with 3 degrees of freedom
            return float(random.standard_t(3) / math.sqrt(3))
        if scene == "outliers":  # one in twenty with five times the spread
            wide = 5 if random.random() < 0.05 else 1
            return float(random.normal() * wide / math.sqrt(0.95 + 0.05 * 25))
        if scene == "drift":  # eight spreads from top to bottom, over some hours
            return float(random.normal() + 4 * math.sin(clock / 60 + phase))
        if scene == "lognormal":  # of a sigma of 1, which has a skewness of 6.2
            return float((random.lognormal() - math.exp(0.5)) / math.sqrt(math.exp(2) - math.e))
        if scene == "random walk":
            walked += float(random.normal(0, 0.4))
            return float(random.normal()) + walked
        return float(random.normal())

    return one


class Simulated:
    """A search in a scene. `effect` is in spreads of a paired difference."""

    def __init__(self, count: int, effect: float, scene: str, seed: int, settings: SearchSettings) -> None:
        random = np.random.default_rng([seed, count, SCENES.index(scene)])
        history = linear(count)
        change = effect * math.sqrt(2)
        steps = {int(random.integers(count)): change}
        if scene == "two changes" and count > 4:
            first, second = sorted(int(one) for one in random.choice(count, 2, replace=False))
            # The second one is smaller, in the same direction or back.
            steps = {first: change, second: float(random.choice([-0.6, 0.6])) * change}
        if scene == "two equal changes":
            steps = {int(one): change for one in random.choice(count, 2, replace=False)}
        self.culprits = [history.commits[start] for start in list(steps)[: len(steps) if "equal" in scene else 1]]
        skipped = random.choice(count - 1, count // 4, replace=False) if scene == "skips" else []
        missing = {history.commits[int(number)] for number in skipped}
        noise = noise_of(scene, random)

        def measure(commit: str, _block: int) -> float:
            if commit in missing:
                raise Unmeasurable("does not build")
            place = history.index.get(commit, -1)
            # Three times the noise from the culprit on.
            wide = 3 if scene == "noise grows" and place >= min(steps) else 1
            return LEVEL + sum(size for start, size in steps.items() if place >= start) + wide * noise()

        self.search = Search(history, "made up", measure, settings, lambda _: None)
        self.outcome: SearchOutcome = self.search.run()
        self.measurements = self.search.measurement_count - sum(
            one.phase == "confirmation" for one in self.search.readings
        )

    @property
    def holds(self) -> bool:
        """Whether the set has the commit with the larger change, or one of two that are equal."""
        return not set(self.culprits).isdisjoint(self.outcome.set)
