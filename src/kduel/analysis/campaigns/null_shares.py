"""The chance of a contrast in a series without a change, by simulation of series whose neighbours are correlated.
Quantiles of long ones, which take seconds, come in null_shares.json, by perf/null_shares.py."""

from functools import lru_cache
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from kduel.analysis.campaigns.contrasts import Floats, largest_shares

CORRELATION = 0.5
"""Between neighbours, in series without a change: an assumption that is strict where runs are independent."""
CORRELATIONS = (0.5, 0.6, 0.7, 0.8, 0.9)
"""Those of the table. A short series has the first one."""
LONG = 20
"""Values from which on a series' own correlation is used where it is larger, and the table."""
SIMULATED = 4999
BURN_IN = 20
"""Values before a simulated series begins, after which it has forgotten its start."""
TABLE = Path(__file__).with_name("null_shares.json")


class Quantiles(Struct, frozen=True, kw_only=True):
    """null_shares.json."""

    lengths: list[int]
    """In rising order, the first one LONG."""
    correlations: list[float]
    ranks: list[int]
    """Rank r stands for the r-th largest of SIMULATED shares; in rising order."""
    shares: list[list[list[float]]]
    """By correlation, length and rank."""


def chance(share: float, count: int, neighbours: float = CORRELATION) -> float:
    """The chance that a series of `count` values without a change explains so large a share by one stretch, or
    larger; `neighbours` is one of CORRELATIONS, and the table's longest series stands for longer ones."""
    if count < LONG:
        known = simulated_shares(count)
        beyond = known.size - int(np.searchsorted(known, share - 1e-12, side="left"))
        return (1 + beyond) / (1 + known.size)
    known, chances = interpolate_quantiles(count, neighbours)
    if share > known[-1]:
        return 1 / (1 + SIMULATED)
    return float(np.exp(np.interp(share, known, np.log(chances))))


@lru_cache(maxsize=LONG)
def simulated_shares(count: int) -> Floats:
    """In rising order: the largest explained share in each of many simulated short series."""
    generator = np.random.default_rng([count, SIMULATED])
    return np.sort(largest_shares(simulate_series(generator, SIMULATED, count, CORRELATION)))


def simulate_series(generator: np.random.Generator, rows: int, count: int, neighbours: float) -> Floats:
    """Series of noise, AR(1): normal ones, and with tails as Student's t with 3 degrees of freedom where they are
    long. In a long series heavy tails alone make a stretch of three that stands out; in a short one they do not."""
    shape = (rows, BURN_IN + count)
    values: Floats = generator.standard_t(3, size=shape) if count >= LONG else generator.normal(size=shape)
    for place in range(1, values.shape[1]):
        values[:, place] += neighbours * values[:, place - 1]
    return values[:, BURN_IN:]


@lru_cache(maxsize=1)
def table() -> Quantiles:
    return msgspec.json.decode(TABLE.read_bytes(), type=Quantiles)


@lru_cache(maxsize=4096)
def interpolate_quantiles(count: int, neighbours: float) -> tuple[Floats, Floats]:
    """Shares in rising order, and the chance of each: between the two lengths of the table, by their logarithm."""
    known = table()
    of_length = np.array(known.shares[known.correlations.index(neighbours)])
    at = np.log(known.lengths)
    shares = [np.interp(np.log(count), at, of_rank) for of_rank in of_length.T]
    ranks = np.array(known.ranks, dtype=float)
    # As for a short series: the chance counts the rank itself, and the series that is tested.
    return np.array(shares)[::-1], ((ranks + 1) / (SIMULATED + 1))[::-1]
