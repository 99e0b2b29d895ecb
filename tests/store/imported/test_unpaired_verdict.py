"""The rule for arms that nothing pairs: Welch's interval, its error rates, and what it says where it cannot decide."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kduel.core.errors import InputError
from kduel.core.experiment import Better, Metric
from kduel.core.metric_results import MetricResult
from kduel.core.samples import Samples, within_reason
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.unpaired import assess_unpaired, judge_unpaired, match

Column = list[float] | list[float | None] | np.ndarray


def samples(
    *arms: Column, better: Better = "lower", unit: str = "s", primary: bool = True, name: str = "metric"
) -> Samples:
    longest = max(len(arm) for arm in arms)
    columns = [
        [None if value is None else float(value) for value in arm] + [None] * (longest - len(arm)) for arm in arms
    ]
    return Samples(
        benchmark="bench",
        metric=Metric(name=name, unit=unit, better=better),
        primary=primary,
        paired=False,
        blocks=list(range(1, longest + 1)),
        values={f"arm{number}": column for number, column in enumerate(columns)},
    )


def one(*arms: Column, **how: object) -> MetricResult:
    (result,) = judge_unpaired([samples(*arms, **how)], Rule.of_edition(1))  # type: ignore[arg-type]
    return result


def test_the_interval_is_welchs_on_logarithms() -> None:
    from scipy.stats import ttest_ind

    rng = np.random.default_rng(3)
    old, new = rng.normal(100, 5, 9), rng.normal(110, 12, 14)
    found = one(old, new)
    reference = ttest_ind(np.log(new), np.log(old), equal_var=False)
    interval = reference.confidence_interval(0.95)
    assert found.ci_low_pct == pytest.approx(100 * math.expm1(interval.low))
    assert found.ci_high_pct == pytest.approx(100 * math.expm1(interval.high))
    assert found.beside["p_welch"] == pytest.approx(reference.pvalue)
    assert found.effect_pct == pytest.approx(100 * math.expm1(np.log(new).mean() - np.log(old).mean()))
    assert found.n == 9


def test_values_are_not_paired_by_their_number() -> None:
    rng = np.random.default_rng(3)
    old, new = rng.normal(100, 5, 10), rng.normal(103, 5, 10)
    results = [one(old, new[rng.permutation(10)]) for _ in range(5)]
    assert len({(round(r.ci_low_pct or 0, 9), r.verdict) for r in results}) == 1


def test_alpha_is_split_over_the_primary_comparisons_that_can_be_made() -> None:
    rng = np.random.default_rng(3)
    arms = [rng.normal(100, 5, 10) for _ in range(3)]
    alone = judge_unpaired([samples(*arms[:2])], Rule.of_edition(2, alpha=0.01))
    two_contenders = judge_unpaired([samples(*arms)], Rule.of_edition(2, alpha=0.02))
    assert two_contenders[0].ci_low_pct == pytest.approx(alone[0].ci_low_pct)
    single = samples([1.0], [2.0], name="single")
    beside_single = judge_unpaired([samples(*arms[:2]), single], Rule.of_edition(2, alpha=0.01))
    assert beside_single[0].ci_low_pct == pytest.approx(alone[0].ci_low_pct)


def test_exploratory_metrics_go_by_benjamini_and_hochberg() -> None:
    rng = np.random.default_rng(4)
    tables = [samples(rng.normal(100, 1, 10), rng.normal(100, 1, 10), primary=False, name=f"m{n}") for n in range(8)]
    tables += [samples(rng.normal(100, 1, 10), rng.normal(103, 1, 10), primary=False, name=f"d{n}") for n in range(2)]
    found = judge_unpaired(tables, Rule.of_edition(2))
    from scipy.stats import false_discovery_control

    assert [r.q_value for r in found] == pytest.approx(false_discovery_control([r.beside["p_welch"] for r in found]))
    for result in found:
        assert result.q_value is not None and result.role == "exploratory"
        assert (result.verdict == "slower") == (result.q_value <= 0.05 and (result.effect_pct or 0) > 0)


Noise = Callable[[np.random.Generator, int], np.ndarray]


def simulate(draw: Noise, count: int, effect: float, rounds: int) -> dict[str, float]:
    """Shares of what a single comparison comes to."""
    rng = np.random.default_rng(5)
    rule = Rule.of_edition(2).for_comparisons(1)
    verdicts = []
    for _ in range(rounds):
        table = samples(draw(rng, count), draw(rng, count) * (1 + effect), better="none")
        verdicts.append(assess_unpaired(match(table, "arm1"), rule, rule.alpha, None).verdict)
    return {verdict: verdicts.count(verdict) / rounds for verdict in ("higher", "lower", "equivalent", "undecided")}


NOISES: dict[str, Noise] = {
    "normal": lambda rng, n: rng.normal(100, 1, n),
    "lognormal above a floor": lambda rng, n: 100 + rng.lognormal(0, 0.6, n),
    "two modes": lambda rng, n: rng.normal(100, 0.5, n) + 4 * (rng.random(n) < 0.3),
    "heavy tails": lambda rng, n: 100 + rng.standard_t(3, n),
}


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("count", [4, 5, 10, 20])
def test_the_same_thing_twice_is_called_different_in_five_per_cent_at_most(noise: str, count: int) -> None:
    rounds = 700
    found = simulate(NOISES[noise], count, 0.0, rounds)
    alarms = found["higher"] + found["lower"]
    # 5 %, three standard errors, and half a per cent for noise that is not normal.
    assert alarms <= 0.055 + 3 * math.sqrt(0.05 / rounds)


@pytest.mark.slow
def test_an_effect_of_exactly_delta_is_seldom_called_equivalent() -> None:
    rounds = 1500
    for effect in (0.01, 1 / 1.01 - 1):
        found = simulate(NOISES["normal"], 12, effect, rounds)
        assert found["equivalent"] <= 0.025 + 3 * math.sqrt(0.025 / rounds)


def test_what_is_plain_is_found() -> None:
    assert simulate(NOISES["normal"], 10, 0.02, 300)["higher"] > 0.97
    quiet = simulate(lambda rng, n: rng.normal(100, 0.3, n), 10, 0.0, 300)
    assert quiet["equivalent"] > 0.9


def test_fewer_than_five_values_and_less_than_ten_of_them() -> None:
    far = [100.0, 100.1, 99.9, 100.05], [200.0, 200.1, 199.9, 200.05]
    assert one(*far).verdict == "undecided" and "takes 5 at least" in one(*far).told
    five = one([*far[0], 100.0], [*far[1], 200.0])
    assert five.verdict == "slower"
    near = [100.0, 100.1, 99.9, 100.05, 100.02, 99.97, 100.03, 100.01, 99.99]
    assert one(near, near).verdict == "undecided"
    assert one([*near, 100.0], [*near, 100.0]).verdict == "equivalent"


@pytest.mark.parametrize(
    ("better", "factor", "verdict"),
    [
        ("lower", 1.1, "slower"),
        ("lower", 0.9, "faster"),
        ("higher", 1.1, "faster"),
        ("none", 1.1, "higher"),
        ("none", 0.9, "lower"),
    ],
)
def test_verdicts_know_which_side_is_better(better: Better, factor: float, verdict: str) -> None:
    old = np.random.default_rng(1).normal(100, 1, 8)
    assert one(old, old[::-1] * factor, better=better).verdict == verdict


def test_zeros_are_compared_by_difference() -> None:
    found = one([0, 1, 0, 2, 1, 0], [5, 6, 7, 5, 6, 6], unit="count", better="none")
    assert (found.scale, found.verdict) == ("difference", "higher")
    assert found.effect == pytest.approx(31 / 6) and found.effect_pct is None and found.ci_low_pct is None


def test_what_never_varies_is_exact_unless_it_is_a_time() -> None:
    same = one([7.0] * 10, [7.0] * 10, unit="B")
    assert (same.scale, same.verdict, same.unseen_mode_pct) == ("exact", "equal", pytest.approx(25.9, abs=0.1))
    assert one([7.0] * 9, [7.0] * 9, unit="B").verdict == "undecided"
    assert one([7.0] * 5, [8.0] * 5, unit="B", better="none").verdict == "different"
    assert one([7.0] * 5, [8.0] * 5, unit="B").verdict == "slower"
    hidden = one([0.01] * 12, [0.02] * 12)
    assert hidden.verdict == "undecided" and "step of the clock" in hidden.told


@pytest.mark.parametrize("arms", [([1.0], [2.0]), ([1.0] * 3, [2.0]), ([], [1.0, 2.0]), ([None], [None])])
def test_too_little_is_told_and_no_interval_invented(arms: tuple[Column, Column]) -> None:
    found = one(*arms)
    assert found.verdict == "undecided" and found.told.startswith("Cannot decide")
    assert (found.ci_low_pct, found.ci_high_pct, found.ci_low, found.mde_pct, found.blocks_more) == (None,) * 5


def test_a_table_with_what_is_no_number_is_refused() -> None:
    for bad in (math.nan, math.inf):
        with pytest.raises(InputError, match="not a finite number"):
            one([1.0, bad], [1.0, 2.0])


@pytest.mark.slow
def test_the_minimum_detectable_effect_is_found_four_times_in_five() -> None:
    rng = np.random.default_rng(9)
    effects = [one(NOISES["normal"](rng, 10), NOISES["normal"](rng, 10)).mde_pct for _ in range(200)]
    typical = float(np.median([effect for effect in effects if effect is not None]))
    found = simulate(NOISES["normal"], 10, typical / 100, 2000)
    assert found["higher"] == pytest.approx(0.8, abs=0.04)


VALUE = st.floats(-1e150, 1e150, allow_nan=False).filter(within_reason)


@pytest.mark.slow
@given(
    st.lists(VALUE | st.none(), max_size=12), st.lists(VALUE | st.none(), max_size=12), st.sampled_from(["s", "B"])
)
def test_whatever_the_values_nothing_falls_over_and_intervals_hold_their_effect(
    old: list[float | None], new: list[float | None], unit: str
) -> None:
    if not old and not new:
        return
    found = one(old, new, unit=unit)
    for effect, low, high in (
        (found.effect_pct, found.ci_low_pct, found.ci_high_pct),
        (found.effect, found.ci_low, found.ci_high),
    ):
        if effect is not None and low is not None and high is not None:
            assert low <= effect <= high
    assert found.told


@pytest.mark.slow
@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=10), st.lists(st.floats(1, 1e6), min_size=2, max_size=10))
def test_swapping_the_arms_mirrors_the_verdict(old: list[float], new: list[float]) -> None:
    mirror = {"faster": "slower", "slower": "faster"}
    there, back = one(old, new), one(new, old)
    assert back.verdict == mirror.get(there.verdict, there.verdict)
