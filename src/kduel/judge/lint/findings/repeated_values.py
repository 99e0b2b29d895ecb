"""Sequences of values that occur twice: copied files, cached results, one log read as two."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kduel.core.evidence import Evidence
from kduel.judge.lint.case import Case, Floats
from kduel.judge.lint.finding import Cause, Finding

FEWEST = 3
"""Distinct values that a repeated sequence has at least."""
NEARBY = 3
"""The number of neighbouring places that show how often values agree by their resolution alone."""


class Repeat(NamedTuple):
    """A sequence that stands at two places of the arms' joined values."""

    first: int
    second: int
    length: int


def repeated_values(case: Case) -> Iterator[str]:
    found = longest_repeat(case.baseline.values, case.contender.values)
    if found is None:
        return
    joined = np.concatenate([arm.values for arm in case.arms])
    agree = agreement(case.baseline.values, case.contender.values, found)
    # As many pairs of places could begin a repeat.
    if joined.size**2 / 2 * agree**found.length >= case.level:
        return
    yield (
        f"{found.length} values occur twice in the same order: {places_text(case, found.first, found.length)} and "
        f"{places_text(case, found.second, found.length)}. Measured values do not repeat like this: check whether files were "
        "copied, or whether the benchmark printed a cached result."
    )


def longest_repeat(first: Floats, second: Floats) -> Repeat | None:
    """The longest run of FEWEST distinct values or more that occurs at two places, not across the arms' border."""
    values = np.concatenate([first, second])
    if values.size - np.unique(values).size < FEWEST:
        return None
    _, codes = np.unique(values, return_inverse=True)
    ends = [first.size if place < first.size else values.size for place in range(values.size)]
    seen: dict[tuple[int, ...], list[int]] = {}
    best: Repeat | None = None
    for place in range(values.size - FEWEST + 1):
        if place + FEWEST > ends[place]:
            continue
        window = tuple(codes[place : place + FEWEST].tolist())
        if len(set(window)) < FEWEST:
            continue
        for earlier in seen.setdefault(window, [])[:NEARBY]:
            length = FEWEST
            most = min(ends[earlier] - earlier, ends[place] - place, place - earlier)
            while length < most and codes[earlier + length] == codes[place + length]:
                length += 1
            if length <= place - earlier and (best is None or length > best.length):
                best = Repeat(earlier, place, length)
        seen[window].append(place)
    return best


def agreement(first: Floats, second: Floats, found: Repeat) -> float:
    """The chance that two values are the same number: among all, and among those close in time, whichever is larger."""
    values = np.concatenate([first, second])
    _, counts = np.unique(values, return_counts=True)
    overall = float((counts * (counts - 1)).sum()) / (values.size * (values.size - 1))
    offset = found.second - found.first
    matches = pairs = 0
    for shift in range(-NEARBY, NEARBY + 1):
        lag = offset + shift
        if shift and 0 < lag < values.size:
            same = values[lag:] == values[:-lag]
            matches, pairs = matches + int(same.sum()), pairs + same.size
    return max(overall, matches / pairs if pairs else 0.0)


def places_text(case: Case, place: int, length: int) -> str:
    """`blocks 3 to 20 of old`."""
    arm = case.baseline if place < case.baseline.values.size else case.contender
    start = place if arm is case.baseline else place - case.baseline.values.size
    kind = "blocks" if case.paired else "trials"
    return f"{kind} {arm.blocks[start]} to {arm.blocks[start + length - 1]} of {arm.name}"


PLUGIN = Finding(
    name="repeated-values", cause=Cause.COPIED, weight=95,
    meaning="A sequence of three or more values occurs twice in the same order, in one contender or in both. Measured "
    "values do not repeat so; the number of matches that the resolution of the values explains is allowed for.",
    remedy="Check whether files were copied, or whether the benchmark printed a cached result.",
    chance=True, check=repeated_values, least=Evidence.SAMPLED,
)  # fmt: skip
