"""Share of a series' sum of squares that each stretch's mean explains: the statistic of the search for changes."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

FEWEST = 3
"""Values on each side of a change point."""
PIECE = 32_768
"""Values that are computed at once: as many as a processor's cache holds."""
Floats = NDArray[np.float64]


def explained_shares(sums: Floats) -> Iterator[tuple[int, int, Floats]]:
    """For each length: the first start, and by start and series the explained sum of squares, up to 1 / n, of a
    stretch of FEWEST or more with none or as many on each side, not at the end. `sums` are running sums of centred
    series."""
    count = len(sums) - 1
    for length in range(FEWEST, count - FEWEST + 1):
        factor = 1 / (length * (count - length))
        yield 0, length, factor * sums[length : length + 1] ** 2
        last = count - FEWEST - length
        if last >= FEWEST:
            inner = sums[FEWEST + length : last + length + 1] - sums[FEWEST : last + 1]
            yield FEWEST, length, factor * np.square(inner, out=inner)


def running_sums(rows: Floats) -> tuple[Floats, Floats]:
    """The running sums of centred series, a column for each row, and the sums of squares."""
    centred = (rows - rows.mean(axis=1, keepdims=True)).T
    sums = np.concatenate([np.zeros((1, len(rows))), np.cumsum(centred, axis=0)])
    return sums, np.maximum((centred**2).sum(axis=0), np.finfo(float).tiny)


def largest_shares(rows: Floats) -> Floats:
    """By row, the largest share of the sum of squares that one stretch explains."""
    count = rows.shape[1]
    size = max(1, PIECE // count)
    found = []
    for begin in range(0, len(rows), size):
        sums, total = running_sums(rows[begin : begin + size])
        largest = np.zeros(sums.shape[1])
        for _, _, explained in explained_shares(sums):
            np.maximum(largest, explained.max(axis=0), out=largest)
        found.append(count * largest / total)
    return np.concatenate(found)


def strongest_stretch(values: Floats) -> tuple[float, int, int]:
    """The largest explained share of a series, and where its stretch begins and ends."""
    sums, total = running_sums(values[None, :])
    best = (-1.0, 0, 0)
    for first, length, explained in explained_shares(sums):
        at = int(explained.argmax())
        if explained[at, 0] > best[0]:
            best = float(explained[at, 0]), first + at, first + at + length
    return float(values.size * best[0] / total[0]), best[1], best[2]


def share_of_cut(values: Floats, cut: int) -> float:
    """The share that a change at this one place explains."""
    sums, total = running_sums(values[None, :])
    count = values.size
    return float(sums[cut, 0] ** 2 * count / (cut * (count - cut)) / total[0])
