"""The rule's error rates and costs, by seeded simulation with the code that judges.

A spread is the standard deviation of the paired log-ratio. The longer table is perf/verdict_calibration.py.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from verdict_tables import first_blocks, generations, noisy, table

from kduel.core.errors import InputError
from kduel.core.orders import reversed_orders
from kduel.judge.verdict import noise
from kduel.judge.verdict.calibrate import simulate
from kduel.judge.verdict.comparison import compare
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.noise import DIFFERING, NAMES, Noise, made_up, resample_noise, scale_noise
from kduel.judge.verdict.rule import Rule

RULE = Rule.of_edition(2)
WIDE = 4.2
"""Per cent; too wide for "equivalent" to hide false alarms."""
ALIKE = [name for name in NAMES if name not in DIFFERING and name not in ("missing", "sharp")]
"""Noises in which nothing differs, but for the two that are looked at by themselves."""


def held(alarms: float, runs: int, limit: float = 0.055) -> bool:
    """Whether a share of false alarms is below the limit, or above it by no more than chance explains."""
    return alarms <= limit + 3 * np.sqrt(limit * (1 - limit) / runs)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALIKE)
def test_false_alarms(name: str) -> None:
    for spread in (1.4, WIDE):
        outcome = simulate(RULE, made_up(name, spread), runs=16_000)
        assert held(outcome.any_difference, 16_000), spread
        assert outcome.refuted == 0


@pytest.mark.slow
def test_false_alarms_with_missing_values() -> None:
    assert held(simulate(RULE, made_up("missing", WIDE), runs=400).any_difference, 400)


@pytest.mark.slow
def test_trials_that_are_missing_because_they_were_slow_flatter_nobody() -> None:
    """Every fifth of the contender's trials, the slowest, is void: 13.9 % of runs would call it lower."""
    outcome = simulate(RULE, made_up("censored", WIDE), runs=400)
    assert held(outcome.any_difference, 400)


@pytest.mark.slow
def test_false_alarms_are_not_rare_by_being_blind() -> None:
    assert simulate(RULE, made_up("normal", WIDE), runs=40_000).any_difference == pytest.approx(0.05, abs=0.004)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["normal", "ar-0.5", "bimodal", "place", "period-4"])
@pytest.mark.parametrize("contenders", [3, 5])
def test_false_alarms_over_several_contenders(name: str, contenders: int) -> None:
    """Any of them against the baseline; with places balanced, though the middle boot is 5 SD slower."""
    outcome = simulate(RULE, made_up(name, WIDE), runs=6000, contenders=contenders, seed=3)
    assert held(outcome.any_difference, 6000)


def test_orders_that_are_turned_round_would_fail_under_autocorrelation() -> None:
    """Why the first edition's plans went: neighbouring differences are alike."""
    serial, first = made_up("ar-0.5", WIDE), Rule.of_edition(1)
    assert simulate(first, serial, runs=16_000, plan=reversed_orders).any_difference > 0.06
    assert simulate(first, serial, runs=16_000).any_difference < 0.056


def test_order_as_covariate_with_four_pairs_would_fail_with_two_modes() -> None:
    """Why it enters from ten pairs on: with two degrees of freedom two modes look like an effect too often."""
    from kduel.judge.verdict import calibrate
    from kduel.judge.verdict.adjust import adjusted_means, plain_means
    from kduel.judge.verdict.looks import repeated_interval

    known = calibrate.plans(calibrate.orders, 2, 4, 1)
    drawn = calibrate.draw(made_up("bimodal", WIDE), known, 0, 20_000, 1, None, np.random.default_rng(1))
    logs, order = (values[:, 0, 1] - values[:, 0, 0] for values in (drawn.logs, drawn.places))
    alarms = []
    for found in (adjusted_means(logs, [order], [4]), plain_means(logs, [4])):
        low, high = repeated_interval(found, np.array([0.05]))
        alarms.append(((low > 0) | (high < 0)).mean())
    assert alarms[0] > 0.07 and alarms[1] < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("name", ["normal", "floor", "bimodal", "heavy", "drift", "ar-0.5", "place"])
