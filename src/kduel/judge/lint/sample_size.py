"""How many trials there are: one, or too few for any verdict."""

from __future__ import annotations

from collections.abc import Iterator

from kduel.core.results import Warning_
from kduel.judge.lint.case import Case
from kduel.judge.lint.findings import Code

FOR_RANKS = 6
"""A sign-flip permutation of fewer pairs cannot reach .05."""


def single_trial(case: Case) -> Iterator[Warning_]:
    """n = 1."""
    if min(arm.values.size for arm in case.arms) == 1:
        yield Warning_(
            code=Code.SINGLE_TRIAL,
            message="n = 1: a contender was measured once, so the part of chance in the difference is unknown. Measure each "
            f"contender at least {FOR_RANKS} times, in random order.",
        )


def too_few(case: Case) -> Iterator[Warning_]:
    """More than one, but no verdict, or not all verdicts, can come of so many."""
    first, second = (arm.values.size for arm in case.arms)
    count = case.result.n if case.paired else min(first, second)
    fewer = "each contender" if first == second else min(case.arms, key=lambda arm: arm.values.size).name
    what = "blocks" if case.paired else f"trials of {fewer}"
    fewest, enough = case.rule.fewest, case.rule.equivalent_from
    if case.steady or count == 1:
        return
    if count < fewest:
        yield Warning_(
            code=Code.TOO_FEW,
            message=f"{count} {what} are too few for any verdict; it takes {fewest}, better {enough}.",
        )
    elif count < enough and case.result.verdict == "undecided":
        yield Warning_(
            code=Code.TOO_FEW,
            message=f"{count} {what} can show a large difference but never that there is none: equivalence takes {enough}.",
        )
