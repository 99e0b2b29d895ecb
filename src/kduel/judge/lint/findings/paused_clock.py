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
LATE = 0.5
"""Seconds that QEMU may take to answer `stop`: 0.02 at most on an idle machine, 0.3 was seen beside much other work. One that
somebody stops stands, and an emulated clock goes on."""


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
                f"block {worst.block}, slice {worst.number}, it went {ratio * running:.3g} s in {running:.3g} s. Rates by that clock are "
                "wrong."
            )
        late = [
            (turns.longest_stop_seconds, one, turns.running_seconds)
            for one in slices
            if (turns := one.turns[arm]).turns > 1
            and turns.longest_stop_seconds > max(LATE, MOST * turns.running_seconds)
        ]
        if late:
            longest, worst, running = max(late, key=lambda one: one[0])
            yield (
                f"In {len(late)} of {plural(len(slices), 'slice')} of {values.name} QEMU did not answer for long when the guest was to "
                f"be held: in block {worst.block}, slice {worst.number}, for {longest:.3g} of {running:.3g} s. Somebody had stopped it, or "
                "the host gave it no CPU; the guest may have stood while its clock went on."
            )


PLUGIN = Finding(
    name="paused-clock", cause=Cause.TURNS, weight=78,
    meaning="A guest that is held must have its clock stand, and the clock must go while it runs. Here the clock of a step "
    "differs from the host's running time by more than 5 %: it went on while the guest was held, or the guest ran on for "
    "long after it was to be held. Or QEMU did not answer for half a second and more, as one does that is stopped from "
    "outside (a debugger, a frozen control group). What is measured by that clock is wrong by as much.",
    remedy="Let nobody stop QEMU; measure again on a quieter host or with `--turns off`.",
    check=paused_clock, least=Evidence.CONSTANT,
)  # fmt: skip