@pytest.mark.parametrize("sign", [1, -1])
def test_false_equivalence_at_delta(name: str, sign: int) -> None:
    at_border = 1.0 if sign == 1 else 100 * (1 / 1.01 - 1)
    for spread in (0.7, 1.4):
        assert simulate(RULE, made_up(name, spread), at_border, runs=8000).equivalent <= 0.025 + 0.003


def test_rare_slow_modes_are_called_equivalent_only_while_none_was_seen() -> None:
    """One boot in ten of the contender is 20 % slower. A run that another metric keeps going to its twenty blocks
    calls that equivalent in the 12 % in which no slow boot came (.9**20), not in the 35 % of the first ten blocks."""
    one = Rule.of_edition(2, first_look=20)
    whole = simulate(one, made_up("rare-10", 0.7), runs=8000)
    assert whole.equivalent == pytest.approx(0.9**20, abs=0.012)
    ended = simulate(RULE, made_up("rare-10", 0.7), runs=8000)
    assert ended.equivalent < 0.9**10 + 0.015, "what a run that ends at ten blocks cannot see, and its headline names"


@pytest.mark.slow
def test_no_run_ends_in_a_verdict_that_its_last_interval_refutes() -> None:
    runs = 0
    for name in ("rare-10", "rare-5", "heavy", "step", "normal"):
        for effect in (0.0, 1.0):
            outcome = simulate(RULE, made_up(name, 1.4), effect, runs=3000, metrics=3, seed=8)
            assert outcome.refuted == 0
            runs += outcome.runs
    assert runs == 30_000


@pytest.mark.slow
@pytest.mark.parametrize("name", ["normal", "bimodal", "heavy", "drift", "ar-0.5", "place"])
def test_family_wise_false_alarms_over_seven_metrics(name: str) -> None:
    outcome = simulate(RULE, made_up(name, WIDE), runs=6000, metrics=7, seed=2)
    assert held(outcome.any_difference, 6000)


@pytest.mark.slow
@pytest.mark.parametrize(("metrics", "runs"), [(30, 900), (100, 300)])
def test_family_wise_false_alarms_over_many_metrics(metrics: int, runs: int) -> None:
    for name in ("normal", "bimodal"):
        assert held(simulate(RULE, made_up(name, WIDE), runs=runs, metrics=metrics).any_difference, runs)


def test_without_the_split_seven_metrics_would_fail() -> None:
    generous = Rule.of_edition(2, alpha=0.349)
    assert simulate(generous, made_up("normal", WIDE), runs=4000, metrics=7).any_difference > 0.15


@pytest.mark.slow
def test_blocks_to_a_verdict() -> None:
    assert simulate(RULE, made_up("normal", 0.5), runs=10_000).blocks_mean <= 11
    found = simulate(RULE, made_up("normal", 1.0), 2.0, runs=10_000)
    assert found.blocks_mean <= 8 and found.higher > 0.999
    assert found.blocks_mean < simulate(Rule.of_edition(1), made_up("normal", 1.0), 2.0, runs=10_000).blocks_mean
    # Boots that vary by 1 % each: their ratio varies by 1.41 %.
    large = simulate(RULE, made_up("normal", np.sqrt(2)), 5.0, runs=10_000)
    assert large.blocks_mean < 0.88 * 6, "before, no run could end sooner than after six"


@pytest.mark.slow
@pytest.mark.parametrize("host", [0.0, 0.3, 0.5, 0.7, 0.9])
def test_a_covariate_of_the_host_costs_no_alpha(host: float) -> None:
    rule = Rule.of_edition(2, covariates=("wait",))
    outcome = simulate(rule, made_up("normal", WIDE), runs=12_000, host=host)
    assert held(outcome.any_difference, 12_000)


