"""The part of its plan that a run has which its own stopping rule has not ended, by its results."""

from collections import Counter

from msgspec import Struct

from kduel.core.results import Results
from kduel.core.text import plural
from kduel.core.void_codes import find_unmeasurable
from kduel.judge.verdict.rule import planned_rule

EMULATED = "emulated: not the times of real hardware"
NOT_FINISHED = "not finished"
CHANGED = " and changed afterwards"


class PlanProgress(Struct, frozen=True):
    complete: int
    planned: int
    fixed: bool
    look: int
    """The number of blocks at the next analysis."""

    @property
    def blocks(self) -> str:
        """`4 of 5 blocks`, or `4 of up to 20 blocks`."""
        return f"{self.complete} of {'' if self.fixed else 'up to '}{plural(self.planned, 'block')}"

    @property
    def text(self) -> str:
        """`4 of 5 blocks, not finished`."""
        return f"{self.blocks}, {NOT_FINISHED}"

    @property
    def waits(self) -> str:
        """Clause on the analysis that is still to come, where no verdict can be before it; else empty."""
        if self.complete == self.look:
            return ""
        which = "only" if self.fixed else "next"
        there = f"{self.complete} {'is' if self.complete == 1 else 'are'} complete"
        return f"the {which} analysis comes after {plural(self.look, 'block')}, and {there}"


def find_unfinished(results: Results) -> PlanProgress | None:
    """The part of its plan that a run has; None for one that has ended: by its last block, by its verdicts, or as it could not go
    on; and where that cannot be known, as of an import and of merged runs. One that was stopped as it could not decide anything
    any more has not ended: it may be continued."""
    study = results.study
    if not results.paired or study.parts or not results.trials:
        return None
    names = [contender.name for contender in results.contenders]
    by_block = Counter(trial.block for trial in results.trials)
    complete = sum(count >= len(names) for count in by_block.values())
    rule = planned_rule(study)
    if complete >= rule.max_blocks:
        return None
    out = find_unmeasurable(results.trials, rule.max_blocks)
    if names[0] in out or len(names) - len(out) < 2:
        return None
    if any(warning.code == "machine-out" for warning in results.warnings):
        return None
    if study.fixed is None:
        primary = [metric for metric in results.gating if metric.role == "primary" and metric.contender not in out]
        machine = results.machine
        ended = all(metric.settled or (machine.resolution and metric.depends) for metric in primary)
        if complete and (ended if primary else not machine.evidence.varies):
            return None
    look = next(look for look in rule.looks() if look >= complete)
    return PlanProgress(complete=complete, planned=rule.max_blocks, fixed=study.fixed is not None, look=look)


def limits_of(results: Results) -> list[str]:
    """Clauses on what the verdicts of a run are not: of real hardware, of the whole plan."""
    emulated = results.machine.unreal and any(metric.scale != "exact" for metric in results.metrics)
    unfinished = find_unfinished(results)
    lacks = [unfinished.text + CHANGED * (not may_continue(results))] if unfinished else []
    return [*([EMULATED] if emulated else []), *lacks]


def may_continue(results: Results) -> bool:
    """False for a run that was changed afterwards: where a trial was removed, it is refused to go on."""
    return all(warning.code != "changed-afterwards" for warning in results.warnings)
