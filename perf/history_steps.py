"""False alarms and power of the changes that `kduel query --history` tells: python perf/history_steps.py [--series N].

Series of 6 to 40 runs without a change, independent and AR(1) with .5 and .7, normal and heavy-tailed; then with a
step of 3, 5 and 10 standard deviations in the middle, and before the last three runs. At a nominal 1 %.
docs/decisions/0007-changes-over-time.md compares the method with others.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from kduel.analysis.campaigns.steps import Floats, change_points

ALPHA = 0.01
BURN_IN = 30


def series(generator: np.random.Generator, count: int, neighbours: float, tails: str) -> Floats:
    """AR(1) of standard deviation 1."""
    shape = BURN_IN + count
    values: Floats = (
        generator.normal(size=shape) if tails == "normal" else generator.standard_t(3, shape) / np.sqrt(3)
    )
    values *= np.sqrt(1 - neighbours**2)
    for place in range(1, shape):
        values[place] += neighbours * values[place - 1]
    return values[BURN_IN:]


def called(count: int, neighbours: float, tails: str, number: int, step: float = 0.0, begin: int = 0) -> float:
    """Per cent of series in which any change is called."""
    generator = np.random.default_rng([count, int(10 * neighbours), len(tails), int(step), begin])
    found = 0
    for _ in range(number):
        values = series(generator, count, neighbours, tails)
        values[begin:] += step
        found += bool(change_points(values.tolist(), alpha=ALPHA))
    return 100 * found / number


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=4000)
    number = parser.parse_args().series
    for count in (6, 8, 12, 24, 40):
        for tails in ("normal", "t3"):
            for neighbours in (0.0, 0.5, 0.7):
                print(
                    f"{count} runs, {tails}, AR {neighbours}: {called(count, neighbours, tails, number):.2f} % called"
                )
        for step in (3.0, 5.0, 10.0):
            middle, late = (called(count, 0.5, "normal", number // 4, step, at) for at in (count // 2, count - 3))
            print(
                f"{count} runs, AR 0.5, step of {step:g} SD: {middle:.0f} % in the middle, {late:.0f} % of the last three"
            )


if __name__ == "__main__":
    main()
