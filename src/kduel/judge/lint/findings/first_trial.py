"""A first trial that is not like the others."""

from collections.abc import Iterator, Sequence

import numpy as np

from kduel.core.evidence import Evidence
from kduel.core.format import amount, quantity
from kduel.judge.lint.case import Case, Floats, gap_text
from kduel.judge.lint.finding import Cause, Finding
from kduel.judge.lint.statistics import chance_of_gap, combine_chances

FEWEST = 6


def first_trial(case: Case) -> Iterator[str]:
    if any(arm.values.size < FEWEST for arm in case.arms):
        return
    if case.rule.in_turns:
        yield from first_block(case)
        return
    arms = [
        arm for arm in case.arms if not case.paired or (arm.positions is not None and bool(arm.positions[0] == 0))
    ]
    if not arms or first_chance(case, [any(arm is one for one in arms) for arm in case.arms]) >= case.level:
        return
    firsts = " and ".join(f"{amount(arm.values[0])} ({arm.name})" for arm in arms)
    rests = " and ".join(quantity(arm.values[1:].mean(), case.metric.unit) for arm in arms)
    yield (
        f"The first trial stands out: {firsts} against a mean of {rests} in the others. Add a trial "
        "before the first that is discarded, by a rule set beforehand."
    )


def first_block(case: Case) -> Iterator[str]:
    """The difference of the contenders in the first block, farther out than any other."""
    gaps = case.gaps
    if gaps.size < FEWEST or case.counterpart[2][0] != case.table.blocks[0]:
        return
    if farthest_first(np.abs(gaps - np.median(gaps))) < case.level:
        first, rest = (gap_text(float(gap), case.logarithmic, case.metric.unit) for gap in (gaps[0], gaps[1:].mean()))
        yield (
            f"The first block stands out: there the contenders differ by {first}, by {rest} on average in the others. Add "
            "a block before the first that is discarded, by a rule set beforehand."
        )


def first_chance(case: Case, chosen: Sequence[bool]) -> float:
    """The chance that the first value of each chosen arm lies as far beyond all others as it does."""
    deviations = case.deviations
    if not all(chosen):
        own, other = deviations if chosen[0] else deviations[::-1]
        return farthest_first(np.abs(np.concatenate([own, other])))
    if deviations[0][0] * deviations[1][0] <= 0:
        return 1.0
    chances = [farthest_first(np.abs(own)) for own in deviations]
    return combine_chances(*chances) if max(chances) < 1 else 1.0


def farthest_first(distances: Floats) -> float:
    """The chance that the first distance is the largest, and by so much; 1 where it is not the largest."""
    chance = chance_of_gap(distances, 0)
    return chance / distances.size if chance < 1 else 1.0


PLUGIN = Finding(
    name="first-trial", cause=Cause.TIME, weight=46,
    meaning="The first trial of the run, or of each contender where they were measured apart, lies further out than any "
    "other: a warm-up effect. Where contenders take turns it is the difference in the first block.",
    remedy="Add a trial before the first that is discarded, by a rule set beforehand.",
    chance=True, check=first_trial, least=Evidence.VARYING, levelled=True,
)  # fmt: skip
