"""The alpha-spending bounds: against another implementation, against known levels, and fast enough."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import pytest
from scipy.special import ndtri

from kduel.core.errors import InputError
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.spending import critical_t, normal_levels, one_sided_bounds, student_levels

USUAL = tuple(range(6, 21, 2))


def z_of(levels: np.ndarray) -> np.ndarray:
    return -ndtri(levels / 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("looks", "alpha"),
    [
        (USUAL, 0.05),
        (tuple(range(6, 21)), 0.05),
        (USUAL, 0.05 / 7),
        (tuple(range(6, 61, 2)), 0.01),
        ((6, 8, 20), 0.05),
        ((5, 6, 30, 31, 40), 0.1),
    ],
)
def test_bounds_agree_with_another_implementation(looks: tuple[int, ...], alpha: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from spotify_confidence.analysis.frequentist.sequential_bound_solver import bounds

        theirs = bounds(np.array(looks) / looks[-1], alpha, 2.0, 8.0, 2).bounds
    ours = z_of(normal_levels(alpha, looks, looks, looks[-1]))
    assert ours == pytest.approx(theirs, rel=0.002)
    assert ours == pytest.approx(theirs, rel=0.0004), "what is left is the coarser grid of theirs"


def test_nominal_levels_of_the_usual_looks() -> None:
    levels = normal_levels(0.05, USUAL, USUAL, 20)
    assert levels == pytest.approx([0.0045, 0.0055, 0.0080, 0.011, 0.015, 0.019, 0.024, 0.030], rel=0.025)


def test_levels_for_t_are_stricter_and_begin_at_what_is_spent() -> None:
    normal, student = normal_levels(0.05, USUAL, USUAL, 20), student_levels(0.05, USUAL, USUAL, 20)
    assert student[0] == pytest.approx(normal[0]) == pytest.approx(0.05 * 0.3**2)
    assert (student[1:] < normal[1:]).all()
    assert (student > 0.85 * normal).all()


def test_a_single_look_has_all_of_alpha_and_the_plain_t_quantile() -> None:
    levels = student_levels(0.05, (10,), (10,), 10)
    assert levels == pytest.approx([0.05])
    assert critical_t(levels, (9,)) == pytest.approx([2.262157], rel=1e-6)


def test_z_bounds_spend_what_they_should() -> None:
    generator = np.random.default_rng(7)
    looks = np.array(USUAL)
    sums = np.cumsum(generator.standard_normal((200_000, 20)), axis=1)[:, looks - 1] / np.sqrt(looks)
    crossed = np.abs(sums) > z_of(normal_levels(0.05, USUAL, USUAL, 20))
    by_then = np.logical_or.accumulate(crossed, axis=1).mean(axis=0)
    assert by_then == pytest.approx(0.05 * (looks / 20) ** 2, abs=0.0016)


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule",
    [
        Rule.of_edition(2),
        Rule.of_edition(2, fewest_pairs=6),
        Rule.of_edition(1),
        Rule.of_edition(2, max_blocks=40),
        Rule.of_edition(2, first_look=10),
    ],
)
def test_t_bounds_keep_alpha(rule: Rule) -> None:
    """Plain levels with t quantiles would give 8 to 18 % more than alpha here."""
    from kduel.judge.verdict.adjust import plain_means
    from kduel.judge.verdict.looks import plan_looks, repeated_interval

    looks = plan_looks(rule, range(1, rule.max_blocks + 1))
    generator = np.random.default_rng(11)
    levels = {alpha: looks.levels(rule, alpha) for alpha in (0.05, 0.05 / 7, 0.05 / 20)}
    alarms, runs = Counter[float](), 0
    for _ in range(3):
        found = plain_means(generator.standard_normal((25_000, rule.max_blocks)), looks.pairs)
        for alpha, level in levels.items():
            low, high = repeated_interval(found, level)
            alarms[alpha] += int(((low > 0) | (high < 0)).any(axis=1).sum())
        runs += 25_000
    for alpha in levels:
        assert alarms[alpha] / runs == pytest.approx(alpha, abs=max(0.05 * alpha, 3.5 * np.sqrt(alpha / runs)))


def test_a_look_without_news_leaves_its_alpha_to_the_next() -> None:
    levels = student_levels(0.05, (6, 8, 10), (6, 6, 8), 20)
    assert levels[0] == levels[1]
    assert levels[2] > student_levels(0.05, (6, 8, 10), (6, 8, 10), 20)[2]


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1.0, 1e-3, 1e-12])
def test_a_thousand_looks_of_any_alpha(alpha: float) -> None:
    looks = (*range(6, 1000), 1000)
    levels = student_levels(alpha, looks, looks, 1000)
    assert np.isfinite(levels).all() and (levels > 0).all() and (levels <= 1).all()
    assert (np.diff(levels[3:]) > 0).all()


def test_finer_grids_change_nothing() -> None:
    from kduel.judge.verdict import spending as bounds

    coarse = one_sided_bounds(USUAL, tuple(0.025 * (n / 20) ** 2 for n in USUAL))
    before = bounds.STEPS_PER_SD
    try:
        bounds.STEPS_PER_SD = 4 * before
        one_sided_bounds.cache_clear()
        assert one_sided_bounds(USUAL, tuple(0.025 * (n / 20) ** 2 for n in USUAL)) == pytest.approx(coarse, rel=3e-6)
    finally:
        bounds.STEPS_PER_SD = before
        one_sided_bounds.cache_clear()


def test_looks_of_a_rule() -> None:
    assert Rule.of_edition(1).looks() == USUAL
    assert Rule.of_edition(1, max_blocks=9).looks() == (6, 8, 9)
    assert Rule.of_edition(2).looks() == tuple(range(4, 21))
    assert Rule.of_edition(2).for_comparisons(7).looks() == tuple(range(5, 21))
    assert Rule.of_edition(2, max_blocks=4).looks() == (4,)
    assert Rule.fixed_blocks(12, edition=2).looks() == (12,)


@pytest.mark.parametrize(
    "numbers",
    [
        {"delta_pct": 0},
        {"delta_pct": float("nan")},
        {"delta_pct": 101},
        {"alpha": 0},
        {"alpha": 0.5},
        {"max_blocks": 0},
        {"first_look": -1},
        {"look_every": 0},
        {"equivalent_from": 0},
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused(numbers: dict[str, float]) -> None:
    with pytest.raises(InputError):
        Rule(**numbers)  # type: ignore[arg-type]
