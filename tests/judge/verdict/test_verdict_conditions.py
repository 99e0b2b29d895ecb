"""Counted metrics: the verdict is over all conditions that must not matter."""

from __future__ import annotations

import pytest

from kduel.analysis.matrix.advice import support
from kduel.core.experiment import Metric
from kduel.core.format import interval_text, relative_pct
from kduel.core.metric_results import MetricResult
from kduel.core.samples import Mode, Samples
from kduel.judge.verdict.interim import is_finished
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.unpaired import judge_unpaired

COUNT = Metric("instructions", "instructions", "lower", statistic="median")


def table(before: list[float], after: list[float], blocks: int = 1) -> Samples:
    def by_condition(values: list[float]) -> list[dict[str, float]]:
        named = {("plain" if number == 0 else f"c{number}"): value for number, value in enumerate(values)}
        return [named] * blocks

    return Samples(
        benchmark="clone",
        metric=COUNT,
        primary=True,
        counted=True,
        blocks=list(range(1, blocks + 1)),
        values={"a": [sorted(before)[2]] * blocks, "b": [sorted(after)[2]] * blocks},
        conditions={"a": by_condition(before), "b": by_condition(after)},
        modes={"a": [Mode(81500.0, 0.9), Mode(66000.0, 0.1)]},
    )


def judged(before: list[float], after: list[float], blocks: int = 1) -> MetricResult:
    (result,) = judge([table(before, after, blocks)], Rule.of_edition(2, max_blocks=3))
    return result


def test_a_difference_that_holds_under_all_conditions_is_one_with_its_range() -> None:
    result = judged([1000, 1100, 1050, 900, 1000], [900, 1000, 950, 880, 950])
    assert result.verdict == result.more_or_fewer == "fewer"
    assert (result.ci_low, result.ci_high, result.effect) == (-100, -20, -100)
    assert result.ci_low_pct == pytest.approx(-10) and result.ci_high_pct == pytest.approx(-100 * 20 / 900)
    assert "in 5 of 5 conditions" in result.told and "range −100 to −20" in result.told
    assert len(result.conditions) == len(result.agreeing) == 5


