"""Simulated distributions of boots with known tails, for tests and for perf/tails_calibration.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from kduel.core.samples import Distribution

STEP = 0.1
"""Values are rounded up to it, as cyclictest's are to a microsecond."""


class Shape(NamedTuple):
    """How measurements are distributed; all boots alike, or not."""

    share_above: Callable[[float], float]
    """Of all measurements of all boots."""
    draw_boot: Callable[[np.random.Generator, int], np.ndarray]

    def quantile(self, share: float) -> float:
        """The value that this share of all measurements does not exceed."""
        return math.exp(brentq(lambda log: self.share_above(math.exp(log)) - (1 - share), -10, 40, xtol=1e-12))


def scaled_by(slow: float, often: float) -> Shape:
    """Exponential, in `often` of the boots `slow` times as long."""
    return Shape(
        lambda x: (1 - often) * math.exp(-x / 20) + often * math.exp(-x / 20 / slow),
        lambda draw, count: draw.exponential(20, count) * (slow if draw.random() < often else 1),
    )


SHAPES = {
    "exponential": scaled_by(1, 0),
    "lognormal": Shape(
        lambda x: float(norm.sf(math.log(x / 20) / 0.5)),
        lambda draw, count: 20 * np.exp(0.5 * draw.normal(size=count)),
    ),
    "Pareto": Shape(lambda x: (1 + x / 60) ** -4, lambda draw, count: 60 * (draw.random(count) ** -0.25 - 1)),
    "two modes": scaled_by(2, 0.3),
}
"""Pareto: of shape 1/4. Two modes: 30 % of the boots are twice as slow."""


def boot_of(values: np.ndarray) -> Distribution:
    """The measurements of a boot, counted."""
    found, counts = np.unique(np.ceil(values / STEP), return_counts=True)
    return Distribution(
        unit="us", values=(found * STEP).tolist(), counts=counts.tolist(), largest=float(found[-1] * STEP)
    )


def draw_boots(shape: Shape, draw: np.random.Generator, boots: int, samples: int = 1000) -> list[Distribution]:
    """So many boots of so many measurements."""
    return [boot_of(shape.draw_boot(draw, samples)) for _ in range(boots)]
