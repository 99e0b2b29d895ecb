"""What a verdict costs."""

from __future__ import annotations

import math
import re

import msgspec
import numpy as np
import pytest
from verdict_tables import noisy, table

from kduel.judge.verdict.calibrate import simulate
from kduel.judge.verdict.comparison import compare
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.noise import made_up
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.sample_size import (
    MOST_ITERATIONS,
    Parts,
    best_iterations,
    boot_spread,
    cost,
    detectable,
    divide,
    fewest,
    pool_parts,
    variance_parts,
)
from kduel.judge.verdict.unpaired import judge_unpaired

RULE = Rule.of_edition(2)


def test_fewest_finds_the_first_that_is_enough() -> None:
    for first in (2, 3, 5, 16, 17, 1000):
        assert fewest(lambda count, first=first: count >= first, 2) == first  # type: ignore[misc]
    assert fewest(lambda count: count >= 3, 7) == 7
    assert fewest(lambda _: False, 2) is None


def test_detectable_falls_with_more_pairs() -> None:
    found = [detectable(1 / math.sqrt(pairs), pairs - 1, 0.05) or 0 for pairs in (5, 10, 20, 80)]
    assert found == sorted(found, reverse=True)
    assert found[-1] == pytest.approx((1.96 + 0.84) / math.sqrt(80), rel=0.03)
    assert detectable(0.0, 5, 0.05) == 0


@pytest.mark.slow
def test_planned_blocks_keep_their_promise() -> None:
    """A spread of 2.2 %: what `kduel plan` says is simulated with the rule itself."""
    found = cost(compare([noisy(3, 0, 0.022, 400)], Rule.of_edition(2, max_blocks=400))[0], 0.05, 60)
    assert found is not None and found.no_difference is not None and found.delta_difference is not None
    assert found.seconds == 60 * found.no_difference
    noise = made_up("normal", found.spread_pct)
    for blocks in (found.no_difference, found.no_difference_safe or 0):
        outcome = simulate(Rule.of_edition(2, max_blocks=blocks), noise, 0, runs=2000)
        assert outcome.equivalent + outcome.any_difference > 0.8
    assert simulate(
        Rule.of_edition(2, max_blocks=found.no_difference), noise, 0, runs=2000
    ).equivalent == pytest.approx(0.8, abs=0.06)
    assert simulate(
        Rule.of_edition(2, max_blocks=found.delta_difference), noise, 1, runs=2000
    ).higher == pytest.approx(0.8, abs=0.06)
    wide = Rule.of_edition(2, delta_pct=found.delta_reached_pct, max_blocks=400)
    assert simulate(wide, noise, 0, runs=1000).equivalent == pytest.approx(0.8, abs=0.07)


def test_a_small_pilot_is_told_to_be_careful() -> None:
    small = cost(compare([noisy(3, 0, 0.02, 6)], RULE)[0], 0.05)
    large = cost(compare([noisy(3, 0, 0.02, 200)], Rule.of_edition(2, max_blocks=200))[0], 0.05)
    assert small is not None and large is not None
    assert small.spread_high_pct / small.spread_pct == pytest.approx(math.sqrt(5 / 2.3425), rel=1e-3)
    assert large.spread_high_pct / large.spread_pct < 1.06
    assert (small.no_difference_safe or 0) > 1.8 * (small.no_difference or 0)
    assert small.seconds is None


def test_pilots_that_tell_nothing() -> None:
    assert cost(compare([noisy(3, 0, 0.02, 4)], RULE)[0], 0.05) is None
    assert cost(compare([table([0.0, 1, 2, 3, 4, 5], [1.0, 2, 3, 4, 5, 6])], RULE)[0], 0.05) is None
    steady = cost(compare([table([5.0] * 6, [6.0] * 6)], RULE)[0], 0.05)
    assert steady is not None and (steady.spread_pct, steady.no_difference) == (0, 10)
    wild = cost(compare([noisy(1, 0, 0.9, 8)], Rule.of_edition(2, delta_pct=0.01))[0], 0.05)
    assert wild is not None and wild.no_difference is None


