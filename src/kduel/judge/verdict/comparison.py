"""One metric of one contender against the baseline: pairs, scale, looks and, for a primary metric, the decision."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kduel.core.errors import InputError
from kduel.core.metric_results import ConditionResult, Scale
from kduel.core.samples import REASON, Samples, within_reason
from kduel.core.text import plural
from kduel.judge.verdict import strata
from kduel.judge.verdict.adjust import Estimates, estimates, is_constant
from kduel.judge.verdict.looks import Decision, Looks, decide, orders_vary, plan_looks, repeated_interval
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.spending import Floats
from kduel.judge.verdict.strata import Machines

ROUNDING = 1e-12
"""Values that differ by a smaller share are the same, unless both are whole numbers, which are counted."""
EXACT_WHOLE = 2.0**53
"""Up to here every whole number is a float of its own."""
TIME_UNITS = frozenset(("s", "sec", "seconds", "ms", "msec", "us", "µs", "ns", "min", "h"))
"""In these nothing stays exactly the same: where no value varies, the clock is coarse, and no arms are equal."""
RATE_UNITS = frozenset(("fps", "iops", "bps", "kbps", "mbps", "gbps"))
"""Rates over time whose unit does not show it, in lower case."""


def is_of_time(unit: str) -> bool:
    """True if a value of this unit is a time, or a rate over time."""
    return unit in TIME_UNITS or unit.rpartition("/")[2] in TIME_UNITS or unit.lower() in RATE_UNITS


def check(samples: Sequence[Samples]) -> None:
    """Raises InputError naming the metric whose table cannot be judged, and why."""
    for table in samples:
        if len(table.values) < 2:
            raise InputError(
                f"{table.key} has values of {len(table.values)} contender(s)", "A verdict compares two at least."
            )
        if len(set(table.blocks)) != len(table.blocks):
            raise InputError(f"{table.key} has a block twice", "Keep one trial of each contender in a block.")
        for contender, values in table.values.items():
            if len(values) != len(table.blocks):
                raise InputError(
                    f"{table.key}: {contender} has {plural(len(values), 'value')} in {plural(len(table.blocks), 'block')}"
                )
            for block, value in zip(table.blocks, values, strict=True):
                number = isinstance(value, int | float) and not isinstance(value, bool)
                if value is not None and not (number and within_reason(value)):
                    raise InputError(
                        f"{table.key}: {contender} has {value!r:.80} in block {block}, which is not {REASON}",
                        "Where nothing was measured leave the value out (null), so that the pair counts as missing.",
                    )


def finished_blocks(samples: Sequence[Samples]) -> int:
    """Number of blocks that the run has finished, counted from the first. One in which a trial was not carried out
    yet (its `order` is None) does not count, as in an uninterrupted run."""
    if not samples:
        return 0
    blocks = sorted({block for table in samples for block in table.blocks})
    waiting = {
        block
        for table in samples
        for order in table.order.values()
        for block, position in zip(table.blocks, order, strict=True)
        if position is None
    }
    while blocks and blocks[-1] in waiting:
        blocks.pop()
    return len(blocks)


def complete(arms: Sequence[Floats]) -> NDArray[np.bool_]:
    """By block: whether two of the arms at least gave a value. What one alone gave cannot be compared."""
    there: NDArray[np.bool_] = np.count_nonzero(~np.isnan(arms), axis=0) > 1
    return there


def counted_blocks(samples: Sequence[Samples], rule: Rule) -> list[int]:
    """The blocks that count: finished, and no more than planned."""
    count = min(finished_blocks(samples), rule.max_blocks)
    return sorted({block for table in samples for block in table.blocks})[:count]


def columns(table: Samples, counted: Sequence[int]) -> dict[str, Floats]:
    """By contender, the values over these blocks; NaN is a missing one."""
    at = {block: index for index, block in enumerate(table.blocks)}
    return {
        name: np.array([values[at[block]] if block in at else None for block in counted], dtype=float)
        for name, values in table.values.items()
    }


def compared_values(samples: Sequence[Samples], rule: Rule) -> list[dict[str, list[float]]]:
    """By table and contender, the values that verdicts rest on: of complete blocks, or all if they are no pairs."""
    counted = counted_blocks(samples, rule)
    found = []
    for table in samples:
        if table.paired:
            arms = columns(table, counted)
            there = complete(list(arms.values()))
            kept = {name: arm[there & ~np.isnan(arm)].tolist() for name, arm in arms.items()}
        else:
            kept = {name: [v for v in values if v is not None] for name, values in table.values.items()}
        found.append(kept)
    return found


@dataclass(frozen=True)
class Comparison:
    """The values of both arms over the blocks that count, in the order of blocks; NaN is a missing one."""

    table: Samples
    contender: str
    rule: Rule
    """With what follows from the number of primary comparisons."""
    blocks: list[int]
    """The blocks that count."""
    before: Floats
    """The baseline's values."""
    after: Floats
    """The contender's."""

    @property
    def baseline(self) -> str:
        return self.table.contenders[0]

    @cached_property
    def complete(self) -> NDArray[np.bool_]:
        """By block: whether both arms gave a value."""
        return complete([self.before, self.after])

    @cached_property
    def pairs(self) -> tuple[Floats, Floats]:
        return self.before[self.complete], self.after[self.complete]

    @cached_property
    def conditions(self) -> list[ConditionResult]:
        """Counts of both arms under the same condition of the same block; exact repetitions are left out."""
        known = self.table.conditions
        if not {self.baseline, self.contender} <= known.keys():
            return []
        arms = known[self.baseline], known[self.contender]
        found: dict[tuple[str, float, float], ConditionResult] = {}
        for block, before, after in zip(self.table.blocks, *arms, strict=True):
            for name, value in before.items():
                if name in after:
                    one = ConditionResult(name=name, block=block, baseline=value, contender=after[name])
                    found.setdefault((name, value, one.contender), one)
        return list(found.values())

    @property
    def conditions_or_pairs(self) -> tuple[Floats, Floats]:
        """The values of both under each condition; of blocks where there are none, a repetition once."""
        if found := self.conditions:
            return np.array([one.baseline for one in found]), np.array([one.contender for one in found])
        if not self.table.scheduled:
            return self.pairs
        before, after = np.unique(self.pairs, axis=1)
        return before, after

    @property
    def n(self) -> int:
        return int(self.complete.sum())

    @cached_property
    def looks(self) -> Looks:
        return plan_looks(self.rule, np.cumsum(self.complete).tolist())

    @cached_property
    def constant(self) -> NDArray[np.bool_]:
        """By look: whether neither arm has varied so far."""
        before, after = self.pairs
        return is_constant(before, self.looks.pairs) & is_constant(after, self.looks.pairs)

    @cached_property
    def scales(self) -> list[Scale]:
        """By look: exact where nothing varied so far, ratio where all is positive so far, else difference."""
        before, after = self.pairs
        positive = np.logical_and.accumulate((before > 0) & (after > 0))[np.array(self.looks.pairs, dtype=int) - 1]
        return [
            "exact" if same else "ratio" if above else "difference"
            for same, above in zip(self.constant, positive, strict=True)
        ]

    @cached_property
    def machines_of_blocks(self) -> Machines | None:
        """By block that counts: its machine's place in `machine_names`; None where the verdict is about one."""
        if len(set(self.table.machines)) < 2 and self.rule.scope == "these":
            return None
        names = self.table.machines or [""] * len(self.table.blocks)
        machine_of = dict(zip(self.table.blocks, names, strict=True))
        places = {name: place for place, name in enumerate(self.machine_names)}
        return np.array([places.get(machine_of.get(block, ""), 0) for block in self.blocks], dtype=int)

    @cached_property
    def machines(self) -> Machines | None:
        """Machine of each complete pair, as in `machines_of_blocks`."""
        return None if self.machines_of_blocks is None else self.machines_of_blocks[self.complete]

    @property
    def machine_names(self) -> list[str]:
        """In the order of their first blocks."""
        return list(dict.fromkeys(self.table.machines)) or [""]

    def estimates_of(self, gaps: Floats, covariates: list[Floats], pairs: Sequence[int]) -> Estimates:
        """By look: mean and standard error of so many of the paired differences."""
        if self.machines is None or not pairs:
            return estimates(gaps, covariates, pairs, self.rule.adjusts_from)
        machines = self.machines[: gaps.size]
        return strata.estimates(gaps, covariates, machines, pairs, self.rule.adjusts_from, self.rule.scope)

    @cached_property
    def sufficient(self) -> NDArray[np.bool_]:
        """By look: whether each machine has enough pairs, and the machines have their present shares of blocks."""
        if self.machines is None or self.machines_of_blocks is None:
            return np.ones(len(self.looks.pairs), dtype=bool)
        found: NDArray[np.bool_] = strata.enough(
            self.machines, self.looks.pairs, self.rule.fewest
        ) & strata.is_balanced(self.machines_of_blocks, self.looks.blocks)
        return found

    @cached_property
    def estimates(self) -> Estimates:
        """By look: mean and standard error of the paired differences on that look's scale."""
        before, after = self.pairs
        pairs = self.looks.pairs
        found = self.estimates_of(differences(before, after), self.covariates, pairs)
        ratio = np.array([scale == "ratio" for scale in self.scales])
        if ratio.any():
            positive = int(np.logical_and.accumulate((before > 0) & (after > 0)).sum())
            reached = [min(count, positive) for count in pairs]
            known = [column[:positive] for column in self.covariates]
            logs = self.estimates_of(log_ratios(before[:positive], after[:positive]), known, reached)
            found = Estimates(*(np.where(ratio, *both) for both in zip(logs, found, strict=True)))
        return found

    @cached_property
    def order(self) -> Floats:
        """By complete pair: how many places after the baseline's the contender's trial was; NaN where not known."""
        return self.gaps(self.table.order)

    @cached_property
    def covariates(self) -> list[Floats]:
        """By complete pair: what enters the interval next to the difference; NaN where it is missing."""
        if self.rule.adjusts_from is None:
            return []
        declared = [self.gaps(self.table.covariates.get(name, {})) for name in self.rule.covariates]
        return [self.order, *declared, *self.followers]

    @cached_property
    def followers(self) -> list[Floats]:
        """By contender of the run but the first, by complete pair: whether a trial followed one of it, the contender's less the
        baseline's; empty unless the rule has them enter the interval."""
        names = list(self.table.order)[1:] if self.rule.carry_over else []
        return [self.gaps(trials_after(self.table, name)) for name in names]

    def gaps(self, known: Mapping[str, Sequence[float | None]]) -> Floats:
        """By complete pair: the contender's value of something that is known of trials, less the baseline's."""
        arms = []
        for name in (self.baseline, self.contender):
            value_of = dict(zip(self.table.blocks, known.get(name, ()), strict=False))
            arms.append(np.array([value_of.get(block) for block in self.blocks], dtype=float)[self.complete])
        gaps: Floats = arms[1] - arms[0]
        return gaps

    @cached_property
    def margins(self) -> Floats:
        """By look: what counts as equivalent on that look's scale; the least there is where only equal is."""
        hidden = is_of_time(self.table.metric.unit)
        return np.array([0.0 if hidden and scale == "exact" else margin(scale, self.rule) for scale in self.scales])

    @cached_property
    def orders_vary(self) -> NDArray[np.bool_]:
        """By look: whether the order has varied, so that a difference is not just that of the places."""
        return orders_vary(self.order, self.looks.pairs, self.rule)

    def decision(self, alpha: float) -> Decision:
        """The look that decided, and whether the present one still does. Not to be called where there is no look."""
        low, high = repeated_interval(self.estimates, self.looks.levels(self.rule, alpha))
        return decide(low, high, self.looks, self.margins, self.rule, self.orders_vary & self.sufficient)


