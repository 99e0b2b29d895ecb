"""Noise to try the rule on: paired log-ratios of one kernel against itself, made up or resampled from a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kduel.core.errors import InputError
from kduel.judge.verdict.comparison import ROUNDING, Comparison, log_ratios
from kduel.judge.verdict.rule import FEWEST_PAIRS
from kduel.judge.verdict.spending import Floats

Draw = Callable[[np.random.Generator, int, int], Floats]
"""From (generator, runs, blocks) to log-ratios of that shape, with no effect in them."""

DRIFT_SDS = 4.0
SLOW_SHARE = 0.3
JITTER = 0.2
"""Of the bimodal noise: the spread inside a mode, in units of the whole."""


class Noise(NamedTuple):
    """A noise with a name and a sentence that says what it is."""

    name: str
    about: str
    draw: Draw


def boots(draw_boot: Callable[[np.random.Generator, tuple[int, int]], Floats], scale: float) -> Draw:
    """Blocks of two independent boots with the coefficient of variation `scale`."""

    def draw(generator: np.random.Generator, runs: int, blocks: int) -> Floats:
        before = draw_boot(generator, (runs, blocks))
        return scale * (draw_boot(generator, (runs, blocks)) - before)

    return draw


def normal(generator: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return generator.standard_normal(shape)


def bimodal(generator: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Most boots in one mode, some in a slow one; standard deviation 1."""
    slow = (generator.random(shape) < SLOW_SHARE) / np.sqrt(SLOW_SHARE * (1 - SLOW_SHARE))
    mixed: Floats = np.sqrt(1 - JITTER**2) * slow + JITTER * generator.standard_normal(shape)
    return mixed


def heavy(generator: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Student's t with 3 degrees of freedom; standard deviation 1."""
    drawn: Floats = generator.standard_t(3, shape) / np.sqrt(3)
    return drawn


def floor(scale: float) -> Draw:
    """A hard floor of 1 and lognormal delays above it (sigma = 1), their standard deviation `scale`."""
    unit = np.sqrt((np.e - 1) * np.e)

    def draw(generator: np.random.Generator, runs: int, blocks: int) -> Floats:
        before, after = np.log1p(scale / unit * generator.lognormal(0, 1, (2, runs, blocks)))
        difference: Floats = after - before
        return difference

    return draw


def orders(generator: np.random.Generator, runs: int, blocks: int) -> Floats:
    """Which arm of a block comes first, 1 or -1, as the plan has it: drawn for one block, turned round for the next."""
    drawn = 1.0 - 2 * generator.integers(0, 2, (runs, (blocks + 1) // 2))
    return np.stack([drawn, -drawn], axis=2).reshape(runs, -1)[:, :blocks]


def drift(scale: float) -> Draw:
    """Normal boots while the machine drifts by 4 standard deviations over the run; arms in the plan's order."""

    def draw(generator: np.random.Generator, runs: int, blocks: int) -> Floats:
        difference = scale * np.sqrt(2) * generator.standard_normal((runs, blocks))
        step = DRIFT_SDS * scale / max(2 * blocks - 1, 1)
        drifted: Floats = difference + step * orders(generator, runs, blocks)
        return drifted

    return draw


def made_up(name: str, spread_pct: float) -> Noise:
    """One of NAMES. `spread_pct` is the standard deviation of the paired ratio, which is what a verdict depends on:
    two boots that vary by 1 % each make a spread of 1.41 %. Raises InputError where it is out of bounds."""
    if not 0 < spread_pct <= 100:
        raise InputError(f"the spread is {spread_pct:g} %", "Give more than 0 and 100 at most.")
    scale = spread_pct / 100 / np.sqrt(2)
    kinds = {
        "normal": Noise(name, "normal", boots(normal, scale)),
        "floor": Noise(name, "a floor and lognormal delays", floor(scale)),
        "bimodal": Noise(name, "two modes, .7 and .3 of the boots", boots(bimodal, scale)),
        "heavy": Noise(name, "heavy tails (Student's t, 3 degrees of freedom)", boots(heavy, scale)),
        "drift": Noise(name, "normal, with a linear drift of 4 SD of a boot over the run", drift(scale)),
    }
    return kinds[name]


NAMES = ("normal", "floor", "bimodal", "heavy", "drift")


def resampled(c: Comparison) -> Noise:
    """The noise of a comparison that was measured: the difference of two boots, drawn from what both arms have left
    without their means. Paired values are then scaled to the spread that their ratios had, so that what blocks gain
    is kept.

    Raises InputError for too few values, zeros or negative ones, or no spread at all.
    """
    name = f"{c.table.key}, {c.contender}"
    before, after = c.pairs if c.table.paired else (c.before[~np.isnan(c.before)], c.after[~np.isnan(c.after)])
    count = min(before.size, after.size)
    if count < FEWEST_PAIRS:
        raise InputError(
            f"{name}: {count} values in each arm are too few to draw noise from",
            f"A pilot needs {FEWEST_PAIRS} at least.",
        )
    if (before <= 0).any() or (after <= 0).any():
        raise InputError(f"{name} has zeros or negative values, of which there is no ratio to resample")
    arms = [np.log(before), np.log(after)]
    residuals = np.concatenate([(arm - arm.mean()) * np.sqrt(arm.size / (arm.size - 1)) for arm in arms])
    spread = float(log_ratios(before, after).std(ddof=1)) if c.table.paired else np.sqrt(2) * residuals.std()
    if spread <= ROUNDING or residuals.std() <= ROUNDING:
        raise InputError(f"{name} does not vary: there is no noise to resample")
    boot = residuals * (spread / np.sqrt(2) / residuals.std())

    def draw(generator: np.random.Generator, runs: int, blocks: int) -> Floats:
        first, second = generator.choice(boot, (2, runs, blocks))
        drawn: Floats = second - first
        return drawn

    return Noise(name, f"{count} measured values of each arm, resampled", draw)
