"""Effects of factors in simulated studies: the tables of docs/factors.md.

    .venv/bin/python perf/factors_calibration.py [--runs 1000] [--write]

The code that judges a run judges the simulated cells. Seeded; about 15 minutes of one processor at 1,000 runs.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from factor_cells import NOISES, simulate_cells
from verdict_calibration import main, pct, table

from kduel.core.metric_results import MetricResult
from kduel.judge.factors import effects
from kduel.judge.verdict.judge import judge_primary
from kduel.judge.verdict.rule import Rule

DELTA = 2.0
SPREAD = 0.01
DESIGNS = {"2 x 2": ((2, 2), 1, 12), "3 x 2 x 2": ((3, 2, 2), 1, 12), "half of 2 x 2 x 2 x 2 x 2": ((2,) * 5, 2, 12)}
"""Levels, fraction, blocks."""
FOUND = ("faster", "slower", "higher", "lower")


def judge_once(
    levels: tuple[int, ...],
    planted: dict[tuple[int, ...], float],
    noise: str,
    rule: Rule,
    seed: int,
    fraction: int = 1,
) -> dict[str, MetricResult]:
    """The effects of one simulated study, by name."""
    cells, design = simulate_cells(levels, planted, noise, rule.max_blocks, seed, fraction=fraction, spread=SPREAD)
    asked = effects([cells], design)
    found = judge_primary([one.table for one in asked], rule)
    return {one.name: result for one, result in zip(asked, found, strict=True)}


def interaction(levels: tuple[int, ...], size: float) -> dict[tuple[int, ...], float]:
    """An effect in every cell in which the first two factors have their second level."""
    import itertools

    return {cell: size for cell in itertools.product(*map(range, levels)) if cell[0] == cell[1] == 1}


def rates(runs: int) -> list[str]:
    """Family-wise false positives, and what becomes of a planted interaction."""
    rows = []
    for name, (levels, fraction, blocks) in DESIGNS.items():
        rule = Rule.fixed_blocks(blocks, delta_pct=DELTA)
        crossed = "a × b" if len(set(levels)) == 1 else "a × b: 1"
        for noise in NOISES:
            none = [judge_once(levels, {}, noise, rule, seed, fraction) for seed in range(runs)]
            some = [
                judge_once(levels, interaction(levels, 0.04), noise, rule, seed, fraction)
                for seed in range(runs // 2)
            ]
            # What is not planted: effects in which the second factor or the first one has no part.
            absent = [n for n in none[0] if "a" not in n.replace("at ", "") and "b" not in n]
            rows.append(
                (
                    name,
                    noise,
                    len(none[0]),
                    pct(sum(any(r.verdict in FOUND for r in one.values()) for one in none) / runs),
                    pct(sum(one[crossed].verdict in FOUND for one in some) / len(some)),
                    pct(sum(any(one[n].verdict in FOUND for n in absent) for one in some) / len(some))
                    if absent
                    else "-",
                    pct(sum(one[crossed].verdict == "equivalent" for one in none) / runs),
                )
            )
    return table(
        (
            "design",
            "noise",
            "effects",
            "any false, %",
            "interaction of 4 % found, %",
            "false beside it, %",
            "equivalent where there is none, %",
        ),
        rows,
    )


def looks(runs: int) -> list[str]:
    """A fixed number of blocks against stopping when every effect has a verdict."""
    rows = []
    levels = (2, 2)
    for size in (0.0, 0.02, 0.04, 0.08):
        planted = interaction(levels, math.log1p(size))
        for name, rule in (
            ("20 fixed", Rule.fixed_blocks(20, delta_pct=DELTA)),
            ("up to 20, all decided", Rule(max_blocks=20, delta_pct=DELTA)),
        ):
            found = [stopped(levels, planted, rule, seed) for seed in range(runs)]
            crossed = [one["a × b"] for _, one in found]
            rows.append(
                (
                    f"{100 * size:g} %",
                    name,
                    f"{sum(blocks for blocks, _ in found) / runs:.1f}",
                    pct(sum(one.verdict in FOUND for one in crossed) / runs),
                    pct(sum(one.verdict == "equivalent" for one in crossed) / runs),
                    pct(sum(all(r.verdict != "undecided" for r in one.values()) for _, one in found) / runs),
                )
            )
    return table(
        ("interaction", "blocks", "mean blocks", "found, %", "equivalent, %", "all effects decided, %"), rows
    )


def stopped(
    levels: tuple[int, ...], planted: dict[tuple[int, ...], float], rule: Rule, seed: int
) -> tuple[int, dict[str, MetricResult]]:
    """The blocks after which a run ends, and its effects then."""
    from msgspec import structs

    cells, design = simulate_cells(levels, planted, "normal", rule.max_blocks, seed, spread=SPREAD)
    asked = effects([cells], design)
    names = [one.name for one in asked]
    for blocks in rule.for_comparisons(len(asked)).looks():
        cut = [
            structs.replace(
                one.table,
                blocks=one.table.blocks[:blocks],
                values={arm: column[:blocks] for arm, column in one.table.values.items()},
                order={arm: column[:blocks] for arm, column in one.table.order.items()},
            )
            for one in asked
        ]
        found = judge_primary(cut, rule)
        if all(one.verdict != "undecided" for one in found):
            break
    return blocks, dict(zip(names, found, strict=True))


if __name__ == "__main__":
    main({"rates": rates, "looks": looks}, __doc__, runs=1000, document=Path(__file__).parents[1] / "docs/factors.md")