def boots(between: float, within: float, count: int, iterations: int, seed: int = 1) -> list[list[float]]:
    generator = np.random.default_rng(seed)
    return [
        (100 * np.exp(generator.normal(0, between) + generator.normal(0, within, iterations))).tolist()
        for _ in range(count)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("between", "within"), [(0.01, 0.03), (0.03, 0.01), (0.02, 0.02)])
def test_variation_is_split_without_bias(between: float, within: float) -> None:
    found = [variance_parts(boots(between, within, 12, 5, seed)) for seed in range(400)]
    parts = [part for part in found if part is not None]
    assert np.mean([part.within**2 for part in parts]) == pytest.approx(within**2, rel=0.03)
    large = variance_parts(boots(between, within, 4000, 5))
    assert large is not None
    assert (large.between, large.within) == pytest.approx((between, within), rel=0.05)


def test_unequal_numbers_of_iterations() -> None:
    uneven = [values[: 2 + place % 4] for place, values in enumerate(boots(0.02, 0.02, 4000, 5))]
    parts = variance_parts(uneven)
    assert parts is not None and (parts.between, parts.within) == pytest.approx((0.02, 0.02), rel=0.06)
    assert parts.iterations == pytest.approx(3.5)


def test_what_cannot_be_split() -> None:
    assert variance_parts([]) is None
    assert variance_parts([[1.0, 2.0]]) is None, "one boot"
    assert variance_parts([[1.0], [2.0]]) is None, "no iterations"
    assert variance_parts([[1.0, 2.0], [0.0, 1.0]]) is None, "no ratio"
    assert divide("m", [[[1.0], [2.0]]], RULE, 0.05, 1, 1) is None


def test_the_best_number_of_iterations_is_the_best() -> None:
    """Against every other number, for the same time."""
    parts, boot, iteration = Parts(0.01, 0.04, 10, 5), 60.0, 5.0
    best = best_iterations(parts, boot, iteration)

    def variance_for_an_hour(iterations: int) -> float:
        return boot_spread(parts, iterations) ** 2 / (3600 / (boot + iterations * iteration))

    least = min(range(1, 200), key=variance_for_an_hour)
    assert abs(best - least) <= 1
    assert best == math.ceil(math.sqrt(60 / 5) * 4) == 14
    assert best_iterations(Parts(0.0, 0.04, 10, 5), boot, iteration) == MOST_ITERATIONS
    assert best_iterations(Parts(0.04, 0.0, 10, 5), boot, iteration) == 1


def test_division_over_all_arms() -> None:
    arms = [boots(0.01, 0.04, 500, 4, seed) for seed in (1, 2)]
    found = divide("cpu/rate", arms, RULE, 0.05, 60, 5)
    assert found is not None
    assert (found.between_boots_pct, found.within_boots_pct) == pytest.approx((1, 4), rel=0.1)
    assert found.best_iterations is not None and found.best_iterations == pytest.approx(14, abs=2)
    assert found.blocks is not None
    assert found.seconds == pytest.approx(found.blocks * 2 * (60 + 5 * found.best_iterations))
    # The same verdict with one iteration a boot costs more.
    single = math.sqrt(2) * boot_spread(pool_parts([Parts(0.01, 0.04, 1, 1)]), 1)
    assert (single / 0.01) ** 2 * 2 * 65 > 1.5 * found.seconds / 12
    assert (divide("cpu/rate", arms, RULE, 0.05, None, None) or found).best_iterations is None


@pytest.mark.parametrize("paired", [True, False])
def test_what_no_number_of_blocks_decides_is_said_in_words(paired: bool) -> None:
    def told(spread: float) -> str:
        found = noisy(3, 0, spread, 12)
        if paired:
            return judge([found], RULE)[0].told
        return judge_unpaired([msgspec.structs.replace(found, paired=False)], Rule.of_edition(1))[0].told

    each = "blocks" if paired else "trials"
    assert re.search(rf"About \d+ more {each}.* would decide it", told(0.02))
    assert f"to decide it would take more {each} than anybody measures (over 1,000)" in told(0.5)
