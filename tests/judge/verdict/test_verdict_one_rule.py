"""The rule stands in one place: a change planted in `classify` changes the verdicts of every path that has one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from verdict_tables import noisy, table

from kduel.core.experiment import MachineRecord
from kduel.core.results import Results, StudyResult
from kduel.core.samples import Samples
from kduel.judge.lint.case import cases
from kduel.judge.lint.findings import one_trial as influence
from kduel.judge.verdict.classify import (
    ABOVE,
    BELOW,
    UNDECIDED,
    WITHIN,
    benjamini_hochberg,
    classify,
    deciding_half,
    deciding_means,
)
from kduel.judge.verdict.interim import primary_results
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.noise import made_up
from kduel.judge.verdict.result import build
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.unpaired import judge_unpaired


def one_outlier() -> Samples:
    """Twelve pairs that would be decided but for one."""
    samples = noisy(3, 0.05, 0.01, 12)
    samples.values["B"][4] = 300.0
    return samples


def without_outlier() -> str:
    """What the lint says that the verdict would be without the one trial."""
    samples = one_outlier()
    results = Results(
        study=StudyResult(edition=2),
        machine=MachineRecord(),
        contenders=[],
        trials=[],
        metrics=judge([samples], Rule.of_edition(2)),
    )
    (case,) = cases(results, [samples])
    found = list(influence.one_trial(case))
    return "faster" if found and "the verdict would be faster instead of undecided" in found[0] else "undecided"


def simulated() -> str:
    from kduel.judge.verdict.calibrate import simulate

    found = simulate(Rule.of_edition(2), made_up("normal", 1.0), 5.0, runs=50)
    return "decided" if found.higher > 0.9 else "undecided"


def exploratory() -> str:
    return judge([noisy(1, 0.1, 0.01, 12, primary=False)], Rule.of_edition(2))[0].verdict


def bisected() -> str:
    """Whether a search under noise finds that its ends do not differ."""
    from kduel.run.bisect.outcome import interval

    differs = interval([3.0, 3.1, 2.9, 3.0])
    alike = interval([0.0, 0.1, -0.1, 0.0])
    return "decided" if differs.is_beyond(1.0) and alike.is_within(1.0) else "undecided"


PATHS: dict[str, Callable[[], str]] = {
    "paired": lambda: judge([noisy(1, 0.1, 0.01, 12)], Rule.of_edition(2))[0].verdict,
    "interim": lambda: primary_results([noisy(1, 0.1, 0.01, 12)], Rule.of_edition(2))[0].verdict,
    "exploratory": exploratory,
    "imported": lambda: judge_unpaired([noisy(1, 0.1, 0.01, 12)], Rule.of_edition(2))[0].verdict,
    "exact": lambda: (
        judge([table([1000, 1000], [1001, 1002], counted=True)], Rule.fixed_blocks(2, edition=2))[0].verdict
    ),
    "lint": without_outlier,
    "simulation": simulated,
    "bisection": bisected,
}


def never(low: Any, *_: Any, **__: Any) -> Any:
    """A rule that decides nothing."""
    import numpy

    return numpy.full(numpy.shape(low), 2)


@pytest.mark.parametrize("path", PATHS)
def test_a_change_of_the_one_rule_changes_every_verdict(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert PATHS[path]() != "undecided"
    monkeypatch.setattr(classify, "__code__", never.__code__)
    monkeypatch.setattr(classify, "__defaults__", never.__defaults__)
    assert PATHS[path]() == "undecided"


@pytest.mark.parametrize(
    "judged", [lambda s: judge(s, Rule.of_edition(2)), lambda s: judge_unpaired(s, Rule.of_edition(2))]
)
def test_a_change_of_benjamini_and_hochberg_changes_both_kinds(
    judged: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = [noisy(1, 0.1, 0.01, 12, primary=False)]
    assert judged(samples)[0].q_value < 0.01
    plain = benjamini_hochberg([0.5], 0.05)

    def planted(p_values: Any, alpha: float) -> Any:
        from kduel.judge.verdict.classify import Discoveries

        return Discoveries(alpha, [0.75 for _ in p_values])

    monkeypatch.setattr(benjamini_hochberg, "__code__", planted.__code__)
    assert judged(samples)[0].q_value == 0.75 != plain.q_values[0]


@pytest.mark.parametrize("path", ["paired", "imported", "exact"])
def test_a_change_of_the_one_builder_changes_every_result(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def planted(*_: Any) -> Any:
        raise LookupError("planted")

    monkeypatch.setattr(build, "__code__", planted.__code__)
    with pytest.raises(LookupError, match="planted"):
        PATHS[path]()


def test_shapes_and_thresholds() -> None:
    low, high = np.array([[-0.5, 0.1, -2.0, -0.2]]), np.array([[0.5, 2.0, -0.1, 1.2]])
    assert classify(low, high, 1.0, 10, 4, 10).tolist() == [[0, 1, -1, UNDECIDED]]
    assert classify(low, high, 1.0, 9, 4, 10).tolist() == [[UNDECIDED, 1, -1, UNDECIDED]]
    assert classify(low, high, 1.0, 3, 4, 10).tolist() == [[UNDECIDED] * 4]
    assert classify(0.0, 0.0, 0.0, 10, 4, 10) == UNDECIDED, (
        "where nothing counts as equivalent, equal does not either"
    )


def test_what_predictions_take_for_decided_is_the_rule() -> None:
    random = np.random.default_rng(4)
    means, halves, borders = (random.uniform(low, 2, 2000) for low in (-2, 0, 0))
    sides = classify(means - halves, means + halves, borders, 10, 4, 10)
    differs, within = deciding_means(halves, borders)
    size = np.abs(means)
    assert np.array_equal(np.isin(sides, (ABOVE, BELOW)), (size > differs) & ~(size <= within))
    assert np.array_equal(sides == WITHIN, size <= within)
    for mean, half, border, side in zip(means, halves, borders, sides, strict=True):
        widest, first = deciding_half(mean, border)
        assert (half < widest) == (side != UNDECIDED)
        assert classify(mean - 0.999 * widest, mean + 0.999 * widest, border, 10, 4, 10) in (first, WITHIN)


def test_an_interval_that_touches_a_limit_is_within_and_not_beyond_it() -> None:
    from kduel.run.bisect.outcome import Interval

    assert Interval(0.0, -1.0, 1.0).is_within(1.0)
    assert not Interval(0.0, -1.0, 1.01).is_within(1.0)
    assert not Interval(2.0, 1.0, 3.0).is_beyond(1.0)
    assert Interval(-2.0, -3.0, -1.01).is_beyond(1.0)
    assert not Interval(2.0, None, None).is_beyond(1.0)


def test_findings_about_too_few_trials_use_the_rule_of_the_run() -> None:
    from kduel.judge.lint.findings.too_few import too_few

    samples = [noisy(1, 0.0, 0.3, 6)]
    for enough in (8, 12):
        rule = Rule.of_edition(2, equivalent_from=enough)
        results = Results(
            study=StudyResult(edition=2),
            machine=MachineRecord(),
            contenders=[],
            trials=[],
            metrics=judge(samples, rule),
        )
        (case,) = cases(results, samples)
        (message,) = too_few(replace(case, rule=rule))
        assert f"equivalence takes {enough}." in message


def test_identical_counts_with_zeros_are_not_equivalent() -> None:
    values = [0, 5, 0, 3, 0, 5, 0, 3, 1, 2]
    for primary in (True, False):
        found = judge([table(values, values, unit="1", primary=primary)], Rule.of_edition(2))[0]
        assert (found.verdict, found.scale) == ("undecided", "difference")


def test_times_that_never_vary_are_not_equal() -> None:
    for primary in (True, False):
        assert (
            judge([table([0.01] * 12, [0.01] * 12, unit="s", primary=primary)], Rule.of_edition(2))[0].verdict
            == "undecided"
        )
        assert judge([table([7] * 12, [7] * 12, unit="B", primary=primary)], Rule.of_edition(2))[0].verdict == "equal"


def test_large_counts_that_differ_by_one_are_not_equal() -> None:
    many = 10**12 + 5
    found = judge(
        [table([many] * 4, [many + 1] * 4, unit="instructions", better="lower", counted=True)],
        Rule.fixed_blocks(4, edition=2),
    )
    assert (found[0].verdict, found[0].effect) == ("more", 1)
    rounded = judge(
        [table([0.1 + 0.2] * 4, [0.3] * 4, unit="x", better="lower", counted=True)], Rule.fixed_blocks(4, edition=2)
    )
    assert rounded[0].verdict == "equal"


def test_a_rule_can_be_written_and_read() -> None:
    rule = Rule.of_edition(1, alpha=0.01)
    assert msgspec.json.decode(msgspec.json.encode(rule), type=Rule) == rule
