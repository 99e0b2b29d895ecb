"""The ranking by aspect on simulated runs whose true order is known: the table of docs/statistics.md.

    OPENBLAS_NUM_THREADS=1 .venv/bin/python perf/ranking_calibration.py [--runs 2000] [--write]

The code that judges a run judges the simulated ones. Seeded; some five minutes of one processor at 2,000 runs.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from ranked_runs import differing, simulate
from verdict_calibration import main, pct, table

from kduel.core.metric_results import AspectRanking

ONE, SEVERAL = (12,), (6, 8, 10, 12)
STEP = 0.02
"""The logarithm by which each contender is ahead of the next."""


def truth_outside(found: list[AspectRanking], order: list[str]) -> bool:
    """True if a contender's true place is not among its ranks in any aspect."""
    return any(
        rank.first is not None and not rank.first <= 1 + order.index(rank.contender) <= (rank.last or 0)
        for one in found
        for rank in one.ranks
    )


def fully_told(found: AspectRanking) -> bool:
    """True if every contender has one rank."""
    return all(rank.first is not None and rank.first == rank.last for rank in found.ranks)


def ranking(runs: int) -> list[str]:
    """By number of contenders, looks and how much a boot's metrics vary together."""
    rows = []
    for contenders in (3, 5):
        effects = [STEP * (contenders // 2 - place) for place in range(contenders)]
        # The baseline is in the middle.
        effects = [0.0, *(effect for effect in effects if effect)]
        order = sorted(
            (chr(ord("A") + place) for place in range(contenders)), key=lambda name: -effects[ord(name) - ord("A")]
        )
        for looks in (ONE, SEVERAL):
            for together in (0.0, 2.0):
                equal = simulate(runs, [0.0] * contenders, looks, together=together)
                apart = simulate(runs // 4, effects, ONE, together=together)
                rows.append(
                    (
                        contenders,
                        len(looks),
                        f"{together:g} %",
                        pct(sum(map(differing, equal)) / len(equal)),
                        pct(sum(truth_outside(one, order) for one in apart) / len(apart)),
                        *(pct(sum(fully_told(one[place]) for one in apart) / len(apart), 0) for place in (0, 1)),
                    )
                )
    heads = (
        "contenders",
        "looks",
        "together",
        "equal ones ranked apart",
        "truth outside",
        "all told, 3 metrics",
        "all told, 1 metric",
    )
    return table(heads, rows)


if __name__ == "__main__":
    main({"ranking": ranking}, __doc__, runs=2000)
