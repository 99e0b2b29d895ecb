"""Statistics beside a verdict, which never decide it; on scipy.special, as scipy.stats takes seconds to import."""

from functools import lru_cache

import numpy as np
from scipy.special import betainc, ndtr, ndtri, stdtr

from kduel.judge.verdict.spending import Floats

ALL_SIGNS_UP_TO = 14
"""Pairs up to which every assignment of signs is tried; beyond, a fixed random sample."""
RANDOM_SIGNS = 9999
RANDOM_SIGNS_UP_TO = 200
"""Pairs beyond which the sum of differences with random signs is normal for all that matters."""
WALSH_MEANS_UP_TO = 100
"""Pairs up to which all pairwise means are written down; beyond, the required ones are found by bisection."""
HALVINGS = 50
SIGNED_RANKS_EXACT_UP_TO = 50
RANKS_EXACT_UP_TO = 40


def paired_t(differences: Floats) -> float | None:
    """Two-sided p of the plain paired t test."""
    n = differences.size
    if n < 2:
        return None
    error = differences.std(ddof=1) / np.sqrt(n)
    mean = differences.mean()
    if error <= 1e-12 * abs(mean):
        return 0.0 if mean else 1.0
    return float(2 * stdtr(n - 1, -abs(mean) / error))


TRIMMED = 0.2
"""The share of values that a trimmed mean leaves out at each end."""
FEWEST_LEFT = 4


def trimmed_mean(values: Floats) -> float:
    """The mean without the smallest and the largest 20 %."""
    cut = int(TRIMMED * values.size)
    return float(np.sort(values)[cut : values.size - cut].mean())


def trimmed_t(differences: Floats) -> float | None:
    """Two-sided p of Yuen's trimmed t test; None where fewer than four values are left."""
    n = differences.size
    cut = int(TRIMMED * n)
    left = n - 2 * cut
    if left < FEWEST_LEFT:
        return None
    ordered = np.sort(differences)
    mean = trimmed_mean(differences)
    winsorised = np.clip(ordered, ordered[cut], ordered[n - cut - 1])
    error = float(np.sqrt(winsorised.var(ddof=1) * (n - 1) / (left * (left - 1))))
    if error <= 1e-12 * abs(mean):
        return 0.0 if mean else 1.0
    return float(2 * stdtr(left - 1, -abs(mean) / error))


def sign_flips(differences: Floats) -> float | None:
    """Two-sided p of the permutation test that flips the signs of paired differences. Exact for 14 pairs or fewer, by
    9,999 random signs up to 200, normal beyond; below 6 pairs it cannot reach .05."""
    n = differences.size
    if n < 2:
        return None
    observed = abs(differences.sum()) * (1 - 1e-12)
    if n <= ALL_SIGNS_UP_TO:
        return float(np.mean(np.abs(signs_of(n) @ differences) >= observed))
    if n > RANDOM_SIGNS_UP_TO:
        size = float(np.sqrt((differences**2).sum()))
        return float(2 * ndtr(-observed / size)) if size else 1.0
    beyond = np.count_nonzero(np.abs(signs_of(n) @ differences) >= observed)
    return float((beyond + 1) / (RANDOM_SIGNS + 1))


@lru_cache(maxsize=4)
def signs_of(n: int) -> Floats:
    """Signs by row, made once for all metrics of n pairs: every assignment, its mirror image left out; of many pairs random ones,
    the same always, so that a report can be rebuilt to the digit."""
    if n <= ALL_SIGNS_UP_TO:
        bits = (np.arange(2 ** (n - 1))[:, None] >> np.arange(n)) & 1
    else:
        bits = np.random.default_rng(20).integers(0, 2, (RANDOM_SIGNS, n), dtype=np.int8)
    return (1 - 2 * bits).astype(np.float64)