def test_a_covariate_that_explains_the_noise_saves_blocks() -> None:
    noise = made_up("normal", np.sqrt(2))
    before = simulate(Rule.of_edition(1), noise, runs=6000, plan=reversed_orders)
    beside = simulate(Rule.of_edition(2, covariates=("wait",)), noise, runs=6000, host=0.7)
    assert beside.blocks_mean < 0.85 * before.blocks_mean
    assert beside.equivalent > before.equivalent + 0.25


def test_power_is_the_same_up_and_down() -> None:
    up = simulate(RULE, made_up("normal", 2), 2.0, runs=10_000)
    down = simulate(RULE, made_up("normal", 2), 100 * (1 / 1.02 - 1), runs=10_000)
    assert up.higher == pytest.approx(down.lower, abs=0.02)
    assert 0.5 < up.higher < 0.99


def test_too_few_pairs_would_fail_with_two_modes() -> None:
    seven = [
        simulate(Rule.fixed_blocks(n, fewest_pairs=3, edition=2), made_up("sharp", 3), runs=4000, metrics=7)
        for n in (3, 5)
    ]
    assert seven[0].any_difference > 0.15 and seven[1].any_difference < 0.055


@pytest.mark.parametrize("blocks", [4, 5, 6, 7, 8, 9])
def test_a_place_effect_gives_no_false_alarm_in_runs_too_short_to_adjust_for_it(blocks: int) -> None:
    place = Noise("", "", scale_noise(partial(noise.slow_place, 50.0), 0.01))
    assert held(simulate(Rule.fixed_blocks(blocks, edition=2), place, runs=6000).any_difference, 6000, 0.05)


def test_peeking_without_spending_would_fail() -> None:
    """What the looks would cost if each had all of alpha (the specification says 16 %)."""
    from kduel.judge.verdict.adjust import plain_means
    from kduel.judge.verdict.looks import plan_looks, repeated_interval

    looks = plan_looks(RULE, range(1, 21))
    values = np.random.default_rng(1).normal(size=(20_000, 20))
    low, high = repeated_interval(plain_means(values, looks.pairs), np.full(len(looks.pairs), 0.05))
    assert ((low > 0) | (high < 0)).any(axis=1).mean() > 0.12


def test_all_of_one_arm_first_would_fail_under_drift() -> None:
    """Why blocks: the drift that costs randomised blocks nothing gives half of the others a wrong verdict."""
    generator = np.random.default_rng(3)
    drift = np.linspace(0, 2, 40)
    values = drift + generator.standard_normal((4000, 40))
    logs = values[:, 20:] - values[:, :20]
    mean, sd = logs.mean(axis=1), logs.std(axis=1, ddof=1)
    assert (np.abs(mean) > 2.093 * sd / np.sqrt(20)).mean() > 0.7


@pytest.mark.slow
def test_simulation_and_judge_agree_run_by_run() -> None:
    """The simulated runs are judged as `judge` judges tables, orders and all."""
    from kduel.judge.verdict import calibrate

    noise, rule = made_up("normal", 1.3), Rule.of_edition(2, max_blocks=14)
    known = calibrate.plans(calibrate.orders, 2, 14, 1)
    drawn = calibrate.draw(noise, known, 0.8, 60, 1, None, np.random.default_rng(5))
    found = calibrate.at_once(rule, drawn)
    names = {"higher": 1, "lower": -1, "equivalent": 0, "undecided": calibrate.UNDECIDED}
    seen = set()
    for run in range(60):
        whole = calibrate.tables(drawn.logs[run], drawn.places[run])[0]
        for block in range(4, 15):
            result = judge([first_blocks(whole, block)], rule)[0]
            if result.verdict != "undecided" or block == 14:
                assert (names[result.verdict], block) == (found.sides[run, 0], found.blocks[run])
                seen.add(result.verdict)
                break
    assert {"higher", "equivalent", "undecided"} <= seen
    assert (calibrate.one_by_one(rule, drawn).sides == found.sides).all(), "as runs with missing values are judged"


