"""The rule's error rates and costs, by seeded simulation with the code that judges.

A spread is the standard deviation of the paired log-ratio. The longer table is perf/verdict_calibration.py.
"""

from __future__ import annotations

import numpy as np
import pytest
from verdict_tables import generations, noisy, table

from kduel.core.errors import InputError
from kduel.judge.verdict.calibrate import simulate
from kduel.judge.verdict.comparison import compare
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.noise import NAMES, Noise, made_up, orders, resampled
from kduel.judge.verdict.rule import FEWEST_PAIRS, Rule

RULE = Rule()
WIDE = 4.2
"""Per cent; too wide for "equivalent" to hide false alarms."""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("spread", [0.7, 1.4, WIDE])
def test_false_alarms(name: str, spread: float) -> None:
    outcome = simulate(RULE, made_up(name, spread), runs=20_000)
    assert outcome.any_difference <= 0.06
    assert outcome.any_difference <= 0.05 + 3 * outcome.any_difference_error, "alpha itself is kept"


def test_false_alarms_are_not_rare_by_being_blind() -> None:
    assert simulate(RULE, made_up("normal", WIDE), runs=40_000).any_difference == pytest.approx(0.05, abs=0.004)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sign", [1, -1])
def test_false_equivalence_at_delta(name: str, sign: int) -> None:
    rule = Rule(delta_pct=1)
    at_border = 1.0 if sign == 1 else 100 * (1 / 1.01 - 1)
    for spread in (0.7, 1.4):
        assert simulate(rule, made_up(name, spread), at_border, runs=20_000).equivalent <= 0.025


@pytest.mark.parametrize("name", ["normal", "bimodal", "heavy", "drift"])
def test_family_wise_false_alarms_over_seven_metrics(name: str) -> None:
    outcome = simulate(RULE, made_up(name, WIDE), runs=15_000, metrics=7, seed=2)
    assert outcome.any_difference <= 0.05 + 2 * outcome.any_difference_error
    assert simulate(RULE, made_up(name, 1.0), runs=10_000, metrics=7, seed=2).any_difference <= 0.05


def test_without_the_split_seven_metrics_would_fail() -> None:
    generous = Rule(alpha=0.349)
    assert simulate(generous, made_up("normal", WIDE), runs=4000, metrics=7).any_difference > 0.15


def test_blocks_to_a_verdict() -> None:
    assert simulate(RULE, made_up("normal", 0.5), runs=10_000).blocks_mean <= 11
    found = simulate(RULE, made_up("normal", 1.0), 2.0, runs=10_000)
    assert found.blocks_mean <= 8 and found.higher > 0.999
    assert found.blocks_mean == pytest.approx(7.1, abs=0.1)
    # The same of boots that vary by so much each, with nothing in common: the ratio then varies 1.41 times as much.
    each = np.sqrt(2)
    assert simulate(RULE, made_up("normal", 0.5 * each), runs=10_000).blocks_mean == pytest.approx(11.0, abs=0.15)
    assert simulate(RULE, made_up("normal", 1.0 * each), 2.0, runs=10_000).blocks_mean == pytest.approx(
        8.95, abs=0.15
    )


def test_power_is_the_same_up_and_down() -> None:
    up = simulate(RULE, made_up("normal", 2), 2.0, runs=10_000)
    down = simulate(RULE, made_up("normal", 2), 100 * (1 / 1.02 - 1), runs=10_000)
    assert up.higher == pytest.approx(down.lower, abs=0.02)
    assert 0.5 < up.higher < 0.99


