"""Intervals of tails on simulated boots whose tails are known: the tables of docs/evidence/tails.md.

    OPENBLAS_NUM_THREADS=1 .venv/bin/python perf/tails_calibration.py [--runs 2000] [--write]

The code that judges a run judges the simulated boots. Seeded; some ten minutes of one processor at 2,000 runs. The matrices are
small: several threads would only wait for each other.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import numpy as np
from tail_boots import SHAPES, STEP, Shape, boot_of, draw_boots, scaled_by
from verdict_calibration import main, pct, table

from kduel.core.experiment import Metric
from kduel.core.samples import Samples
from kduel.judge.tails.extremes import return_level
from kduel.judge.tails.results import SHIFTED, shift_results
from kduel.judge.tails.shares import pool, quantiles, share_interval
from kduel.judge.verdict.rule import Rule

LEVEL = 0.05
BOOTS = (10, 14, 20)
SLOW, SLOW_BOOTS = (0.05, 0.1, 0.3), (5, 10, 20, 40)
"""Shares of boots that are twice as slow, and numbers of boots."""
SAMPLES = 1000
QUANTILES = [0.5, 0.9, 0.99, 0.999]
RARE = 5e-4
"""The share of a bound."""


def shares(runs: int) -> list[str]:
    """Coverage of the intervals of quantiles, and of the share of measurements above a limit."""
    rows = []
    for boots in BOOTS:
        for name, shape in SHAPES.items():
            truth = [shape.quantile(share) for share in QUANTILES]
            limit = math.ceil(shape.quantile(1 - RARE) / STEP) * STEP
            rare = shape.share_above(limit)
            hits, wrong = np.zeros(len(truth) + 1), [0, 0]
            given = np.zeros(len(truth))
            for seed in range(runs):
                pooled = pool(draw_boots(shape, np.random.default_rng([seed, boots]), boots, SAMPLES))
                for place, one in enumerate(quantiles(pooled, QUANTILES, LEVEL)):
                    if one.low is not None and one.high is not None:
                        given[place] += 1
                        # A value stands for an interval that ends there.
                        hits[place] += one.low - STEP <= truth[place] <= one.high
                place = np.searchsorted(pooled.values, limit + STEP / 2) - 1
                _, low, high = share_interval(pooled.above[:, [place]], pooled.samples, LEVEL)
                hits[-1] += low[0] <= rare <= high[0]
                wrong[0] += low[0] > rare
                wrong[1] += high[0] < rare
            cover = [pct(hit / count) if count >= runs / 2 else "-" for hit, count in zip(hits, given, strict=False)]
            rows.append((boots, name, *cover, pct(hits[-1] / runs), pct(wrong[0] / runs), pct(wrong[1] / runs)))
    heads = ("boots", "distribution", *(f"{100 * share:g} %" for share in QUANTILES), "a share of 5e-4")
    return table((*heads, "too high", "too low"), rows)


def slow(runs: int) -> list[str]:
    """Coverage of the intervals of quantiles where a share of the boots is slow, and how often no boot of a run is."""
    rows = []
    for boots in SLOW_BOOTS:
        for often in SLOW:
            shape = scaled_by(2, often)
            truth = [shape.quantile(share) for share in QUANTILES[1:]]
            hits, given = np.zeros(len(truth)), np.zeros(len(truth))
            for seed in range(runs):
                drawn = draw_boots(shape, np.random.default_rng([seed, boots, round(100 * often)]), boots, SAMPLES)
                for place, one in enumerate(quantiles(pool(drawn), QUANTILES[1:], LEVEL)):
                    if one.low is not None and one.high is not None:
                        given[place] += 1
                        hits[place] += one.low - STEP <= truth[place] <= one.high
            cover = [pct(hit / count) if count else "none given" for hit, count in zip(hits, given, strict=True)]
            rows.append((boots, f"{100 * often:g}", *cover, pct((1 - often) ** boots)))
    heads = (f"{100 * share:g} %" for share in QUANTILES[1:])
    return table(("boots", "slow boots, %", *heads, "runs without a slow boot, %"), rows)


def pair(shape: Shape, factor: float, stretch: float, blocks: int, seed: int) -> Samples:
    """Two arms in random order: the second one's measurements are the first one's shape, times `factor`, to the power of `stretch`
    over their median."""
    draw = np.random.default_rng([seed, blocks])
    place = draw.permuted(np.tile([0, 1], (blocks, 1)), axis=1)
    before = draw_boots(shape, draw, blocks, SAMPLES)
    after = [boot_of(stretched(shape.draw_boot(draw, SAMPLES), factor, stretch)) for _ in range(blocks)]
    return Samples(
        benchmark="simulated",
        metric=Metric("latency-p99", "us", "lower"),
        primary=True,
        blocks=list(range(1, blocks + 1)),
        values={"old": [1.0] * blocks, "new": [1.0] * blocks},
        order={name: (2 * np.arange(blocks) + place[:, arm]).tolist() for arm, name in enumerate(("old", "new"))},
        distributions={"old": list(before), "new": list(after)},
    )


def stretched(values: np.ndarray, factor: float, stretch: float) -> np.ndarray:
    """Another distribution: `stretch` lengthens the tail and leaves 20 us as it is."""
    return factor * 20 * (values / 20) ** stretch


def shift(runs: int) -> list[str]:
    """Coverage of the band of quantile shifts: all of its intervals at once."""
    rows, runs = [], 3 * runs // 4
    for blocks in (12, 20):
        rule = Rule.fixed_blocks(blocks)
        for name, shape in SHAPES.items():
            for words, factor, stretch in (
                ("none", 1.0, 1.0),
                ("all 10 % longer", 1.1, 1.0),
                ("longer tail", 1.0, 1.1),
            ):
                truth = expected_shift(shape, factor, stretch)
                hits = called = 0
                for seed in range(runs):
                    points = shift_results([pair(shape, factor, stretch, blocks, seed)], rule)[0].points
                    hits += all(one.low_pct <= truth[one.share] <= one.high_pct for one in points)
                    called += any(one.verdict in ("faster", "slower") for one in points)
                rows.append((blocks, name, words, len(points), pct(hits / runs), pct(called / runs)))
    return table(
        ("blocks", "distribution", "shift", "quantiles", "band covers all, %", "any quantile called, %"), rows
    )


def expected_shift(shape: Shape, factor: float, stretch: float) -> dict[float, float]:
    """The mean shift of each quantile of a boot, in per cent, from 20,000 boots of each arm."""
    draw = np.random.default_rng(1)
    total = np.zeros((2, len(SHIFTED)))
    places = np.ceil(np.array(SHIFTED) * SAMPLES * (1 - 1e-12)).astype(int) - 1
    many = 20_000 if stretch != 1 else 0
    for _ in range(many):
        values = np.sort(shape.draw_boot(draw, SAMPLES))[places]
        total += np.log(np.ceil([values / STEP, stretched(values, factor, stretch) / STEP]))
    ratio = (total[1] - total[0]) / many if many else np.full(len(SHIFTED), math.log(factor))
    return dict(zip(SHIFTED, (100 * np.expm1(ratio)).tolist(), strict=True))


def model(runs: int) -> list[str]:
    """Coverage of the interval of a return level."""
    rows = []
    for boots in (10, 20):
        for name, shape in SHAPES.items():
            for times in (1, 10):
                share = 1 / (times * boots * SAMPLES)
                truth = shape.quantile(1 - share)
                sides, widths = [0, 0], []
                for seed in range(runs // 2):
                    found = return_level(
                        draw_boots(shape, np.random.default_rng([seed, boots]), boots, SAMPLES), share, LEVEL
                    )
                    assert not found.reason
                    sides[0] += found.low > truth
                    sides[1] += found.high < truth
                    widths.append(found.high / found.low)
                count = runs // 2
                rows.append(
                    (
                        boots,
                        name,
                        f"1/{times * boots * SAMPLES:,}",
                        pct(1 - sum(sides) / count),
                        pct(sides[0] / count),
                        pct(sides[1] / count),
                        f"{np.median(widths):.2f}",
                    )
                )
    return table(
        (
            "boots",
            "distribution",
            "level exceeded by",
            "covered, %",
            "too high, %",
            "too low, %",
            "upper / lower end",
        ),
        rows,
    )


if __name__ == "__main__":
    main(
        {"shares": shares, "slow": slow, "shift": shift, "model": model},
        __doc__,
        runs=2000,
        document=Path(__file__).parents[1] / "docs/evidence/tails.md",
    )
