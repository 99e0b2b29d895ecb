"""Values that are missing from valid trials, depending on the contender."""

from collections.abc import Iterator

from kduel.judge.lint.case import Case
from kduel.judge.lint.finding import Cause, Finding
from kduel.judge.verdict.voids import depends


def missing_by_arm(case: Case) -> Iterator[str]:
    first, second = case.absent
    why = depends(first, second)
    if not why:
        return
    names = case.baseline.name, case.contender.name
    kind, lost = ("valid trials", "gave no value") if case.paired else ("trials", "have no value here")
    remedy = (
        "read the standard error of the step in those trials."
        if case.paired
        else "find out whether they failed. Of an import KDuel cannot tell that from trials that were never "
        "carried out: if nothing failed, make this metric an import of its own, in which no trial number of one "
        "contender occurs in another (1 to 20 and 101 to 113)."
    )
    yield (
        f"{second.missing} of {second.trials} {kind} of {names[1]} {lost}, and {first.missing} of {first.trials} of "
        f"{names[0]} ({why}). The missing trials may be the slow ones, so that the rest looks better than it is: {remedy}"
    )


PLUGIN = Finding(
    name="missing-by-arm", cause=Cause.MISSING, weight=96,
    meaning="As `crashes`, for one metric: its values are missing from valid trials, and which ones depends on the "
    "contender. Of an import in KDuel's CSV, the numbers of the trials show it: a number without a value here occurs in "
    "another metric of the contender, or in another contender.",
    remedy="Read the standard error of the step in the trials without a value; raise its time limit if it was cut off. "
    "If an import lacks trials that were never carried out, make the metric an import of its own, in which no trial "
    "number of one contender occurs in another.",
    check=missing_by_arm,
    undecided="values are missing, and which ones depends on the contender: repair this first",
)  # fmt: skip