@pytest.mark.parametrize("conditions", [4, 5])
def test_the_counts_shown_subtract_to_the_change_shown(conditions: int) -> None:
    # fork-exit: the medians of both arms are of different conditions, so 173,656 - 161,329 is not the median change.
    before = [161329.0, 165000, 160100, 158000, 164800][:conditions]
    after = [173656.0, 176981, 172900, 169500, 175400][:conditions]
    result = judged(before, after)
    changes = sorted(b - a for a, b in zip(before, after, strict=True))
    middle = (changes[(conditions - 1) // 2] + changes[conditions // 2]) / 2
    assert result.effect == middle == result.mean - result.baseline_mean == result.median - result.baseline_median
    assert result.effect_pct == pytest.approx(100 * middle / result.baseline_mean)
    assert result.ci_low_pct <= result.effect_pct <= result.ci_high_pct
    if conditions == 5:
        assert (result.baseline_mean, result.mean) in list(zip(before, after, strict=True))


def test_a_sign_that_conditions_flip_is_no_verdict_and_says_which() -> None:
    # As tcp in 6.1 against 6.12: the usual difference has one sign, other numbers of calls give the other.
    result = judged([27911, 30500, 27911, 30490, 27900], [28624, 28620, 28600, 28610, 28650])
    assert result.verdict == "undecided" and result.word == "depends"
    assert result.told.startswith("Depends on conditions: more in 3 of 5")
    assert "c1 (−1,880)" in result.told and "c3 (−1,880)" in result.told
    assert "81,500 (90 %), 66,000 (10 %)" in result.told


def test_a_block_that_repeats_conditions_adds_none() -> None:
    """On a machine with the same conditions in each block, three of them would be 15 after five blocks."""
    assert "in 3 of 3 conditions" in judged([1000, 1100, 1050], [900, 1000, 950], blocks=5).told
    other = table([1000, 1100, 1050], [900, 1000, 950], blocks=2)
    other.conditions["b"][1] = {"plain": 901.0, "c1": 1000.0, "c2": 950.0}
    (result,) = judge([other], Rule.of_edition(2, max_blocks=3))
    assert "in 4 of 4 conditions" in result.told, "CPUs that come online in the other order"


def test_signs_that_differ_by_less_than_delta_are_equivalent() -> None:
    result = judged([1000, 1000, 1000, 1000, 1000], [1002, 999, 1000, 1001, 998])
    assert result.verdict == "equivalent"
    assert "in any of 5 conditions" in result.told


def test_values_that_are_the_same_under_all_conditions_are_equal() -> None:
    assert judged([5, 6, 7, 8, 9], [5, 6, 7, 8, 9]).verdict == "equal"


def test_only_conditions_of_both_arms_count() -> None:
    tables = table([1000, 1100, 1050, 900, 1000], [900, 1000, 950, 880, 950])
    tables.conditions["b"][0].pop("c4")
    (result,) = judge([tables], Rule.of_edition(2, max_blocks=3))
    assert [one.name for one in result.conditions] == ["plain", "c1", "c2", "c3"]


def test_a_run_goes_on_while_an_operation_depends_on_conditions() -> None:
    clear = table([1000, 1100, 1050, 900, 1000], [900, 1000, 950, 880, 950])
    open_one = table([27911, 30500, 27911, 30490, 27900], [28624, 28620, 28600, 28610, 28650])
    rule = Rule.of_edition(2, max_blocks=3)
    assert is_finished([clear], rule)
    assert not is_finished([clear, open_one], rule)
    long = table([27911, 30500, 27911, 30490, 27900], [28624, 28620, 28600, 28610, 28650], blocks=3)
    assert is_finished([long], rule)


def test_without_conditions_a_run_on_the_exact_machine_ends_after_one_block() -> None:
    plain = table([1000] * 5, [900] * 5)
    plain.conditions = {}
    assert is_finished([plain], Rule.of_edition(2, max_blocks=3))


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ([378.0], [373.0], (-500 / 378,) * 3),
        ([551_781_337.0], [937_741_431.0], (100 * 385_960_094 / 551_781_337,) * 3),
        ([1000.0, 2000.0], [1100.0, 2100.0], (100 * 100 / 1500, 5.0, 10.0)),  # of two address layouts
        ([0.0], [5.0], (None,) * 3),
        ([5.0], [5.0], (0.0,) * 3),
    ],
)
def test_a_count_without_conditions_has_its_change_in_per_cent(
    before: list[float], after: list[float], shown: tuple[float | None, ...]
) -> None:
    """It was null in results.json for the boot, the situations and all of --single, where the page shows it."""
    one = Samples(
        benchmark="boot",
        metric=COUNT,
        primary=True,
        counted=True,
        blocks=list(range(1, len(before) + 1)),
        values={"a": before, "b": after},
    )
    (result,) = judge([one], Rule.of_edition(2))
    found = (result.effect_pct, result.ci_low_pct, result.ci_high_pct)
    assert found == (shown if None in shown else pytest.approx(shown))
    assert relative_pct(result) == result.effect_pct or result.baseline_mean == 0
    if len(before) == 1:
        assert result.ci_low_pct == result.effect_pct == result.ci_high_pct, "one value, so no range by rounding"
        assert interval_text(result) == "exact" and "interval" not in result.told
        assert "[" not in support(result).effect, "no claim of statistics"


def test_an_import_of_constant_values_has_the_change_in_per_cent() -> None:
    one = Samples(
        benchmark="vmlinux",
        metric=Metric("text", "B", "lower"),
        primary=True,
        blocks=[1, 2, 3],
        values={"a": [200.0, 200.0, 200.0], "b": [210.0, 210.0, 210.0]},
    )
    (result,) = judge_unpaired([one], Rule.of_edition(2))
    assert (result.scale, result.effect_pct, result.ci_low_pct, result.ci_high_pct) == ("exact", 5.0, 5.0, 5.0)


def latencies(before: list[float], after: list[float], resolution: float) -> MetricResult:
    made = table(before, after)
    made.metric, made.resolution = Metric("latency-p99", "us", "lower", statistic="p99"), resolution
    (result,) = judge([made], Rule.of_edition(2, max_blocks=3))
    return result


def test_a_difference_that_the_machine_does_not_resolve_is_none() -> None:
    before, after = [60.0, 61, 62, 63, 64], [99.0, 100, 101, 102, 104]
    assert latencies(before, after, 0).verdict == "slower"
    within = latencies(before, after, 40)
    assert within.verdict == "equal" and "resolution of 40 us in each of 5 conditions: 62 and 101." in within.told


def test_a_difference_under_few_conditions_is_told_with_those() -> None:
    """As involuntary switches of four processes: 0 in most conditions."""
    result = judged([0, 0, 0, 0, 0], [0, 1, 0, 0, 0])
    assert result.word == "depends"
    assert result.told == "Depends on conditions: equal in 4 of 5; otherwise with: c1 (+1)."


def test_conditions_under_which_nothing_is_resolved_do_not_agree() -> None:
    result = latencies([60.0, 61, 62, 63, 64], [600.0, 100, 700, 800, 900], 40)
    assert result.word == "depends" and len(result.agreeing) == 4
    assert "in 4 of 5" in result.told and "c1 (+39)" in result.told
