"""Intervals of quantiles, shares, shift and return level, held against simulated boots with known tails."""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest
from benchmark_cases import CAPTURED, GOOD
from examples import simulated
from made_runs import make_run
from msgspec import structs
from scipy.stats import genpareto
from scipy.stats import t as student
from tail_boots import SHAPES, STEP, boot_of, draw_boots

from kduel.benchmarks import ParseError
from kduel.core.errors import InputError
from kduel.core.experiment import Bound, Metric, Step
from kduel.core.samples import Distribution, Samples
from kduel.core.tail_results import TailResult
from kduel.judge.evaluate import judge_run
from kduel.judge.tails.extremes import fit, return_level
from kduel.judge.tails.results import bound_result, present_level, shift_results, tail_results
from kduel.judge.tails.shares import FEWEST_BOOTS, pool, quantiles, share_interval
from kduel.judge.verdict.rule import Rule
from kduel.report.content.closing import closing
from kduel.report.content.tails import bound_sentence, model_lines
from kduel.report.text import render_text
from kduel.store.collect import PreparedSteps, step_directory
from kduel.study.file import parse_study
from kduel.study.load import assemble

PAIR = '[study]\nname = "s"\n[[contender]]\nkernel = "a"\n[[contender]]\nkernel = "b"\n[[benchmark]]\nuse = "cyclictest"\n'


def exponential(draw: np.random.Generator, boots: int = 12, samples: int = 1000) -> list[Distribution]:
    return draw_boots(SHAPES["exponential"], draw, boots, samples)