def wilcoxon(differences: Floats) -> float | None:
    """Two-sided p of the signed-rank test without zeros, ties allowed for. Exact up to 50 values, else normal."""
    kept = differences[differences != 0]
    n = kept.size
    if differences.size < 2:
        return None
    if n == 0:
        return 1.0
    doubled = np.rint(2 * midranks(np.abs(kept))).astype(int)
    positive = int(doubled[kept > 0].sum())
    whole = int(doubled.sum())
    if n <= SIGNED_RANKS_EXACT_UP_TO:
        chances = rank_sum_chances(tuple(np.sort(doubled).tolist()))
        tail = chances[: min(positive, whole - positive) + 1].sum()
        return float(min(1.0, 2 * tail))
    variance = float((doubled**2).sum()) / 4
    return float(2 * ndtr(-abs(positive - whole / 2) / np.sqrt(variance)))


@lru_cache(maxsize=1024)
def rank_sum_chances(doubled: tuple[int, ...]) -> Floats:
    """The chance of every sum of (doubled) ranks, each counted or not with the same chance."""
    chances = np.zeros(sum(doubled) + 1)
    chances[0] = 1.0
    reached = 0
    for rank in doubled:
        reached += rank
        shifted = np.zeros(reached + 1)
        shifted[rank:] = chances[: reached - rank + 1]
        chances[: reached + 1] = (chances[: reached + 1] + shifted) / 2
    return chances


def midranks(values: Floats) -> Floats:
    """Ranks from 1, ties sharing their mean."""
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Floats = (last - (counts - 1) / 2)[where]
    return ranks


