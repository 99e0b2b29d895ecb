"""Estimates of a run whose blocks were carried out by several machines, or which was merged from several runs.

All blocks of one machine are a stratum: every machine may have a level and an effect of its own, and only what varies
within machines is noise. Arrays have any leading axes (simulated runs), then one axis of pairs, machines or looks:
the code that judges a run is the code that perf/machines_calibration.py simulates."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, fdtri, stdtrit

from kduel.core.experiment import Scope
from kduel.judge.verdict.adjust import ROUNDED, SINGULAR, Estimates
from kduel.judge.verdict.spending import Floats, critical_t

FEWEST_OF_CLASS = 4
"""Machines without which nothing is claimed about a class."""
LOUDER = 0.2
"""The F test's level from which the noisiest machine has its own degrees of freedom: at lower levels a part of three blocks
gives up to 6.5 % false positives; at higher ones equal machines pay for it (docs/statistics.md)."""
FREEDOMS = np.geomspace(1.0, 1e6, 600)
QUANTILES = stdtrit(FREEDOMS, 0.975)
Machines = NDArray[np.int_]
"""By pair: which machine measured it, from 0."""


class Fit(NamedTuple):
    """One look: every machine's effect, with one slope over all machines for each covariate."""

    counts: NDArray[np.int_]
    """Pairs by machine; at least one."""
    effects: Floats
    """Mean difference by machine, where every covariate is 0."""
    squares: Floats
    """By machine: the sum of squared residuals."""
    slopes: Floats
    """By covariate and machine: the machine's mean of the covariate over the root of the covariate's sum of squares;
    its square times the variance is what the slope adds to the variance of the machine's effect."""
    used: NDArray[np.int_]
    """Regressors that entered."""


def fit(differences: Floats, covariates: Sequence[Floats], machines: Machines) -> Fit:
    """All the given pairs. A covariate with a missing value, or without variation within machines, is left out."""
    present, index, counts = np.unique(machines, return_inverse=True, return_counts=True)
    member = (index[:, None] == np.arange(present.size)).astype(float)
    columns = [*(np.broadcast_to(np.nan_to_num(column), differences.shape) for column in covariates), differences]
    means = [column @ member / counts for column in columns]
    within = [column - mean @ member.T for column, mean in zip(columns, means, strict=True)]
    whole = [(column**2).sum(axis=-1) for column in within]
    slopes, used = [], np.zeros(differences.shape[:-1], dtype=int)
    for i, column in enumerate(covariates):
        pivot = (within[i] ** 2).sum(axis=-1)
        complete = np.isfinite(column).all(axis=-1)
        kept = complete & (pivot > SINGULAR * whole[i]) & (whole[i] > 0)
        pivot = np.where(kept, pivot, 1.0)
        slopes.append(np.where(kept[..., None], means[i] / np.sqrt(pivot)[..., None], 0.0))
        used = used + kept
        for j in range(i + 1, len(columns)):
            share = (np.where(kept, (within[i] * within[j]).sum(axis=-1), 0.0) / pivot)[..., None]
            within[j] = within[j] - share * within[i]
            means[j] = means[j] - share * means[i]
    squares = (within[-1] ** 2) @ member
    # Rounding must not give a spread to what has none.
    squares = np.where(squares > ROUNDED * np.maximum((differences**2) @ member, 1e-300), squares, 0.0)
    shape = (len(slopes), *differences.shape[:-1], present.size)
    return Fit(counts, means[-1], squares, np.stack(slopes) if slopes else np.zeros(shape), used)


class Spread(NamedTuple):
    """The variance of single differences within machines."""

    variance: Floats
    """Infinite where no machine has two pairs."""
    freedom: Floats
    """Degrees of freedom, at least 1; fewer than pairs less machines where machines do not vary equally."""


def variance_within(found: Fit) -> Spread:
    """Pooled over machines. The degrees of freedom are Satterthwaite's (1946), so that a noisy machine counts as one."""
    freedom = found.counts - 1.0
    total = freedom.sum() - found.used
    squares = found.squares.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.where(total > 0, squares / np.maximum(total, 1), np.inf)
        parts = np.where(freedom > 0, found.squares**2 / freedom, 0.0).sum(axis=-1)
        effective = np.where(parts > 0, squares**2 / parts, freedom.sum())
    share = np.maximum(total, 1) / max(freedom.sum(), 1)
    return Spread(variance, np.clip(effective * share, 1.0, np.maximum(total, 1)))


def on_these(found: Fit) -> Estimates:
    """The effect on these machines, each counted by its blocks: the machines are fixed, only their noise is chance."""
    share = found.counts / found.counts.sum()
    noise = variance_within(found)
    tilt = ((found.slopes @ share) ** 2).sum(axis=0)
    error, freedom = np.sqrt(noise.variance * (1 / found.counts.sum() + tilt)), noise.freedom
    if (found.counts > 1).sum() > 1:
        error, freedom = widen_for_loudest(found, noise, tilt, error)
    return Estimates((found.effects * share).sum(axis=-1), error, freedom)


