"""Simulated runs for the lint: clean ones, and ones with a planted flaw of a stated size."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from lint_runs import linted, table
from numpy.typing import NDArray

from kduel.core.samples import Samples

Floats = NDArray[np.float64]
Generator = np.random.Generator
Make = Callable[[Generator, int, int], Samples]
"""From a generator, a number of blocks and a seed for their order to a run."""


def noise(kind: str, generator: Generator, shape: tuple[int, ...]) -> Floats:
    """Of standard deviation 1."""
    if kind == "normal":
        return generator.normal(size=shape)
    return generator.standard_t(3, size=shape) / np.sqrt(3)


def clean(kind: str, cv: float, blocks: int, generator: Generator, seed: int) -> Samples:
    """Two arms of one distribution, at any level."""
    level = 10 ** generator.uniform(0, 4)
    return table(*(level * np.exp(cv * noise(kind, generator, (2, blocks)))), seed=seed)


def codes(samples: Samples) -> set[str]:
    """What the lint says of the run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = linted(samples, quick=True)
    return {str(one.code) for one in [*results.warnings, *results.metrics[0].warnings]}


class Alarms(NamedTuple):
    """Of clean runs, in per cent: those with any finding, and those with each."""

    any: float
    each: dict[str, float]


def false_alarms(kind: str, cv: float, blocks: int, runs: int, seed: int = 0) -> Alarms:
    """Over so many clean runs."""
    generator = np.random.default_rng([seed, blocks, int(1000 * cv), kind == "t3"])
    counted: Counter[str] = Counter()
    some = 0
    for number in range(runs):
        found = codes(clean(kind, cv, blocks, generator, number))
        counted.update(found)
        some += bool(found)
    return Alarms(100 * some / runs, {code: 100 * count / runs for code, count in counted.most_common()})


class Flaw(NamedTuple):
    """A planted flaw: its code, its size in words, and runs that have it."""

    code: str
    size: str
    blocks: int
    make: Make


def arms(generator: Generator, blocks: int, cv: float = 0.01) -> Floats:
    """Logarithms of two clean arms."""
    return cv * generator.normal(size=(2, blocks))


def planted(logs: Floats, seed: int, **how: Any) -> Samples:
    """A table of values around 1,000."""
    return table(*(1000 * np.exp(logs)), seed=seed, **how)


def in_time(sequence: Floats, blocks: int, seed: int) -> Floats:
    """A sequence of 2 x blocks values in the order of time, dealt to the arms of a table made with the same seed."""
    order = planted(np.zeros((2, blocks)), seed).order
    return np.array([[sequence[place or 0] for place in order[name]] for name in ("old", "new")])


def autoregressive(generator: Generator, count: int, memory: float) -> Floats:
    """AR(1) of standard deviation 1."""
    values = np.empty(count)
    values[0] = generator.normal()
    for place in range(1, count):
        values[place] = memory * values[place - 1] + np.sqrt(1 - memory**2) * generator.normal()
    return values


def drifting(sds: float) -> Make:
    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        ramp = np.linspace(0, sds, 2 * blocks)
        return planted(arms(generator, blocks) + 0.01 * in_time(ramp, blocks, seed), seed)

    return make


def remembering(memory: float) -> Make:
    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        return planted(0.01 * in_time(autoregressive(generator, 2 * blocks, memory), blocks, seed), seed)

    return make


def placed(sds: float) -> Make:
    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        second = in_time(np.tile([0.0, sds], blocks), blocks, seed)
        return planted(arms(generator, blocks) + 0.01 * second, seed)

    return make


def spread(times: float) -> Make:
    return lambda generator, blocks, seed: planted(arms(generator, blocks) * np.array([[1.0], [times]]), seed)


def warming(sds: float) -> Make:
    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        first = np.zeros(2 * blocks)
        first[0] = sds
        return planted(arms(generator, blocks) + 0.01 * in_time(first, blocks, seed), seed)

    return make


def two_modes(sds: float) -> Make:
    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        logs = arms(generator, blocks)
        slow = generator.permutation(blocks)[: round(0.3 * blocks)]
        logs[1, slow] += 0.01 * sds
        return planted(logs, seed)

    return make


def copied(share: float) -> Make:
    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        logs = arms(generator, blocks)
        same = generator.permutation(blocks)[: round(share * blocks)]
        logs[1, same] = logs[0, same]
        return planted(logs, seed)

    return make