@pytest.mark.parametrize(("pairs", "name", "held"), [(2, "bimodal", False), (5, "bimodal", True), (5, "heavy", True)])
def test_five_pairs_is_where_false_alarms_are_kept(
    pairs: int, name: str, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert FEWEST_PAIRS == 5
    monkeypatch.setattr("kduel.judge.verdict.looks.FEWEST_PAIRS", 2)
    assert (simulate(Rule.fixed(pairs), made_up(name, 3), runs=20_000).any_difference <= 0.06) == held


def test_peeking_without_spending_would_fail() -> None:
    """What the looks would cost if each had all of alpha (the specification says 16 %)."""
    from kduel.judge.verdict.looks import plan_looks, prefix_statistics
    from kduel.judge.verdict.spending import critical_t

    looks = plan_looks(RULE, range(1, 21))
    mean, sd = prefix_statistics(np.random.default_rng(1).normal(size=(20_000, 20)), looks.pairs)
    half = critical_t(np.full(8, 0.05), looks.pairs) / np.sqrt(looks.pairs) * sd
    assert (np.abs(mean) > half).any(axis=1).mean() > 0.12


def test_all_of_one_arm_first_would_fail_under_drift() -> None:
    """Why blocks: the drift that costs randomised blocks nothing gives half of the others a wrong verdict."""
    generator = np.random.default_rng(3)
    drift = np.linspace(0, 2, 40)
    values = drift + generator.standard_normal((4000, 40))
    logs = values[:, 20:] - values[:, :20]
    mean, sd = logs.mean(axis=1), logs.std(axis=1, ddof=1)
    assert (np.abs(mean) > 2.093 * sd / np.sqrt(20)).mean() > 0.7


def test_simulation_and_judge_agree_run_by_run() -> None:
    """The simulated runs are judged as `judge` judges tables."""
    from kduel.judge.verdict.calibrate import UNDECIDED, judged

    noise, rule = made_up("normal", 1.3), Rule(max_blocks=14)
    sides, blocks = judged(rule, noise, 0.8, 60, 1, np.random.default_rng(5))
    logs = noise.draw(np.random.default_rng(5), 60, 14) + np.log1p(0.008)
    names = {1: "faster", -1: "slower", 0: "equivalent", UNDECIDED: "undecided"}
    seen = set()
    for side, block, run in zip(sides[:, 0].tolist(), blocks[:, 0].tolist(), logs, strict=True):
        result = judge([table([1.0] * 14, np.exp(run).tolist())], rule)[0]
        assert result.verdict == names[side] and (result.decided_at or 14) == block
        seen.add(result.verdict)
    assert {"faster", "equivalent", "undecided"} <= seen


def test_simulation_is_seeded() -> None:
    noise = made_up("heavy", 1)
    assert simulate(RULE, noise, 1, runs=500, seed=4) == simulate(RULE, noise, 1, runs=500, seed=4)
    assert simulate(RULE, noise, 1, runs=500, seed=4) != simulate(RULE, noise, 1, runs=500, seed=5)


@pytest.mark.parametrize("name", NAMES)
def test_made_up_noise_has_the_spread_that_it_says_and_no_effect(name: str) -> None:
    drawn = made_up(name, 2).draw(np.random.default_rng(1), 20_000, 20)
    assert drawn.std() == pytest.approx(0.02, rel=0.08)
    assert abs(drawn.mean()) < 4 * 0.02 / np.sqrt(drawn.size)


def test_the_place_within_a_block_costs_no_false_alarms() -> None:
    """The second boot of a block always slower: chance alone would let 7.9 % of runs be wrong, and 24 % with seven metrics."""

    def second_is_slower(generator: np.random.Generator, runs: int, blocks: int) -> np.ndarray:
        return 0.05 * (orders(generator, runs, blocks) + 0.3 * generator.standard_normal((runs, blocks)))

    for metrics in (1, 7):
        outcome = simulate(RULE, Noise("", "", second_is_slower), runs=4000, metrics=metrics, seed=5)
        assert outcome.any_difference <= 0.05


def test_orders_are_those_of_the_plan() -> None:
    drawn = orders(np.random.default_rng(1), 4000, 5)
    assert (drawn[:, 0] == -drawn[:, 1]).all() and (drawn[:, 2] == -drawn[:, 3]).all()
    assert abs(drawn[:, 0].mean()) < 0.06 and abs((drawn[:, 0] * drawn[:, 2]).mean()) < 0.06


def test_drift_is_four_standard_deviations_of_a_boot() -> None:
    quiet = Noise("", "", made_up("drift", 1).draw)
    drawn = quiet.draw(np.random.default_rng(1), 200_000, 2)
    # Two blocks, four trials: a step of 4 SD / 3 from trial to trial, up or down, on top of the boots' own noise.
    step = 4 * 0.01 / np.sqrt(2) / 3
    assert drawn.var() == pytest.approx(0.01**2 + step**2, rel=0.02)


def test_noise_of_a_run_resampled() -> None:
    c = compare([noisy(1, 0.05, 0.02, 12)], RULE)[0]
    noise = resampled(c)
    drawn = noise.draw(np.random.default_rng(1), 2000, 20)
    logs = np.log(c.after) - np.log(c.before)
    assert drawn.std() == pytest.approx(logs.std(ddof=1), rel=0.05)
    assert abs(drawn.mean()) < 5e-4, "the run's own effect is not in its noise"
    assert simulate(RULE, noise, runs=8000).any_difference <= 0.06


def test_noise_of_study_000_resampled_keeps_alpha() -> None:
    for c in compare(generations(), RULE):
        outcome = simulate(RULE, resampled(c), runs=4000)
        assert outcome.any_difference <= 0.06, outcome.noise


def test_noise_of_unpaired_values_resampled() -> None:
    import msgspec

    samples = msgspec.structs.replace(noisy(1, 0.05, 0.02, 12), paired=False)
    drawn = resampled(compare([samples], RULE)[0]).draw(np.random.default_rng(1), 2000, 20)
    logs = np.log([samples.values["A"], samples.values["B"]])
    expected = np.sqrt(logs.var(axis=1, ddof=1).mean() * 2)
    assert drawn.std() == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    ("samples", "why"),
    [
        (noisy(1, 0, 0.01, 4), "too few"),
        (table([0.0, *range(1, 8)], range(1, 9)), "zeros or negative"),  # type: ignore[arg-type]
        (table([5.0] * 8, [6.0] * 8), "does not vary"),
    ],
)
def test_noise_that_cannot_be_drawn_is_refused(samples: object, why: str) -> None:
    with pytest.raises(InputError, match=why):
        resampled(compare([samples], RULE)[0])  # type: ignore[list-item]
