"""A case: one verdict with the values that it rests on, as the checks look at it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kduel.core.experiment import Metric
from kduel.core.results import MetricResult, Results
from kduel.core.samples import Samples

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Arm(NamedTuple):
    """A contender's values that are not missing, in the order of time where it is known, else of trial numbers."""

    name: str
    values: Floats
    blocks: Ints
    positions: Ints | None
    """Of the trials in the run's order of time; None where it is not known."""


@dataclass(frozen=True)
class Case:
    """One contender's metric against the baseline's."""

    result: MetricResult
    metric: Metric
    paired: bool
    baseline: Arm
    contender: Arm
    delta_pct: float
    """The smallest effect of interest."""

    @property
    def arms(self) -> tuple[Arm, Arm]:
        return self.baseline, self.contender

    @property
    def steady(self) -> bool:
        """Whether neither arm varies at all, as sizes and counts do: then nothing here is noise."""
        return self.result.scale == "exact" or all(np.ptp(arm.values) == 0 for arm in self.arms)

    @property
    def positive(self) -> bool:
        """Whether both means are above 0, so that shares of them mean something."""
        return all(arm.values.mean() > 0 for arm in self.arms)

    @property
    def counterpart(self) -> tuple[Floats, Floats, Ints]:
        """The values of both arms in the blocks that have both, with the blocks."""
        blocks, first, second = np.intersect1d(self.baseline.blocks, self.contender.blocks, return_indices=True)
        return self.baseline.values[first], self.contender.values[second], blocks

    @cached_property
    def residuals(self) -> tuple[Floats, Ints]:
        """All values as shares of their arm's mean above or below it, with their places in time.

        Where a mean is not positive they are in the metric's unit. Known times count, else trial numbers.
        """
        known = all(arm.positions is not None for arm in self.arms)
        values = [arm.values - arm.values.mean() for arm in self.arms]
        if self.positive:
            values = [gaps / arm.values.mean() for gaps, arm in zip(values, self.arms, strict=True)]
        places = [arm.positions if known and arm.positions is not None else arm.blocks for arm in self.arms]
        return np.concatenate(values), np.concatenate(places)


def arm(table: Samples, name: str) -> Arm:
    """The arm of that name; empty where the table has no values of it."""
    values = table.values.get(name, [])
    order = table.order.get(name) or [None] * len(values)
    kept = [
        (place if place is not None else block, value, block, place)
        for value, block, place in zip(values, table.blocks, order, strict=True)
        if value is not None
    ]
    kept.sort(key=lambda entry: entry[0])
    known = bool(kept) and all(place is not None for _, _, _, place in kept)
    return Arm(
        name,
        np.array([value for _, value, _, _ in kept], dtype=float),
        np.array([block for _, _, block, _ in kept], dtype=int),
        np.array([place for _, _, _, place in kept], dtype=int) if known else None,
    )


def cases(results: Results, samples: list[Samples]) -> Iterator[Case]:
    """Every verdict whose two arms have a value each."""
    delta = float(results.study.get("delta") or results.study.get("delta_pct") or 1.0)
    tables = {table.key: table for table in samples}
    arms: dict[tuple[str, str], Arm] = {}
    for result in results.metrics:
        table = tables.get(f"{result.benchmark}/{result.metric}")
        if table is None:
            continue
        for name in (result.baseline, result.contender):
            if (table.key, name) not in arms:
                arms[table.key, name] = arm(table, name)
        baseline, contender = arms[table.key, result.baseline], arms[table.key, result.contender]
        if baseline.values.size and contender.values.size:
            yield Case(result, table.metric, table.paired, baseline, contender, delta)


def short(value: float) -> str:
    """A value as a message quotes it."""
    return f"{value:.6g}"


def amount(value: float, unit: str) -> str:
    """A value with its unit as a message quotes it."""
    return short(value) if unit in ("", "1", "count") else f"{short(value)} {unit}"
