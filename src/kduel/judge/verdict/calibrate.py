"""The rule put to the test: many runs simulated on a noise, judged by the code that judges a real run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct

from kduel.judge.verdict.comparison import margin
from kduel.judge.verdict.looks import NEVER, WITHIN, decide, plan_looks, prefix_statistics
from kduel.judge.verdict.noise import Noise
from kduel.judge.verdict.rule import Rule

CHUNK = 2000
"""Runs simulated at a time: bounds the memory, and lets a bar move."""


class Outcome(Struct, kw_only=True):
    """What the rule did in `runs` simulated runs with a true effect. Shares are between 0 and 1."""

    noise: str
    effect_pct: float
    metrics: int
    """How many primary metrics shared alpha, all with this noise and effect."""
    runs: int
    higher: float
    """Share of metrics called higher; of `lower` and `equivalent` likewise. The rest is undecided."""
    lower: float
    equivalent: float
    any_difference: float
    """Share of runs in which any metric was called higher or lower: for no effect, the family-wise false alarms."""
    any_difference_error: float
    """Its standard error."""
    blocks_mean: float
    """Blocks until every metric was decided, or the maximum."""
    blocks_half: int
    """Blocks within which half of the runs ended; of `blocks_most`, nine in ten."""
    blocks_most: int
    ended_at: dict[int, float]
    """By number of blocks: the share of runs that ended there."""

    @property
    def undecided(self) -> float:
        """Share of metrics without a verdict."""
        return max(0.0, 1 - self.higher - self.lower - self.equivalent)


def simulate(
    rule: Rule,
    noise: Noise,
    effect_pct: float = 0.0,
    *,
    runs: int = 4000,
    seed: int = 1,
    metrics: int = 1,
    progress: Callable[[int], None] = lambda _: None,
) -> Outcome:
    """Simulate `runs` runs of `metrics` independent primary metrics; `progress` hears of runs done."""
    generator = np.random.default_rng([seed, round(1e6 * effect_pct) % 2**32, metrics])
    shares = np.zeros(3)
    alarms = 0
    ends: list[np.ndarray] = []
    for start in range(0, runs, CHUNK):
        count = min(CHUNK, runs - start)
        sides, blocks = judged(rule, noise, effect_pct, count, metrics, generator)
        shares += [(sides == side).sum() for side in (1, -1, WITHIN)]
        alarms += int((np.abs(sides) == 1).any(axis=1).sum())
        ends.append(blocks.max(axis=1))
        progress(count)
    ended = np.concatenate(ends)
    higher, lower, equivalent = (shares / (runs * metrics)).tolist()
    any_difference = alarms / runs
    numbers, counts = np.unique(ended, return_counts=True)
    return Outcome(
        noise=noise.name,
        effect_pct=effect_pct,
        metrics=metrics,
        runs=runs,
        higher=higher,
        lower=lower,
        equivalent=equivalent,
        any_difference=any_difference,
        any_difference_error=float(np.sqrt(any_difference * (1 - any_difference) / runs)),
        blocks_mean=float(ended.mean()),
        blocks_half=int(np.quantile(ended, 0.5, method="higher")),
        blocks_most=int(np.quantile(ended, 0.9, method="higher")),
        ended_at={int(number): int(times) / runs for number, times in zip(numbers, counts, strict=True)},
    )


UNDECIDED = 2


def judged(
    rule: Rule, noise: Noise, effect_pct: float, runs: int, metrics: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """By run and metric: the side (1, -1, WITHIN, or UNDECIDED) and the number of blocks at the end."""
    logs = noise.draw(generator, runs * metrics, rule.max_blocks) + np.log1p(effect_pct / 100)
    looks = plan_looks(rule, range(1, rule.max_blocks + 1))
    mean, sd = prefix_statistics(logs, looks.pairs)
    half = looks.widths(rule, rule.alpha / metrics) * sd
    look, side = decide(mean, half, looks, margin("ratio", rule), rule.equivalent_from)
    blocks = np.where(look == NEVER, rule.max_blocks, np.array(looks.blocks)[look])
    sides = np.where(look == NEVER, UNDECIDED, side)
    return sides.reshape(runs, metrics), blocks.reshape(runs, metrics)


def sweep(
    rule: Rule,
    noises: Sequence[Noise],
    effects_pct: Sequence[float],
    *,
    runs: int,
    seed: int,
    metrics: int = 1,
    progress: Callable[[int], None] = lambda _: None,
) -> list[Outcome]:
    """Every noise with every effect, in that order."""
    return [
        simulate(rule, noise, effect, runs=runs, seed=seed, metrics=metrics, progress=progress)
        for noise in noises
        for effect in effects_pct
    ]
