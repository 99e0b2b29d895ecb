"""Intervals adjusted for the order of trials and for what was measured on the host."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from scipy import stats
from verdict_tables import noisy, table

from kduel.core.metric_results import MetricResult
from kduel.core.samples import Samples
from kduel.judge.verdict.adjust import adjusted_means, plain_means
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import MOST_COVARIATES, Rule


def regression(differences: np.ndarray, *covariates: np.ndarray) -> tuple[float, float]:
    """Intercept and its standard error by least squares, for comparison."""
    design = np.column_stack([np.ones(differences.size), *covariates])
    found, *_ = np.linalg.lstsq(design, differences, rcond=None)
    left = differences - design @ found
    variance = left @ left / (differences.size - design.shape[1])
    return float(found[0]), math.sqrt(variance * np.linalg.inv(design.T @ design)[0, 0])


def in_order(samples: Samples, second: np.ndarray) -> Samples:
    """The same with the arms' places: where `second`, B came after A."""
    order = {
        "A": [2 * block + int(not after) for block, after in enumerate(second)],
        "B": [2 * block + int(after) for block, after in enumerate(second)],
    }
    return msgspec.structs.replace(samples, order=order)


def logs_of(samples: Samples) -> np.ndarray:
    return np.log(samples.values["B"]) - np.log(samples.values["A"])  # type: ignore[arg-type]


def only(samples: Samples, rule: Rule) -> MetricResult:
    (result,) = judge([samples], rule)
    return result


def test_estimates_are_those_of_least_squares() -> None:
    generator = np.random.default_rng(1)
    for count in (6, 10, 20):
        differences = generator.normal(3, 1, count)
        covariates = [
            generator.choice([-1.0, 1.0], count),
            generator.normal(2, 5, count),
            generator.normal(size=count),
        ]
        for used in range(4):
            found = adjusted_means(differences, covariates[:used], [count])
            assert (found.mean[0], found.error[0]) == pytest.approx(regression(differences, *covariates[:used]))
            assert found.freedom[0] == count - 1 - used
        assert np.allclose(plain_means(differences, [count]), adjusted_means(differences, [], [count]))


def test_a_covariate_that_adds_nothing_costs_nothing() -> None:
    generator = np.random.default_rng(2)
    differences, one = generator.normal(size=12), generator.normal(size=12)
    gap = one.copy()
    gap[5] = np.nan
    for useless in (np.zeros(12), 3 * one, gap):
        found = adjusted_means(differences, [one, useless], [12])
        assert found.freedom[0] == 10
        assert (found.mean[0], found.error[0]) == pytest.approx(regression(differences, one))
    assert adjusted_means(differences, [gap], [5, 12]).freedom.tolist() == [3, 11], "it counts while it is complete"


def test_differences_without_spread_have_none() -> None:
    order = np.array([1.0, -1, 1, 1, -1, -1, 1, -1, 1, 1])
    found = adjusted_means(np.full(10, 0.3), [order], [10])
    assert (found.mean[0], found.error[0]) == (0.3, 0)
    assert adjusted_means(0.3 + 0.1 * order, [order], [10]).error[0] == 0, "the order explains everything"


def test_the_order_enters_the_interval_from_ten_pairs_on_or_at_the_last_look() -> None:
    second = np.array([1, 0, 0, 1, 1, 1, 0, 1, 0, 1, 1, 1], dtype=bool)
    samples = in_order(noisy(3, 0.01, 0.02, 12), second)
    for blocks, freedom in ((6, 5), (9, 7), (10, 8), (12, 10)):
        part = msgspec.structs.replace(
            samples,
            blocks=samples.blocks[:blocks],
            values={name: values[:blocks] for name, values in samples.values.items()},
            order={name: order[:blocks] for name, order in samples.order.items()},
        )
        result = only(part, Rule.fixed_blocks(blocks, edition=2))
        logs, places = logs_of(part), np.where(second[:blocks], 1.0, -1.0)
        if blocks < 7:
            mean, error = logs.mean(), logs.std(ddof=1) / math.sqrt(blocks)
        else:
            mean, error = regression(logs, places)
        half = stats.t.isf(0.025, freedom) * error
        assert result.effect_pct == pytest.approx(100 * math.expm1(mean))
        assert result.ci_low_pct == pytest.approx(100 * math.expm1(mean - half))
    assert (
        Rule.of_edition(2).adjusts_from,
        Rule.fixed_blocks(9, edition=2).adjusts_from,
        Rule.fixed_blocks(5, edition=2).adjusts_from,
    ) == (10, 9, 7)
    first = only(samples, Rule.fixed_blocks(12, edition=1))
    logs = logs_of(samples)
    assert first.effect_pct == pytest.approx(100 * math.expm1(logs.mean())), "the first edition knows no order"


