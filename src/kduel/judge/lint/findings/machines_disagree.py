"""A machine whose effect would give another verdict than that of the others."""

from collections.abc import Iterator

from kduel.core.format import MISSING, change, estimate_texts
from kduel.core.metric_results import MachineEffect
from kduel.judge.lint.case import Case
from kduel.judge.lint.finding import Cause, Finding


def contradicting(case: Case) -> Iterator[str]:
    """Each machine that the verdict's own statistics distinguish from the others, and that would give another verdict."""
    found = case.result.machines
    for effect in found.effects if found else []:
        if found and effect.contradicts:
            yield (
                f"{effect.machine} contradicts {found.rest}: {comparison_text(case, effect)}. No single verdict holds for all "
                "machines: find out what differs on that machine, and judge it separately."
            )


def comparison_text(case: Case, effect: MachineEffect) -> str:
    """A machine's effect with its interval, and that of the others."""
    unit = "%" if case.result.scale == "ratio" else case.result.unit
    own, interval = estimate_texts(effect.effect, effect.low, effect.high, unit)
    if interval != MISSING:
        own += f" (interval {interval})"
    return own if effect.others is None else f"{own} there, {change(effect.others, unit)} elsewhere"


PLUGIN = Finding(
    name="machines-disagree", cause=Cause.MACHINES, weight=94,
    meaning="The effect on one machine differs significantly from that on the others, and would give another verdict: "
    "it has the other sign, or only one of the two lies within delta. The pooled verdict hides that.",
    remedy="Find out what is different about that machine; give a verdict for each machine, not one for all.",
    chance=True, check=contradicting,
)  # fmt: skip
