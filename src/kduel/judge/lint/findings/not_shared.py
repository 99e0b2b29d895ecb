"""Slices of contenders in turns that do not move together."""

import math
from collections.abc import Iterator

import numpy as np

from kduel.core.evidence import Evidence
from kduel.core.format import with_sign
from kduel.judge.lint.case import Case, Floats
from kduel.judge.lint.finding import Finding
from kduel.judge.verdict.secondary import midranks

USEFUL = 0.5
"""Correlation from which turns save half of a verdict's blocks or more: the variance of the difference falls by that share."""
FEWEST = 4
"""Blocks."""
RANKS = 1.06
"""Variance of Fisher's z of ranks, relative to that of values (Fieller, Hartley and Pearson 1957)."""


def not_shared(case: Case) -> Iterator[str]:
    from scipy.special import ndtr

    pairs = slices_within_blocks(case) if case.rule.in_turns and case.result.verdict == "undecided" else None
    if pairs is None:
        return
    before, after = pairs
    blocks, slices = before.shape
    freedom = blocks * (slices - 1) - 2
    if blocks < FEWEST or freedom < 3 or not np.ptp(before) or not np.ptp(after):
        return
    found = float(np.corrcoef(midranks(before.ravel()), midranks(after.ravel()))[0, 1])
    bounded = min(max(found, -0.999), 0.999)
    if ndtr((math.atanh(bounded) - math.atanh(USEFUL)) * math.sqrt(freedom / RANKS)) < case.level:
        yield (
            f"The contenders' slices do not move together (correlation of ranks {with_sign(found, '.2f')} within "
            f"{blocks} blocks): what varies is not the speed of the host, and turns hardly narrow the interval."
        )


def slices_within_blocks(case: Case) -> tuple[Floats, Floats] | None:
    """Logarithms of both contenders' slices less their boot's mean, shape (blocks, slices); None if not alike."""
    columns = [case.table.slices.get(arm.name, []) for arm in case.arms]
    rows = [[[one.value for one in boot] for boot in boots] for boots in zip(*columns, strict=False) if all(boots)]
    if not rows or len({len(boot) for boots in rows for boot in boots}) != 1:
        return None
    values = np.array(rows)
    if values.shape[2] < 2 or values.min() <= 0:
        return None
    logs = np.log(values)
    logs -= logs.mean(axis=2, keepdims=True)
    return logs[:, 0], logs[:, 1]


PLUGIN = Finding(
    name="not-shared", cause="Turns gained little", weight=20,
    meaning="Contenders that take turns meet the same disturbances of the host, so that their slices move together and the "
    "difference is quiet. Here the correlation within blocks is below one half: most of what varies is the benchmark's own, "
    "or each contender's. The verdict is as sound as any, and turns did not help it.",
    remedy="Longer slices or more of them; `--turns off` needs less memory.",
    chance=True, check=not_shared, least=Evidence.CONSTANT,
    undecided="what varies is the benchmark's own, not the host: take longer slices, or more of them",
)  # fmt: skip
