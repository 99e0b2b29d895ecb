"""Slices against blocks: how to spend the time of a coming run, by an earlier one's components (Kalibera and Jones,
Rigorous Benchmarking in Reasonable Time, ISMM 2013): a further slice lowers one part, a further block all."""

import math
from collections.abc import Sequence

from msgspec import Struct

from kduel.core.slices import Advice, Components
from kduel.judge.verdict.comparison import Comparison, margin
from kduel.judge.verdict.components import components
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.sample_size import EITHER_POWER, Parts, best_iterations, blocks_for, ratio_spread
from kduel.judge.verdict.wording import HOPELESS

MOST_SLICES = 32


class Times(Struct, kw_only=True):
    """Durations of the parts of a trial, in seconds."""

    boot: float
    """All but the slices: boot, settling, and steps that are not cut."""
    slices: dict[str, float]
    """By the label of a step that is cut: one slice."""

    def trial(self, count: int) -> float:
        return self.boot + count * math.fsum(self.slices.values())


class MetricParts(Struct, kw_only=True):
    """Sources of a metric's spread, and the advice that follows."""

    benchmark: str
    metric: str
    contender: str
    components: Components
    advice: Advice | None
    """None for a step in one piece, of which it is not known how much comes from within a boot."""
    best_slices: int | None = None
    """Slices a boot that give the narrowest interval for the time, at measured costs; null for one piece."""


class Allocation(Struct, kw_only=True):
    """Slices and blocks that reach delta, as `kduel plan` proposes them."""

    slices: int
    """Of each step that is cut, each as long as now."""
    blocks: int
    trial_seconds: float
    seconds: float


class Allocations(Struct, kw_only=True):
    """All of it; `now` with the slices of the pilot, `best` with those that take the least time."""

    metrics: list[MetricParts]
    now: Allocation | None = None
    best: Allocation | None = None


def allocate(found: Sequence[Comparison], rule: Rule, alpha: float, times: Times | None) -> Allocations:
    """Components of each comparison that has them; with `times` also the slices and blocks that a verdict at delta takes,
    over all metrics that can be decided with the slices that there are, where any step is cut."""
    parts = [(c, split) for c in found if (split := components(c.table, c.contender)) is not None]
    known = [
        MetricParts(
            benchmark=c.table.benchmark,
            metric=c.table.metric.name,
            contender=c.contender,
            components=split,
            advice=split.advice if split.slices > 1 else None,
            best_slices=best_slices(split, c.table.benchmark, times),
        )
        for c, split in parts
    ]
    cut = [split.slices for _, split in parts if split.slices > 1]
    if times is None or not cut:
        return Allocations(metrics=known)
    contenders = 1 + len({c.contender for c in found})
    now = min(max(cut), MOST_SLICES)
    possible = [(c, split) for c, split in parts if 0 < (blocks_with(c, split, now, rule, alpha) or 0) <= HOPELESS]

    def allocation(count: int) -> Allocation | None:
        blocks = [blocks_with(c, split, count, rule, alpha) for c, split in possible]
        known = [number for number in blocks if number is not None]
        if not known or len(known) < len(blocks):
            return None
        trial = times.trial(count)
        return Allocation(
            slices=count, blocks=max(known), trial_seconds=trial, seconds=max(known) * contenders * trial
        )

    every = [one for count in range(1, MOST_SLICES + 1) if (one := allocation(count)) is not None]
    return Allocations(metrics=known, now=allocation(now), best=min(every, key=lambda one: one.seconds, default=None))


def best_slices(split: Components, step: str, times: Times | None) -> int | None:
    """The number for one metric by itself, on the boot's own time."""
    if split.slices == 1 or times is None or not times.slices.get(step):
        return None
    parts = Parts(split.boots_pct, split.slice_pct, boots=2, iterations=split.slices)
    return min(MOST_SLICES, best_iterations(parts, times.boot / len(times.slices), times.slices[step]))


def blocks_with(c: Comparison, split: Components, count: int, rule: Rule, alpha: float) -> int | None:
    """Blocks that find "equivalent" with 80 % power, were the step cut into so many slices: the measured spread, its part from
    slices in proportion. None where no number is enough or the pilot has too few pairs."""
    spread, _ = ratio_spread(c)
    if spread is None:
        return None
    value = split.boot_value_pct
    share = (split.slice_pct / value) ** 2 / split.slices if split.slices > 1 and value else 0.0
    expected = spread * math.sqrt(1 - share + share * split.slices / count)
    return blocks_for(expected, margin("ratio", rule), rule, alpha, EITHER_POWER, rule.equivalent_from)
