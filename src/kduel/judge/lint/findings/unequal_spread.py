"""Contenders that do not vary equally."""

from collections.abc import Iterator

from kduel.core.evidence import Evidence
from kduel.judge.lint.case import ArmValues, Case
from kduel.judge.lint.finding import Cause, Finding
from kduel.judge.verdict.secondary import brown_forsythe

FEWEST = 5
LEAST_RATIO = 1.1
"""Of the standard deviations: with thousands of trials less is significant, and makes no difference to anybody."""


def spreads_of(case: Case) -> tuple[ArmValues, ArmValues, str, float] | None:
    """The wider and the narrower arm, how many times as wide, and the chance, by the Brown-Forsythe test on the verdict's scale; None where it finds nothing that matters."""
    if any(arm.values.size < FEWEST for arm in case.arms):
        return None
    first, second = case.deviations
    chance = brown_forsythe(first, second)
    if chance is None or chance >= case.level:
        return None
    wide, narrow = (case.contender, case.baseline) if second.std() > first.std() else (case.baseline, case.contender)
    less, more = sorted(float(own.std(ddof=1)) for own in (first, second))
    if more < LEAST_RATIO * less:
        return None
    return wide, narrow, f"{more / less:.3g} times as much as" if less > 0 else "and not so", chance


def unequal_spread(case: Case) -> Iterator[str]:
    if found := spreads_of(case):
        wide, narrow, times, chance = found
        yield (
            f"{wide.name} varies {times} {narrow.name} (Brown-Forsythe test: p = {chance:.1g}). Less "
            "predictable is a difference too: compare percentiles, and look for what happens only in its extreme trials."
        )


PLUGIN = Finding(
    name="unequal-spread", cause=Cause.SPREAD, weight=60,
    meaning="One contender varies at least 1.1 times as much as the other (Brown-Forsythe test). That is a difference in "
    "predictability, whatever the means are.",
    remedy="Compare percentiles, and look for what happens only in the slow trials of the contender that varies more.",
    chance=True, check=unequal_spread, least=Evidence.VARYING, levelled=True,
)  # fmt: skip