def hodges_lehmann(differences: Floats) -> tuple[float, float | None, float | None] | None:
    """The median of all pairwise means of differences, with the interval at 95 % that belongs to it. No
    interval below 6 pairs: the signed-rank distribution has no tail so small."""
    n = differences.size
    if n < 2:
        return None
    total = n * (n + 1) // 2
    middle = [(total - 1) // 2, total // 2]
    rank = signed_rank_cut(n, 0.05)
    means = walsh_means(differences, middle if rank is None else [*middle, rank, total - 1 - rank])
    if rank is None:
        return float(means[:2].mean()), None, None
    return float(means[:2].mean()), float(means[2]), float(means[3])


def walsh_means(differences: Floats, places: list[int]) -> Floats:
    """The pairwise means (each with itself, too) that stand at `places` when they are in order, from 0."""
    n = differences.size
    if n <= WALSH_MEANS_UP_TO:
        first, second = np.triu_indices(n)
        means = (differences[first] + differences[second]) / 2
        means.partition(sorted(set(places)))
        return means[places]
    ordered, own = np.sort(differences), np.arange(n)
    wanted = np.array(places) + 1
    low, high = np.full(wanted.size, ordered[0]), np.full(wanted.size, ordered[-1])
    for _ in range(HALVINGS):
        tried = (low + high) / 2
        partners = np.searchsorted(ordered, 2 * tried[:, None] - ordered, side="right")
        enough = np.maximum(partners - own, 0).sum(axis=1) >= wanted
        low, high = np.where(enough, low, tried), np.where(enough, tried, high)
    return high


@lru_cache(maxsize=1024)
def signed_rank_cut(n: int, level: float) -> int | None:
    """Number of the smallest (and largest) pairwise means outside the interval; None where there is none."""
    if n <= SIGNED_RANKS_EXACT_UP_TO:
        below = np.cumsum(rank_sum_chances(tuple(range(1, n + 1))))
        cut = int(np.searchsorted(below, level / 2, side="right"))
        return cut - 1 if cut else None
    whole = n * (n + 1) / 2
    sd = np.sqrt(whole * (2 * n + 1) / 12)
    return int(whole / 2 + float(ndtri(level / 2)) * sd) - 1


def cliffs_delta(before: Floats, after: Floats) -> float | None:
    """P(after > before) - P(after < before) over all pairs of values, paired or not."""
    if not before.size or not after.size:
        return None
    ordered = np.sort(before)
    below = np.searchsorted(ordered, after, side="left").sum()
    above = after.size * before.size - np.searchsorted(ordered, after, side="right").sum()
    return float(below - above) / (after.size * before.size)


def mann_whitney(before: Floats, after: Floats) -> float | None:
    """Two-sided p of the rank-sum test, unpaired, ties allowed for. Exact up to 40 values, else normal, corrected."""
    m, n = before.size, after.size
    if min(m, n) < 2:
        return None
    total = m + n
    doubled = np.rint(2 * midranks(np.concatenate([before, after]))).astype(int)
    excess = abs(int(doubled[m:].sum()) - n * (total + 1))
    if total <= RANKS_EXACT_UP_TO:
        chances = subset_sum_chances(tuple(np.sort(doubled).tolist()), n)
        sums = np.abs(np.arange(chances.size) - n * (total + 1))
        return float(min(1.0, chances[sums >= excess].sum()))
    variance = m * n * float(((doubled - (total + 1)) ** 2).sum()) / (total * (total - 1))
    if variance <= 0:
        return 1.0
    return float(min(1.0, 2 * ndtr(-max(excess - 1, 0) / np.sqrt(variance))))


@lru_cache(maxsize=1024)
def subset_sum_chances(doubled: tuple[int, ...], size: int) -> Floats:
    """The chance of every sum of `size` (doubled) ranks drawn without replacement."""
    ways = np.zeros((size + 1, sum(doubled) + 1))
    ways[0, 0] = 1.0
    for rank in doubled:
        ways[1:, rank:] += ways[:-1, : ways.shape[1] - rank].copy()
    chances: Floats = ways[size] / ways[size].sum()
    return chances


def welch(before: Floats, after: Floats) -> float | None:
    """Two-sided p of Welch's t test as if the values were not paired."""
    if min(before.size, after.size) < 2:
        return None
    parts = np.array([before.var(ddof=1) / before.size, after.var(ddof=1) / after.size])
    gap = abs(after.mean() - before.mean())
    if parts.sum() <= (1e-12 * gap) ** 2:
        return 0.0 if gap else 1.0
    # Near 1, so that its square is neither 0 nor infinite; by a power of two, which rounds nothing.
    near = np.ldexp(parts, -np.frexp(parts.sum())[1])
    freedom = near.sum() ** 2 / (near**2 / (np.array([before.size, after.size]) - 1)).sum()
    return float(2 * stdtr(freedom, -gap / np.sqrt(parts.sum())))


ALIKE = 1e-9
"""Of the sum of squares: what is rounding only, as the logarithms of equal distances differ by."""


def brown_forsythe(before: Floats, after: Floats) -> float | None:
    """p that both arms vary equally: analysis of variance of the distances from each arm's median. None where the
    distances within each arm are all alike, as of two values in turn: nothing shows how far they vary by chance."""
    m, n = before.size, after.size
    if min(m, n) < 3:
        return None
    first, second = np.abs(before - np.median(before)), np.abs(after - np.median(after))
    within = float(((first - first.mean()) ** 2).sum() + ((second - second.mean()) ** 2).sum())
    between = m * n / (m + n) * float(first.mean() - second.mean()) ** 2
    if within <= ALIKE * float((first**2).sum() + (second**2).sum()):
        return None
    freedom = m + n - 2
    return float(betainc(freedom / 2, 0.5, within / (within + between)))


def secondary_statistics(before: Floats, after: Floats, differences: Floats, ratio: bool) -> dict[str, float | None]:
    """All of them for the complete pairs of one comparison; `differences` on its scale, logarithms for a ratio."""
    delta = cliffs_delta(before, after)
    shift: tuple[float | None, ...] = hodges_lehmann(differences) or (None, None, None)
    names = ("hodges_lehmann", "hodges_lehmann_low", "hodges_lehmann_high")
    if ratio:
        names = ("hodges_lehmann_pct", "hodges_lehmann_low_pct", "hodges_lehmann_high_pct")
        shift = tuple(None if value is None else float(100 * np.expm1(value)) for value in shift)
    return {
        "p_t": paired_t(differences),
        "p_permutation": sign_flips(differences),
        "p_trimmed_t": trimmed_t(differences),
        "p_wilcoxon": wilcoxon(differences),
        "p_welch": welch(before, after),
        "p_mann_whitney": mann_whitney(before, after),
        "p_brown_forsythe": brown_forsythe(before, after),
        **dict(zip(names, shift, strict=True)),
        "cliffs_delta": delta,
        "a12": None if delta is None else (delta + 1) / 2,
    }
