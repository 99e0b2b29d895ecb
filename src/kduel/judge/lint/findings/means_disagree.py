"""Arithmetic means that disagree with the geometric ones, where the spreads differ."""

import math
from collections.abc import Iterator

from kduel.core.evidence import Evidence
from kduel.core.format import percent
from kduel.judge.lint.case import Case
from kduel.judge.lint.finding import Cause, Finding
from kduel.judge.lint.findings.unequal_spread import spreads_of


def means_disagree(case: Case) -> Iterator[str]:
    result = case.result
    if spreads_of(case) is None:
        return
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
    yield (
        f"The verdict compares geometric means ({percent(result.effect_pct)}: a typical trial); the arithmetic "
        f"means (the total over many trials) differ by {percent(arithmetic)}, outside the interval. Decide which one "
        "matters to you."
    )


PLUGIN = Finding(
    name="means-disagree", cause=Cause.SPREAD, weight=78,
    meaning="The spreads differ (Brown-Forsythe test), and the arithmetic means disagree with the geometric "
    "means that the verdict compares. The geometric mean stands for a typical boot, the arithmetic mean for the total.",
    remedy="Decide which mean matters to you: total cost over many boots (arithmetic) or a typical boot (geometric).",
    chance=True, check=means_disagree, least=Evidence.VARYING, levelled=True,
)  # fmt: skip
