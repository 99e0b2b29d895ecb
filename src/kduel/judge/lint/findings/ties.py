"""Values of which half are one number."""

from collections.abc import Iterator

import numpy as np

from kduel.core.format import quantity
from kduel.judge.lint.case import ArmValues, Case
from kduel.judge.lint.finding import Cause, Finding
from kduel.judge.verdict.comparison import is_of_time

TIED = 0.5
FEWEST = 4


def ties(case: Case) -> Iterator[str]:
    for arm, value, times in tied_arms(case):
        yield (
            f"{times} of {arm.values.size} values of {arm.name} are {quantity(value, case.metric.unit)}: the metric hardly varies, and its intervals are not reliable. Measure it "
            "for longer, or count something that happens more often."
        )
        return


def tied_arms(case: Case) -> Iterator[tuple[ArmValues, float, int]]:
    """Arms of which half the values or more are one number, with it and how often they have it; sizes and counts that never vary are none."""
    if not case.evidence.varies and not is_of_time(case.metric.unit):
        return
    for arm in case.arms:
        found, counts = np.unique(arm.values, return_counts=True)
        if arm.values.size >= FEWEST and counts.max() >= TIED * arm.values.size:
            most = counts.argmax()
            yield arm, float(found[most]), int(counts[most])


PLUGIN = Finding(
    name="ties", cause=Cause.RESOLUTION, weight=42,
    meaning="Half of a contender's values or more are the same number. Intervals from such values are not reliable.",
    remedy="Measure for longer, or count something that happens more often.",
    check=ties,
    undecided="the values are too coarse: measure for longer",
)  # fmt: skip