def table(**arms: list[Distribution]) -> Samples:
    blocks = list(range(1, len(next(iter(arms.values()))) + 1))
    return Samples(
        benchmark="cyclictest",
        metric=Metric("latency-p99", "us", "lower"),
        blocks=blocks,
        values={name: [1.0] * len(blocks) for name in arms},
        order={name: [2 * block + (number + block) % 2 for block in blocks] for number, name in enumerate(arms)},
        distributions=dict(arms),
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_intervals_cover_the_true_values_and_end_where_the_data_do(name: str) -> None:
    """Of quantiles, a share, and a return level; perf/tails_calibration.py has the long simulation."""
    shape, runs, rare = SHAPES[name], 40, 1e-4
    truth = [shape.quantile(share) for share in (0.5, 0.99)]
    limit = math.ceil(shape.quantile(1 - 5e-4) / STEP) * STEP
    hits = dict.fromkeys(("median", "p99", "share", "level"), 0)
    for seed in range(runs):
        boots = draw_boots(shape, np.random.default_rng([seed, 12]), 12)
        pooled = pool(boots)
        median, high, beyond = quantiles(pooled, [0.5, 0.99, 0.9999999], 0.05)
        assert beyond.value is None
        for key, one, true in zip(("median", "p99"), (median, high), truth, strict=True):
            assert one.low is not None and one.high is not None
            hits[key] += one.low - STEP <= true <= one.high
        place = np.searchsorted(pooled.values, limit + STEP / 2) - 1
        _, least, most = share_interval(pooled.above[:, [place]], pooled.samples, 0.05)
        hits["share"] += least[0] <= shape.share_above(limit) <= most[0]
        if seed < 8:
            level = return_level(boots, rare, 0.05)
            assert not level.reason
            hits["level"] += level.low <= shape.quantile(1 - rare) <= level.high
    # 94 % less three standard errors.
    assert hits.pop("level") >= 5
    assert min(hits.values()) >= 33, hits


@pytest.mark.parametrize("level", [0.05, 0.01])
def test_the_interval_of_equal_boots_is_the_binomial_one_at_the_level_for_skewness(level: float) -> None:
    boots, samples, share = 400, 5000, 0.1
    mean, low, high = share_interval(np.full((boots, 1), share), np.full(boots, float(samples)), level)
    error = math.sqrt(share * (1 - share) / (boots * samples))
    assert mean[0] == pytest.approx(share)
    for end in (low[0] - share, high[0] - share):
        assert abs(end) / error == pytest.approx(student.ppf(1 - level / 4, boots - 1), rel=0.01)


def test_the_interval_of_a_return_level_has_half_the_level_on_each_side() -> None:
    boots = exponential(np.random.default_rng(3))
    widths = {}
    for level in (0.05, 0.1):
        fitted = return_level(boots, 1e-4, level)
        assert not fitted.reason
        widths[level] = math.log(fitted.high / fitted.low)
    expected = student.ppf(1 - 0.05 / 4, len(boots) - 1) / student.ppf(1 - 0.1 / 4, len(boots) - 1)
    assert widths[0.05] / widths[0.1] == pytest.approx(expected)


@pytest.mark.slow
def test_a_band_of_shifts_covers_all_of_them_at_once() -> None:
    hits, runs = 0, 20
    for seed in range(runs):
        draw = np.random.default_rng([seed, 7])
        before, after = (draw_boots(SHAPES["two modes"], draw, 12) for _ in range(2))
        points = shift_results([table(old=before, new=after)], Rule.fixed_blocks(12, edition=2))[0].points
        hits += all(point.low_pct <= 0 <= point.high_pct for point in points)
    assert hits >= 16


def test_too_few_boots_give_no_quantile() -> None:
    few = exponential(np.random.default_rng(1), boots=FEWEST_BOOTS - 1)
    assert quantiles(pool(few), [0.5], 0.05)[0].value is None


def test_a_bound_violated_once_in_a_hundred_thousand_is_found_and_the_largest_value_alone_decides_nothing() -> None:
    draw = np.random.default_rng(3)
    limit = Bound(metric="latency", limit="800 us", share=1e-6)

    # What cyclictest of Debian 13 measured, a hundred times.
    case = next(case for case in GOOD if case.name == "rt-tests-2.6-1.1/cyclictest-idle-2t-1000l")
    real = case.benchmark.details(case.raw, case.parameters).distributions["latency-p99"]
    assert real.largest < 800 and real.samples == 2000

    def planted(each: float) -> list[Distribution]:
        return [
            Distribution(
                unit="us",
                values=[*real.values, 900.0],
                counts=[*(100 * count for count in real.counts), draw.poisson(each)],
                largest=900.0,
            )
            for _ in range(20)
        ]

    assert bound_result(planted(2), limit, 0.05).verdict == "violated"
    assert bound_result(planted(0), Bound(metric="latency", limit="800 us", share=1e-4), 0.05).verdict == "holds"
    one = [*planted(0)[1:], structs.replace(planted(0)[0], counts=[*(100 * count for count in real.counts), 1])]
    assert bound_result(one, limit, 0.05).verdict == "undecided"


def test_redis_keeps_all_requests_in_the_steps_of_its_tables() -> None:
    case = next(case for case in GOOD if case.name == "redis-server-7.0.15-1~deb12u10/redis-get-2000x")
    kept = case.benchmark.details(case.raw, case.parameters).distributions["latency-p99"]
    assert (kept.samples, kept.largest, kept.unit) == (2000, 7.095, "ms")
    # 75 % took no longer than 0.423 ms: 1,508 of 2,000; the step before it ends at 0.407 ms with 1,486.
    place = kept.values.index(0.423)
    assert kept.values[place - 1] == 0.407 and kept.counts[place] == 22 and sum(kept.counts[: place + 1]) == 1508
    lost = case.raw.stdout.replace(
        "0.407 milliseconds (cumulative count 1486)", "0.407 milliseconds (cumulative count 1586)"
    )
    with pytest.raises(ParseError, match="in rising order"):
        case.benchmark.parse(structs.replace(case.raw, stdout=lost), case.parameters)


def censored(boots: list[Distribution], limit: float) -> list[Distribution]:
    """The same boots with a histogram that ends at `limit`."""
    found = []
    for boot in boots:
        kept = sum(value < limit for value in boot.values)
        found.append(
            structs.replace(
                boot, values=boot.values[:kept], counts=boot.counts[:kept], beyond=sum(boot.counts[kept:])
            )
        )
    return found


def test_what_lies_beyond_a_histogram_counts_above_it_and_changes_nothing_below() -> None:
    boots = exponential(np.random.default_rng(4))
    short = censored(boots, 60.0)
    assert sum(boot.beyond for boot in short) > 400
    whole, cut = (quantiles(pool(each), [0.5, 0.9, 0.999], 0.05) for each in (boots, short))
    assert cut[:2] == whole[:2] and cut[2].value is None
    below = Bound(metric="latency", limit="50 us", share=0.01)
    assert bound_result(short, below, 0.05) == bound_result(boots, below, 0.05)
    assert bound_result(short, below, 0.05).verdict == "violated"
    # Whether those beyond exceed a limit above the histogram is not known, unless the largest does not.
    far = Bound(metric="latency", limit="100 us", share=0.02)
    assert bound_result(boots, far, 0.05).verdict == "holds"
    unknown = bound_result(short, far, 0.05)
    assert unknown.verdict == "undecided" and unknown.exceeding == 12
    assert unknown.exceeding + unknown.hidden == sum(boot.beyond for boot in short)
    tail = TailResult(
        benchmark="b", metric="latency", unit="us", contender="c", boots=12, samples=12_000, largest=1.0, level=0.05
    )
    assert f"{unknown.exceeding} of 12,000 measurements exceed it, and {unknown.hidden} may" in bound_sentence(
        tail, unknown
    )
    beyond_all = Bound(metric="latency", limit="1 ms", share=0.02)
    assert bound_result(short, beyond_all, 0.05).verdict == "holds"
    assert bound_result(short, beyond_all, 0.05).exceeding == 0


def test_a_quantile_beyond_the_histogram_of_some_boots_has_no_shift() -> None:
    draw = np.random.default_rng(6)
    before, after = exponential(draw), exponential(draw)
    uncut = shift_results([table(old=before, new=after)], Rule.fixed_blocks(12, edition=2))[0].points
    points = shift_results([table(old=censored(before, 60.0), new=after)], Rule.fixed_blocks(12, edition=2))[0].points
    assert [point.share for point in uncut][-2:] == [0.9, 0.99]
    assert [point.share for point in points] == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]


