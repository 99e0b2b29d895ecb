"""Components of variance: how much slices, boots and blocks contribute to the spread of a metric."""

import numpy as np

from kduel.core.samples import Samples
from kduel.core.slices import Components, SliceValue

FEWEST = 3
"""Complete blocks."""


def components(table: Samples, contender: str) -> Components | None:
    """Variance components of the logarithms of the baseline's and a contender's values, over their complete blocks.

    Analysis of variance of slices in boots, and of boots crossed with blocks and contenders; negative parts are 0. What
    all boots have in common at a place of the trial is not counted; nor is, in turns, what both have in common in a slice,
    which cancels in their ratio. None where fewer than FEWEST blocks are complete or a
    value is not above 0."""
    boots = pair_slices(table, contender)
    values = np.array([[[one.value for one in boot] for boot in arm] for arm in boots])
    if values.ndim < 3 or values.shape[1] < FEWEST or values.min() <= 0:
        return None
    logs = np.log(values)
    arms, blocks, slices = logs.shape
    means = logs.mean(axis=2)
    both, own = means.mean(axis=0), means.mean(axis=1, keepdims=True)
    boot = float(((means - both - own + means.mean()) ** 2).sum()) / ((arms - 1) * (blocks - 1))
    block = arms * float(((both - both.mean()) ** 2).sum()) / (blocks - 1)
    between = max(0.0, (block - boot) / arms)
    if slices == 1:
        return Components(blocks_pct=percent(between), boots_pct=percent(boot))
    gaps = logs - means[:, :, None]
    gaps -= gaps.mean(axis=0 if table.turns else (0, 1))
    freedom = (arms - 1) * blocks if table.turns else arms * blocks - 1
    piece = float((gaps**2).sum()) / (freedom * (slices - 1))
    errors = [one.error for arm in boots for boots_ in arm for one in boots_]
    known = [error for error in errors if error is not None]
    within = float(np.mean(np.square(known))) if len(known) == len(errors) else None
    return Components(
        blocks_pct=percent(between),
        boots_pct=percent(boot - piece / slices),
        slices_pct=percent(piece - (within or 0.0)),
        within_pct=None if within is None else percent(within),
        slices=slices,
    )


def pair_slices(table: Samples, contender: str) -> list[list[list[SliceValue]]]:
    """The slices of both contenders by complete block, all of one number; else their values, as single slices."""
    names = (table.contenders[0], contender)
    if table.paired and all(table.slices.get(name) for name in names):
        complete = [boots for boots in zip(*(table.slices[name] for name in names), strict=True) if all(boots)]
        if len({len(boot) for boots in complete for boot in boots}) == 1:
            return [list(arm) for arm in zip(*complete, strict=True)]
    pairs = zip(*(table.values[name] for name in names), strict=True) if table.paired else ()
    whole = [[[SliceValue(None, v)] for v in pair if v is not None] for pair in pairs if None not in pair]
    return [list(arm) for arm in zip(*whole, strict=True)]


def percent(variance: float) -> float:
    """A standard deviation; 0 of a variance that is estimated below."""
    return float(100 * np.sqrt(max(0.0, variance)))