def hidden(effect: float, far: float) -> Make:
    """A true effect of the second arm, and one trial far out the other way, before any look could decide."""

    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        logs = arms(generator, blocks)
        logs[1] += effect
        logs[1, generator.integers(1, 4)] -= far
        return planted(logs, seed)

    return make


def rare(boots: int, far: float, cv: float) -> Make:
    """A few slow boots of the second arm."""

    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        logs = arms(generator, blocks, cv)
        logs[1, generator.permutation(blocks)[:boots]] += far
        return planted(logs, seed)

    return make


def skewed(sigma: float) -> Make:
    """Equal arithmetic means; the second arm is lognormal with that sigma."""

    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        logs = np.array([[0.02], [sigma]]) * generator.normal(size=(2, blocks)) - np.array([[0.0002], [sigma**2 / 2]])
        return planted(logs, seed)

    return make


def voided(share: float) -> Make:
    """The slowest of the second arm give no value."""

    def make(generator: Generator, blocks: int, seed: int) -> Samples:
        logs = arms(generator, blocks)
        samples = planted(logs, seed)
        for block in np.argsort(-logs[1])[: round(share * blocks)]:
            samples.values["new"][block] = None
        return samples

    return make


FLAWS: tuple[Flaw, ...] = (
    Flaw("drift", "4 SD from the first trial to the last", 10, drifting(4)),
    Flaw("drift", "3 SD", 20, drifting(3)),
    Flaw("drift", "1.5 SD", 100, drifting(1.5)),
    Flaw("autocorrelation", "AR(1) .95", 20, remembering(0.95)),
    Flaw("autocorrelation", "AR(1) .8", 40, remembering(0.8)),
    Flaw("autocorrelation", "AR(1) .5", 100, remembering(0.5)),
    Flaw("order-effect", "the second place +4 SD", 10, placed(4)),
    Flaw("order-effect", "the second place +2.5 SD", 20, placed(2.5)),
    Flaw("order-effect", "the second place +1 SD", 100, placed(1)),
    Flaw("first-trial", "12 SD", 10, warming(12)),
    Flaw("first-trial", "8 SD", 20, warming(8)),
    Flaw("first-trial", "6 SD", 100, warming(6)),
    Flaw("unequal-spread", "10 times", 20, spread(10)),
    Flaw("unequal-spread", "2 times", 100, spread(2)),
    Flaw("means-disagree", "sigma .8 against .02, equal arithmetic means", 100, skewed(0.8)),
    Flaw("two-modes", "30 % of one arm's boots, 16 SD away", 10, two_modes(16)),
    Flaw("two-modes", "30 %, 8 SD", 20, two_modes(8)),
    Flaw("two-modes", "30 %, 6 SD", 100, two_modes(6)),
    Flaw("repeated-values", "9 of 10 values identical across the arms", 10, copied(0.9)),
    Flaw("repeated-values", "18 of 20", 20, copied(0.9)),
    Flaw("repeated-values", "half of 100", 100, copied(0.5)),
    Flaw("one-trial", "an effect of 3 % hidden by one trial 30 % off", 10, hidden(0.03, 0.3)),
    Flaw("one-trial", "3 % hidden by one trial 60 % off", 20, hidden(0.03, 0.6)),
    Flaw("robust-disagrees", "3 % hidden by one trial 60 % off", 20, hidden(0.03, 0.6)),
    Flaw("robust-disagrees", "1.5 % hidden by one trial 200 % off", 100, hidden(0.015, 2.0)),
    Flaw("rare-mode", "one boot of 20 4.5 % slower, CV 0.1 %", 20, rare(1, 0.045, 0.001)),
    Flaw("rare-mode", "two boots of 100 10 % slower, CV 0.5 %", 100, rare(2, 0.1, 0.005)),
    Flaw("missing-by-arm", "the slowest 30 % of one arm give no value", 10, voided(0.3)),
    Flaw("missing-by-arm", "the slowest 20 %", 20, voided(0.2)),
    Flaw("missing-by-arm", "the slowest 5 %", 100, voided(0.05)),
)


def sensitivity(flaw: Flaw, runs: int) -> float:
    """Per cent of runs in which the planted flaw is found."""
    generator = np.random.default_rng([7, flaw.blocks, len(flaw.size)])
    found = sum(flaw.code in codes(flaw.make(generator, flaw.blocks, seed)) for seed in range(runs))
    return 100 * found / runs
