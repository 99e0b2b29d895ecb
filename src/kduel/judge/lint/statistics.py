"""The few probabilities that the checks need."""

import math
from collections.abc import Sequence

import numpy as np

from kduel.judge.lint.case import Floats


def t_two_sided(statistic: float, freedom: float) -> float:
    """The chance of Student's t that far from 0, either way."""
    from scipy.special import stdtr

    return float(2 * stdtr(freedom, -abs(statistic)))


TAIL = 3.0
"""The heaviest tails that count as clean: P(|x| > r) falls as r ** -TAIL, as Student's t with 3 degrees of freedom."""


def outlier(values: Floats) -> tuple[int, float]:
    """The value farthest from the rest, and the chance of one so far in a clean sample: the larger of Grubbs'
    (normal, by Bonferroni) and that of heavy tails, whose farthest lies r times beyond the second with r ** -TAIL."""
    count = values.size
    spread = values.std(ddof=1) if count > 2 else 0.0
    if spread == 0:  # also where squares of tiny differences underflow
        return 0, 1.0
    farthest = int(np.abs(values - values.mean()).argmax())
    square = float(((values[farthest] - values.mean()) / spread) ** 2)
    room = (count - 1) ** 2 - count * square
    normal = 0.0
    if room > 0:
        statistic = math.sqrt(count * (count - 2) * square / room)
        normal = min(1.0, count * t_two_sided(statistic, count - 2))
    if normal == 1.0:
        return farthest, normal
    return farthest, max(normal, chance_of_gap(np.abs(values - np.median(values)), farthest))


def chance_of_gap(distances: Floats, place: int) -> float:
    """The chance under heavy tails that one distance exceeds all others by so much; 1 where it does not."""
    others = np.delete(distances, place)
    if not others.size or distances[place] <= others.max():
        return 1.0
    return float((others.max() / distances[place]) ** TAIL)


def combine_chances(first: float, second: float) -> float:
    """The chance of two independent chances whose product is so small (Fisher's method)."""
    product = first * second
    return product * (1 - math.log(product)) if product > 0 else 0.0


def serial_correlation(values: Sequence[Floats]) -> tuple[float, float]:
    """Lag-1 correlation of the ranks of one or more sequences in the order of time, and the chance of one so high. A
    linear trend is taken off first. One-sided; moments of random orders, normal approximation."""
    from scipy.special import ndtr

    from kduel.judge.verdict.secondary import midranks

    ranks = midranks(np.concatenate(values))
    parts = np.split(ranks, np.cumsum([part.size for part in values])[:-1])
    parts = [detrend(part) for part in parts]
    squares = sum(float((part**2).sum()) for part in parts)
    count = ranks.size
    if squares <= 0 or count < 4:
        return 0.0, 1.0
    correlation = sum(float((part[1:] * part[:-1]).sum()) for part in parts) / squares
    sd = (count - 2) / (count * math.sqrt(count - 1))
    return correlation, float(ndtr(-(correlation + 1 / (count - 1)) / sd))


def detrend(values: Floats) -> Floats:
    """Less their straight line over the places 0, 1, 2, ..."""
    places = np.arange(values.size) - (values.size - 1) / 2
    centred = values - values.mean()
    size = float((places**2).sum())
    rest: Floats = centred - places * float((places * centred).sum() / size) if size else centred
    return rest
