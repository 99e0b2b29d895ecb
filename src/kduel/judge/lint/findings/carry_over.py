"""Values that depend on the contender of the trial before."""

from collections.abc import Iterator

import numpy as np

from kduel.core.evidence import Evidence
from kduel.core.samples import Samples
from kduel.judge.lint.case import Case
from kduel.judge.lint.finding import Cause, Finding
from kduel.judge.lint.findings.order_effect import FEWEST_BLOCKS, Places, places_of, significant_gaps
from kduel.judge.verdict.comparison import trials_after


def carry_over(case: Case) -> Iterator[str]:
    """An analysis of variance: values by contender, block and the contender of the trial before."""
    if case.rule.in_turns:
        return  # All of a block ran at the same time.
    gaps, chance = significant_gaps(case, followers_of)
    if not gaps:
        return
    names = case.table.contenders
    listed = ", ".join(f"{gap} after {name}" for gap, name in zip(gaps, names[1:], strict=True))
    counted = (
        "The trial before enters the interval (carry_over = true): no verdict counts that against another one."
        if case.rule.carry_over
        else "What a contender leaves behind (heat, a used disk) counts against another one: let the machine come "
        "to rest between trials."
    )
    yield (
        f"The contender of the trial before changes the value: against a trial after {names[0]}, {listed} (p = "
        f"{chance:.1g}). {counted}"
    )


def followers_of(table: Samples) -> Places | None:
    """The complete blocks with the contender before each trial in place of its place; None where there are too few."""
    names = table.contenders
    after = [trials_after(table, name) for name in names]

    def before(name: str, index: int) -> int | None:
        """Number of the contender whose trial was before; None for the first trial of a machine."""
        return next((number for number, one in enumerate(after) if name in one and one[name][index] == 1), None)

    rows = [
        index
        for index in range(len(table.blocks))
        if all(table.values[name][index] is not None and before(name, index) is not None for name in names)
    ]
    found = places_of(table) if len(rows) >= FEWEST_BLOCKS else None
    if found is None:
        return None
    values = np.array([[table.values[name][index] for name in names] for index in rows], dtype=float)
    followed = np.array([[before(name, index) for name in names] for index in rows], dtype=float)
    return Places(np.log(values) if found.logarithmic else values, followed, found.logarithmic)


PLUGIN = Finding(
    name="carry-over", cause=Cause.ORDER, weight=76,
    meaning="The contender of the trial before changes a trial's value: a contender that heats the machine or fills a disk "
    "slows whatever follows it, in two contenders mostly the other one. The verdict counts that against the wrong contender unless the "
    "study has carry_over = true, and no order of trials prevents it. Not looked for where contenders take turns: all of a block run at the same time.",
    remedy="Let the machine come to rest between trials (`settle`, a cool-down), reset what a trial leaves behind, or measure again "
    "with `carry_over = true` in [blocks] of the study.",
    chance=True, check=carry_over, least=Evidence.VARYING,
)  # fmt: skip