def test_a_place_effect_costs_nothing_with_ten_pairs_and_more() -> None:
    second = np.random.default_rng(4).random(20) < 0.5
    samples = noisy(5, 0.02, 0.01, 20)
    slower = [value * (1.2 if after else 1) for value, after in zip(samples.values["B"], second, strict=True)]  # type: ignore[operator]
    other = [value * (1 if after else 1.2) for value, after in zip(samples.values["A"], second, strict=True)]  # type: ignore[operator]
    struck = msgspec.structs.replace(in_order(samples, second), values={"A": other, "B": slower})
    result, calm = only(struck, Rule.of_edition(2)), only(in_order(samples, second), Rule.of_edition(2))
    assert result.effect_pct == pytest.approx(calm.effect_pct) and result.ci_low_pct == pytest.approx(calm.ci_low_pct)
    assert result.verdict == "faster"
    assert only(struck, Rule.of_edition(1)).verdict == "undecided"


def test_there_is_no_verdict_while_all_pairs_have_one_order() -> None:
    samples = noisy(1, 0.5, 0.001, 8)
    result = only(in_order(samples, np.ones(8, dtype=bool)), Rule.of_edition(2))
    assert (result.verdict, result.confounded) == ("undecided", True)
    assert "had the same order" in result.told
    mixed = np.array([1, 1, 1, 1, 1, 0, 1, 1], dtype=bool)
    decided = only(in_order(samples, mixed), Rule.of_edition(2))
    assert (decided.verdict, decided.decided_at) == ("faster", 6), "the first block in the other order"
    assert only(in_order(samples, np.ones(8, dtype=bool)), Rule.of_edition(1)).verdict == "faster"
    assert only(samples, Rule.of_edition(2)).verdict == "faster", "where no order is known none can be asked for"
    exploratory = msgspec.structs.replace(in_order(samples, np.ones(8, dtype=bool)), primary=False)
    assert only(exploratory, Rule.of_edition(2)).verdict == "undecided"


def test_three_contenders_are_adjusted_by_the_distance_of_their_places() -> None:
    generator = np.random.default_rng(6)
    places = np.array([generator.permutation(3) for _ in range(12)])
    arms = [1000 * np.exp(generator.normal(0, 0.01, 12) + 0.05 * places[:, arm]) for arm in range(3)]
    order = {name: (3 * np.arange(12) + places[:, arm]).tolist() for arm, name in enumerate("ABC")}
    found = judge([table(*(arm.tolist() for arm in arms), order=order)], Rule.fixed_blocks(12, edition=2))
    for arm, result in zip((1, 2), found, strict=True):
        mean, _ = regression(np.log(arms[arm]) - np.log(arms[0]), (places[:, arm] - places[:, 0]).astype(float))
        assert result.effect_pct == pytest.approx(100 * math.expm1(mean))


def with_host(seed: int, wait: str = "wait", missing: bool = False) -> Samples:
    """A large part of the noise is what the host's load makes of it."""
    generator = np.random.default_rng(seed)
    samples = noisy(seed, 0.0, 0.002, 14)
    load = {name: generator.normal(0.3, 0.1, 14) for name in "AB"}
    values = {
        name: [value * math.exp(-0.2 * busy) for value, busy in zip(samples.values[name], load[name], strict=True)]  # type: ignore[operator]
        for name in "AB"
    }
    host: dict[str, list[float | None]] = {name: busy.tolist() for name, busy in load.items()}
    if missing:
        host["B"][3] = None
    return msgspec.structs.replace(samples, values=values, covariates={wait: host})


def test_a_declared_covariate_of_the_host_explains_noise() -> None:
    samples = with_host(1)
    without, declared = only(samples, Rule.of_edition(2)), only(samples, Rule.of_edition(2, covariates=("wait",)))
    assert (without.verdict, declared.verdict) == ("undecided", "equivalent")
    host = samples.covariates["wait"]
    mean, _ = regression(logs_of(samples), np.subtract(host["B"], host["A"]))  # type: ignore[arg-type]
    assert declared.effect_pct == pytest.approx(100 * math.expm1(mean))


def test_a_covariate_counts_only_if_it_was_declared_and_is_complete() -> None:
    plainly = only(with_host(1), Rule.of_edition(2))
    for samples, rule in (
        (with_host(1, wait="other"), Rule.of_edition(2, covariates=("wait",))),
        (with_host(1, missing=True), Rule.of_edition(2, covariates=("wait",))),
        (msgspec.structs.replace(with_host(1), covariates={}), Rule.of_edition(2, covariates=("wait",))),
    ):
        assert only(samples, rule).ci_low_pct == plainly.ci_low_pct


def test_few_covariates_may_be_declared() -> None:
    from kduel.core.errors import InputError

    with pytest.raises(InputError, match="covariates"):
        Rule.of_edition(2, covariates=tuple("abcd"))
    assert Rule.of_edition(2, covariates=tuple("abc")[:MOST_COVARIATES])
