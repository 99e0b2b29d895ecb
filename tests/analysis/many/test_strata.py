"""Several machines as strata: the estimates, what they claim too often, and which machine is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_runs import make_run

from kduel.core.metric_results import MetricResult
from kduel.judge.evaluate import judge_run
from kduel.judge.verdict import adjust, strata
from kduel.judge.verdict.spending import critical_t
from kduel.store.merged import merge

RUNS = 4000


def drawn(
    counts: list[int], spread: float, noise: float | list[float] = 1.0, seed: int = 1
) -> tuple[strata.Fit, np.ndarray]:
    """Many simulated looks at machines with so many pairs each, and the machines' true effects."""
    draw = np.random.default_rng(seed)
    machines = np.repeat(np.arange(len(counts)), counts)
    true = spread * draw.standard_normal((RUNS, len(counts)))
    scale = np.broadcast_to(np.asarray(noise, dtype=float), len(counts))[machines]
    order = draw.choice([-1.0, 1.0], (RUNS, machines.size))
    values = true[:, machines] + scale * draw.standard_normal((RUNS, machines.size)) + 0.5 * order
    return strata.fit(values, [order], machines), true


def misses(found: adjust.Estimates, truth: np.ndarray | float, level: float = 0.05) -> float:
    """How often the interval does not hold the truth."""
    return float((np.abs(found.mean - truth) > critical_t(np.asarray(level), found.freedom) * found.error).mean())


@pytest.mark.parametrize("covariates", [0, 1])
def test_one_machine_is_judged_as_without_strata(covariates: int) -> None:
    draw = np.random.default_rng(5)
    values, order = draw.standard_normal((7, 12)), draw.choice([-1.0, 1.0], (7, 12))
    known = [order][:covariates]
    plain = adjust.estimates(values, known, [4, 9, 12], 9)
    one = strata.estimates(values, known, np.zeros(12, dtype=int), [4, 9, 12], 9, "these")
    for expected, found in zip(plain, one, strict=True):
        np.testing.assert_allclose(found, expected)


def test_levels_of_machines_are_no_noise() -> None:
    draw = np.random.default_rng(6)
    machines = np.tile([0, 1], 10)
    values = draw.standard_normal((1, 20))
    shifted = values + np.array([0.0, 500.0])[machines]
    found, far = (strata.on_these(strata.fit(given, [], machines)) for given in (values, shifted))
    np.testing.assert_allclose(far.error, found.error)
    np.testing.assert_allclose(far.mean, found.mean + 250)


@pytest.mark.parametrize("counts", [[5, 5], [3, 3, 3, 3], [10, 10, 10, 2], [4] * 10])
@pytest.mark.parametrize("spread", [0.0, 2.0])
@pytest.mark.parametrize("louder", [1.0, 4.0])
def test_these_machines_are_claimed_of_no_more_often_than_alpha(
    counts: list[int], spread: float, louder: float
) -> None:
    found, true = drawn(counts, spread, [louder, *[1.0] * (len(counts) - 1)])
    share = np.array(counts) / sum(counts)
    assert misses(strata.on_these(found), true @ share) < 0.07


@pytest.mark.parametrize(
    ("counts", "louder"), [([3, 17], 10.0), ([3, 17], 4.0), ([4, 20], 10.0), ([5, 15], 4.0), ([3] * 8, 20.0)]
)
def test_a_small_noisy_part_has_its_own_variance(counts: list[int], louder: float) -> None:
    """The pooled variance gave 9.3 % for 3 of 20 blocks with ten times the noise."""
    found, true = drawn(counts, 0.0, [louder, *[1.0] * (len(counts) - 1)])
    assert misses(strata.on_these(found), true @ np.array(counts) / sum(counts)) < 0.06
    assert misses(strata.on_these(found), true @ np.array(counts) / sum(counts), 0.01) < 0.02


def test_equal_parts_pay_little_for_a_noisy_one() -> None:
    found, _ = drawn([10, 10], 0.0, [1.0, 1.0])
    pooled = critical_t(np.asarray(0.05), strata.variance_within(found).freedom) * np.sqrt(
        strata.variance_within(found).variance / 20
    )
    now = strata.on_these(found)
    assert (critical_t(np.asarray(0.05), now.freedom) * now.error).mean() < 1.05 * pooled.mean()


@pytest.mark.parametrize("counts", [[5] * 4, [10, 10, 2, 2], [4] * 10])
@pytest.mark.parametrize("spread", [0.0, 0.5, 3.0])
def test_a_class_is_claimed_of_no_more_often_than_alpha(counts: list[int], spread: float) -> None:
    found, _ = drawn(counts, spread)
    assert misses(strata.on_the_class(found), 0.0) < 0.062
    if spread == 3.0:
        assert misses(strata.on_these(found), 0.0) > 0.4, "machines as fixed strata claim nothing of a class"


