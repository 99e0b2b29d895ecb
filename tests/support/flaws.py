"""Simulated runs for the lint: clean ones, and all of `planted_flaws/`."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections import Counter
from typing import NamedTuple

import numpy as np
import planted_flaws
from lint_runs import linted, table
from planting import Flaw, Floats, Generator

from kduel.core.samples import Samples

PLANTED: dict[str, tuple[Flaw, ...]] = {
    module.name.replace("_", "-"): importlib.import_module(f"planted_flaws.{module.name}").FLAWS
    for module in pkgutil.iter_modules(planted_flaws.__path__)
}
"""By code, flaws of a size that the finding must notice."""


def noise(kind: str, generator: Generator, shape: tuple[int, ...]) -> Floats:
    """Of standard deviation 1."""
    if kind == "normal":
        return generator.normal(size=shape)
    if kind == "lognormal":
        return (np.exp(generator.normal(size=shape)) - np.exp(0.5)) / np.sqrt(np.expm1(1.0) * np.e)
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
    generator = np.random.default_rng([seed, blocks, int(1000 * cv), ("normal", "t3", "lognormal").index(kind)])
    counted: Counter[str] = Counter()
    some = 0
    for number in range(runs):
        found = codes(clean(kind, cv, blocks, generator, number))
        counted.update(found)
        some += bool(found)
    return Alarms(100 * some / runs, {code: 100 * count / runs for code, count in counted.most_common()})


def sensitivity(code: str, flaw: Flaw, runs: int) -> float:
    """Per cent of runs in which the planted flaw is found."""
    generator = np.random.default_rng([7, flaw.blocks, len(flaw.size)])
    found = sum(code in codes(flaw.make(generator, flaw.blocks, seed)) for seed in range(runs))
    return 100 * found / runs
