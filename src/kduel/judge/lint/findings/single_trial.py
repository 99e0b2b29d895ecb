"""A contender that was measured once."""

from collections.abc import Iterator

from kduel.core.evidence import Evidence
from kduel.judge.lint.case import Case
from kduel.judge.lint.finding import Cause, Finding

FOR_RANKS = 6
"""A sign-flip permutation of fewer pairs cannot reach .05."""


def single_trial(case: Case) -> Iterator[str]:
    if min(arm.values.size for arm in case.arms) == 1:
        yield (
            "n = 1: a contender was measured once, so the part of chance in the difference is unknown. Measure each "
            f"contender at least {FOR_RANKS} times, in random order."
        )


PLUGIN = Finding(
    name="single-trial", cause=Cause.TOO_FEW, weight=82,
    meaning="A contender was measured once: the difference may be chance.",
    remedy="Measure each contender at least six times, in random order.",
    check=single_trial, least=Evidence.CONSTANT,
)  # fmt: skip
