"""The search for the commit that changed a metric that varies: probabilistic bisection in randomised blocks.

Each block measures both ends once, in random places among other commits. Each of the others is chosen, just before it
is measured, so that it contains the culprit with a probability of one half (Horstein 1963; Burnashev and Zigangirov
1974; Waeber, Frazier and Henderson 2013). The search ends when one commit, or one group of commits that cannot be told
apart, is the culprit with the wanted probability, and there is a change at all; or when the measurements are used up.

It is a function of the history, the seed and the values measured: repeated with the same values it takes the same
steps, so that a journal of the values is all that a resumed search needs.
"""

import math
import random
from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kduel.core.errors import NotMeasuredError
from kduel.run.bisect.history import History
from kduel.run.bisect.outcome import (
    Interval,
    Reading,
    SearchOutcome,
    Segment,
    difference,
    estimate_levels,
    group_by_block,
    interval,
    paired_difference,
)
from kduel.run.bisect.posterior import Evidence, Model
from kduel.run.bisect.terms import MOST_DECIMALS, Phase, SearchSettings, Split, State, Unmeasurable, decimals

Measure = Callable[[str, int], float]
"""The value of a commit, for a block. Raises Unmeasurable where the commit has none, and none later."""

SURE = float(np.log(20))
"""Logarithm of the Bayes factor for a change: at most one search in 20 without any finds one."""
FEWEST_BLOCKS = 3
MOST_OTHERS = 4
"""Commits measured in a block besides the ends; by simulation (docs/evidence/bisect.md)."""
MARGIN = 0.4
"""The search goes on until the wrong answer's probability is this part of what is allowed: with drift and heavy tails,
which are not in the model, the answer still holds as often as promised (docs/evidence/bisect.md)."""
CONFIRMS = 25.0
"""Blocks that a change of one spread of the ends' differences would take, beyond the fewest; by simulation."""
LIVE = 0.01
"""The probability from which on a group of commits counts as still possible."""
APART = 0.2
"""The part of the ends' difference by which a level must differ from both ends' to be one of its own."""
STRICT = 0.001
"""The error of that decision: it is taken for many commits, after each block."""
QUANTILES = (0.5, 0.25, 0.75, 0.375, 0.625, 0.125, 0.875)
"""Quantiles of the posterior at which to measure while nothing new is known."""


