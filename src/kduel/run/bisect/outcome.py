"""The outcome of a search under noise: the set of commits, effects with intervals, the level of each commit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kduel.judge.verdict.classify import ABOVE, BELOW, WITHIN, classify
from kduel.judge.verdict.spending import REPORTED_LEVEL, mean_interval

SCHEMA = 1
FEWEST_PAIRS = 2
"""An interval exists from so many values on; how many more a step of the search takes is that step's condition."""


class Reading(Struct, frozen=True):
    commit: str
    block: int
    value: float
    phase: str = "search"
    """Or "confirmation"."""


class Interval(Struct, frozen=True):
    """An estimate with its interval; the ends are None where one measurement is all there is."""

    mean: float
    low: float | None
    high: float | None

    def in_percent_of(self, whole: float) -> Interval:
        scale = 100 / abs(whole) if whole else float("nan")
        low, high = (None if end is None else end * scale for end in (self.low, self.high))
        return Interval(self.mean * scale, low, high)

    def is_beyond(self, limit: float) -> bool:
        """True if the whole interval is farther than `limit` from 0."""
        if self.low is None or self.high is None:
            return False
        return classify_interval(self.low - limit, self.high + limit, 0.0) in (ABOVE, BELOW)

    def is_within(self, limit: float) -> bool:
        """True if no part of the interval is farther than `limit` from 0."""
        if self.low is None or self.high is None:
            return False
        # Where GOOD's level is 0, a limit in per cent is 0 as well, and nothing is equivalent; ends that are equal are.
        return self.low == self.high == 0 or classify_interval(self.low, self.high, limit) == WITHIN


def classify_interval(low: float, high: float, margin: float) -> int:
    """Class of an interval, by the rule of all verdicts."""
    return int(classify(low, high, margin, FEWEST_PAIRS, FEWEST_PAIRS, FEWEST_PAIRS))


def interval(values: Sequence[float] | NDArray[np.float64], level: float = REPORTED_LEVEL) -> Interval:
    """The mean of independent values, with Student's interval."""
    found = mean_interval(values, level)
    return Interval(float(np.mean(values)), None, None) if found is None else Interval(*found)


def group_by_block(readings: Sequence[Reading]) -> dict[int, dict[str, float]]:
    """For each block the mean of each commit's values."""
    found: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in readings:
        found[one.block][one.commit].append(one.value)
    return {block: {commit: sum(own) / len(own) for commit, own in those.items()} for block, those in found.items()}


def difference(readings: Sequence[Reading], low: str, high: str, level: float = REPORTED_LEVEL) -> Interval | None:
    """`high` minus `low`, over the blocks that have both."""
    return paired_difference(group_by_block(readings), low, high, level)


def paired_difference(
    blocks: Mapping[int, Mapping[str, float]], low: str, high: str, level: float = REPORTED_LEVEL
) -> Interval | None:
    """`high` minus `low`, over the blocks of `group_by_block` that have both."""
    gaps = [own[high] - own[low] for own in blocks.values() if low in own and high in own]
    return interval(gaps, level) if gaps else None


class Level(Struct, frozen=True, kw_only=True):
    """Measurements of a commit, with the blocks' levels evened out by their references."""

    commit: str
    n: int
    mean: float | None
    ci_low: float | None
    ci_high: float | None
    status: str
    """good, bad, before, after, between, or skipped: why."""


class Segment(Struct, frozen=True, kw_only=True):
    """Change of the level from one commit to a later one, in per cent of GOOD's."""

    low: str
    high: str
    change: Interval


class SearchOutcome(Struct, frozen=True, kw_only=True):
    good: str
    bad: str
    metric: str
    set: list[str]
    """The commits of which one brought the change, the most probable first; empty where there is none."""
    probability: float | None
    effect: Interval | None
    """In per cent of GOOD's level: the change, or without one the difference between the ends. None where that level is 0."""
    levels: list[Level]
    measurements: int
    blocks: int
    confirmed: bool | None
    """True if the change was there again in fresh blocks; None where that was not tried or not possible."""
    segments: list[Segment]
    """Other changes: before the set and after it."""
    posterior: dict[str, float]
    """The probability of each commit, in the order of the history."""
    why: str
    """Reason for an empty set."""

    def document(self) -> dict[str, Any]:
        """For --format json."""
        return {
            "schema": SCHEMA, "good": self.good, "bad": self.bad, "metric": self.metric, "set": self.set,
            "probability": self.probability, "effect_pct": self.effect.mean if self.effect else None,
            "ci_low_pct": self.effect.low if self.effect else None,
            "ci_high_pct": self.effect.high if self.effect else None, "levels": self.levels,
            "measurements": self.measurements, "confirmed": self.confirmed,
        }  # fmt: skip


def estimate_levels(
    readings: Sequence[Reading], ends: tuple[str, str], status: Mapping[str, str], skipped: Mapping[str, str]
) -> list[Level]:
    """The level of each commit that has a status, in that order; then those that were skipped."""
    blocks = group_by_block(readings)
    usual = {end: float(np.mean([own[end] for own in blocks.values() if end in own] or [np.nan])) for end in ends}
    shift = {
        block: float(np.mean([own[end] - usual[end] for end in ends if end in own] or [0.0]))
        for block, own in blocks.items()
    }
    values: dict[str, list[float]] = defaultdict(list)
    for one in readings:
        values[one.commit].append(one.value - (0.0 if one.commit in ends else shift[one.block]))
    found = []
    for commit, what in status.items():
        if own := values.get(commit):
            mean = interval(own)
            found.append(
                Level(commit=commit, n=len(own), mean=mean.mean, ci_low=mean.low, ci_high=mean.high, status=what)
            )
    for commit, why in skipped.items():
        found.append(Level(commit=commit, n=0, mean=None, ci_low=None, ci_high=None, status=f"skipped: {why}"))
    return found
