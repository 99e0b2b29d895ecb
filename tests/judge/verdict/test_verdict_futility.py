"""Whether a run can still decide anything."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from verdict_tables import first_blocks, noisy, table

from kduel.judge.verdict.calibrate import simulate
from kduel.judge.verdict.futility import futile, futility_text
from kduel.judge.verdict.noise import made_up
from kduel.judge.verdict.rule import Rule


def test_noise_far_beyond_delta_is_hopeless_from_the_sixth_block_on() -> None:
    samples = noisy(4, 0, 0.2, 20)
    assert futile([first_blocks(samples, 5)], Rule.of_edition(2)) == []
    (one,) = futile([first_blocks(samples, 12)], Rule.of_edition(2))
    assert one.chance < 0.05 and one.blocks_more is not None and one.blocks_more > 100
    assert one.delta_pct is not None and 8 < one.delta_pct < 40
    said = futility_text([one], Rule.of_edition(2), ["The host was busy."])
    assert "cpu/rate of B has a probability of" in said and "The host was busy." in said
    assert "20 blocks can decide at a delta of" in said
    (one,) = futile([first_blocks(noisy(4, 0.0, 8.0, 20), 19)], Rule.of_edition(2))
    assert 0 < one.chance < 1e-6
    assert "of less than 0.01 % of a verdict" in futility_text([one], Rule.of_edition(2))
    assert futile([samples], Rule.of_edition(2)) == [], "at its maximum a run ends anyway"


def test_one_metric_with_hope_keeps_a_run_going() -> None:
    hopeless, fine = noisy(4, 0, 0.2, 12), msgspec.structs.replace(noisy(2, 0.006, 0.012, 12), benchmark="io")
    assert futile([hopeless, fine], Rule.of_edition(2)) == []
    decided = msgspec.structs.replace(noisy(2, 0.1, 0.002, 12), benchmark="io")
    assert [one.benchmark for one in futile([hopeless, decided], Rule.of_edition(2))] == ["cpu"]
    exploratory = msgspec.structs.replace(fine, primary=False)
    assert len(futile([hopeless, exploratory], Rule.of_edition(2))) == 1


def test_a_metric_without_values_is_hopeless_and_one_that_does_not_vary_is_not() -> None:
    assert futile([table([None] * 8, [1.0] * 8)], Rule.of_edition(2))[0].chance == 0
    assert futile([table([5.0] * 8, [5.0] * 8)], Rule.of_edition(2)) == []
    assert futile([noisy(4, 0, 0.2, 12, counted=True)], Rule.of_edition(2)) == []
    assert futile([noisy(4, 0, 0.2, 12)], Rule.of_edition(2), without=["B"]) == []
    assert futile([], Rule.of_edition(2)) == []


def test_a_verdict_that_is_withheld_is_no_hope() -> None:
    samples = noisy(1, 0.05, 0.002, 9)
    samples.values["B"][1] = samples.values["B"][2] = None
    (one,) = futile([samples], Rule.of_edition(2))
    assert one.withheld and "cannot be decided: 2 of 9 trials of B" in futility_text([one], Rule.of_edition(2))


@pytest.mark.parametrize("values", [[None] * 12, [1.05] * 6 + [None] * 4 + [1.05] * 2])
def test_more_measuring_is_no_help_where_values_are_missing_by_arm(values: list[float | None]) -> None:
    draw = np.random.default_rng(5)
    arms = [
        [None if one is None else one * (1 + 0.002 * draw.standard_normal()) for one in arm]
        for arm in ([1.0] * 12, values)
    ]
    found = futile([table(arms[0], arms[1])], Rule.of_edition(2))
    assert found and found[0].withheld
    said = futility_text(found, Rule.of_edition(2))
    assert "measure longer" not in said and "once no values are missing" in said


@pytest.mark.slow
def test_the_chance_comes_true() -> None:
    """Runs judged to have a chance of 5 to 60 % at the tenth block decide at their end about as often."""
    from kduel.judge.verdict.comparison import compare
    from kduel.judge.verdict.futility import chance_of
    from kduel.judge.verdict.judge import judge

    expected, came = [], []
    generator = np.random.default_rng(1)
    for seed in range(400):
        samples = noisy(seed, float(generator.normal(0, 0.03)), 0.04, 20)
        half = first_blocks(samples, 10)
        if judge([half], Rule.of_edition(2))[0].verdict == "undecided":
            chance = chance_of(compare([half], Rule.of_edition(2))[0], 0.05)
            if chance is not None and 0.05 < chance < 0.6:
                expected.append(chance)
                came.append(judge([samples], Rule.of_edition(2))[0].verdict != "undecided")
    assert len(came) > 60
    assert np.mean(came) == pytest.approx(np.mean(expected), abs=0.13)


@pytest.mark.slow
@pytest.mark.parametrize("metrics", [1, 7])
def test_stopping_for_futility_costs_no_alpha_and_little_power(metrics: int) -> None:
    runs = 6000 // metrics
    none = simulate(Rule.of_edition(2), made_up("normal", 4.2), runs=runs, metrics=metrics, futility=True)
    assert none.any_difference <= 0.05 + 3 * none.any_difference_error and none.blocks_mean < 16
    for effect in (2.0, 3.0):
        noise = made_up("normal", 2.8)
        ends = [
            simulate(Rule.of_edition(2), noise, effect, runs=runs, metrics=metrics, futility=stop)
            for stop in (False, True)
        ]
        assert ends[1].higher > ends[0].higher - 0.03
        assert ends[1].refuted == 0