def test_a_percentile_beyond_the_histogram_leaves_the_rest_of_its_trial(tmp_path: Path) -> None:
    given = {"loops": 1000, "histogram": 10, "priority": 0}
    prepared = PreparedSteps([Step(label="late", benchmark="cyclictest", parameters=given)])
    captured = CAPTURED / "rt-tests-2.6-1.1/cyclictest-idle-1t-p0-1000l-to10us"
    shutil.copytree(captured, step_directory(tmp_path, 0, "late"))
    values, failed = prepared.parse_trial(tmp_path)
    assert not failed and values[0].keys() == {"latency-avg", "latency-min", "latency-max"}
    kept = prepared.details(tmp_path, 0).distributions["latency-p99"]
    assert kept.samples == 1000 and kept.beyond > 10 and kept.largest > 10


def test_a_run_tells_which_values_lie_beyond_the_histogram(tmp_path: Path) -> None:
    given = {"loops": 1000, "histogram": 10, "priority": 0}
    step = Step(label="job", benchmark="cyclictest", parameters=given, primary=["latency-p99"])
    run = make_run(tmp_path / "run", steps=[step], blocks=4)
    captured = CAPTURED / "rt-tests-2.6-1.1/cyclictest-idle-1t-p0-1000l-to10us"
    for trial in sorted((run / "trials").iterdir()):
        shutil.copytree(captured, trial / "01-job", dirs_exist_ok=True)
    p99, average = (next(m for m in judge_run(run).metrics if m.metric == f"latency-{one}") for one in ("p99", "avg"))
    assert p99.beyond == {"old": [1, 2, 3, 4], "new": [1, 2, 3, 4]} and p99.values["new"] == [None] * 4
    assert not average.beyond and average.n == 4
    text = render_text(judge_run(run), width=200, colour=False)
    assert "values lie beyond the histogram" in text