def test_three_machines_are_no_sample_of_a_class() -> None:
    found, _ = drawn([10, 10, 10], 0.0)
    assert np.isinf(strata.on_the_class(found).error).all()


@pytest.mark.parametrize("spread", [0.0, 1.0, 3.0])
def test_the_interval_of_the_heterogeneity_holds_it(spread: float) -> None:
    found, _ = drawn([5] * 6, spread)
    between = strata.heterogeneity(found, 0.05)
    assert ((between.low <= spread) & (spread <= between.high)).mean() > 0.94
    assert spread == 0 or (between.low > 0).mean() > (0.5 if spread == 1 else 0.99)


def test_machines_that_agree_are_seldom_told_apart() -> None:
    for counts in ([5, 5], [5] * 4, [3] * 10):
        found, _ = drawn(counts, 0.0)
        assert (strata.effects_by_machine(found, 0.05).excess > 1).any(axis=-1).mean() < 0.05


def test_one_outlier_does_not_make_the_others_look_different() -> None:
    draw = np.random.default_rng(9)
    machines = np.repeat(np.arange(5), 6)
    values = draw.standard_normal(30) + np.where(machines == 3, 9.0, 0.0)
    assert strata.differing(strata.fit(values, [], machines), 0.01) == [3]


def test_few_pairs_on_each_machine_are_not_enough() -> None:
    def enough(counts: list[int], fewest: int = 4) -> bool:
        machines = np.repeat(np.arange(len(counts)), counts)
        return bool(strata.enough(machines, [machines.size], fewest)[0])

    assert [enough([n]) for n in (3, 4)] == [False, True]
    assert [enough([n], 6) for n in (5, 6)] == [False, True]
    assert [enough([2, 2]), enough([3, 3]), enough([4, 4])] == [False, False, True]
    assert [enough([1] * 8), enough([2] * 4), enough([3] * 3)] == [False, False, True]


def test_looks_decide_only_where_the_machines_have_their_shares() -> None:
    rounds = np.tile([0, 1, 2], 4)
    assert strata.is_balanced(rounds, range(1, 13)).tolist() == [count % 3 == 0 for count in range(1, 13)]
    one_after_the_other = np.repeat([0, 1], 5)
    assert strata.is_balanced(one_after_the_other, range(1, 11)).tolist() == [False] * 9 + [True]
    assert strata.is_balanced(np.zeros(4, dtype=int), range(1, 5)).all()


def merged(tmp_path: Path, effects: list[float], **options: object) -> MetricResult:
    """The verdict of one run on each of several machines."""
    runs = [
        make_run(tmp_path / f"r{i}", effect, place=f"rack{i}", seed=i, **options)  # type: ignore[arg-type]
        for i, effect in enumerate(effects)
    ]
    merge(runs, tmp_path / "all")
    (metric,) = judge_run(tmp_path / "all").metrics
    return metric


@pytest.mark.slow
def test_a_machine_that_contradicts_the_others_is_named(tmp_path: Path) -> None:
    metric = merged(tmp_path, [3, 3, 3, -3])
    assert metric.machines is not None and metric.machines.contradicting == ["rack3"]
    assert [warning.code for warning in metric.warnings] == ["machines-disagree"]
    assert "rack3 contradicts the others" in metric.told
    low, high = metric.machines.spread_low, metric.machines.spread_high
    assert low is not None and high is not None and low < 3 < high


def test_machines_that_differ_in_size_do_not_contradict(tmp_path: Path) -> None:
    metric = merged(tmp_path, [3, 3, 9])
    assert metric.machines is not None and not metric.machines.contradicting
    assert [one.differs for one in metric.machines.effects] == [False, False, True]
    assert [warning.code for warning in metric.warnings] == ["machines-differ"]


@pytest.mark.slow
def test_a_class_takes_four_machines_that_agree(tmp_path: Path) -> None:
    about = {"machines": "class"}
    few = merged(tmp_path / "few", [5, 5, 5], about=about)
    assert few.verdict == "undecided" and "takes 4 machines at least, and 3 measured" in few.told
    assert few.machines is not None and few.machines.low is not None and few.machines.low > 4
    many = merged(tmp_path / "many", [5] * 8, about=about, most=10)
    assert many.verdict == "slower" and "machines like these 8" in many.told
    split = merged(tmp_path / "split", [5, -4, 5, -4], about=about, most=10)
    assert split.verdict == "undecided"


def test_a_run_of_one_machine_says_nothing_of_a_class(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a", 5, about={"machines": "class"})
    (metric,) = judge_run(run).metrics
    assert metric.verdict == "undecided" and "and 1 measured" in metric.told
