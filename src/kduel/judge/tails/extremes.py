"""Return levels: what is exceeded so seldom that the run hardly shows it, by a model of the tail (peaks over threshold).

Above a high threshold, excesses follow a generalised Pareto distribution for most distributions (Pickands, 1975; Coles, An
Introduction to Statistical Modeling of Extreme Values, 2001). It is fitted by maximum likelihood, reduced to one parameter (Grimshaw,
1993). The interval leaves out one boot after the other (jackknife), on logarithms: the boot is the unit. It is a model: where the tail
has a mode that the run did not show, it is wrong, and no interval tells so."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from kduel.core.samples import Distribution
from kduel.core.tail_results import ReturnLevelResult
from kduel.judge.tails.shares import FEWEST_BOOTS, FOR_SKEWNESS
from kduel.judge.verdict.spending import Floats, critical_t

TAIL = 0.05
"""Share of the samples whose excesses are fitted."""
FEWEST_EXCESSES = 100
FARTHEST = 100.0
"""How many times rarer than one sample of the run a level may be: beyond, nothing supports the model."""
GRID = 400


def return_level(boots: Sequence[Distribution], share: float, level: float) -> ReturnLevelResult:
    """The level that `share` of all samples exceed, with its interval at 1 - `level`; or the reason why there is none, a sentence."""
    none = partial(ReturnLevelResult, share=share)
    if len(boots) < FEWEST_BOOTS:
        return none(
            reason=f"a model of the tail takes {FEWEST_BOOTS} boots; there {'is' if len(boots) == 1 else 'are'} {len(boots)}"
        )
    if any(boot.beyond for boot in boots):
        return none(reason="samples lie beyond the histogram, so that the tail is not known")
    total = sum(boot.samples for boot in boots)
    if share * total * FARTHEST < 1:
        return none(reason=f"{share:g} of the samples is more than {FARTHEST:g} times rarer than one of {total:,}")
    values = np.unique(np.concatenate([np.asarray(boot.values, dtype=float) for boot in boots]))
    counts = np.zeros((len(boots), values.size))
    for row, boot in enumerate(boots):
        counts[row, np.searchsorted(values, boot.values)] = boot.counts
    found = fit_tail(values, counts, share, TAIL)
    if found is None:
        return none(reason=f"fewer than {FEWEST_EXCESSES} samples with different values lie above the threshold")
    levels, threshold, shapes, scales, tail = found
    count = len(boots)
    logs = np.log(levels)
    pseudo = count * logs[0] - (count - 1) * logs[1:]
    # Fits of few excesses give too light a tail; the mean of the pseudo-values has less of that bias.
    middle = float(pseudo.mean())
    half = float(critical_t(FOR_SKEWNESS * level, count - 1)) * float(pseudo.std(ddof=1)) / math.sqrt(count)
    upper = fit_tail(values, counts, share, TAIL / 2)
    excesses, weights = tail
    reached = np.cumsum(weights) / weights.sum()
    expected = 1 - survival(excesses + step_of(values) / 2, float(shapes[0]), float(scales[0]))
    return ReturnLevelResult(
        share=share, threshold=threshold, excesses=int(weights.sum()), shape=float(shapes[0]), scale=float(scales[0]),
        level=math.exp(middle), low=math.exp(middle - half), high=math.exp(middle + half),
        distance=float(np.abs(reached - expected).max()),
        other_level=float(levels[0] if upper is None else upper[0][0]),
    )  # fmt: skip


def step_of(values: Floats) -> float:
    """The finest step between values: half of it is what rounding hides."""
    return float(np.diff(values).min()) if values.size > 1 else 0.0


def fit_tail(
    values: Floats, counts: Floats, share: float, tail: float
) -> tuple[Floats, float, Floats, Floats, tuple[Floats, Floats]] | None:
    """Levels, threshold, shapes and scales for all boots, then without each of them; and the excesses with their counts."""
    whole = counts.sum(axis=0)
    above = whole[::-1].cumsum()[::-1] - whole
    wanted = max(tail * whole.sum(), FEWEST_EXCESSES)
    place = int(np.argmax(above <= wanted))
    threshold, excesses = float(values[place]), values[place + 1 :] - values[place]
    if above[place] < FEWEST_EXCESSES / 2 or excesses.size < 3:
        return None
    # A value stands for an interval that ends there.
    excesses = excesses - step_of(values) / 2
    mine = counts[:, place + 1 :]
    weights = np.vstack([mine.sum(axis=0), mine.sum(axis=0) - mine])
    totals = np.concatenate([[counts.sum()], counts.sum() - counts.sum(axis=1)])
    shapes, scales = fit(excesses, weights)
    rate = weights.sum(axis=1) / totals
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = rate / share
        gained = np.where(np.abs(shapes) < 1e-6, np.log(ratio), (ratio**shapes - 1) / shapes)
    levels = threshold + scales * gained
    return (levels, threshold, shapes, scales, (excesses, mine.sum(axis=0))) if (levels > 0).all() else None


def fit(excesses: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Shapes and scales of greatest likelihood, one for each row of `weights`: over theta = shape / scale, given which the shape is the
    mean of log(1 + theta x). Searched on a grid, and once more between the neighbours of its best point."""
    count = weights.sum(axis=1, keepdims=True)
    mean = float((weights[0] @ excesses) / count[0, 0])
    end = 1 / float(excesses[-1])
    positive = np.geomspace(1e-4, 1e3, GRID) / mean
    thetas = np.concatenate([-end * (1 - np.geomspace(1e-4, 1, GRID // 2, endpoint=False)), positive])
    best = np.tile(thetas, (weights.shape[0], 1))
    for _ in range(3):
        logs = (
            np.log1p(best[..., None] * excesses)
            if best.ndim == 2 and _
            else np.log1p(thetas[:, None] * excesses)[None]
        )
        shapes = (weights[:, None, :] * logs).sum(axis=2) / count if _ else weights @ logs[0].T / count
        with np.errstate(divide="ignore", invalid="ignore"):
            likelihood = -np.log(shapes / best) - shapes
        likelihood = np.where(np.isfinite(likelihood) & (shapes > -1), likelihood, -np.inf)
        place = np.clip(likelihood.argmax(axis=1), 1, best.shape[1] - 2)
        rows = np.arange(best.shape[0])
        top = rows, likelihood.argmax(axis=1)
        chosen, shape = best[top], shapes[top]
        low, high = best[rows, place - 1], best[rows, place + 1]
        best = np.linspace(low, high, 21, axis=1)
    return shape, shape / chosen


def survival(excesses: Floats, shape: float, scale: float) -> Floats:
    """Share of excesses above these, by the model."""
    if abs(shape) < 1e-6:
        found: Floats = np.exp(-excesses / scale)
        return found
    inner = np.maximum(1 + shape * excesses / scale, 0.0)
    with np.errstate(divide="ignore"):
        return np.where(inner > 0, inner ** (-1 / shape), 0.0)
