"""A machine whose effect differs in size from that of the others."""

from collections.abc import Iterator

from kduel.judge.lint.case import Case
from kduel.judge.lint.finding import Cause, Finding
from kduel.judge.lint.findings.machines_disagree import comparison_text


def differing(case: Case) -> Iterator[str]:
    """Each machine that the verdict's own statistics distinguish from the others, with the same verdict."""
    for effect in case.result.machines.effects if case.result.machines else []:
        if effect.differs and not effect.contradicts:
            yield f"The effect on {effect.machine} differs in size from that on the others: {comparison_text(case, effect)}."


PLUGIN = Finding(
    name="machines-differ", cause=Cause.MACHINES, weight=40,
    meaning="The effect on one machine differs significantly in size from that on the others, with the same verdict.",
    remedy="Quote the effect of each machine with the pooled one.",
    chance=True, check=differing,
)  # fmt: skip
