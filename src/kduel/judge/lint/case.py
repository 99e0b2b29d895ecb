"""A case: one verdict with the values that it rests on, as the checks examine it."""

import math
from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kduel.core.evidence import Evidence
from kduel.core.experiment import Metric
from kduel.core.format import change, percent
from kduel.core.metric_results import MetricResult
from kduel.core.results import Results
from kduel.core.samples import Samples
from kduel.judge.verdict.rule import Rule, gating_rule
from kduel.judge.verdict.voids import Missing, missing_in

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FALSE_ALARMS = 0.002
"""The chance that a check of kind "chance" raises a finding on a run of clean data: it is shared by all its verdicts."""


class ArmValues(NamedTuple):
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
    baseline: ArmValues
    contender: ArmValues
    rule: Rule
    """The rule that gave the verdict."""
    table: Samples
    """Of all contenders."""
    level: float = FALSE_ALARMS
    """The chance of a false alarm that each check may have in this case."""
    counted: bool = False
    """Whether an exact machine counted the values."""
    absent: tuple[Missing, Missing] = (Missing(0, 0), Missing(0, 0))
    """By arm: how many of its valid trials gave no value."""

    @property
    def delta_pct(self) -> float:
        """The smallest effect of interest."""
        return self.rule.delta_pct

    @property
    def arms(self) -> tuple[ArmValues, ArmValues]:
        return self.baseline, self.contender

    @property
    def sizes(self) -> tuple[int, int]:
        """By arm, its number of values in the blocks in which both were run: an interrupted run loses nothing yet."""
        run = [self.table.order.get(arm.name, []) for arm in self.arms]
        blocks = self.table.blocks
        if self.paired and all(run):
            blocks = [block for block, *places in zip(blocks, *run, strict=True) if None not in places]
        first, second = (int(np.isin(arm.blocks, blocks).sum()) for arm in self.arms)
        return first, second

    @cached_property
    def evidence(self) -> Evidence:
        steady = self.result.scale == "exact" or all(np.ptp(arm.values) == 0 for arm in self.arms)
        if self.counted or (self.metric.exact and steady):
            return Evidence.COUNTED
        return Evidence.CONSTANT if steady else Evidence.VARYING if self.metric.exact else Evidence.SAMPLED

    @cached_property
    def positive(self) -> bool:
        """True if both means are above 0, so that shares of them mean something."""
        return all(arm.values.mean() > 0 for arm in self.arms)

    @cached_property
    def with_levelled_machines(self) -> "Case":
        """The case with each machine's values scaled to the level of all; itself where there is one machine."""
        if len(set(self.table.machines)) < 2 or not self.positive:
            return self
        return replace(
            self,
            baseline=level_machines(self.baseline, self.table),
            contender=level_machines(self.contender, self.table),
        )

    @cached_property
    def counterpart(self) -> tuple[Floats, Floats, Ints]:
        """The values of both arms in the blocks that have both, with the blocks."""
        blocks, first, second = np.intersect1d(self.baseline.blocks, self.contender.blocks, return_indices=True)
        return self.baseline.values[first], self.contender.values[second], blocks

    @cached_property
    def gaps(self) -> Floats:
        """By complete pair: the difference of the arms on the verdict's scale, logarithms for a ratio."""
        before, after, _ = self.counterpart
        return np.log(after) - np.log(before) if self.logarithmic else after - before

    @cached_property
    def logarithmic(self) -> bool:
        """True if the verdict compares logarithms, and every value has one."""
        return self.result.scale == "ratio" and all((arm.values > 0).all() for arm in self.arms)

    @cached_property
    def medians(self) -> tuple[float, float]:
        return float(np.median(self.baseline.values)), float(np.median(self.contender.values))

    @cached_property
    def deviations(self) -> tuple[Floats, Floats]:
        """By arm: distances from the arm's median, as the verdict's scale measures them."""
        found = [np.log(arm.values) if self.logarithmic else arm.values for arm in self.arms]
        first, second = (values - np.median(values) for values in found)
        return first, second

    @cached_property
    def residuals(self) -> tuple[Floats, Ints]:
        """All values as shares of their arm's mean (in the unit where that is not positive), with their places in
        time, else trial numbers; in turns the differences of the arms, as what changes with time is common to a
        block."""
        if self.rule.in_turns:
            level = 1.0 if self.logarithmic or not self.positive else float(self.baseline.values.mean())
            return (self.gaps - self.gaps.sum() / max(1, self.gaps.size)) / level, self.counterpart[2]
        known = all(arm.positions is not None for arm in self.arms)
        values = [arm.values - arm.values.mean() for arm in self.arms]
        if self.positive:
            values = [gaps / arm.values.mean() for gaps, arm in zip(values, self.arms, strict=True)]
        places = [arm.positions if known and arm.positions is not None else arm.blocks for arm in self.arms]
        return np.concatenate(values), np.concatenate(places)


