"""The statistic of the search for changes against its definition, and the shipped table against simulation."""

from __future__ import annotations

import numpy as np
import pytest

from kduel.analysis.campaigns.contrasts import FEWEST, largest_shares, share_of_cut, strongest_stretch
from kduel.analysis.campaigns.null_shares import CORRELATIONS, LONG, SIMULATED, chance, simulate_series, table


def by_definition(values: np.ndarray, start: int, end: int) -> float:
    """The share of the sum of squares that the means inside and outside of a stretch explain."""
    inside, outside = values[start:end], np.concatenate([values[:start], values[end:]])
    left = ((inside - inside.mean()) ** 2).sum() + ((outside - outside.mean()) ** 2).sum()
    return float(1 - left / ((values - values.mean()) ** 2).sum())


@pytest.mark.parametrize("count", [6, 7, 9, 14])
def test_the_strongest_stretch_is_the_one_of_the_definition(count: int) -> None:
    rng = np.random.default_rng(count)
    for values in rng.normal(size=(20, count)):
        shares = {
            (start, end): by_definition(values, start, end)
            for start in range(count)
            for end in range(start + FEWEST, count + 1)
            if (start == 0 or start >= FEWEST) and (end == count or count - end >= FEWEST) and end - start < count
        }
        share, start, end = strongest_stretch(values)
        assert share == pytest.approx(max(shares.values())) and shares[start, end] == pytest.approx(share)
        assert largest_shares(values[None, :])[0] == pytest.approx(share)
        assert share_of_cut(values, 3) == pytest.approx(by_definition(values, 0, 3))


@pytest.mark.parametrize("count", [22, 65])
@pytest.mark.parametrize("neighbours", [CORRELATIONS[0], CORRELATIONS[-1]])
def test_the_table_gives_the_chances_of_lengths_between_its_own(count: int, neighbours: float) -> None:
    shares = largest_shares(simulate_series(np.random.default_rng(count), 2000, count, neighbours))
    chances = np.array([chance(share, count, neighbours) for share in shares])
    # 1 % of 2,000 is 20 with a standard deviation of 4.4, and 10 % is 200 with 13.4; the table's own error is smaller.
    assert 6 <= (chances <= 0.01).sum() <= 36
    assert 155 <= (chances <= 0.1).sum() <= 250


def test_chances_fall_as_the_share_grows_and_are_never_zero() -> None:
    for count in (LONG - 1, LONG, 300, 1000, 10**6):
        found = [chance(share, count) for share in np.linspace(0.05, 1, 50)]
        assert found == sorted(found, reverse=True) and found[-1] == pytest.approx(1 / (SIMULATED + 1))


def test_the_table_is_of_this_simulation() -> None:
    known = table()
    assert known.lengths[0] == LONG and known.lengths == sorted(known.lengths) and known.lengths[-1] >= 1000
    assert tuple(known.correlations) == CORRELATIONS and known.ranks[-1] == SIMULATED
    count = known.lengths[3]
    again = np.sort(largest_shares(simulate_series(np.random.default_rng([count, SIMULATED]), 500, count, 0.5)))[::-1]
    first = known.shares[0][3][0]
    assert first >= again[0] - 1e-5, "the table's largest share is at least that of its first 500 series"
