"""Change points in a series over time: binary segmentation, held to its false-alarm rate when neighbours are alike.

Runs that are near in time share much (temperature, firmware, what else the machine does), so a series of runs is no
row of independent draws: a permutation test calls a series with a correlation of .5 between neighbours changed in up to
38 % of cases instead of 1 %. Here the strongest contrast is compared with simulated series that have that correlation.
Other ways were simulated for comparison (perf/history_steps.py has the figures): permuted blocks and prewhitening keep the
rate only for long series, and ranks cannot tell a change from chance in fewer than twelve runs."""

import itertools
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from kduel.analysis.campaigns.contrasts import FEWEST, Floats, share_of_cut, strongest_stretch
from kduel.analysis.campaigns.null_shares import CORRELATION, CORRELATIONS, LONG, chance


class LevelChange(Struct, kw_only=True):
    """A change between the values at `index - 1` and `index`; the medians are of the stretches next to it."""

    index: int
    before: float
    after: float
    p: float


def change_points(values: Sequence[float], *, alpha: float = 0.01, errors: Sequence[float] = ()) -> list[LevelChange]:
    """Places where the level of a series changed, in the order of time, always the same for the same values. `errors`
    are standard errors (0: unknown), which may explain a contrast. False alarms: at most `alpha`."""
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
    kept = prune_cuts(series, variances, sorted(cuts), alpha)
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
    """The stretch that differs most from the rest, from where to where, and the chance of one so strong by noise. A
    step is a stretch that reaches an end. None for too few values, or none that differ."""
    count = values.size
    if count < 2 * FEWEST or np.ptp(values) == 0:
        return None
    share, start, end = strongest_stretch(values)
    neighbours = round(correlation(values, start, end), 1)
    return start, end, chance(share_above_errors(share, values, variances), count, neighbours)


def share_above_errors(share: float, values: Floats, variances: Floats) -> float:
    """The explained share, with a residual variance that is not below the values' own error."""
    total = float(((values - values.mean()) ** 2).sum())
    least = (values.size - 2) * float(variances.mean())
    residual = max((1 - share) * total, least)
    return share * total / (share * total + residual) if total > 0 else 0.0


def correlation(values: Floats, start: int, end: int) -> float:
    """Between neighbours, once the stretch's mean and the others' are taken off: CORRELATION, or more where it shows."""
    count = values.size
    if count < LONG:
        return CORRELATION
    inside = np.zeros(count, dtype=bool)
    inside[start:end] = True
    rest = np.where(inside, values - values[inside].mean(), values - values[~inside].mean())
    squares = float((rest**2).sum())
    if squares <= 0:
        return CORRELATION
    # Taking off means makes the estimate too small, by about (1 + 4 phi) / n for each.
    seen = (float((rest[1:] * rest[:-1]).sum()) / squares * count + 2) / (count - 6)
    return float(np.clip(seen, CORRELATION, CORRELATIONS[-1]))


def prune_cuts(series: Floats, variances: Floats, cuts: list[int], alpha: float) -> list[int]:
    """The cuts whose two sides differ by themselves; the weakest that does not goes first."""
    while cuts:
        edges = [0, *cuts, series.size]
        chances = []
        for first, cut, last in zip(edges, cuts, edges[2:], strict=False):
            # Of a contrast so strong at this one place, or at any other, by noise.
            values = series[first:last]
            share = share_above_errors(share_of_cut(values, cut - first), values, variances[first:last])
            chances.append(chance(share, values.size))
        if max(chances) <= alpha:
            break
        cuts = [cut for cut, chance in zip(cuts, chances, strict=True) if chance < max(chances)]
    return cuts
