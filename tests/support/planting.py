"""Pieces of simulated runs with a planted flaw of a stated size; `planted_flaws/` has one file a finding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from lint_runs import table
from numpy.typing import NDArray

from kduel.core.samples import Samples

Floats = NDArray[np.float64]
Generator = np.random.Generator
Make = Callable[[Generator, int, int], Samples]
"""From a generator, a number of blocks and a seed for their order to a run."""


class Flaw(NamedTuple):
    """A planted flaw: its size in words, and runs that have it."""

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