def test_simulation_is_seeded() -> None:
    noise = made_up("heavy", 1)
    assert simulate(RULE, noise, 1, runs=500, seed=4) == simulate(RULE, noise, 1, runs=500, seed=4)
    assert simulate(RULE, noise, 1, runs=500, seed=4) != simulate(RULE, noise, 1, runs=500, seed=5)


def paired(noise: Noise, runs: int, blocks: int) -> np.ndarray:
    """Log-ratios of two contenders in random order."""
    from kduel.judge.verdict import calibrate

    known = calibrate.plans(calibrate.orders, 2, blocks, 1)
    logs = calibrate.draw(noise, known, 0, runs, 1, None, np.random.default_rng(1)).logs[:, 0]
    return logs[:, 1] - logs[:, 0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["normal", "floor", "bimodal", "heavy", "growing", "unequal", "counts", "sharp"])
def test_made_up_noise_has_the_spread_that_it_says_and_no_effect(name: str) -> None:
    drawn = paired(made_up(name, 2), 20_000, 20)
    assert drawn.std() == pytest.approx(0.02, rel=0.08)
    assert abs(drawn.mean()) < 4 * 0.02 / np.sqrt(drawn.size)


def test_noise_over_trials_is_what_it_says() -> None:
    arms = np.tile([0, 1], (20_000, 20))
    unit = 100 * np.sqrt(2)

    def drawn(name: str) -> np.ndarray:
        return made_up(name, unit * 0.01).draw(np.random.default_rng(2), arms) / 0.01

    for lag in (0.4, 0.5, 0.8):
        values = drawn(f"ar-{lag}")
        assert values.std() == pytest.approx(1, rel=0.02)
        assert np.corrcoef(values[:, 10], values[:, 11])[0, 1] == pytest.approx(lag, abs=0.02)
    for period in (3, 4, 5):
        values = drawn(f"period-{period}")
        assert (values[:, 0] * values[:, period]).mean() == pytest.approx(0.5, abs=0.03)
    assert drawn("drift")[:, -1].mean() == pytest.approx(4, abs=0.05)
    assert (drawn("place")[:, 1::2] - drawn("place")[:, ::2]).mean() == pytest.approx(5, abs=0.05)
    assert drawn("growing")[:, -1].std() == pytest.approx(2 * drawn("growing")[:, 0].std(), rel=0.05)
    assert np.isnan(drawn("missing")).mean() == pytest.approx(0.2, abs=0.01)
    void = np.isnan(drawn("censored"))
    assert void[:, 1::2].mean() == pytest.approx(0.2, abs=0.01) and not void[:, ::2].any()
    slow = drawn("rare-10") > 10
    assert slow[:, 1::2].mean() == pytest.approx(0.1, abs=0.01) and not slow[:, ::2].any()


def test_noise_of_a_run_resampled() -> None:
    c = compare([noisy(1, 0.05, 0.02, 12)], RULE)[0]
    noise = resample_noise(c)
    drawn = paired(noise, 2000, 20)
    logs = np.log(c.after) - np.log(c.before)
    assert drawn.std() == pytest.approx(logs.std(ddof=1), rel=0.05)
    assert abs(drawn.mean()) < 5e-4, "the run's own effect is not in its noise"
    assert simulate(RULE, noise, runs=8000).any_difference <= 0.06


def test_noise_of_study_000_resampled_keeps_alpha() -> None:
    for c in compare(generations(), RULE):
        outcome = simulate(RULE, resample_noise(c), runs=4000)
        assert outcome.any_difference <= 0.06, outcome.noise


def test_noise_of_unpaired_values_resampled() -> None:
    import msgspec

    samples = msgspec.structs.replace(noisy(1, 0.05, 0.02, 12), paired=False)
    drawn = paired(resample_noise(compare([samples], RULE)[0]), 2000, 20)
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
        resample_noise(compare([samples], RULE)[0])  # type: ignore[list-item]