class Search:
    """One search. `watch` hears of each block."""

    def __init__(
        self,
        history: History,
        metric: str,
        measure: Measure,
        settings: SearchSettings,
        watch: Callable[[State], None],
    ) -> None:
        self.whole = history
        self.metric, self.measure, self.settings, self.watch = metric, measure, settings, watch
        self.random = random.Random(settings.seed)
        self.readings: list[Reading] = []
        self.skipped: dict[str, str] = {}
        self.block = 0
        self.decimals = 0
        self.narrow(history)

    def narrow(self, history: History) -> None:
        """Search this part of the history, with its own ends as references."""
        self.history = history
        self.model = Model(len(history))
        self.evidence = self.model.evidence()
        self.first = self.block
        self.odd = ""
        self._regroup()

    def _regroup(self) -> None:
        sizes = self.history.sizes()
        known = np.array([commit not in self.skipped for commit in self.history.commits])
        self.others: NDArray[np.intp] = np.flatnonzero(known & (sizes < len(self.history)))
        mask = np.zeros(len(self.history), dtype=bool)
        mask[self.others] = True
        self.groups = self.history.groups(mask)

    def run(self) -> SearchOutcome:
        """Search and confirm. Raises NotMeasuredError where an end cannot be measured, and what `measure` raises."""
        while True:
            self.search_block()
            if split := self.find_split():
                self.narrow(self.history.section(split.low, split.high))
            elif self.is_found():
                return self.confirm()
            elif why := self.reason_to_give_up():
                return self.outcome([], why)
            elif self.measurement_count >= self.settings.most:
                return self.confirm()

    @property
    def measurement_count(self) -> int:
        return len(self.readings)

    @property
    def ends(self) -> tuple[str, str]:
        return self.history.good, self.history.bad

    def group_probability(self) -> NDArray[np.float64]:
        found: NDArray[np.float64] = np.bincount(self.groups, self.evidence.probability).astype(float)
        return found

    def is_found(self) -> bool:
        """True if the set can get no smaller, or is what was wanted, and there is a change."""
        enough = self.block - self.first >= FEWEST_BLOCKS and self.evidence.log_bayes > SURE
        needed = 1 - MARGIN * (1 - self.settings.probability)
        return enough and float(self.group_probability().max()) >= needed

    def smallest_set(self) -> tuple[list[str], float]:
        """The fewest commits, whole groups, that hold the culprit with the required probability."""
        mass = self.group_probability()
        size = np.bincount(self.groups)
        # Groups by the probability of each of their commits: the fewest commits come out.
        order = np.argsort(-mass / np.maximum(size, 1), kind="stable")
        needed = int(np.searchsorted(np.cumsum(mass[order]), self.settings.probability - 1e-12)) + 1
        chosen = order[:needed]
        names = [self.history.commits[one] for group in chosen for one in np.flatnonzero(self.groups == group)[::-1]]
        return names, float(min(mass[chosen].sum(), 1.0))

    def other_count(self) -> int:
        """Number of commits in the next block besides the ends: few while the ends may be alike, or none."""
        if self.odd:
            return 1
        live = int((self.group_probability() >= LIVE).sum())
        if len(self.others) == 0 or (live < 2 and self.evidence.probability.max() > LIVE):
            return 0
        if self.block == self.first or self.evidence.log_bayes < 0:
            return 1 if self.block > self.first else 2
        return min(MOST_OTHERS, 2 * max(live - 1, 1))

    def search_block(self) -> None:
        """Measure one block: both ends and some others, in random order. It ends early when the culprit is found."""
        slots = ["good", "bad", *["other"] * self.other_count()]
        self.random.shuffle(slots)
        if not self.readings:
            # Where an end cannot be measured, nothing else needs to be.
            slots.sort(key="other".__eq__)
        self.block += 1
        rows: list[NDArray[np.float64]] = []
        values: list[float] = []
        blind: list[int] = []
        for slot in slots:
            commit = self.ends[0] if slot == "good" else self.ends[1] if slot == "bad" else None
            if commit is None:
                commit, value = self.measure_other(blind)
                if commit is None or value is None:
                    continue
            else:
                value = self.measure_end(commit)
            self.add_reading(commit, value, "search")
            rows.append(self.history.row(commit))
            values.append(value)
            if self.model.count or len(values) > 1:
                self.evidence = self.weigh(rows, values)
                blind = []
            if self.is_found():
                break
        self.model = self.model.with_block(rows, values)
        self.report("search")

    def weigh(self, rows: list[NDArray[np.float64]], values: list[float]) -> Evidence:
        """Evidence with the block as far as it is."""
        model = self.model.with_block(rows, values)
        model.resolution = self.resolution()
        return model.evidence()

    def measure_other(self, blind: list[int]) -> tuple[str | None, float | None]:
        """Choose a commit and measure it; `blind` are those chosen since something new was known."""
        while len(self.others):
            mass = self.history.mass(self.evidence.probability)[self.others]
            target = QUANTILES[min(len(blind), len(QUANTILES) - 1)]
            chosen = int(self.others[np.argmin(np.abs(mass - target))])
            if self.odd:
                chosen = self.history.index[self.odd]
            commit = self.history.commits[chosen]
            try:
                value = self.measure(commit, self.block)
            except Unmeasurable as error:
                self.skipped[commit] = error.message
                self._regroup()
                continue
            blind.append(chosen)
            return commit, value
        return None, None

    def measure_end(self, commit: str) -> float:
        """Measure an end. Raises NotMeasuredError where it has no value."""
        try:
            return self.measure(commit, self.block)
        except Unmeasurable as error:
            raise NotMeasuredError(
                f"{commit[:12]}, an end of the search, cannot be measured: {error.message}",
                error.remedy or "Both ends must give a number: try the command in a checkout of that commit.",
            ) from error

    def add_reading(self, commit: str, value: float, phase: Phase) -> None:
        self.readings.append(Reading(commit, self.block, value, phase))
        self.decimals = max(self.decimals, decimals(value))

    def resolution(self) -> float:
        """The step of values that have few decimals: they vary by that much without showing it."""
        return 0.0 if self.decimals > MOST_DECIMALS else float(10.0**-self.decimals)

    def scale(self) -> float:
        """The level of GOOD: what per cents are of."""
        return float(np.mean([one.value for one in self.readings if one.commit == self.whole.good]))

    def reason_to_give_up(self) -> str:
        """Reason to end without a result; empty while there may be a change."""
        gap = difference(self.own_readings(), *self.ends)
        if self.block - self.first <= FEWEST_BLOCKS or gap is None or self.evidence.log_bayes > SURE:
            return ""
        limit = self.settings.negligible / 100 * abs(self.scale())
        if not gap.is_within(limit):
            return ""
        # There and back: the ends are alike, and a commit between them is not. It is measured until that is sure.
        blocks = group_by_block(self.own_readings())
        others = dict.fromkeys(commit for own in blocks.values() for commit in own if commit not in self.ends)
        sides = {commit: [paired_difference(blocks, end, commit) for end in self.ends] for commit in others}
        self.odd = next(
            (commit for commit, own in sides.items() if all(one and one.is_beyond(limit) for one in own)), ""
        )
        return "" if self.odd else f"the ends differ by less than {self.settings.negligible:g} %"

    def own_readings(self) -> list[Reading]:
        """The readings since the search took its present ends."""
        return [one for one in self.readings if one.block > self.first]

    def find_split(self) -> Split | None:
        """The side with the larger change, where a measured commit's level is surely neither end's."""
        if self.block - self.first <= FEWEST_BLOCKS:
            return None
        blocks = group_by_block(self.own_readings())
        gap = paired_difference(blocks, *self.ends, STRICT)
        if gap is None:
            return None
        least = max(APART * abs(gap.mean), self.settings.negligible / 100 * abs(self.scale()))
        count = Counter(commit for own in blocks.values() for commit in own if commit not in self.ends)
        for commit in (commit for commit, number in count.items() if number > FEWEST_BLOCKS):
            sides = [paired_difference(blocks, end, commit, STRICT) for end in self.ends]
            if all(side is not None and side.is_beyond(least) for side in sides):
                low, high = (abs(side.mean) if side else 0.0 for side in sides)
                return Split(self.ends[0], commit) if low >= high else Split(commit, self.ends[1])
        return None

    def neighbours(self, suspects: list[str]) -> tuple[str, str]:
        """The nearest measurable commits before and after the set, or an end."""
        inside = np.array([commit in set(suspects) for commit in self.history.commits])
        before, after = self.ends
        most, least = -1.0, np.inf
        row_before = self.history.row(before)
        for number in self.others:
            row = self.history.row(self.history.commits[number])
            if not row[inside].any() and row.sum() > most:
                before, most, row_before = self.history.commits[number], row.sum(), row
        for number in self.others:
            row = self.history.row(self.history.commits[number])
            excess = float((row > row_before).sum())
            if row[inside].all() and row[row_before > 0].all() and excess < least:
                after, least = self.history.commits[number], excess
        return before, after

    def confirm(self) -> SearchOutcome:
        """The outcome, after the change across the set was measured again in fresh blocks."""
        if self.evidence.log_bayes <= SURE:
            return self.outcome([], f"no change was established in {self.measurement_count} measurements")
        suspects, _ = self.smallest_set()
        low, high = self.neighbours(suspects)
        points = list(dict.fromkeys((self.whole.good, low, high, self.whole.bad)))
        certain: bool | None = None
        for number in range(1, self.confirmation_blocks() + 1):
            self.block += 1
            self.random.shuffle(points)
            try:
                for commit in points:
                    self.add_reading(commit, self.measure(commit, self.block), "confirmation")
            except Unmeasurable:
                break
            fresh = difference([one for one in self.readings if one.phase == "confirmation"], low, high)
            certain = number >= FEWEST_BLOCKS and fresh is not None and fresh.is_beyond(0.0)
            self.report("confirmation")
        return self.outcome(suspects, "", (low, high), certain)

    def confirmation_blocks(self) -> int:
        """Number of blocks of the confirmation. The search's own blocks tell, not those that confirm: to end as soon as the change is
        significant would favour blocks that overstate it."""
        blocks = group_by_block(self.own_readings())
        low, high = self.ends
        gaps = [own[high] - own[low] for own in blocks.values() if low in own and high in own]
        if len(gaps) < FEWEST_BLOCKS or not (change := float(np.mean(gaps))):
            return self.settings.confirm
        wanted = FEWEST_BLOCKS - 1 + CONFIRMS * float(np.var(gaps, ddof=1)) / change**2
        return min(self.settings.confirm, math.ceil(wanted))

    def outcome(
        self, suspects: list[str], why: str, around: tuple[str, str] | None = None, certain: bool | None = None
    ) -> SearchOutcome:
        """Everything put together."""
        scale = self.scale()
        fresh = [one for one in self.readings if one.phase == "confirmation"] or self.readings
        good, bad = self.whole.good, self.whole.bad
        segments: list[Segment] = []
        if around is None:
            effect = difference(self.readings, good, bad)
        else:
            effect = difference(fresh, *around) or self.estimate(suspects)
            for low, high in ((good, around[0]), (around[1], bad)):
                change = difference(fresh, low, high) if low != high else None
                if change and scale:
                    segments.append(Segment(low=low, high=high, change=change.in_percent_of(scale)))
        return SearchOutcome(
            good=good,
            bad=bad,
            metric=self.metric,
            set=suspects,
            probability=self.smallest_set()[1] if suspects else None,
            effect=effect.in_percent_of(scale) if effect and scale else None,
            levels=estimate_levels(self.readings, (good, bad), self.statuses(suspects), self.skipped),
            measurements=len(self.readings),
            blocks=self.block,
            confirmed=certain,
            segments=segments,
            posterior={
                **dict.fromkeys(self.whole.commits, 0.0),
                **dict(zip(self.history.commits, self.evidence.probability.tolist(), strict=True)),
            },
            why=why,
        )

    def estimate(self, suspects: list[str]) -> Interval | None:
        """The effect from the search's own blocks: those that contain a suspect against those that do not."""
        inside = np.array([commit in set(suspects) for commit in self.history.commits])
        gaps = []
        readings = self.own_readings()
        for block in {one.block for one in readings}:
            sides: tuple[list[float], list[float]] = ([], [])
            for one in readings:
                share = self.history.row(one.commit)[inside].mean() if one.block == block else 0.5
                if share in (0.0, 1.0):
                    sides[int(share)].append(one.value)
            if all(sides):
                gaps.append(float(np.mean(sides[1]) - np.mean(sides[0])))
        return interval(gaps) if gaps else None

    def statuses(self, suspects: list[str]) -> dict[str, str]:
        """Status of each measured commit, in the order of the history."""
        good, bad = self.whole.good, self.whole.bad
        measured = {one.commit for one in self.readings}
        inside = np.array([commit in set(suspects) for commit in self.whole.commits])
        found = {good: "good"}
        for commit in self.whole.commits:
            if commit in measured and commit not in (good, bad):
                share = self.whole.row(commit)[inside].mean() if inside.any() else 0.5
                found[commit] = "before" if share == 0 else "after" if share == 1 else "between"
        return {**found, bad: "bad"}

    def report(self, phase: Phase) -> None:
        suspects, probability = self.smallest_set()
        best = int(np.argmax(self.evidence.probability))
        self.watch(
            State(
                phase=phase,
                block=self.block,
                measurements=len(self.readings),
                set_size=len(suspects),
                probability=probability,
                best=self.history.commits[best],
                best_probability=float(self.evidence.probability[best]),
                certain=self.evidence.log_bayes > SURE,
                blocks_left=self.blocks_left() if phase == "search" else None,
            )
        )

    def blocks_left(self) -> int | None:
        """Expected, from the bits that a block of this search gave so far."""
        mass = self.group_probability()
        mass = mass[mass > 0]
        left = float(-(mass * np.log2(mass)).sum())
        gained = np.log2(max(len(set(self.groups.tolist())), 1)) - left
        if left < 0.3 or gained < 0.3:
            return 1 if left < 0.3 and self.evidence.log_bayes > SURE else None
        return int(np.ceil(left / gained * (self.block - self.first)))
