"""Contenders that do not vary equally, and what this does to a comparison of means."""

from __future__ import annotations

import math
from collections.abc import Iterator

from kduel.core.results import Warning_
from kduel.judge.lint.case import Case
from kduel.judge.lint.findings import Code
from kduel.judge.verdict.secondary import brown_forsythe
from kduel.judge.verdict.wording import percent

FEWEST = 5
LEAST_RATIO = 1.1
"""Of the standard deviations: with thousands of trials less is significant, and makes no difference to anybody."""


def unequal_spread(case: Case) -> Iterator[Warning_]:
    """The Brown-Forsythe test, on the verdict's scale; and where it is significant, arithmetic against geometric
    means."""
    if case.steady or any(arm.values.size < FEWEST for arm in case.arms):
        return
    first, second = case.deviations
    chance = brown_forsythe(first, second)
    if chance is None or chance >= case.level:
        return
    wide, narrow = (case.contender, case.baseline) if second.std() > first.std() else (case.baseline, case.contender)
    spreads = sorted(float(own.std(ddof=1)) for own in (first, second))
    if spreads[1] < LEAST_RATIO * spreads[0]:
        return
    times = f"{spreads[1] / spreads[0]:.3g} times as much as" if spreads[0] > 0 else "and not so"
    yield Warning_(
        code=Code.UNEQUAL_SPREAD,
        message=f"{wide.name} varies {times} {narrow.name} (Brown-Forsythe test: p = {chance:.1g}). Less predictable is a "
        "difference too: compare percentiles, and look for what happens only in its extreme trials.",
    )
    yield from means_disagree(case)


def means_disagree(case: Case) -> Iterator[Warning_]:
    """Where the ratio of the arithmetic means lies outside the verdict's interval of the geometric ones."""
    result = case.result
    if not case.logarithmic or result.ci_low_pct is None or result.ci_high_pct is None or result.effect_pct is None:
        return
    before, after, _ = case.counterpart
    if not case.paired:
        before, after = case.baseline.values, case.contender.values
    logs = math.log(after.mean()) - math.log(before.mean())
    arithmetic = 100 * math.expm1(logs)
    if result.ci_low_pct <= arithmetic <= result.ci_high_pct:
        return
    if abs(logs - math.log1p(result.effect_pct / 100)) <= math.log1p(case.delta_pct / 100):
        return
    yield Warning_(
        code=Code.MEANS_DISAGREE,
        message=f"The verdict compares geometric means ({percent(result.effect_pct, True)}: a typical trial); the arithmetic "
        f"means (the total over many trials) differ by {percent(arithmetic, True)}, outside the interval. Decide which one "
        "matters to you.",
    )