def test_the_fitted_tail_is_that_of_scipy() -> None:
    for shape in (-0.2, 0.2):
        excesses = np.sort(genpareto.rvs(shape, scale=5, size=500, random_state=1))
        shapes, scales = fit(excesses, np.ones((1, 500)))
        expected = genpareto.fit(excesses, floc=0)
        assert (shapes[0], scales[0]) == pytest.approx((expected[0], expected[2]), abs=2e-3)


def test_a_return_level_is_refused_where_nothing_supports_it() -> None:
    boots = exponential(np.random.default_rng(1))
    assert "rarer" in return_level(boots, 1e-9, 0.05).reason
    assert "boots" in return_level(boots[:5], 1e-4, 0.05).reason
    found = return_level(boots, 1e-5, 0.05)
    assert not found.reason and found.low < -20 * math.log(1e-5) < found.high


def test_the_shift_of_quantiles_is_judged_within_blocks() -> None:
    draw = np.random.default_rng(5)
    before = exponential(draw)
    after = [boot_of(np.where(draw.random(1000) < 0.05, 2.0, 1.0) * draw.exponential(20, 1000)) for _ in before]
    found = shift_results([table(old=before, new=after)], Rule.fixed_blocks(12, edition=2))[0]
    assert [point.share for point in found.points][:2] == [0.1, 0.2]
    assert found.points[4].verdict != "slower"  # the median


def test_a_run_states_tails_for_every_contender() -> None:
    draw = np.random.default_rng(5)
    found = tail_results(
        [table(old=exponential(draw), new=exponential(draw))], Rule.fixed_blocks(12, edition=2), None
    )
    assert [(one.contender, one.boots, one.samples) for one in found] == [("old", 12, 12_000), ("new", 12, 12_000)]
    assert found[0].return_level is not None and found[0].bound is None
    assert "rarer than this run shows" in model_lines(found[0])[0]
    seen = structs.replace(found[0], return_level=structs.replace(found[0].return_level, share=1e-3))
    assert "rarer than this run shows" not in model_lines(seen)[0]
    # Results are written as JSON, which has no numbers of numpy's.
    shifts = shift_results([table(old=exponential(draw), new=exponential(draw))], Rule.fixed_blocks(12, edition=2))
    bound = Bound(metric="latency", limit="100 us", share=0.001)
    bounded = tail_results(
        [table(old=exponential(draw), new=exponential(draw))], Rule.fixed_blocks(12, edition=2), bound
    )
    assert msgspec.json.encode([found, shifts, bounded])


def test_contenders_and_metrics_share_the_level_of_a_bound() -> None:
    draw, rule = np.random.default_rng(5), Rule.fixed_blocks(12, edition=2)
    bound = Bound(metric="latency", limit="100 us", share=0.001)
    one = table(old=exponential(draw), new=exponential(draw))
    other = structs.replace(one, benchmark="other")
    for tables, arms in (([one], 2), ([one, other], 4)):
        assert {tail.bound.level for tail in tail_results(tables, rule, bound) if tail.bound} == {rule.alpha / arms}
    assert {tail.level for tail in tail_results([one, other], rule, bound)} == {rule.alpha}


