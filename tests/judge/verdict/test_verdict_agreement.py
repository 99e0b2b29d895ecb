"""Differences on exact CPUs under few conditions: what chance would show as often is undecided."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msgspec import structs

from kduel.benchmarks.support.schedstat import GROUP
from kduel.core.experiment import Metric
from kduel.core.metric_results import MetricResult
from kduel.core.samples import Samples, StepResult
from kduel.judge.verdict.agreement import chance_of_agreement
from kduel.judge.verdict.interim import is_finished
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import Rule

RULE = Rule.of_edition(2, delta_pct=5.0)


def table(
    before: list[float],
    after: list[float],
    *,
    scheduled: bool = True,
    primary: bool = True,
    name: str = "latency-p99",
) -> Samples:
    """A metric of exact CPUs under so many conditions; with one value, of a benchmark that has none."""
    arms = {"old": before, "new": after}
    return Samples(
        benchmark="wakeup", metric=Metric(name, "us", "lower", statistic="p99"), primary=primary, counted=True,
        scheduled=scheduled, blocks=[1], values={arm: [float(np.median(values))] for arm, values in arms.items()},
        conditions={arm: [{f"c{at}": one for at, one in enumerate(values)}] for arm, values in arms.items()}
        if len(before) > 1 else {},
    )  # fmt: skip


def judged(before: list[float], after: list[float], **more: bool) -> MetricResult:
    return judge([table(before, after, **more)], RULE)[0]


@pytest.mark.parametrize(
    ("before", "after", "verdict", "said"),
    [
        ([100], [200], "undecided", "under one condition any difference may be chance,"),
        (
            [100, 300, 200],
            [110, 400, 240],
            "undecided",
            "under 3 conditions differences have one sign by chance in one of 4 cases,",
        ),
        ([100, 110, 120], [200, 210, 220], "undecided", "their values lie apart by chance in one of 10 cases"),
        ([100, 110, 120, 130], [200, 210, 220, 230], "slower", "in 4 of 4 conditions"),
        ([100, 300, 200, 150, 170], [110, 400, 240, 190, 200], "undecided", "one of 16 cases"),
        ([100, 300, 200, 150, 170, 90], [110, 400, 240, 190, 200, 100], "slower", "in 6 of 6 conditions"),
        ([100, 300, 200], [110, 200, 240], "undecided", "Depends on conditions"),
        ([100, 300, 200], [100, 300, 200], "equal", ""),
        (
            [100, 110],
            [103, 113],
            "undecided",
            "under 2 conditions differences stay within delta by chance in one of 4 cases,",
        ),
        ([1000, 1010, 1030, 1050], [1010, 1000, 1040, 1060], "undecided", "by chance in one of 16 cases"),
        ([1000, 1010, 1030, 1050, 1070], [1010, 1000, 1040, 1060, 1080], "equivalent", "in any of 5 conditions"),
    ],
)
def test_a_difference_is_called_where_chance_makes_conditions_agree_rarely(
    before: list[float], after: list[float], verdict: str, said: str
) -> None:
    result = judged(before, after)
    assert result.verdict == verdict and said in result.told
    assert result.few == ("chance" in result.told) and result.depends == ("Depends" in result.told)


def test_what_is_undecided_says_how_many_conditions_decide() -> None:
    result = judged([100, 300, 200], [110, 400, 240])
    assert result.told == (
        "Undecided, +40 us (+20.0 %) (range +10 to +100): under 3 conditions differences have one sign by chance in one of "
        "4 cases, and a verdict takes one of 20: give 6 conditions, or 4 if the contenders' values lie apart and spread alike."
    )
    assert result.open and result.decided_at is None


def test_a_benchmark_without_conditions_is_not_told_to_take_them() -> None:
    for parameters, said in (
        ({"conditions": 0}, "give 6 conditions"),
        (
            {"groups": 1},
            "this benchmark has no conditions: its figures are shown and give no verdict; kload, tasks, wakeup have",
        ),
    ):
        one = table([100.0], [150.0])
        one.step = StepResult(label="b", benchmark="b", parameters=parameters)
        (result,) = judge([one], RULE)
        assert said in result.withheld


def test_counts_of_instructions_do_not_depend_on_the_scheduler() -> None:
    assert judged([100, 300, 200], [110, 400, 240], scheduled=False).verdict == "slower"
    assert judged([100], [200], scheduled=False).verdict == "slower"


def test_comparisons_share_the_chance_of_a_false_alarm() -> None:
    apart = [100, 110, 120, 130], [200, 210, 220, 230]
    results = judge([table(*apart), table(*apart, name="latency-p50")], RULE)
    assert {one.verdict for one in results} == {"undecided"}, "two chances in 35"
    six = [*apart[0], 140, 150], [*apart[1], 240, 250]
    many = judge([table(*six, name=f"m{at}") for at in range(23)], RULE)
    assert {one.verdict for one in many} == {"slower"} and judge(
        [table(*six, name=f"m{at}") for at in range(24)], RULE
    )[0].few


def test_hints_are_held_to_a_false_discovery_rate() -> None:
    apart = [100, 110, 120, 130], [200, 210, 220, 230]
    mixed = [100, 300, 200, 150], [110, 200, 240, 140]
    hints = judge([table(*apart, primary=False), *(table(*mixed, primary=False) for _ in range(3))], RULE)
    assert hints[0].few, "one of four: 0.029 is more than a quarter of 0.05"
    assert judge([table(*apart, primary=False) for _ in range(4)], RULE)[0].verdict == "slower"


def test_the_schedulers_counters_take_no_hint_from_the_benchmarks_metrics() -> None:
    apart = [100, 110, 120, 130], [200, 210, 220, 230]
    counters = [table([100, 300, 200, 150], [110, 200, 240, 140], primary=False) for _ in range(3)]
    for one in counters:
        one.metric = structs.replace(one.metric, group=GROUP)
    own, *others = judge([table(*apart, primary=False), *counters], RULE)
    assert own.verdict == "slower" and {one.verdict for one in others} == {"undecided"}


def test_a_run_goes_on_with_other_conditions_until_chance_is_rare_enough() -> None:
    few = table([100, 300, 200], [110, 400, 240])
    assert not is_finished([few], Rule.of_edition(2, max_blocks=3))
    assert is_finished([table([100, 110, 120, 130], [200, 210, 220, 230])], Rule.of_edition(2, max_blocks=3))


def test_a_repetition_is_no_other_condition() -> None:
    again = table([100], [200])
    again.blocks, again.values = list(range(1, 9)), {"old": [100.0] * 8, "new": [200.0] * 8}
    assert judge([again], RULE)[0].few


def test_the_chance_is_that_of_the_sign_test_or_of_the_rank_sum() -> None:
    def chance(*pairs: tuple[float, float]) -> float:
        before, after = np.array(pairs).T
        return chance_of_agreement(before, after)

    assert chance((1, 2)) == 1
    assert chance(*[(1, 9), (10, 12)] * 4) == 2.0**-7
    assert chance(*[(1, 9)] * 4) == pytest.approx(2 / math.comb(8, 4))
    apart = [(10, 101), (11, 120), (12, 140), (13, 150)]
    assert chance(*apart) == pytest.approx(2 / math.comb(8, 4)), "spreads by ratio"
    assert chance(*apart[:3], (13, 300)) == 2.0**-3, "the rank sum takes spreads to be alike"
    assert chance(*[(-1, 9), (-2, 9), (-3, 9), (-4, 9)]) == 2.0**-3
