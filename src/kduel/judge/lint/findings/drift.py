"""Values that drift over the run."""

from collections.abc import Iterator

import numpy as np

from kduel.core.evidence import Evidence
from kduel.core.format import change, percent, with_sign
from kduel.judge.lint.case import Case
from kduel.judge.lint.finding import Cause, Finding
from kduel.judge.lint.statistics import t_two_sided
from kduel.judge.verdict.secondary import midranks

FEWEST = 6


def drift(case: Case) -> Iterator[str]:
    residuals, places = case.residuals
    if any(arm.values.size < FEWEST for arm in case.arms):
        return
    if case.rule.in_turns and residuals.size < FEWEST:
        return
    correlation = float(np.corrcoef(midranks(residuals), midranks(places.astype(float)))[0, 1])
    freedom = residuals.size - 3
    if not np.isfinite(correlation) or abs(correlation) >= 1:
        return
    if t_two_sided(correlation * np.sqrt(freedom / (1 - correlation**2)), freedom) >= case.level:
        return
    slope = np.polyfit(places, residuals, 1)[0] * np.ptp(places)
    size = f"{percent(100 * slope)} of the mean" if case.positive else change(slope, case.metric.unit)
    if case.rule.in_turns:
        yield (
            f"The difference of the contenders drifts by about {size} from the first block to the last (rank correlation "
            f"with time {with_sign(correlation, '.2f')}). The speed of the host is the same for both: look for what only one "
            "of them uses up, such as memory or a disk."
        )
        return
    remedy = (
        "Randomised blocks keep it out of the verdict, but it widens the interval: look for heat, a filling disk or "
        "other work on the host."
        if case.paired
        else "It cannot be distinguished from a difference between the contenders unless their trials alternated: measure again in "
        "random order."
    )
    yield (
        f"The values drift by about {size} from the first trial to the last (rank correlation with time "
        f"{with_sign(correlation, '.2f')}). {remedy}"
    )


PLUGIN = Finding(
    name="drift", cause=Cause.TIME, weight=50,
    meaning="The values rise or fall over the run (rank correlation with time). Randomised blocks keep a drift out of "
    "the verdict, but it widens the interval. Where contenders take turns it is their difference that drifts.",
    remedy="Look for heat, a filling disk, or other work on the host.",
    chance=True, check=drift, least=Evidence.VARYING, levelled=True,
    undecided="the machine changed during the run: stop other work on the host",
)  # fmt: skip
