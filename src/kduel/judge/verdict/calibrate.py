"""Operating characteristics of the rule: many runs simulated on a noise, judged by the code that judges a real run."""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kduel.core.experiment import Metric
from kduel.core.orders import Order, orders
from kduel.core.samples import Samples
from kduel.judge.verdict.adjust import estimates
from kduel.judge.verdict.classify import ABOVE, BELOW, UNDECIDED, WITHIN, Sides, supports
from kduel.judge.verdict.comparison import Comparison, compare, margin
from kduel.judge.verdict.futility import CHANCE, FROM_BLOCK, chance_to_decide
from kduel.judge.verdict.looks import Decision, decide, orders_vary, plan_looks, repeated_interval
from kduel.judge.verdict.noise import Noise
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.spending import Floats
from kduel.judge.verdict.voids import forbidden_by_missing

CHUNK = 2000
"""Comparisons simulated at a time: bounds the memory, and lets a bar move."""
PLANS = 1000
"""Plans that simulated runs draw theirs from."""

Orders = Callable[[int, random.Random], Iterator[Order]]


class Characteristics(Struct, kw_only=True):
    """Error rates, power and run lengths in `runs` simulated runs with a true effect. Shares are between 0 and 1."""

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
    refuted: int
    """Verdicts that the interval of the same look does not show: 0 if the code does what it promises."""

    @property
    def undecided_share(self) -> float:
        return max(0.0, 1 - self.higher - self.lower - self.equivalent)