def trials_after(table: Samples, name: str) -> dict[str, list[float | None]]:
    """By contender and block: 1 for a trial that followed one of `name` on its machine, 0 for one that did not; the first of a
    machine, or of a part of a merged run, is as far from all contenders."""
    none = [""] * len(table.blocks)
    machines = list(zip(table.parts or none, table.machines or none, strict=True))
    trials = sorted(
        (machines[index], place, arm, index)
        for arm, order in table.order.items()
        for index, place in enumerate(order)
        if place is not None
    )
    found: dict[str, list[float | None]] = {arm: [None] * len(table.blocks) for arm in table.order}
    before: tuple[tuple[str, str], str] | None = None
    for machine, _, arm, index in trials:
        follows = before is not None and before[0] == machine
        found[arm][index] = float(before == (machine, name)) if follows else 1 / len(table.order)
        before = machine, arm
    return found


def family(samples: Sequence[Samples]) -> int:
    """Number of primary comparisons that chance has a part in: alpha is split over them."""
    return sum(len(t.values) - 1 for t in samples if t.primary and (t.evidence.varies or t.scheduled))


def compare(samples: Sequence[Samples], rule: Rule) -> list[Comparison]:
    """Every metric of every contender, in the order of `samples`, over the blocks that count. Raises InputError."""
    check(samples)
    rule = rule.for_comparisons(family(samples))
    counted = counted_blocks(samples, rule)
    found = []
    for table in samples:
        arms = columns(table, counted)
        baseline, *others = arms
        found += [Comparison(table, other, rule, counted, arms[baseline], arms[other]) for other in others]
    return found


def differences(before: Floats, after: Floats) -> Floats:
    """Paired differences in the metric's unit; what is rounding only is 0."""
    gaps = after - before
    largest = np.maximum(np.abs(before), np.abs(after))
    whole = (before == np.rint(before)) & (after == np.rint(after)) & (largest < EXACT_WHOLE)
    gaps[~whole & (np.abs(gaps) <= ROUNDING * largest)] = 0.0
    return gaps


def log_ratios(before: Floats, after: Floats) -> Floats:
    """Paired log-ratios of positive values; what is rounding only is 0."""
    logs = np.log(after) - np.log(before)
    logs[np.abs(logs) <= ROUNDING] = 0.0
    return logs


def margin(scale: Scale, rule: Rule) -> float:
    """Half the region of equivalence. The same up and down in logarithms, so that swapping the arms mirrors the
    verdict: from -delta / (1 + delta) to +delta, a little within +-delta."""
    if scale == "ratio":
        return math.log1p(rule.delta_pct / 100)
    return math.ulp(0.0) if scale == "exact" else 0.0
