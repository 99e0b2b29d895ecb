"""Slices whose plain mean says something else than the value that they were reduced to."""

import math
from collections.abc import Iterator

import numpy as np

from kduel.core.evidence import Evidence
from kduel.judge.lint.case import Case, gap_text
from kduel.judge.lint.finding import Finding
from kduel.judge.lint.statistics import t_two_sided

FEWEST = 5
"""Blocks."""
CLAIMED = 0.05
"""Level of the test where the verdict claims that nothing differs: what it may hide weighs more than a false alarm, which takes
slow moments of that size and such a verdict together."""


def slices_disagree(case: Case) -> Iterator[str]:
    """Differences by block between the effects on the mean of all slices and on the reduced value (t test)."""
    means = {
        name: {
            block: math.fsum(one.value for one in found) / len(found)
            for block, found in zip(case.table.blocks, row, strict=True)
            if found
        }
        for name, row in case.table.slices.items()
    }
    if not case.logarithmic or not all(arm.name in means for arm in case.arms):
        return
    before, after = (means[arm.name] for arm in case.arms)
    _, _, blocks = case.counterpart
    sliced = [
        block in before and block in after and min(before[block], after[block]) > 0 for block in blocks.tolist()
    ]
    plain = np.array(
        [math.log(after[b] / before[b]) for b, there in zip(blocks.tolist(), sliced, strict=True) if there]
    )
    gaps = plain - case.gaps[np.array(sliced, bool)] if any(sliced) else plain
    if gaps.size < FEWEST or abs(gaps.mean()) <= math.log1p(case.delta_pct / 100):
        return
    spread = float(gaps.std(ddof=1)) / math.sqrt(gaps.size)
    level = CLAIMED if case.result.verdict == "equivalent" else case.level
    if spread and t_two_sided(float(gaps.mean()) / spread, gaps.size - 1) > level:
        return
    yield (
        f"Over all slices the contender differs by {gap_text(float(plain.mean()), True, '%')}, by the slices that the "
        f"verdict rests on by {gap_text(float((plain - gaps).mean()), True, '%')}: one of the contenders has slow moments that "
        "the other has not."
    )


PLUGIN = Finding(
    name="slices-disagree", cause="Slow moments of one contender are not in the verdict", weight=80,
    meaning="A trial's value rests on the better of its slices, and the mean of all slices gives another effect, by more than the "
    "smallest that matters. A kernel's own stalls do that, and so does interference that met one contender more often.",
    remedy='Look at the slices on the page of the run; judge by reduce = "mean" in a new run if the slow moments matter to you.',
    chance=True, check=slices_disagree, least=Evidence.CONSTANT,
)  # fmt: skip
