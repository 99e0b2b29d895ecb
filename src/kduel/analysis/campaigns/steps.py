"""Change points in a series over time: binary segmentation, held to its false-alarm rate when neighbours are alike.

Runs that are near in time share much (temperature, firmware, what else the machine does), so a series of runs is no
row of independent draws: a permutation test calls a series with a correlation of .5 between neighbours changed in up to
38 % of cases instead of 1 %. Here the strongest contrast is compared with simulated series that have that correlation.
Other ways were simulated for comparison (perf/history_steps.py has the figures): permuted blocks and prewhitening keep the
rate only for long series, and ranks cannot tell a change from chance in fewer than twelve runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

FEWEST = 3
"""Values on each side of a change point."""
CORRELATION = 0.5
"""Between neighbours, in series without a change: an assumption that is strict where runs are independent."""
LARGEST_CORRELATION = 0.9
ENOUGH_TO_ESTIMATE = 20
"""Values from which on a larger correlation is believed where they show one."""
SIMULATED = 4999
BURN_IN = 20
"""Values before a simulated series begins, after which it has forgotten its start."""
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class LevelChange(Struct, kw_only=True):
    """A change between the values at `index - 1` and `index`; the medians are of the stretches next to it."""

    index: int
    before: float
    after: float
    p: float


def change_points(values: Sequence[float], *, alpha: float = 0.01, errors: Sequence[float] = ()) -> list[LevelChange]:
    """Where the level of a series changed, in the order of time. The same values always give the same answer.

    `errors` are the standard errors of the values, 0 for an unknown one: a contrast that they explain is no change.
    A series without any change is called changed with a probability of at most `alpha`, neighbours correlated or not.
    """
    series = np.asarray(values, dtype=float)
    variances = np.asarray(errors, dtype=float) ** 2 if len(errors) else np.zeros(series.size)
    cuts: dict[int, float] = {}
    stretches = [(0, series.size)]
    while stretches:
        start, end = stretches.pop()
        found = strongest(series[start:end], variances[start:end])
        if found is None or found[2] > alpha:
            continue
        inner = [start + place for place in found[:2] if 0 < place < end - start]
        cuts |= dict.fromkeys(inner, found[2])
        edges = [start, *inner, end]
        stretches += list(itertools.pairwise(edges))
    kept = pruned(series, variances, sorted(cuts), alpha)
    edges = [0, *kept, series.size]
    return [
        LevelChange(
            index=cut,
            before=float(np.median(series[edges[number] : cut])),
            after=float(np.median(series[cut : edges[number + 2]])),
            p=cuts[cut],
        )
        for number, cut in enumerate(kept)
    ]


def strongest(values: Floats, variances: Floats) -> tuple[int, int, float] | None:
    """The stretch that differs most from the rest, from where to where, and the chance of one so strong by noise.

    A step is a stretch that reaches an end. None for too few values, or none that differ.
    """
    count = values.size
    if count < 2 * FEWEST or np.ptp(values) == 0:
        return None
    shares, starts, ends = contrasts(values[None, :])
    at = int(shares[0].argmax())
    start, end = int(starts[at]), int(ends[at])
    known = null_shares(count, round(correlation(values, start, end), 1))
    share = floored(float(shares[0, at]), values, variances)
    beyond = known.size - int(np.searchsorted(known, share - 1e-12, side="left"))
    return start, end, (1 + beyond) / (1 + known.size)


def contrasts(rows: Floats) -> tuple[Floats, Ints, Ints]:
    """By row and stretch: the share of the sum of squares that the stretch's mean explains; and the stretches."""
    count = rows.shape[1]
    starts, ends = stretches_of(count)
    centred = rows - rows.mean(axis=1, keepdims=True)
    sums = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(centred, axis=1)], axis=1)
    length = (ends - starts).astype(float)
    explained = (sums[:, ends] - sums[:, starts]) ** 2 * (count / (length * (count - length)))
    total = (centred**2).sum(axis=1, keepdims=True)
    return explained / np.maximum(total, np.finfo(float).tiny), starts, ends


