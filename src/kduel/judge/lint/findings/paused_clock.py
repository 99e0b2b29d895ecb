"""A guest's clock that did not go by its running time."""

from collections.abc import Iterator

from kduel.core.evidence import Evidence
from kduel.core.text import plural
from kduel.judge.lint.case import Case
from kduel.judge.lint.finding import Cause, Finding
from kduel.judge.lint.turns import shared_slices

MOST = 0.05
"""Of the running time: `cont` and `stop` together take 1.3 ms of a turn of 50 ms on a calm host, a fortieth."""
CLOCK = 0.02
"""Seconds: begin and end of a step are read from a clock in steps of 10 ms."""


def paused_clock(case: Case) -> Iterator[str]:
    slices = shared_slices(case)
    for arm, values in enumerate(case.arms):
        known = [
            (turns.guest_seconds / turns.running_seconds, one, turns.running_seconds)
            for one in slices
            if (turns := one.turns[arm]).guest_seconds is not None and turns.running_seconds > 0
        ]
        off = [one for one in known if abs(one[0] - 1) > MOST + CLOCK / one[2]]
        if off:
            ratio, worst, running = max(off, key=lambda one: abs(one[0] - 1))
            yield (
                f"In {len(off)} of {plural(len(known), 'slice')} of {values.name} its clock did not go by its running time: in "
                f"block {worst.block}, slice {worst.number}, by {ratio * running:.3g} s in {running:.3g} s. Rates by that clock are wrong."
            )


PLUGIN = Finding(
    name="paused-clock", cause=Cause.TURNS, weight=78,
    meaning="A guest that is held must have its clock stand, and the clock must go while it runs. Here the clock of a step "
    "differs from the host's running time by more than 5 %: it went on while the guest was held, or the guest ran on for "
    "long after it was to be held. What is measured by that clock is wrong by as much.",
    remedy="Measure again on a quieter host or with `--turns off`.",
    check=paused_clock, least=Evidence.CONSTANT,
)  # fmt: skip
