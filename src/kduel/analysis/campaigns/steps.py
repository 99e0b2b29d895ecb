"""Change points in a series over time: circular binary segmentation with a permutation test on ranks.

Libraries for this (ruptures and the like) take a penalty whose false-alarm rate depends on the noise; here one says
how often a series without any change may be called changed, and outliers count no more than their rank.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

FEWEST = 3
"""Values on each side of a change point."""
PERMUTATIONS = 999
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Step(Struct, kw_only=True):
    """A change between the values at `index - 1` and `index`; the medians are of the stretches beside it."""

    index: int
    before: float
    after: float
    p: float


def change_points(values: Sequence[float], *, alpha: float = 0.01, seed: int = 0) -> list[Step]:
    """Where the level of a series changed, in the order of time. The same values always give the same answer.

    A series without any change is called changed with probability `alpha`; a short one never is, since too few
    orders of its values exist.
    """
    series = np.asarray(values, dtype=float)
    generator = np.random.default_rng(seed)
    cuts: dict[int, float] = {}
    stretches = [(0, len(series))]
    while stretches:
        start, end = stretches.pop()
        found = strongest(series[start:end], generator)
        if found is None or found[2] > alpha:
            continue
        inner = [start + place for place in found[:2] if 0 < place < end - start]
        cuts |= dict.fromkeys(inner, found[2])
        edges = [start, *inner, end]
        stretches += list(itertools.pairwise(edges))
    kept = pruned(series, sorted(cuts), alpha)
    edges = [0, *kept, len(series)]
    return [
        Step(
            index=cut,
            before=float(np.median(series[edges[number] : cut])),
            after=float(np.median(series[cut : edges[number + 2]])),
            p=cuts[cut],
        )
        for number, cut in enumerate(kept)
    ]


def strongest(values: Floats, generator: np.random.Generator) -> tuple[int, int, float] | None:
    """The stretch that differs most from the rest, from where to where, and the chance of one so strong in any order.

    A step is a stretch that reaches an end. None for too few values, or none that differ.
    """
    count = values.size
    if count < 2 * FEWEST or np.ptp(values) == 0:
        return None
    ranks = ranked(values)
    seen, start, end = widest(ranks[None, :])
    orders = generator.permuted(np.tile(ranks, (PERMUTATIONS, 1)), axis=1)
    as_strong = int((widest(orders)[0] >= seen[0] - 1e-12).sum())
    return int(start[0]), int(end[0]), (1 + as_strong) / (1 + PERMUTATIONS)


def ranked(values: Floats) -> Floats:
    """Ranks, ties sharing their mean rank, less the mean."""
    from scipy.stats import rankdata

    ranks: Floats = rankdata(values)
    ranks -= ranks.mean()
    return ranks


def widest(ranks: Floats) -> tuple[Floats, Ints, Ints]:
    """By row: the largest contrast of a stretch's rank sum with the rest in its standard deviation, and the stretch."""
    rows, count = ranks.shape
    sums = np.concatenate([np.zeros((rows, 1)), np.cumsum(ranks, axis=1)], axis=1)
    best, start, end = np.full(rows, -1.0), np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    for length in range(FEWEST, count - FEWEST + 1):
        starts = np.array(
            [i for i in range(count - length + 1) if (i == 0 or i >= FEWEST) and not 0 < count - length - i < FEWEST]
        )
        if not starts.size:
            continue
        contrast = np.abs(sums[:, starts + length] - sums[:, starts]) / np.sqrt(length * (count - length) / count)
        at = contrast.argmax(axis=1)
        value = contrast[np.arange(rows), at]
        better = value > best
        best = np.where(better, value, best)
        start, end = np.where(better, starts[at], start), np.where(better, starts[at] + length, end)
    return best, start, end


def pruned(series: Floats, cuts: list[int], alpha: float) -> list[int]:
    """The cuts whose two sides differ by themselves (Mann-Whitney); the weakest that does not goes first."""
    from scipy.stats import mannwhitneyu

    while cuts:
        edges = [0, *cuts, len(series)]
        chances = [
            float(mannwhitneyu(series[edges[n] : cut], series[cut : edges[n + 2]]).pvalue)
            for n, cut in enumerate(cuts)
        ]
        if max(chances) <= alpha:
            break
        cuts = [cut for cut, chance in zip(cuts, chances, strict=True) if chance < max(chances)]
    return cuts