@pytest.mark.parametrize("height", [14, 22, 40])
def test_the_last_screen_of_a_run_has_the_verdict_on_its_bound(height: int) -> None:
    """It was in the report alone."""
    draw = np.random.default_rng(5)
    rule = Rule.fixed_blocks(12, edition=2)
    found = simulated(metrics=6)
    for limit in ("1000 us", "100 us"):
        tables = [table(old=exponential(draw), new=exponential(draw))]
        found.tails += tail_results(tables, rule, Bound(metric="latency", limit=limit, share=0.001))
    assert [one.bound.verdict for one in found.tails if one.bound] == ["holds", "holds", "violated", "violated"]
    lines = ["".join(part for part, _ in line) for line in closing(found, "RUN", 80, height)]
    said = " ".join(lines[1:4])
    assert re.match(
        r"Limit of at most 0.1 % of [\w-]+/latency above 100 us: exceeded by old and new \(95 % confidence\). ", said
    ), lines
    assert "1 more bound below" in said
    assert len(lines) <= height and lines[-1].endswith("kduel report RUN")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[bound]\nmetric = "latency"\nlimit = "150"\n', "no time with a unit"),
        ('[bound]\nmetric = "latency"\nlimit = "150 us"\nshare = 2.0\n', "not between 0 and 1"),
        ('[bound]\nmetric = "latency"\nlimit = "5 s"\n', "distinguishes durations up to 100,000 us"),
        ('[bound]\nmetric = "speed"\nlimit = "150 us"\n', "no benchmark of this study keeps"),
    ],
)
def test_bounds_that_cannot_be_meant_are_errors(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        assemble(parse_study(PAIR + text, "s.toml"), PAIR + text, "s.toml")
    assert said in caught.value.message


def test_a_bound_is_read_in_the_unit_of_the_measurements() -> None:
    text = PAIR + '[bound]\nmetric = "latency"\nlimit = "0.15 ms"\n'
    bound = assemble(parse_study(text, "s.toml"), text, "s.toml").bound
    assert bound is not None and bound.in_unit("us") == 150


def test_a_bucket_exceeds_a_limit_only_from_its_lower_end_on() -> None:
    limit = Bound(metric="latency", limit="150 us", share=1e-3)

    def boots(largest: float) -> list[Distribution]:
        one = Distribution(unit="us", values=[140.0, 152.0], counts=[10, 990], floors=[136.0, 148.0], largest=largest)
        return [one] * 12

    below = bound_result(boots(149.9), limit, 0.05)
    assert (below.exceeding, below.hidden) == (0, 0)
    assert below.verdict != "violated"
    within = bound_result(boots(151.0), limit, 0.05)
    assert (within.exceeding, within.hidden) == (0, 12 * 990)
    tail = TailResult(
        benchmark="wakeup",
        metric="latency",
        unit="us",
        contender="new",
        boots=12,
        samples=12_000,
        largest=151.0,
        level=0.05,
    )
    said = bound_sentence(tail, within)
    assert "0 of 12,000 measurements exceed it, and 11,880 may: " in said and "beyond the histogram" not in said
    beyond = bound_result(boots(151.0), Bound(metric="latency", limit="147 us", share=1e-3), 0.05)
    assert beyond.verdict == "violated" and beyond.hidden == 0


def test_the_level_of_a_run_that_may_have_stopped_is_that_of_its_look() -> None:
    """At the end of a plan with looks on the way less than all of alpha is left; with one look it is all there."""
    rule = Rule()
    assert present_level(rule, rule.max_blocks, 0.05) < 0.05
    assert present_level(rule, 10, 0.05) < present_level(rule, rule.max_blocks, 0.05)
    assert present_level(Rule.fixed_blocks(20), 20, 0.05) == 0.05


def test_a_measurement_of_the_limit_itself_does_not_exceed_it() -> None:
    boots = [Distribution.from_counts({150: 999, 151: 1}, "us")] * 12
    found = bound_result(boots, Bound(metric="latency", limit="150 us", share=1e-2), 0.05)
    assert (found.exceeding, found.hidden, found.verdict) == (12, 0, "holds")
