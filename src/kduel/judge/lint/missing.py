"""Results that are missing, and whether the contender decides which ones."""

from __future__ import annotations

from collections.abc import Iterator

from kduel.core.results import Warning_
from kduel.core.text import plural
from kduel.judge.lint.case import Case
from kduel.judge.lint.findings import Code
from kduel.judge.verdict.voids import depends


def missing(case: Case) -> Iterator[Warning_]:
    """Valid trials without a value of this metric, and arms with different numbers of values."""
    first, second = case.absent
    names = case.baseline.name, case.contender.name
    told = depends(first, second)
    if told and not case.paired:
        yield Warning_(
            code=Code.MISSING_BY_ARM,
            message=f"{second.missing} of {second.trials} trials of {names[1]} have no value here, and {first.missing} of "
            f"{first.trials} of {names[0]} ({told}). The missing trials may be the slow ones, so that the rest looks better "
            "than it is: find out whether they failed. Of an import KDuel cannot tell that from trials that were never "
            "carried out: if nothing failed, make this metric an import of its own, in which no trial number of one "
            "contender occurs in another (1 to 20 and 101 to 113).",
        )
        return
    if told:
        yield Warning_(
            code=Code.MISSING_BY_ARM,
            message=f"{second.missing} of {second.trials} valid trials of {names[1]} gave no value, and {first.missing} of "
            f"{first.trials} of {names[0]} ({told}). The missing trials may be the slow ones, so that the rest looks better "
            "than it is: read the standard error of the step in those trials.",
        )
        return
    before, after = case.sizes
    if before != after:
        yield Warning_(
            code=Code.UNEQUAL_N,
            message=f"{names[0]} has {plural(before, 'value')} and {names[1]} {after}. If trials are missing "
            "because they were bad, the rest looks better than the contender is: find the cause.",
        )
