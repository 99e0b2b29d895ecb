"""Minutes until the suite `quick` in turns has decided its three primary metrics, by the number of their slices.

    .venv/bin/python perf/quick_minutes.py

Runs are judged by the code that judges real ones. Spreads (`kduel plan`) are those of the first command on an idle virtual
machine with two CPUs, of slices half as long, which vary by the square root of two more; seconds of the parts of a block are
those of blocks in which no boot stood, beside much other work. Seeded; some ten seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import numpy as np

from kduel.judge.verdict.calibrate import SimulatedRuns, at_once
from kduel.judge.verdict.classify import UNDECIDED
from kduel.judge.verdict.rule import Rule

RULE = Rule(delta_pct=2.0, adjust_from=None, in_turns=True)
RUNS = 1500


class Part(NamedTuple):
    boots: float
    """Standard deviation of a boot's logarithm, in per cent; of `slices` that of a single slice."""
    slices: float
    seconds: float
    """Of a slice, all contenders together."""


PARTS = (Part(0.0, 1.27, 9.2), Part(0.83, 1.31, 4.75), Part(0.0, 2.0, 4.75))
"""CPU throughput, a switch, fork."""
BOOTS, EXPLORATORY = 8.0, 5.1
"""Seconds of a block besides: until both guests, which boot together, stand at their first step, and of eight pairs."""
EFFECTS = {"6.1 against 6.12": (-0.3, 8.5, 11.0), "equal kernels": (0.0, 0.0, 0.0), "3 % in each": (3.0, 3.0, 3.0)}
SLICES = ((2, 2, 2), (1, 1, 1), (1, 2, 2), (2, 1, 1), (2, 2, 3), (3, 3, 3), (3, 4, 5))


def simulate(slices: tuple[int, ...], effects: tuple[float, ...]) -> tuple[float, str]:
    """Mean number of blocks, and the share of each metric's runs that are decided in 20."""
    draw = np.random.default_rng(1)
    logs = np.zeros((RUNS, len(PARTS), 2, RULE.max_blocks))
    for metric, (part, count, effect) in enumerate(zip(PARTS, slices, effects, strict=True)):
        spread = 0.01 * np.hypot(part.boots, part.slices / np.sqrt(count))
        logs[:, metric] = draw.normal(0, spread, logs.shape[:1] + logs.shape[2:])
        logs[:, metric, 1] += np.log1p(effect / 100)
    places = np.broadcast_to(np.array([[0.0], [1.0]]), logs.shape)
    found = at_once(RULE, SimulatedRuns(logs, places, None))
    decided = (found.sides != UNDECIDED).mean(axis=0)
    return float(found.blocks.mean()), " ".join(f"{100 * one:.0f}" for one in decided)


for name, effects in EFFECTS.items():
    print(f"{name}:\n  slices        blocks  minutes  without exploratory steps  decided, %")
    for slices in SLICES:
        blocks, decided = simulate(slices, effects)
        seconds = BOOTS + sum(count * part.seconds for count, part in zip(slices, PARTS, strict=True))
        minutes = [blocks * each / 60 for each in (seconds + EXPLORATORY, seconds)]
        print(f"  {slices!s:12} {blocks:7.1f} {minutes[0]:8.1f} {minutes[1]:26.1f}  {decided}")
