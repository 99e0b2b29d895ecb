"""Trials without a value that depend on the contender forbid claims in its favour."""

from __future__ import annotations

import pytest
from verdict_tables import noisy

from kduel.core.metric_results import MetricResult
from kduel.judge.verdict.classify import ABOVE, BELOW
from kduel.judge.verdict.interim import is_finished
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.unpaired import judge_unpaired
from kduel.judge.verdict.voids import Missing, forbidden


def lacking(effect: float, better: str, *, first: int = 0, second: int = 0, **more: object) -> MetricResult:
    """Twenty blocks, in which the first arm misses so many values, and the second so many others."""
    samples = noisy(1, effect, 0.005, 20, better=better, **more)
    for place in range(first):
        samples.values["A"][10 + place] = None
    for place in range(second):
        samples.values["B"][place + 1] = None
    return judge([samples], Rule.of_edition(2))[0]


@pytest.mark.parametrize(
    ("effect", "better", "first", "second", "verdict"),
    [
        (0.05, "higher", 0, 3, "undecided"),
        (-0.05, "lower", 0, 3, "undecided"),
        (-0.05, "higher", 0, 3, "slower"),
        (0.05, "lower", 0, 3, "slower"),
        (0.05, "higher", 3, 0, "faster"),
        (-0.05, "higher", 3, 0, "undecided"),
        (0.05, "none", 0, 3, "undecided"),
        (-0.05, "none", 3, 0, "undecided"),
        (0.0, "higher", 0, 3, "undecided"),
        (0.05, "higher", 0, 1, "faster"),
        (0.05, "higher", 2, 3, "faster"),
        (0.05, "higher", 1, 8, "undecided"),
        (0.0, "higher", 2, 2, "equivalent"),
    ],
)
def test_the_arm_that_misses_more_may_be_called_worse_only(
    effect: float, better: str, first: int, second: int, verdict: str
) -> None:
    result = lacking(effect, better, first=first, second=second)
    assert result.verdict == verdict
    if verdict == "undecided":
        assert f"{second} of 20 trials of B gave no value, and {first} of 20 of A" in result.withheld
        assert result.withheld in result.told and "cannot be called better or equivalent" in result.told
    else:
        assert not result.withheld


def test_the_evidence_is_named() -> None:
    assert "all of one contender" in lacking(0.05, "higher", second=2).withheld
    assert "Fisher's exact test: p = 0.02" in lacking(0.05, "higher", first=1, second=8).withheld


def test_the_arm_that_misses_more_is_the_one_with_the_larger_share() -> None:
    """Eight of forty are fewer than six of ten."""
    table = noisy(1, 0.05, 0.005, 20, better="higher")
    counts = Missing(6, 10), Missing(8, 40)
    assert forbidden(table, "B", counts, ABOVE, table.blocks) == ""
    assert "8 of 40 trials of B" in forbidden(table, "B", counts, BELOW, table.blocks)
    assert forbidden(table, "B", counts[::-1], BELOW, table.blocks) == ""


def test_exploratory_metrics_too() -> None:
    assert lacking(0.05, "higher", second=3, primary=False).verdict == "undecided"
    assert lacking(0.05, "lower", second=3, primary=False).verdict == "slower"


def test_trials_that_were_not_carried_out_yet_are_not_missing() -> None:
    samples = noisy(1, 0.05, 0.005, 8)
    samples.values["B"][6:] = [None, None]
    samples.order = {"A": [1, *range(2, 16, 2)], "B": [0, *range(3, 12, 2), None, None]}
    assert judge([samples], Rule.of_edition(2))[0].verdict == "faster"
    samples.order["B"] = [0, *range(3, 17, 2)]
    assert judge([samples], Rule.of_edition(2))[0].verdict == "undecided"


def test_a_run_goes_on_while_the_verdict_is_withheld() -> None:
    samples = noisy(1, 0.05, 0.005, 12)
    assert is_finished([samples], Rule.of_edition(2))
    samples.values["B"][1] = samples.values["B"][2] = None
    assert not is_finished([samples], Rule.of_edition(2))


@pytest.mark.parametrize(
    ("effect", "first", "second", "verdict"),
    [
        (0.05, [], [3], "slower"),
        (0.05, [3], [], "undecided"),
        (-0.05, [3], [], "faster"),
        (-0.05, [], [3], "undecided"),
        (0.0, [], [3], "undecided"),
        (0.0, [3], [], "undecided"),
        (0.05, [5], [3], "undecided"),
    ],
)
def test_an_arm_with_a_value_beyond_the_histogram_may_be_called_higher_only(
    effect: float, first: list[int], second: list[int], verdict: str
) -> None:
    """One of twenty: as a value that is merely missing it forbids nothing."""
    samples = noisy(1, effect, 0.005, 20, better="lower", primary=True)
    for name, blocks in (("A", first), ("B", second)):
        samples.values[name] = [None if b in blocks else v for b, v in enumerate(samples.values[name], 1)]
    missing = judge([samples], Rule.of_edition(2))[0]
    assert missing.verdict != "undecided"
    samples.beyond = {"A": first, "B": second}
    for unpaired in (False, True):
        result = (judge_unpaired if unpaired else judge)([samples], Rule.of_edition(2))[0]
        assert result.verdict == verdict, unpaired
        assert bool(result.withheld) == (verdict == "undecided")
        assert result.beyond == samples.beyond
    if verdict == "undecided":
        assert (
            f"in {len(second)} of 20 blocks the value of B lies beyond the histogram, and in {len(first)} that of A"
            in (result.withheld)
        )
        assert "cannot be called lower or equivalent" in result.told


def test_values_beyond_the_histogram_are_not_missing_by_chance() -> None:
    """Two missing values of one arm depend on it; two that are beyond have their own, stronger rule, which names its reason."""
    result = lacking(0.05, "lower", second=2)
    assert result.verdict == "slower" and not result.withheld
    samples = noisy(1, -0.05, 0.005, 20, better="lower")
    samples.values["B"][1] = samples.values["B"][2] = None
    samples.beyond = {"B": [2, 3]}
    assert "beyond the histogram" in judge([samples], Rule.of_edition(2))[0].withheld
