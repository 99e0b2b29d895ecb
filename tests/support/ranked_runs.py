"""Simulated tables of several contenders for tests of the ranking, and for perf/ranking_calibration.py."""

from __future__ import annotations

import numpy as np
from msgspec import structs

from kduel.core.experiment import Aspect, Better, Metric
from kduel.core.metric_results import AspectRanking
from kduel.core.samples import Samples
from kduel.judge.ranking import rankings
from kduel.judge.verdict.rule import Rule


def table(
    name: str, arms: np.ndarray, aspect: Aspect = "throughput", better: Better = "higher", *, primary: bool = True
) -> Samples:
    """One metric of contenders A, B, C, ...: a row each."""
    return Samples(
        benchmark=name,
        metric=Metric(name="rate", unit="ops/s", better=better, aspect=aspect),
        primary=primary,
        blocks=list(range(1, arms.shape[1] + 1)),
        values={chr(ord("A") + place): list(map(float, arm)) for place, arm in enumerate(arms)},
    )


def noisy(seed: int, effects: list[float], spread: float = 0.01, blocks: int = 12) -> np.ndarray:
    """Values of contenders with these true logarithms."""
    return 1000 * np.exp(
        np.random.default_rng(seed).normal(np.array(effects)[:, None], spread, (len(effects), blocks))
    )


def simulate(
    runs: int, effects: list[float], looks: tuple[int, ...], *, together: float = 0.5
) -> list[list[AspectRanking]]:
    """Runs of two aspects, of three metrics and one, that vary by 1 %, and by `together` per cent alike in a boot. A run ends, by the
    worst rule there is, at the first of these looks at which somebody is ahead."""
    found = []
    every = looks[1] - looks[0] if len(looks) > 1 else 1
    rule = Rule(first_look=looks[0], look_every=every, max_blocks=looks[-1])
    for seed in range(runs):
        draw = np.random.default_rng([7, seed])
        common = draw.normal(0, together, (len(effects), looks[-1]))
        tables = [
            table(name, 100 * np.exp(0.01 * (common + draw.normal(0, 1, common.shape)) + np.array(effects)[:, None]), aspect)
            for name, aspect in (("a", "throughput"), ("b", "throughput"), ("c", "throughput"), ("d", "scheduling"))
        ]  # fmt: skip
        for blocks in looks:
            seen = [
                structs.replace(
                    one, blocks=one.blocks[:blocks], values={k: v[:blocks] for k, v in one.values.items()}
                )
                for one in tables
            ]
            now = rankings(seen, rule)
            if blocks == looks[-1] or differing(now):
                found.append(now)
                break
    return found


def differing(found: list[AspectRanking]) -> bool:
    """True if any contender is ahead of any other."""
    return any((rank.first, rank.last) != (1, len(one.ranks)) for one in found for rank in one.ranks)
