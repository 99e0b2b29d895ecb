"""Turns that lay over each other."""

from collections.abc import Iterator

from kduel.core.evidence import Evidence
from kduel.judge.lint.case import Case
from kduel.judge.lint.finding import Cause, Finding
from kduel.judge.lint.turns import seconds_in_common, shared_slices

MOST = 0.001
"""Of the running time. Two guests that run beside each other have half of the speed each at worst: more than this moves a value
by a twentieth of the usual delta, 1 %, and the more of them, the likelier of one contender more than of the other."""


def overlap(case: Case) -> Iterator[str]:
    together = running = 0.0
    for one in shared_slices(case):
        mine, other = one.turns
        recorded = max(mine.overlap_seconds, other.overlap_seconds)
        together += max(recorded, seconds_in_common(mine.windows, other.windows))
        running += min(mine.running_seconds, other.running_seconds)
    if running > 0 and together > MOST * running:
        yield (
            f"{case.baseline.name} and {case.contender.name} ran at the same time for {together:.3g} of {running:.3g} s "
            f"({100 * together / running:.2g} %): each slowed the other down."
        )


PLUGIN = Finding(
    name="overlap", cause=Cause.TURNS, weight=72,
    meaning="Contenders that take turns ran at the same time for more than 0.1 % of their running time, so that they "
    "slowed each other down.",
    remedy="Measure again with `--turns off`, and report it: a guest is let go only when the one before is held.",
    check=overlap, least=Evidence.CONSTANT,
)  # fmt: skip
