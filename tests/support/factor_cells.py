"""Simulated values of a factorial design's cells, for tests and for perf/factors_calibration.py."""

from __future__ import annotations

import itertools
import math

import numpy as np

from kduel.core.experiment import Design, Factor, Metric
from kduel.core.samples import Samples
from kduel.study.factors import DesignTable, kept_cells

NOISES = ("normal", "skewed", "unequal", "voids", "two modes", "autocorrelated")


def draw_noise(noise: str, draw: np.random.Generator, cells: int, blocks: int) -> np.ndarray:
    """Logarithms by cell and block, with a spread of about 1."""
    shape = (blocks, cells)
    if noise == "skewed":
        found = draw.exponential(1, shape) - 1
    elif noise == "two modes":
        found = (draw.random(shape) < 0.3) * 2.0 + 0.3 * draw.normal(0, 1, shape)
    elif noise == "autocorrelated":
        steps = draw.normal(0, 1, blocks * cells)
        for trial in range(1, steps.size):
            steps[trial] = 0.6 * steps[trial - 1] + 0.8 * steps[trial]
        found = steps.reshape(shape)
    else:
        found = draw.normal(0, 1, shape)
    return found


def simulate_cells(
    levels: tuple[int, ...],
    effects: dict[tuple[int, ...], float],
    noise: str,
    blocks: int,
    seed: int,
    *,
    fraction: int = 1,
    spread: float = 0.01,
) -> tuple[Samples, Design]:
    """A table of values in random order and its design; `effects` are logarithms by cell, those that are missing 0."""
    draw = np.random.default_rng(seed)
    every = list(itertools.product(*(range(count) for count in levels)))
    cells = [every[place] for place in kept_cells(levels, DesignTable(fraction=fraction), "simulated")]
    names = ["-".join(map(str, cell)) for cell in cells]
    place = np.array([draw.permutation(len(cells)) for _ in range(blocks)])
    # By position in time, and then by cell.
    noises = np.take_along_axis(draw_noise(noise, draw, len(cells), blocks), place, axis=1)
    shared = draw.normal(0, 0.05, blocks)
    values, order = {}, {}
    for number, (name, cell) in enumerate(zip(names, cells, strict=True)):
        own = spread * (3 if noise == "unequal" and number == len(cells) - 1 else 1)
        logs = shared + own * noises[:, number] + effects.get(cell, 0.0)
        gone = draw.random(blocks) < (0.05 if noise == "voids" else 0)
        values[name] = [None if lost else math.exp(log) for log, lost in zip(logs, gone, strict=True)]
        order[name] = [int(one) for one in place[:, number] + len(cells) * np.arange(blocks)]
    factors = [
        Factor(name="abcdefgh"[n], levels=[str(one) for one in range(count)]) for n, count in enumerate(levels)
    ]
    design = Design(
        factors=factors,
        cells={
            name: {"abcdefgh"[n]: str(level) for n, level in enumerate(cell)}
            for name, cell in zip(names, cells, strict=True)
        },
        fraction=fraction,
    )
    metric = Metric("m", "s", "lower")
    table = Samples(
        benchmark="s", metric=metric, primary=True, blocks=list(range(1, blocks + 1)), values=values, order=order
    )
    return table, design
