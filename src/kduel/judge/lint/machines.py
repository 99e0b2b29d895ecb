"""Machines whose effect differs from that of the others."""

from __future__ import annotations

from collections.abc import Iterator

from kduel.core.results import MachineEffect, Warning_
from kduel.judge.lint.case import Case
from kduel.judge.lint.findings import Code
from kduel.judge.verdict.wording import shown


def machines_disagree(case: Case) -> Iterator[Warning_]:
    """Each machine that the verdict's own statistics distinguish from the others."""
    found = case.result.machines
    unit = "%" if case.result.scale == "ratio" else case.result.unit
    for one in found.effects if found else ():
        if one.contradicts:
            yield Warning_(
                code=Code.MACHINES_DISAGREE,
                message=f"{one.machine} contradicts the others: {told(one, unit)}. No single verdict holds for all "
                "machines: find out what differs on that machine, and judge it separately.",
            )
        elif one.differs:
            yield Warning_(
                code=Code.MACHINES_DIFFER,
                message=f"The effect on {one.machine} differs in size from that on the others: {told(one, unit)}.",
            )


def told(one: MachineEffect, unit: str) -> str:
    """Its effect with interval, and that of the others."""
    own = shown(one.effect, unit, True)
    if one.low is not None and one.high is not None:
        own += f" (interval {shown(one.low, unit, True)} to {shown(one.high, unit, True)})"
    return own if one.others is None else f"{own} there, {shown(one.others, unit, True)} elsewhere"
