"""Verdicts: the four of them, the scales, bad input, and the published study 000."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from scipy import stats
from verdict_tables import generations, noisy, table

from kduel.benchmarks.support import schedstat
from kduel.core.errors import InputError
from kduel.core.metric_results import MetricResult
from kduel.core.samples import Samples
from kduel.judge.verdict.classify import benjamini_hochberg
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import Rule

TEN = Rule.fixed_blocks(10, edition=2)


def only(samples: Samples | list[Samples], rule: Rule | None = None, **more: bool) -> MetricResult:
    found = judge(samples if isinstance(samples, list) else [samples], rule or Rule.of_edition(2), **more)
    assert len(found) == 1
    return found[0]


def test_a_large_effect_is_found_at_the_first_look() -> None:
    result = only(noisy(1, 0.10, 0.01, 20))
    assert (result.verdict, result.decided_at, result.role, result.scale) == ("faster", 4, "primary", "ratio")
    assert result.effect_pct == pytest.approx(10, abs=1)
    assert result.ci_low_pct is not None and result.ci_high_pct is not None
    assert result.ci_low_pct < 10 < result.ci_high_pct
    assert result.blocks_more is None and result.q_value is None and not result.below_delta
    assert "higher is better" in result.told and "Decided after 4 blocks" in result.told


@pytest.mark.parametrize(
    ("better", "effect", "verdict"),
    [
        ("higher", 0.1, "faster"),
        ("higher", -0.1, "slower"),
        ("lower", 0.1, "slower"),
        ("lower", -0.1, "faster"),
        ("none", 0.1, "higher"),
        ("none", -0.1, "lower"),
    ],
)
def test_what_a_difference_is_called(better: str, effect: float, verdict: str) -> None:
    assert only(noisy(2, effect, 0.01, 6, better=better)).verdict == verdict


def test_equivalent_waits_for_ten_pairs_and_tells_what_it_cannot_exclude() -> None:
    assert only(noisy(3, 0, 0.002, 8)).verdict == "undecided"
    result = only(noisy(3, 0, 0.002, 10))
    assert (result.verdict, result.decided_at) == ("equivalent", 10)
    assert result.unseen_mode_pct == pytest.approx(100 * (1 - 0.05**0.1)) == pytest.approx(25.9, abs=0.1)
    assert "26 % of boots" in result.told
    assert only(noisy(3, 0, 0.002, 20), Rule.fixed_blocks(20, edition=2)).unseen_mode_pct == pytest.approx(
        13.9, abs=0.1
    )


def test_real_but_below_delta() -> None:
    result = only(noisy(4, 0.005, 0.0005, 8))
    assert result.verdict == "faster" and result.below_delta
    assert "within your ±1 %" in result.told
    # From ten pairs on the same is first of all equivalent.
    assert only(noisy(4, 0.005, 0.0005, 10), TEN).verdict == "equivalent"


def test_undecided_says_what_it_could_have_seen_and_what_would_decide() -> None:
    result = only(noisy(5, 0, 0.05, 20))
    assert result.verdict == "undecided" and result.decided_at is None
    assert result.mde_pct is not None and 2 < result.mde_pct < 8
    assert result.blocks_more is not None and result.blocks_more > 100
    assert "Undecided" in result.told and "more blocks" in result.told


def test_mde_is_what_a_t_test_finds_with_eighty_per_cent() -> None:
    result = only(noisy(6, 0.01, 0.03, 12), Rule.fixed_blocks(12, edition=2))
    assert result.mde_pct is not None
    logs = np.diff(np.log(np.array([result.values["A"], result.values["B"]])), axis=0)
    shift = math.log1p(result.mde_pct / 100) / logs.std(ddof=1) * math.sqrt(12)
    critical = stats.t.ppf(0.975, 11)
    power = stats.nct.sf(critical, 11, shift) + stats.nct.cdf(-critical, 11, shift)
    assert power == pytest.approx(0.8, abs=1e-3)


def test_a_single_look_is_the_plain_paired_t_interval() -> None:
    result = only(noisy(7, 0.004, 0.02, 15), Rule.fixed_blocks(15, edition=2))
    logs = np.log(result.values["B"]) - np.log(result.values["A"])
    low, high = stats.t.interval(0.95, 14, logs.mean(), stats.sem(logs))
    assert (result.ci_low_pct, result.ci_high_pct) == pytest.approx((100 * np.expm1(low), 100 * np.expm1(high)))
    assert result.beside["p_t"] == pytest.approx(stats.ttest_1samp(logs, 0).pvalue)


def test_a_decision_that_the_last_interval_does_not_show_is_taken_back() -> None:
    generator = np.random.default_rng(1)
    after = [103, 103.1, 102.9, 103, 103.1, 102.9, *(100 + generator.normal(0, 6, 14))]
    result = only(table([100.0] * 20, after))
    assert (result.verdict, result.decided_at, result.n) == ("undecided", None, 20)
    assert (result.former_verdict, result.former_at) == ("faster", 4)
    assert result.ci_low_pct is not None and result.ci_low_pct < 0
    assert "It was faster after 4 blocks; the interval over all blocks no longer shows that." in result.told


@pytest.mark.slow
@pytest.mark.parametrize("effect", [0, 0.004, 0.02])
def test_verdicts_only_ever_depend_on_the_looks(effect: float) -> None:
    """A run seen after each block, and one seen only at its end, agree on what was decided first, and when."""
    for seed in range(10):
        whole = noisy(seed, effect, 0.01, 20)
        final = only(whole)
        first = (final.decided_at, final.verdict) if final.decided_at else (final.former_at, final.former_verdict)
        for blocks in range(1, 21):
            part = msgspec.structs.replace(
                whole, blocks=whole.blocks[:blocks], values={k: v[:blocks] for k, v in whole.values.items()}
            )
            seen = only(part)
            then = (seen.decided_at, seen.verdict) if seen.decided_at else (seen.former_at, seen.former_verdict)
            assert then == (first if first[0] is not None and blocks >= first[0] else (None, None))
            assert seen.decided_at is None or seen.verdict != "undecided"


def test_a_block_that_is_not_finished_is_not_looked_at() -> None:
    samples = noisy(8, 0.05, 0.01, 6)
    whole = only(samples)
    assert whole.decided_at == 4
    waiting = {"A": [1, *range(2, 12, 2)], "B": [0, 3, 5, 7, 9, None]}
    values = {"A": samples.values["A"], "B": [*samples.values["B"][:5], None]}
    result = only(msgspec.structs.replace(samples, values=values, order=waiting))
    assert (result.n, result.decided_at) == (5, 4)
    # A void trial has its place in time: its block counts, its pair is missing.
    void = {"A": [1, *range(2, 12, 2)], "B": [0, 3, 5, 7, 9, 11]}
    result = only(msgspec.structs.replace(samples, values=values, order=void))
    assert (result.verdict, result.decided_at, result.n) == ("faster", 4, 5)
    assert "1 block of 6 gave no complete pair" in result.told


def test_blocks_beyond_the_rules_maximum_do_not_count_and_that_is_said() -> None:
    result = only(noisy(9, 0, 0.05, 30), Rule.of_edition(2, max_blocks=20))
    assert result.n == 20 and "10 later ones do not count" in result.told
    assert len(result.values["A"]) == 30


def test_blocks_out_of_order_are_put_in_order() -> None:
    """The first four blocks decide, and no other four would; far-apart numbers, as in a run of which blocks are gone."""
    after = [103, 103.1, 102.9, 103, 90, 110, 95, 104, 80, 101, 99, 102]
    numbers = [block**9 * 10_007 for block in range(1, 13)]
    turned = msgspec.structs.replace(table([100.0] * 12, after[::-1]), blocks=numbers[::-1])
    assert only(turned).former_at == only(table([100.0] * 12, after)).former_at == 4


# Too little, or nothing


def test_one_pair_says_nothing() -> None:
    result = only(table([100.0], [150.0]), Rule.fixed_blocks(1, edition=2))
    assert result.verdict == "undecided" and "Cannot decide" in result.told
    assert (
        result.effect_pct is result.ci_low_pct is result.ci_high_pct is result.mde_pct is result.blocks_more is None
    )
    assert (result.baseline_mean, result.mean, result.sd, result.n) == (100, 150, None, 1)


def test_all_missing_says_nothing() -> None:
    result = only(table([None] * 10, [1.0] * 10), TEN)
    assert (result.verdict, result.n, result.baseline_mean, result.mean) == ("undecided", 0, None, None)
    assert "Cannot decide" in result.told
    assert only(table([], [])).verdict == "undecided"


@pytest.mark.parametrize("blocks", [2, 3])
def test_fewer_than_four_pairs_never_decide(blocks: int) -> None:
    result = only(noisy(1, 0.5, 0.0001, blocks), Rule.fixed_blocks(blocks, edition=2))
    assert result.verdict == "undecided" and "takes 4 at least" in result.told
    assert result.ci_low_pct is not None
    assert only(noisy(1, 0.5, 0.0001, 4), Rule.fixed_blocks(4, edition=2)).verdict == "faster"


@pytest.mark.slow
@pytest.mark.parametrize(("metrics", "fewest"), [(1, 4), (2, 5), (7, 5), (8, 6), (60, 6), (61, 7), (300, 8)])
def test_the_fewest_pairs_follow_the_number_of_primary_comparisons(metrics: int, fewest: int) -> None:
    for blocks in (fewest - 1, fewest):
        one = noisy(1, 0.5, 0.0001, blocks)
        samples = [msgspec.structs.replace(one, benchmark=f"b{place}") for place in range(metrics)]
        found = judge(samples, Rule.fixed_blocks(blocks, edition=2))
        assert {result.verdict for result in found} == {"undecided" if blocks < fewest else "faster"}
        assert blocks == fewest or f"takes {fewest} at least" in found[0].told


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, "12", True, 1e200, 10**400], ids=lambda value: str(value)[:5]
)
def test_what_is_no_finite_number_is_refused_by_name(value: object) -> None:
    with pytest.raises(InputError, match=r"cpu/rate: B has .* in block 2"):
        judge([table([1.0, 2.0], [1.0, value])], Rule.of_edition(2))  # type: ignore[list-item]


def test_other_bad_tables_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="cpu/rate has values of 1 contender"):
        judge([table([1.0, 2.0])], Rule.of_edition(2))
    with pytest.raises(InputError, match="cpu/rate has a block twice"):
        judge([msgspec.structs.replace(table([1.0, 2.0], [1.0, 2.0]), blocks=[1, 1])], Rule.of_edition(2))
    with pytest.raises(InputError, match=r"cpu/rate: B has 1 value in 2 blocks"):
        judge(
            [msgspec.structs.replace(table([1.0, 2.0], [1.0, 2.0]), values={"A": [1.0, 2.0], "B": [1.0]})],
            Rule.of_edition(2),
        )


# Scales


def test_zeros_and_negative_values_are_compared_by_difference() -> None:
    before = [0, 1, -2, 1, 0, 2, 1, 0, -1, 1]
    result = only(table(before, [value + 10 + 0.1 * value for value in before], better="lower", unit="errors"), TEN)
    assert (result.verdict, result.scale) == ("slower", "difference")
    assert result.effect_pct is result.ci_low_pct is result.mde_pct is None
    assert result.effect == pytest.approx(10.03)
    assert result.ci_low is not None and result.ci_low < 10.03
    assert "by difference" in result.told and "errors" in result.told
    same = only(table(before, [value + 0.001 * (-1) ** index for index, value in enumerate(before)]), TEN)
    assert same.verdict == "undecided", "a share of a value that may be zero has no meaning"


def test_a_zero_that_comes_late_changes_the_scale_and_with_it_the_verdict() -> None:
    samples = noisy(1, 0.10, 0.01, 20)
    samples.values["B"][15] = 0.0
    result = only(samples)
    assert (result.verdict, result.former_verdict, result.former_at) == ("undecided", "faster", 4)
    assert result.scale == "difference" and result.ci_low is not None and result.ci_low < 0


def test_values_that_do_not_vary_are_counted_not_tested() -> None:
    size = {"unit": "bytes", "better": "lower"}
    result = only(table([1000] * 10, [1012] * 10, **size), TEN)  # type: ignore[arg-type]
    assert (result.verdict, result.scale, result.effect, result.ci_low, result.ci_high) == (
        "slower",
        "exact",
        12,
        12,
        12,
    )
    assert (result.effect_pct, result.ci_low_pct, result.ci_high_pct) == pytest.approx((1.2, 1.2, 1.2))
    assert not result.below_delta and result.beside == {}
    assert "+12 bytes (+1.20 %)" in result.told
    assert only(table([1000] * 10, [1001] * 10, **size), TEN).below_delta  # type: ignore[arg-type]
    equal = only(table([1000] * 10, [1000] * 10, **size), TEN)  # type: ignore[arg-type]
    assert (equal.verdict, equal.effect, equal.unseen_mode_pct) == ("equal", 0, pytest.approx(25.9, abs=0.1))
    assert only(table([7] * 6, [7] * 6)).verdict == "undecided", "equal needs ten pairs, as equivalent does"
    assert only(table([7] * 6, [8] * 6, better="none")).verdict == "different"


def test_the_step_of_a_clock_is_not_equality() -> None:
    result = only(table([2.0] * 10, [2.0] * 10, unit="ms", better="lower"), TEN)
    assert result.verdict == "undecided" and "resolution of the clock" in result.told
    assert only(table([2.0] * 10, [3.0] * 10, unit="ms", better="lower"), TEN).verdict == "slower"


def test_pairs_that_differ_by_the_same_ratio_every_time() -> None:
    before = [100.0, 110.0, 90.0, 105.0, 95.0, 101.0]
    result = only(table(before, [value * 1.05 for value in before]))
    assert result.verdict == "faster"
    assert (result.ci_low_pct, result.ci_high_pct) == (pytest.approx(5), pytest.approx(5))
    same = only(table(before * 2, [value / 3 * 3 for value in before] * 2), Rule.fixed_blocks(12, edition=2))
    assert (same.verdict, same.effect_pct) == ("equivalent", 0)


def test_an_exact_machine_needs_one_pair() -> None:
    rule = Rule.fixed_blocks(1, edition=2)
    more = only(table([1000], [1213], unit="instructions", better="lower", counted=True), rule)
    assert (more.verdict, more.scale, more.effect, more.decided_at) == ("more", "exact", 213, 1)
    assert "+213 instructions (+21.3 %)" in more.told
    assert only(table([1000], [1000], better="lower", counted=True), rule).verdict == "equal"
    assert only(table([1000], [1001], better="none", counted=True), rule).verdict == "different"
    assert only(table([None], [1001], counted=True), rule).verdict == "undecided"


def test_an_exact_machine_with_several_layouts_gives_the_range() -> None:
    rule = Rule.fixed_blocks(3, edition=2)
    always = only(table([1000, 1010, 990], [1013, 1019, 1001], better="lower", counted=True), rule)
    assert (always.verdict, always.ci_low, always.ci_high) == ("slower", 9, 13)
    assert "range +9 to +13" in always.told
    sometimes = only(table([1000, 1010, 990], [1001, 1005, 990], better="lower", counted=True), rule)
    assert sometimes.verdict == "undecided" and "no constant sign" in sometimes.told


# Families


def test_alpha_is_split_over_primary_metrics_and_contenders() -> None:
    samples = noisy(11, 0.012, 0.02, 15)
    alone = only(samples, Rule.fixed_blocks(15, edition=2))
    twice = judge(
        [samples, msgspec.structs.replace(noisy(12, 0, 0.02, 15), benchmark="io")], Rule.fixed_blocks(15, edition=2)
    )
    values = samples.values | {"C": samples.values["A"][::-1]}
    three = judge([msgspec.structs.replace(samples, values=values)], Rule.fixed_blocks(15, edition=2))
    assert [result.contender for result in three] == ["B", "C"]
    assert twice[0].ci_low_pct == three[0].ci_low_pct
    half = math.log1p((alone.ci_high_pct or 0) / 100) - math.log1p((alone.effect_pct or 0) / 100)
    wider = math.log1p((twice[0].ci_high_pct or 0) / 100) - math.log1p((twice[0].effect_pct or 0) / 100)
    assert wider / half == pytest.approx(stats.t.ppf(1 - 0.0125, 14) / stats.t.ppf(0.975, 14))


def test_exploratory_metrics_go_by_benjamini_and_hochberg() -> None:
    effects = [0.05, 0.03, 0.02, 0.008, 0, 0, 0, 0, 0, 0]
    samples = [
        msgspec.structs.replace(noisy(30 + i, effect, 0.02, 12, primary=False), benchmark=f"b{i}")
        for i, effect in enumerate(effects)
    ]
    found = judge(samples, Rule.fixed_blocks(12, edition=2))
    p = [result.beside["p_t"] or 0 for result in found]
    expected = stats.false_discovery_control(p)
    assert [result.q_value for result in found] == pytest.approx(expected.tolist(), rel=0.08)
    called = [result for result in found if result.verdict != "undecided"]
    assert 2 <= len(called) < 6
    for result in found:
        assert result.role == "exploratory"
        assert (result.verdict in ("faster", "slower")) == ((result.q_value or 0) <= 0.05)
        assert result.ci_low_pct is not None and result.ci_high_pct is not None
        excludes_zero = result.ci_low_pct > 0 or result.ci_high_pct < 0
        assert excludes_zero == (result.verdict in ("faster", "slower"))
        assert "Exploratory: q =" in result.told


def with_p(p: float, place: int) -> Samples:
    """Ten pairs whose paired t test has exactly this p."""
    noise = np.array([1.0, -1.0] * 5)
    shift = stats.t.isf(p / 2, 9) * noise.std(ddof=1) / math.sqrt(10)
    logs = 0.05 * (noise + shift)
    return msgspec.structs.replace(table([1.0] * 10, np.exp(logs).tolist(), primary=False), benchmark=f"b{place}")


def test_benjamini_and_hochberg_step_by_step() -> None:
    """Of five p below .05 among ten, two survive: .001 <= .005, .008 <= .010, but .020 > .015."""
    p = [0.020, 0.5, 0.001, 0.6, 0.045, 0.7, 0.008, 0.8, 0.030, 0.9]
    samples = [with_p(value, place) for place, value in enumerate(p)]
    samples.insert(3, noisy(40, 0, 0.02, 10))
    found = [result for result in judge(samples, TEN) if result.role == "exploratory"]
    assert [result.beside["p_t"] for result in found] == pytest.approx(p, rel=1e-6)
    assert [result.q_value for result in found] == pytest.approx(stats.false_discovery_control(p).tolist(), rel=0.02)
    assert [place for place, result in enumerate(found) if result.verdict != "undecided"] == [2, 6]
    # With two of ten called, intervals are at 1 - .05 * 2/10.
    logs = math.log1p((found[0].ci_high_pct or 0) / 100) - math.log1p((found[0].effect_pct or 0) / 100)
    assert logs == pytest.approx(stats.t.isf(0.005, 9) * 0.05 * np.array([1.0, -1.0] * 5).std(ddof=1) / math.sqrt(10))


def test_counters_of_the_scheduler_are_families_by_themselves() -> None:
    own = [
        msgspec.structs.replace(noisy(50 + i, e, 0.02, 12, primary=False), benchmark=f"b{i}")
        for i, e in enumerate([0.05, 0.0])
    ]
    kept = {metric.name: metric for metric in schedstat.metrics()}
    counters = [
        msgspec.structs.replace(noisy(60 + i, 0.0, 0.02, 12, primary=False), benchmark="b0", metric=metric)
        for i, metric in enumerate(kept.values())
    ]
    found = judge([counters[0], *own, *counters[1:]], TEN)
    alone = {(m.benchmark, m.metric): m for part in (own, counters) for m in judge(part, TEN)}
    for m in found[1:3]:
        before = alone[m.benchmark, m.metric]
        assert (m.q_value, m.ci_low_pct, m.verdict) == (before.q_value, before.ci_low_pct, before.verdict)
    levels = [m for m in found if "-domain" in m.metric]
    totals = [m for m in found if m not in levels and m.metric in kept]
    assert len(levels) == 8 * 9 and len(totals) == len(kept) - len(levels)
    for part in (levels, totals):
        p = [m.beside["p_t"] or 0 for m in part]
        assert [m.q_value for m in part] == pytest.approx(stats.false_discovery_control(p).tolist(), rel=0.08)


def test_a_p_value_at_its_limit_is_called() -> None:
    """Of three, the limits are .25, .5 and .75 at a level of .75."""
    assert benjamini_hochberg([0.5, 0.375, 1.0, None], 0.75).level == 0.5
    assert benjamini_hochberg([0.5078125, 0.375, 1.0, None], 0.75).level == 0.25


def test_exploratory_metrics_take_no_alpha_from_primary_ones() -> None:
    primary = noisy(40, 0.01, 0.02, 12)
    others = [msgspec.structs.replace(noisy(41 + i, 0, 0.02, 12, primary=False), benchmark=f"b{i}") for i in range(5)]
    assert (
        judge([*others, primary], Rule.fixed_blocks(12, edition=2))[-1].ci_low_pct
        == only(primary, Rule.fixed_blocks(12, edition=2)).ci_low_pct
    )


# Study 000


def test_study_000_decides_the_context_switches_only() -> None:
    found = {f"{result.benchmark}/{result.metric}": result for result in judge(generations(), TEN)}
    assert {key: result.verdict for key, result in found.items()} == {
        "sysbench-cpu-1t/events_per_second": "equivalent",
        "sysbench-cpu-2t/events_per_second": "equivalent",
        "perf-stat/context_switches": "lower",
        "perf-stat/cpu_migrations": "undecided",
        "perf-stat/task_clock": "equivalent",
        "sysbench-fileio-seqwr/total_time": "equivalent",
        "cyclictest/max_latency": "undecided",
    }
    switches = found["perf-stat/context_switches"]
    assert switches.beside["ratio_of_means_pct"] == pytest.approx(-22.496, abs=0.001)
    assert switches.beside["p_welch"] == pytest.approx(8e-7, rel=0.1)
    assert switches.beside["p_mann_whitney"] == pytest.approx(8e-5, rel=0.1)
    assert switches.beside["cliffs_delta"] == pytest.approx(-0.94)
    assert (switches.baseline_mean, switches.baseline_sd) == pytest.approx((279.6, 17.98888546))
    assert (switches.mean, switches.sd) == pytest.approx((216.7, 19.90002792))
    p = sorted(result.beside["p_welch"] or 0 for result in found.values())
    assert p[0] < 0.05 / 7 and p[1] > 0.05 / 6, "the only one of seven that survives Holm"
    latency = found["cyclictest/max_latency"]
    assert latency.beside["ratio_of_means_pct"] == pytest.approx(7.0, abs=0.06)
    assert (latency.median or 0) / (latency.baseline_median or 1) - 1 == pytest.approx(-0.13, abs=0.001)


@pytest.mark.parametrize("rule", [Rule.fixed_blocks(20), Rule(first_look=8, look_every=6)])
def test_nothing_is_decided_between_the_looks_that_were_planned(rule: Rule) -> None:
    """The present interval is shown, however large the effect: alpha is not spent on looks that were not planned."""
    result = only(noisy(1, 0.5, 0.001, 12 if rule.first_look == 20 else 7), rule)
    assert (result.verdict, result.decided_at) == ("undecided", None)
    assert result.ci_low_pct is not None and result.ci_low_pct > 40
    assert only(noisy(1, 0.5, 0.001, 20), rule).verdict == "faster"