def widen_for_loudest(found: Fit, noise: Spread, tilt: Floats, error: Floats) -> tuple[Floats, Floats]:
    """Error and degrees of freedom of the mean, larger and fewer where the noisiest machine is louder than the others.

    The pooled variance counts a machine by its degrees of freedom, the mean by its blocks: a small, noisy part is then
    underrated. Satterthwaite's degrees of freedom are not enough, as the part's own variance is of few pairs. So its share
    of the variance has Student's t of its own degrees of freedom, and the others theirs (Banerjee, 1961)."""
    known = found.counts > 1
    own_freedom = np.maximum(found.counts - 1.0, 1.0)
    variances = np.where(known, found.squares / own_freedom, 0.0)
    loudest = variances.argmax(axis=-1)[..., None]
    is_loudest = np.arange(found.counts.size) == loudest
    mine = own_freedom[loudest[..., 0]]
    others = (found.counts - 1.0).sum() - mine
    rest = np.where(is_loudest, 0.0, found.squares).sum(axis=-1) / others
    top = variances.max(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = known.sum() * fdtrc(mine, others, np.where(rest > 0, top / rest, np.where(top > 0, np.inf, 1.0)))
    parts = np.where(known, variances, noise.variance[..., None]) * found.counts / found.counts.sum() ** 2
    loud = np.where(is_loudest, parts, 0.0).sum(axis=-1)
    quiet_parts = np.where(is_loudest, 0.0, parts)
    quiet = quiet_parts.sum(axis=-1)
    squares = (quiet_parts**2 / own_freedom).sum(axis=-1)
    quiet_freedom = np.clip(np.where(squares > 0, quiet**2 / np.maximum(squares, 1e-300), others), 1.0, others)
    own = np.sqrt(loud + quiet + noise.variance * tilt)
    half = np.sqrt(stdtrit(mine, 0.975) ** 2 * loud + stdtrit(quiet_freedom, 0.975) ** 2 * (own**2 - loud))
    wider = (chance < LOUDER) & np.isfinite(own) & (half > stdtrit(noise.freedom, 0.975) * error)
    error = np.where(wider, np.maximum(own, error), error)
    with np.errstate(divide="ignore", invalid="ignore"):
        quantile = np.where(wider & (error > 0), half / error, 2.0)
    logarithm = np.interp(-quantile, -QUANTILES, np.log(FREEDOMS))
    return error, np.where(wider, np.minimum(np.exp(logarithm), noise.freedom), noise.freedom)


def on_the_class(found: Fit) -> Estimates:
    """The mean effect of the class that the machines are a sample of: Student's t over their effects (Hartung and
    Knapp with equal weights). Weights by precision let alpha grow to 8.5 %; this one keeps it
    (docs/statistics.md)."""
    machines = found.counts.size
    mean = found.effects.mean(axis=-1)
    if machines < FEWEST_OF_CLASS:
        return Estimates(mean, np.full(mean.shape, np.inf), np.ones(mean.shape))
    error = found.effects.std(axis=-1, ddof=1) / np.sqrt(machines)
    return Estimates(mean, error, np.full(mean.shape, machines - 1.0))


def estimates(
    differences: Floats,
    covariates: Sequence[Floats],
    machines: Machines,
    pairs: Sequence[int],
    adjust_from: int | None,
    scope: Scope,
) -> Estimates:
    """Estimates from the first `pairs[k]` differences, for each look k, like those of `kduel.judge.verdict.adjust.estimates`."""
    chosen = on_the_class if scope == "class" else on_these
    looks = []
    for count in pairs:
        known = covariates if adjust_from is not None and count >= adjust_from else ()
        found = fit(differences[..., :count], [column[..., :count] for column in known], machines[:count])
        looks.append(chosen(found))
    return Estimates(*(np.stack(column, axis=-1) for column in zip(*looks, strict=True)))


def enough(machines: Machines, pairs: Sequence[int], fewest: int) -> NDArray[np.bool_]:
    """By look: whether chance alone makes every machine's differences constant no more often than in `fewest` pairs of
    one machine, where it does so with a probability of 2 * 4**-fewest (values with two sharp modes)."""
    found = []
    for count in pairs:
        _, counts = np.unique(machines[:count], return_counts=True)
        constant = np.prod(2.0**-counts + 2 * 4.0**-counts) - 2.0**-count
        found.append(constant <= 2 * 4.0**-fewest * (1 + 1e-9))
    return np.array(found, dtype=bool)


def is_balanced(machines: Machines, blocks: Sequence[int]) -> NDArray[np.bool_]:
    """By look after so many blocks: whether each machine has the share of them that it has of all `machines`. Else a
    mean over machines that differ estimates another quantity than the verdict is about."""
    whole = np.bincount(machines)
    shares = [np.bincount(machines[:count], minlength=whole.size) * machines.size for count in blocks]
    return np.array(
        [bool((share == whole * count).all()) for share, count in zip(shares, blocks, strict=True)], dtype=bool
    )


class Heterogeneity(NamedTuple):
    """Variation of the true effects between machines: standard deviation, with its interval."""

    sd: Floats
    low: Floats
    high: Floats


def heterogeneity(found: Fit, level: float) -> Heterogeneity:
    """The Q-profile interval (Viechtbauer, 2007), pooled variance, quantiles of F. To infinity without noise."""
    noise = variance_within(found)
    between = found.counts.size - 1.0
    lower, middle, upper = (
        between * fdtri(between, noise.freedom, quantile) for quantile in (level / 2, 0.5, 1 - level / 2)
    )
    top = 10 * found.effects.var(axis=-1) * found.counts.size / np.maximum(lower / between, 1e-6)
    return Heterogeneity(*(np.sqrt(solve(found, noise, quantile, top)) for quantile in (middle, upper, lower)))


def solve(found: Fit, noise: Spread, quantile: Floats, top: Floats) -> Floats:
    """The variance between machines at which the weighted squares of their effects have that value; 0 where they are
    smaller from the start. They fall as the variance grows: bisection."""
    errors = noise.variance[..., None] / found.counts

    def squares(variance: Floats) -> Floats:
        weights = 1 / np.maximum(errors + variance[..., None], 1e-300)
        mean = (weights * found.effects).sum(axis=-1) / weights.sum(axis=-1)
        total: Floats = (weights * (found.effects - mean[..., None]) ** 2).sum(axis=-1)
        return total

    low, high = np.zeros_like(top), top
    for _ in range(60):
        middle = (low + high) / 2
        above = squares(middle) > quantile
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.where(squares(np.zeros_like(top)) > quantile, (low + high) / 2, 0.0)


class Single(NamedTuple):
    """By machine: its effect and interval, and how it compares with the others."""

    low: Floats
    high: Floats
    others: Floats
    """The effect on the other machines, each counted by its blocks."""
    excess: Floats
    """How far it is from the others, as a share of what chance explains: above 1 it differs. 0 if unknown."""


def effects_by_machine(found: Fit, level: float) -> Single:
    """Each machine by its own noise, and against the others, of which none counts as quieter than all of them
    together: with few pairs some looks quiet by chance. Infinite for a single pair."""
    noise = variance_within(found)
    count = found.counts.astype(float)
    share = np.maximum(1 - found.used / max((count - 1).sum(), 1.0), 0.0)[..., None]
    freedom = (count - 1.0) * share
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.where(freedom > 0, found.squares / freedom, np.inf)
    tilt = 1 / count + (found.slopes**2).sum(axis=0)
    half = critical_t(np.asarray(level), np.maximum(freedom, 1.0)) * np.sqrt(variance * tilt)
    louder = np.isfinite(variance) & (variance > noise.variance[..., None])
    own = np.where(louder, variance, noise.variance[..., None]) * tilt
    own_freedom = np.where(louder, np.maximum(freedom, 1.0), noise.freedom[..., None])
    others, excess = np.zeros_like(found.effects), np.zeros(found.effects.shape)
    for one in range(count.size) if count.size > 1 else ():
        pooled = on_these(fit_of(found, np.arange(count.size) != one))
        others[..., one] = pooled.mean
        both = own[..., one] + pooled.error**2
        known = np.isfinite(both) & (both > 0)
        both = np.where(known, both, 1.0)
        parts = own[..., one] ** 2 / own_freedom[..., one] + pooled.error**4 / pooled.freedom
        welch = np.maximum(both**2 / np.where(known, parts, 1.0), 1.0)
        gap = np.abs(found.effects[..., one] - pooled.mean)
        explained = critical_t(np.asarray(level / count.size), welch) * np.sqrt(both)
        excess[..., one] = np.where(known, gap / explained, 0.0)
    return Single(found.effects - half, found.effects + half, others, excess)


def fit_of(found: Fit, machines: NDArray[np.bool_] | Sequence[int]) -> Fit:
    chosen = np.asarray(machines)
    return found._replace(
        counts=found.counts[chosen],
        effects=found.effects[..., chosen],
        squares=found.squares[..., chosen],
        slopes=found.slopes[..., chosen],
    )


def differing(found: Fit, level: float) -> list[int]:
    """The machines of one run that differ from the others beyond chance: the one that is farthest off, then the next
    among the rest, so that one outlier does not make the others look different. Two machines differ from each other."""
    rest = list(range(found.counts.size))
    named: list[int] = []
    while len(rest) > 1:
        excess = effects_by_machine(fit_of(found, rest), level).excess
        if excess.max() <= 1:
            break
        if len(rest) == 2:
            return sorted(rest) if not named else sorted(named)
        named.append(rest.pop(int(excess.argmax())))
    return sorted(named)
