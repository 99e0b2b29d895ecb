"""Values in coarse steps."""

import math
from collections.abc import Iterator

import numpy as np

from kduel.core.format import amount, quantity
from kduel.judge.lint.case import Case
from kduel.judge.lint.finding import Cause, Finding
from kduel.judge.lint.findings.ties import FEWEST, tied_arms
from kduel.judge.verdict.comparison import is_of_time

COARSE = 0.1


def coarse_steps(case: Case) -> Iterator[str]:
    """A step of the scale above 10 % of the median, unless `ties` says it."""
    if (not case.evidence.varies and not is_of_time(case.metric.unit)) or any(tied_arms(case)):
        return
    values = np.concatenate([arm.values for arm in case.arms])
    median = float(np.median(values))
    distinct = np.unique(values)
    if values.size >= 2 * FEWEST and 1 < distinct.size < values.size and median > 0:
        step = float(np.diff(distinct).min())
        share = 100 * step / median  # of a subnormal median it may be infinite
        if 100 * COARSE < share < math.inf:
            yield (
                f"The values come in steps of {quantity(step, case.metric.unit)}, {share:.0f} % of the median "
                f"{amount(median)}: smaller differences cannot be detected. Measure it for longer or in a finer unit."
            )


PLUGIN = Finding(
    name="quantised", cause=Cause.RESOLUTION, weight=40,
    meaning="The values come in steps above 10 % of the median. A smaller difference cannot be detected.",
    remedy="Measure for longer, or in a finer unit.",
    check=coarse_steps,
    undecided="the values are too coarse: measure for longer",
)  # fmt: skip