def level_machines(values: ArmValues, table: Samples) -> ArmValues:
    """The arm with each machine's values multiplied so that their mean is that of all."""
    machine_of = dict(zip(table.blocks, table.machines, strict=True))
    machines = np.array([machine_of[block] for block in values.blocks.tolist()])
    scaled = values.values.copy()
    for machine in np.unique(machines):
        own = machines == machine
        if (level := scaled[own].mean()) > 0:
            scaled[own] *= values.values.mean() / level
    return values._replace(values=scaled)


def arm(table: Samples, name: str) -> ArmValues:
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
    return ArmValues(
        name,
        np.array([value for _, value, _, _ in kept], dtype=float),
        np.array([block for _, _, block, _ in kept], dtype=int),
        np.array([place for _, _, _, place in kept], dtype=int) if known else None,
    )


def cases(results: Results, samples: list[Samples]) -> Iterator[Case]:
    """Every verdict whose two arms have a value each."""
    # Not by the name in full: `a/b` + `c` and `a` + `b/c` are two metrics.
    tables = {(table.benchmark, table.metric.name): table for table in samples}
    void = {(trial.contender, trial.block) for trial in results.trials if trial.status == "void"}
    level = FALSE_ALARMS / max(1, len(results.metrics))
    gating = gating_rule(results)
    exploring = gating.for_exploring()
    arms: dict[tuple[str, str, str], tuple[ArmValues, Missing]] = {}
    for result in results.metrics:
        place = result.benchmark, result.metric
        table = tables.get(place)
        if table is None:
            continue
        for name in (result.baseline, result.contender):
            if (*place, name) not in arms:
                arms[*place, name] = arm(table, name), absent_values(table, name, void)
        (baseline, fewer), (contender, less) = arms[*place, result.baseline], arms[*place, result.contender]
        if baseline.values.size and contender.values.size:
            yield Case(
                result=result, metric=table.metric, paired=table.paired, baseline=baseline, contender=contender,
                rule=gating if result.role == "primary" else exploring, table=table,
                counted=not results.machine.evidence.varies, level=level, absent=(fewer, less),
            )  # fmt: skip


def absent_values(table: Samples, name: str, void: Set[tuple[str, int]]) -> Missing:
    """The values that the contender's valid trials did not give; of an import, those that trial numbers show."""
    if not table.paired:
        return missing_in(table, name)
    values = table.values.get(name, [])
    order = table.order.get(name) or [0] * len(values)
    carried_out = [
        value
        for value, block, place in zip(values, table.blocks, order, strict=True)
        if place is not None and (name, block) not in void and block not in table.beyond.get(name, ())
    ]
    return Missing(sum(value is None for value in carried_out), len(carried_out))


def gap_text(gap: float, logarithmic: bool, unit: str) -> str:
    """A difference on the verdict's scale as a message quotes it."""
    return percent(100 * math.expm1(gap)) if logarithmic else change(gap, unit)
