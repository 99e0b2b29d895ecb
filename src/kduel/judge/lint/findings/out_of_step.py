"""A contender that ran much of a step alone."""

from collections.abc import Iterator
from statistics import median

from kduel.core.evidence import Evidence
from kduel.core.turns import StepTurns
from kduel.judge.lint.case import Case
from kduel.judge.lint.finding import Cause, Finding
from kduel.judge.lint.turns import shared_slices

MOST = 0.05
"""Of the running time. What hits the host in that part hits one contender alone: neighbours that take half of the speed, which is
much, move a value by 2.5 % at this share, no more than what turns of 50 ms leave."""


def out_of_step(case: Case) -> Iterator[str]:
    """The part of the running time after the partners' ends, less the turn that the last one has alone anyway."""
    slices = shared_slices(case)
    for arm, values in enumerate(case.arms):
        turns = [one.turns[arm] for one in slices]
        running, alone = sum(one.running_seconds for one in turns), sum(map(seconds_alone, turns))
        if running > 0 and alone > MOST * running:
            yield (
                f"{values.name} ran {alone:.3g} of {running:.3g} s of the step alone ({100 * alone / running:.2g} %), when its "
                "partners had ended: what hit the host then is in its values only."
            )


def seconds_alone(turns: StepTurns) -> float:
    """Seconds alone beyond one turn; 0 for a step in one turn, which nobody shares."""
    usual = median(length for _, length in turns.windows) if turns.windows else turns.running_seconds / turns.turns
    return max(0.0, turns.alone_seconds - usual) if turns.turns > 1 else 0.0


PLUGIN = Finding(
    name="out-of-step", cause=Cause.TURNS, weight=58,
    meaning="A contender ran more than 5 % of a step alone, because its partners ended it earlier or had stopped: that part "
    "of the noise is not shared. So it is where a step has fixed work and a contender is much faster.",
    remedy="Let the step stop by the clock (`time`), or run it whole (`turns = 0` in its table).",
    check=out_of_step, least=Evidence.CONSTANT,
)  # fmt: skip
