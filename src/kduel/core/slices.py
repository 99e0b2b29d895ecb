"""Slices: a step measured in pieces spread over a trial, their reduction to one number, and what varies. Other work
on the host comes in spells of seconds, of which slices over the whole trial meet a share in every boot."""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Literal

from msgspec import Struct, structs

from kduel.core.experiment import Better, Metric

Reducer = Literal["mean", "median", "better-half"]
ALL = "-of-all-slices"
"""Ends the name of the metric that is the plain mean of all slices."""


def slice_label(label: str, piece: int) -> str:
    """Name of a step's slice, `LABEL.s1`; the label itself for a step in one piece (0)."""
    return f"{label}.s{piece}" if piece else label


class SliceValue(Struct, frozen=True):
    """One slice's value, and when the slice began, in seconds after the boot (None if not known)."""

    began: float | None
    value: float
    error: float | None = None
    """Relative standard error by the slice's own single measurements, where the benchmark gives it."""


def mean_of_better_half(values: Sequence[float], metric: Metric) -> float:
    ordered = sorted(values, reverse=metric.better == "higher")
    return math.fsum(ordered[: (len(ordered) + 1) // 2]) / ((len(ordered) + 1) // 2)


REDUCERS: dict[Reducer, Callable[[Sequence[float], Metric], float]] = {
    "mean": lambda values, _: math.fsum(values) / len(values),
    "median": lambda values, _: median(values),
    "better-half": mean_of_better_half,
}
KEPT: dict[str, Callable[[Sequence[float]], float]] = {"max": max, "min": min, "count": math.fsum, "total": math.fsum}
"""Extremes and totals stay what they are."""


def chosen_reducer(better: Better, reducer: Reducer) -> Reducer:
    """The reducer of a metric: one that has no better side is averaged."""
    return "mean" if better == "none" else reducer


def reduce_slices(values: Sequence[float], metric: Metric, reducer: Reducer) -> float:
    """A boot's value of a metric from its slices."""
    if metric.statistic in KEPT:
        return KEPT[metric.statistic](values)
    return REDUCERS[chosen_reducer(metric.better, reducer)](values, metric)


def plain_mean(metric: Metric) -> Metric:
    """The metric that shows the mean of all slices beside a reduced one, which may hide rare slow moments."""
    return structs.replace(
        metric,
        name=metric.name + ALL,
        about="Mean of all slices of the trial, rare slow moments included.",
        aspect="",
    )


def interleave(steps: Sequence[int], pieces: Mapping[int, int], seed: int) -> list[tuple[int, int]]:
    """(step, slice) in the order of a trial, drawn from its block's seed; slices count from 1, 0 is a step in one
    piece. Each step's slices are spread evenly over the rounds; without slices the steps in their order."""
    rounds = max((pieces[step] for step in steps), default=1)
    if rounds == 1:
        return [(step, 0) for step in steps]
    draw = random.Random(f"{seed}/slices")
    members: list[list[tuple[int, int]]] = [[] for _ in range(rounds)]
    for step in steps:
        if pieces[step] == 1:
            members[draw.randrange(rounds)].append((step, 0))
        for number in range(pieces[step] if pieces[step] > 1 else 0):
            members[(2 * number + 1) * rounds // (2 * pieces[step])].append((step, number + 1))
    for round_ in members:
        draw.shuffle(round_)
    return [piece for round_ in members for piece in round_]


Advice = Literal["more-blocks", "more-slices", "longer-slices"]
"""What lowers the largest part of the spread."""


class Components(Struct, frozen=True, kw_only=True):
    """Sources of a metric's spread: standard deviations in per cent of the value, None where one is not known."""

    blocks_pct: float
    """Between blocks: it is common to the contenders of a block, and cancels in their ratio."""
    boots_pct: float
    """Between boots of a block, without what their slices contribute; of steps in one piece with it."""
    slices_pct: float | None = None
    """Between slices of a boot, without what varies within them where that is known."""
    within_pct: float | None = None
    """Within slices: the standard error of a slice's value by its own single measurements."""
    slices: int = 1
    """How many a boot had."""

    @property
    def boot_value_pct(self) -> float:
        """Standard deviation of a boot's mean over its slices, within a block."""
        return math.hypot(self.boots_pct, self.slice_pct / math.sqrt(self.slices))

    @property
    def slice_pct(self) -> float:
        """Standard deviation of single slices within a boot, what varies within them included; 0 for a step in one piece."""
        return math.hypot(self.slices_pct or 0.0, self.within_pct or 0.0)

    @property
    def advice(self) -> Advice:
        """Shorter intervals come from this before all else."""
        if self.boots_pct >= self.slice_pct / math.sqrt(self.slices):
            return "more-blocks"
        return "longer-slices" if (self.within_pct or 0.0) > (self.slices_pct or 0.0) else "more-slices"
