"""Fewer blocks than a verdict requires."""

from collections.abc import Iterator

from kduel.core.evidence import Evidence
from kduel.judge.lint.case import Case
from kduel.judge.lint.finding import Cause, Finding


def too_few(case: Case) -> Iterator[str]:
    """More than one, but no verdict, or not all verdicts, can come of so many."""
    first, second = (arm.values.size for arm in case.arms)
    count = case.result.n if case.paired else min(first, second)
    fewer = "each contender" if first == second else min(case.arms, key=lambda arm: arm.values.size).name
    what = "blocks" if case.paired else f"trials of {fewer}"
    fewest, enough = case.rule.fewest, case.rule.equivalent_from
    if count == 1:
        return
    if count < fewest:
        yield (f"{count} {what} are too few for any verdict; it takes {fewest}, better {enough}.")
    elif count < enough and case.result.verdict == "undecided":
        yield (
            f"{count} {what} can show a large difference but never that there is none: equivalence takes {enough}."
        )


PLUGIN = Finding(
    name="too-few", cause=Cause.TOO_FEW, weight=70,
    meaning="There are fewer blocks than a verdict, or than the verdict `equivalent`, requires.",
    remedy="Measure more blocks; resume an interrupted run.",
    check=too_few, least=Evidence.VARYING,
)  # fmt: skip