@lru_cache(maxsize=256)
def stretches_of(count: int) -> tuple[Ints, Ints]:
    """All stretches with FEWEST values or more inside, and none or as many on each side."""
    found = [
        (start, end)
        for start in range(count)
        for end in range(start + FEWEST, count + 1)
        if (start == 0 or start >= FEWEST) and (end == count or count - end >= FEWEST) and end - start < count
    ]
    table = np.array(found, dtype=np.int64)
    return table[:, 0], table[:, 1]


def floored(share: float, values: Floats, variances: Floats) -> float:
    """The explained share, with a residual variance that is not below the values' own error."""
    total = float(((values - values.mean()) ** 2).sum())
    least = (values.size - 2) * float(variances.mean())
    residual = max((1 - share) * total, least)
    return share * total / (share * total + residual) if total > 0 else 0.0


def correlation(values: Floats, start: int, end: int) -> float:
    """Between neighbours, once the stretch's mean and the others' are taken off: CORRELATION, or more where it shows."""
    count = values.size
    if count < ENOUGH_TO_ESTIMATE:
        return CORRELATION
    inside = np.zeros(count, dtype=bool)
    inside[start:end] = True
    rest = np.where(inside, values - values[inside].mean(), values - values[~inside].mean())
    squares = float((rest**2).sum())
    if squares <= 0:
        return CORRELATION
    # Taking off means makes the estimate too small, by about (1 + 4 phi) / n for each.
    seen = (float((rest[1:] * rest[:-1]).sum()) / squares * count + 2) / (count - 6)
    return float(np.clip(seen, CORRELATION, LARGEST_CORRELATION))


@lru_cache(maxsize=512)
def null_shares(count: int, neighbours: float) -> Floats:
    """In rising order: the largest explained share in each of many simulated series with that correlation."""
    generator = np.random.default_rng([count, SIMULATED])
    found: list[Floats] = []
    # In pieces: the number of stretches grows with the square of the length.
    piece = max(1, min(SIMULATED, 4_000_000 // max(1, stretches_of(count)[0].size)))
    for begin in range(0, SIMULATED, piece):
        rows = simulated(generator, min(piece, SIMULATED - begin), count, neighbours)
        found.append(contrasts(rows)[0].max(axis=1))
    return np.sort(np.concatenate(found))


def simulated(generator: np.random.Generator, rows: int, count: int, neighbours: float) -> Floats:
    """Series of noise, AR(1): normal ones, and with tails as Student's t with 3 degrees of freedom where they are long.

    In a long series heavy tails alone make a stretch of three that stands out; in a short one they do not.
    """
    shape = (rows, BURN_IN + count)
    values: Floats = (
        generator.standard_t(3, size=shape) if count >= ENOUGH_TO_ESTIMATE else generator.normal(size=shape)
    )
    for place in range(1, values.shape[1]):
        values[:, place] += neighbours * values[:, place - 1]
    return values[:, BURN_IN:]


def pruned(series: Floats, variances: Floats, cuts: list[int], alpha: float) -> list[int]:
    """The cuts whose two sides differ by themselves; the weakest that does not goes first."""
    while cuts:
        edges = [0, *cuts, series.size]
        chances = [
            alone(series[edges[n] : edges[n + 2]], variances[edges[n] : edges[n + 2]], cut - edges[n])
            for n, cut in enumerate(cuts)
        ]
        if max(chances) <= alpha:
            break
        cuts = [cut for cut, chance in zip(cuts, chances, strict=True) if chance < max(chances)]
    return cuts


def alone(values: Floats, variances: Floats, cut: int) -> float:
    """The chance of a contrast so strong at this one place, or at any other, by noise."""
    shares, starts, ends = contrasts(values[None, :])
    at = int(np.flatnonzero((starts == 0) & (ends == cut))[0])
    known = null_shares(values.size, CORRELATION)
    share = floored(float(shares[0, at]), values, variances)
    return (1 + known.size - int(np.searchsorted(known, share - 1e-12, side="left"))) / (1 + known.size)
