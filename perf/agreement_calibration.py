"""False differences and false equivalence on exact CPUs, simulated: two tables of docs/evidence/exact-scheduling.md.

    .venv/bin/python perf/agreement_calibration.py [--runs 2000] [--write]

Two equal kernels are measured under some conditions, of which each draws what the scheduler decides. The code that judges runs judges
them. Seeded; two minutes of one processor.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import numpy as np
from scipy.special import ndtri
from verdict_calibration import main, pct, table

from kduel.core.experiment import Metric
from kduel.core.samples import Samples
from kduel.judge.verdict.comparison import compare
from kduel.judge.verdict.judge import assess_exact, split
from kduel.judge.verdict.rule import Rule

SPREAD = 0.7
"""Of logarithms: a percentile of one kernel under another condition is up to seven times as large."""
SHARED = {"each its own": (0.0, 1.0), "mostly common": (0.9, 1.0), "of one a tenth": (0.0, 0.1)}
"""The part of that variance which a condition has in common for both kernels, and the baseline's spread as a share."""
BLOCKS = 3
DELTA = 5.0
CASES = ((1, 3), (1, 4), (1, 6), (11, 4), (11, 6), (11, 9))
"""Comparisons and conditions of a block."""
WITHIN = {"half": 0.5, "nine of ten": 0.9, "99 of 100": 0.99}
"""Of all conditions, those under which a difference lies within delta: with half, `equivalent` is false."""
EQUIVALENCE = ((1, 4), (1, 5), (11, 6), (11, 8), (11, 12))


def tables(
    rng: np.random.Generator, comparisons: int, conditions: int, shared: float, factor: float, narrow: float
) -> list[Samples]:
    """As many metrics of one run; `factor` times as large with the contender."""
    shape = comparisons, BLOCKS, conditions
    common = rng.normal(0, SPREAD * shared**0.5, shape)
    own = {name: common + rng.normal(0, SPREAD * (1 - shared) ** 0.5, shape) for name in ("old", "new")}
    return as_samples({"old": 50 * np.exp(narrow * own["old"]), "new": factor * 50 * np.exp(own["new"])})


def close_tables(rng: np.random.Generator, comparisons: int, conditions: int, within: float) -> list[Samples]:
    """As many metrics of one block, whose difference lies within delta under this share of conditions."""
    shape = comparisons, 1, conditions
    before = 50 * np.exp(rng.normal(0, SPREAD, shape))
    shares = rng.normal(0, DELTA / 100 / ndtri((1 + within) / 2), shape)
    return as_samples({"old": before, "new": before * (1 + np.maximum(shares, -0.9))})


def as_samples(values: dict[str, np.ndarray]) -> list[Samples]:
    """A table for each metric, of values by metric, block and condition."""
    comparisons, blocks, _ = values["old"].shape
    return [
        Samples(
            benchmark=f"step-{at}", metric=Metric("latency-p99", "us", "lower", statistic="p99"), primary=True, counted=True,
            scheduled=True, blocks=list(range(1, blocks + 1)),
            values={arm: [float(np.median(block)) for block in held[at]] for arm, held in values.items()},
            conditions={
                arm: [{f"{number}": float(one) for number, one in enumerate(block)} for block in held[at]]
                for arm, held in values.items()
            },
        )
        for at in range(comparisons)
    ]  # fmt: skip


def first_blocks(samples: list[Samples], blocks: int) -> list[Samples]:
    """What was known after so many blocks."""
    return [
        Samples(
            benchmark=one.benchmark, metric=one.metric, primary=True, counted=True, scheduled=True, blocks=one.blocks[:blocks],
            values={arm: held[:blocks] for arm, held in one.values.items()},
            conditions={arm: held[:blocks] for arm, held in one.conditions.items()},
        )
        for one in samples
    ]  # fmt: skip


def called(samples: list[Samples], blocks: int, words: tuple[str, ...] = ("faster", "slower")) -> np.ndarray:
    """By comparison: whether a difference, or what `words` say, is called after any of so many blocks."""
    rule = Rule(delta_pct=DELTA)
    found = np.zeros(len(samples), dtype=bool)
    for number in range(1, blocks + 1):
        known = first_blocks(samples, number)
        share = split(known, rule)
        found |= [assess_exact(c, share).verdict in words for c in compare(known, rule)]
    return found


def one_sign(samples: list[Samples]) -> bool:
    """Whether any comparison has one sign in all conditions of the first block, which was a verdict before."""
    gaps = [
        np.array([after - before for before, after in zip(*(held[0].values() for held in arms), strict=True)])
        for arms in (one.conditions.values() for one in samples)
    ]
    return any(bool((gap > 0).all() or (gap < 0).all()) for gap in gaps)


def agreement(runs: int) -> list[str]:
    """Runs of equal kernels in which any difference is called; and of comparisons that are five and twenty times as large."""
    rows = []
    for comparisons, conditions in CASES:
        for words, (shared, narrow) in SHARED.items():
            rng = np.random.default_rng([comparisons, conditions, int(10 * shared), int(10 * narrow)])
            null = [tables(rng, comparisons, conditions, shared, 1.0, narrow) for _ in range(runs)]
            larger = [
                np.mean(
                    [
                        called(tables(rng, comparisons, conditions, shared, by, narrow), 1).mean()
                        for _ in range(runs // 5)
                    ]
                )
                for by in (5.0, 20.0)
            ]
            wrong = [np.mean([called(one, blocks).any() for one in null]) for blocks in (1, BLOCKS)]
            figures = [np.mean([one_sign(one) for one in null]), *wrong, *larger]
            rows.append([str(comparisons), str(conditions), words, *(pct(float(one)) for one in figures)])
    heads = (
        "comparisons",
        "conditions",
        "variance",
        "one sign",
        "called",
        "called by three blocks",
        "5 times",
        "20 times",
    )
    return table(heads, rows)


def equivalence(runs: int) -> list[str]:
    """Of each share of conditions within delta: runs in which any comparison is called equivalent, and comparisons that are."""
    rows = []
    for comparisons, conditions in EQUIVALENCE:
        rng = np.random.default_rng([comparisons, conditions])
        found = {
            words: [
                called(close_tables(rng, comparisons, conditions, within), 1, ("equivalent",)) for _ in range(runs)
            ]
            for words, within in WITHIN.items()
        }
        false, *true = found.values()
        figures = [np.mean([one.any() for one in false]), *(np.mean(one) for one in true)]
        rows.append([str(comparisons), str(conditions), *(pct(float(one)) for one in figures)])
    return table(("comparisons", "conditions", "half: any", *list(WITHIN)[1:]), rows)


if __name__ == "__main__":
    main(
        {"agreement": agreement, "equivalence": equivalence},
        __doc__,
        runs=2000,
        document=Path(__file__).parents[1] / "docs/evidence/exact-scheduling.md",
    )
