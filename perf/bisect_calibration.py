"""Bisection under noise on simulated measurements: the table of docs/evidence/bisect.md, written by this script.

    .venv/bin/python perf/bisect_calibration.py [--runs 200] [--write]

The search that users run is the one simulated. Seeded; at 200 runs about half an hour of one processor. With --write the
table in docs/evidence/bisect.md is replaced, between `<!-- table calibration -->` and `<!-- end of calibration -->`.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

import numpy as np
from noisy_commits import SCENES, Simulated
from scipy.special import ndtri

from kduel.run.bisect.terms import SearchSettings

DOCUMENT = Path(__file__).parents[1] / "docs/evidence/bisect.md"
BEGIN, END = "<!-- table calibration -->\n", "<!-- end of calibration -->"
SETTINGS = SearchSettings(confirm=0, negligible=1e-6, most=3000)
ERROR = 1 - SETTINGS.probability


def capacity(effect: float) -> float:
    """Bits that one measurement gives at most of which of two known levels it is at, `effect` paired spreads apart."""
    apart = effect * math.sqrt(2)
    values = np.linspace(-10, apart + 10, 20001)
    low, high = (np.exp(-0.5 * (values - level) ** 2) / math.sqrt(2 * math.pi) for level in (0.0, apart))
    mixed = (low + high) / 2
    gain = sum(0.5 * one * np.log2(np.maximum(one, 1e-300) / np.maximum(mixed, 1e-300)) for one in (low, high))
    return float(np.sum(gain) * (values[1] - values[0]))


def plain(count: int, effect: float, *, references: bool) -> int:
    """Measurements of a bisection with a fixed number at each step, all steps right with 95 %; the noise and the effect
    known to it. With `references` both ends are measured beside each commit, else their levels are known and steady."""
    steps = math.ceil(math.log2(count))
    quantile = -float(ndtri(ERROR / steps))
    times = max(1, math.ceil((1.5 if references else 1) * (2 * quantile / (effect * math.sqrt(2))) ** 2))
    return steps * times * (3 if references else 1)


def cells(runs: int) -> Iterator[tuple[str, int, float, int]]:
    """Scene, commits, effect, runs."""
    for count in (2, 16, 96, 4096):
        for effect in (0.5, 1.0, 2.0, 5.0, 10.0):
            if count < 1000 or effect > 1:  # the others take hours
                yield "steady", count, effect, runs // 2 if effect < 1 or count > 1000 else runs
    for scene in SCENES[1:]:
        for effect in (1.0, 2.0, 5.0):
            yield scene, 96, effect, runs


def main() -> None:
    """Print, and with --write keep, the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    lines = [
        "| scenario | commits | effect | set contains it | one commit | measurements | plain, with references | plain, ends known "
        "| bound | of plain | of bound |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for scene, count, effect, runs in cells(given.runs):
        done = [Simulated(count, effect, scene, seed, SETTINGS) for seed in range(runs)]
        needed = float(np.mean([run.measurements for run in done]))
        bound = max(1.0, math.log2(count) / capacity(effect))
        usual = plain(count, effect, references=True)
        lines.append(
            f"| {scene} | {count:,} | {effect:g} | {100 * np.mean([run.holds for run in done]):.1f} % of {runs} "
            f"| {100 * np.mean([len(run.outcome.set) == 1 for run in done]):.0f} % | {needed:.1f} | {usual} "
            f"| {plain(count, effect, references=False)} | {bound:.1f} | {needed / usual:.2f} | {needed / bound:.2f} |"
        )
        print(lines[-1], flush=True)
    if given.write:
        text = DOCUMENT.read_text("utf-8")
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        DOCUMENT.write_text(before + BEGIN + "\n".join(lines) + "\n" + END + after, "utf-8")


if __name__ == "__main__":
    main()