def simulate(
    rule: Rule,
    noise: Noise,
    effect_pct: float = 0.0,
    *,
    runs: int = 4000,
    seed: int = 1,
    metrics: int = 1,
    contenders: int = 2,
    host: float | None = None,
    plan: Orders = orders,
    futility: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> Characteristics:
    """Simulate `runs` runs of `metrics` independent primary metrics, in which every contender has the effect. `host`
    is the noise's correlation with a covariate, `plan` draws the orders, `futility` ends hopeless runs."""
    generator = np.random.default_rng([seed, round(1e6 * effect_pct) % 2**32, metrics])
    counts = np.zeros(3)
    alarms = refuted = 0
    ends: list[NDArray[np.int_]] = []
    chunk = max(1, CHUNK // metrics)
    known = plans(plan, contenders, rule.max_blocks, seed)
    for start in range(0, runs, chunk):
        count = min(chunk, runs - start)
        drawn = draw(noise, known, effect_pct, count, metrics, host, generator)
        judged = one_by_one(rule, drawn) if np.isnan(drawn.logs).any() else at_once(rule, drawn, futility)
        counts += [(judged.sides == side).sum() for side in (ABOVE, BELOW, WITHIN)]
        alarms += int((np.abs(judged.sides) == 1).any(axis=1).sum())
        refuted += judged.refuted
        ends.append(judged.blocks)
        progress(count)
    ended = np.concatenate(ends)
    higher, lower, equivalent = (counts / (runs * metrics * (contenders - 1))).tolist()
    any_difference = alarms / runs
    numbers, times = np.unique(ended, return_counts=True)
    return Characteristics(
        noise=noise.name, effect_pct=effect_pct, metrics=metrics, runs=runs, higher=higher, lower=lower,
        equivalent=equivalent, any_difference=any_difference,
        any_difference_error=float(np.sqrt(any_difference * (1 - any_difference) / runs)),
        blocks_mean=float(ended.mean()), blocks_half=int(np.quantile(ended, 0.5, method="higher")),
        blocks_most=int(np.quantile(ended, 0.9, method="higher")),
        ended_at={int(number): int(many) / runs for number, many in zip(numbers, times, strict=True)},
        refuted=refuted,
    )  # fmt: skip


@lru_cache(maxsize=32)
def plans(plan: Orders, contenders: int, blocks: int, seed: int) -> NDArray[np.int_]:
    """Shape (PLANS, blocks, places): which contender has which place, by the generator that plans real runs."""
    found = [list(islice(plan(contenders, random.Random(seed * PLANS + one)), blocks)) for one in range(PLANS)]
    return np.array(found)


class SimulatedRuns(NamedTuple):
    """Simulated runs: arrays of shape (runs, metrics, contenders, blocks)."""

    logs: Floats
    places: Floats
    """Within the block, from 0."""
    host: Floats | None


def draw(
    noise: Noise,
    known: NDArray[np.int_],
    effect_pct: float,
    runs: int,
    metrics: int,
    host: float | None,
    generator: np.random.Generator,
) -> SimulatedRuns:
    """Boots in the order of time, then sorted to their contenders."""
    order = known[generator.integers(0, len(known), runs)]
    _, blocks, contenders = order.shape
    arms = np.repeat(order.reshape(runs, -1), metrics, axis=0)
    logs = noise.draw(generator, arms)
    place_of = np.argsort(order, axis=2)
    by_arm = np.repeat(place_of, metrics, axis=0)
    shape = (runs, metrics, blocks, contenders)

    def sorted_to_arms(values: Floats) -> Floats:
        taken = np.take_along_axis(values.reshape(-1, blocks, contenders), by_arm, axis=2)
        return np.moveaxis(taken.reshape(shape), 3, 2)

    beside = None
    if host is not None:
        beside = host * logs / np.nanstd(logs) + np.sqrt(1 - host**2) * generator.standard_normal(logs.shape)
        beside = sorted_to_arms(beside)
    effects = np.log1p(effect_pct / 100) * (np.arange(contenders) > 0)
    places = np.moveaxis(by_arm.reshape(shape), 3, 2).astype(float)
    return SimulatedRuns(sorted_to_arms(logs) + effects[:, None], places, beside)


class SimulatedEnds(NamedTuple):
    sides: Sides
    """By run and comparison."""
    blocks: NDArray[np.int_]
    """By run."""
    refuted: int


def at_once(rule: Rule, drawn: SimulatedRuns, futility: bool = False) -> SimulatedEnds:
    """Runs without missing values, all of them together."""
    runs, metrics, contenders, blocks = drawn.logs.shape
    comparisons = metrics * (contenders - 1)

    def gaps(values: Floats) -> Floats:
        return (values[:, :, 1:] - values[:, :, :1]).reshape(runs, comparisons, blocks)

    rule = rule.for_comparisons(comparisons)
    looks = plan_looks(rule, range(1, blocks + 1))
    order = gaps(drawn.places)
    host = [] if drawn.host is None else [gaps(drawn.host)]
    found = estimates(gaps(drawn.logs), [order, *host], looks.pairs, rule.adjusts_from)
    alpha, border = rule.alpha / comparisons, margin("ratio", rule)
    low, high = repeated_interval(found, looks.levels(rule, alpha))
    decision = decide(low, high, looks, border, rule, orders_vary(order, looks.pairs, rule))
    over = np.all(decision.holds, axis=1)
    if futility:
        chance = chance_to_decide(found, looks.pairs, blocks, border, rule, alpha)
        gone = np.all(decision.holds | (chance < CHANCE), axis=1)
        over |= gone & (np.array(looks.blocks) >= FROM_BLOCK)
    end = np.where(np.any(over, axis=1), np.argmax(over, axis=1), len(looks.blocks) - 1)
    at_end = end[:, None, None]
    low, high = (np.take_along_axis(ends, at_end, axis=2)[..., 0] for ends in (low, high))
    sides = np.where(np.take_along_axis(decision.holds, at_end, axis=2)[..., 0], decision.side, UNDECIDED)
    wrong = (sides != UNDECIDED) & ~supports(sides, low, high, border)
    return SimulatedEnds(sides, np.array(looks.blocks)[end], int(wrong.sum()))


def one_by_one(rule: Rule, drawn: SimulatedRuns) -> SimulatedEnds:
    """Runs with missing values: each by itself, as tables like those of a real run."""
    runs, metrics, contenders, blocks = drawn.logs.shape
    sides = np.full((runs, metrics * (contenders - 1)), UNDECIDED)
    ends = np.full(runs, blocks)
    for run in range(runs):
        found = compare(tables(drawn.logs[run], drawn.places[run]), rule)
        alpha = rule.alpha / len(found)
        decisions = [c.decision(alpha) if c.looks.pairs else None for c in found]
        for block in range(rule.for_comparisons(len(found)).looks()[0], blocks + 1):
            now = [side_after(c, decision, block) for c, decision in zip(found, decisions, strict=True)]
            if block == blocks or UNDECIDED not in now:
                sides[run], ends[run] = now, block
                break
    return SimulatedEnds(sides, ends, 0)


def side_after(c: Comparison, decision: Decision | None, block: int) -> int:
    """The side that a comparison shows after so many blocks, as in a run at that time."""
    if decision is None or block not in c.looks.blocks or not decision.holds[c.looks.blocks.index(block)]:
        return UNDECIDED
    side = int(decision.side)
    seen = replace(c, blocks=c.blocks[:block], before=c.before[:block], after=c.after[:block])
    return UNDECIDED if forbidden_by_missing(seen, side) else side


def tables(logs: Floats, places: Floats) -> list[Samples]:
    """One simulated run as a collector gives it; arrays of shape (metrics, contenders, blocks)."""
    _, contenders, blocks = logs.shape
    return [
        Samples(
            benchmark=f"simulated-{number}",
            metric=Metric(name="time", unit="", better="none"),
            primary=True,
            blocks=list(range(1, blocks + 1)),
            values={
                f"k{arm}": [None if math.isnan(value) else math.exp(value) for value in values[arm].tolist()]
                for arm in range(contenders)
            },
            order={
                f"k{arm}": [block * contenders + int(place) for block, place in enumerate(places[number, arm])]
                for arm in range(contenders)
            },
        )
        for number, values in enumerate(logs)
    ]


def sweep(
    rule: Rule,
    noises: Sequence[Noise],
    effects_pct: Sequence[float],
    *,
    runs: int,
    seed: int,
    metrics: int = 1,
    progress: Callable[[int], None] = lambda _: None,
) -> list[Characteristics]:
    """Every noise with every effect, in that order."""
    return [
        simulate(rule, noise, effect, runs=runs, seed=seed, metrics=metrics, progress=progress)
        for noise in noises
        for effect in effects_pct
    ]
