"""The plots as pictures, and what may stand where in their specifications."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
import pytest
from examples import ALL, hostile, published, simulated

from kduel.core.metric_results import MetricResult
from kduel.core.slices import SliceValue
from kduel.core.tail_results import TailResult
from kduel.core.text import visible
from kduel.report import report_format
from kduel.report.content.methods import value_words
from kduel.report.page.charts import metric_groups
from kduel.report.plots import effects as plots
from kduel.report.plots import values as valueplots
from kduel.report.plots.draw import Scale
from kduel.report.plots.intervals import LARGE, Intervals, Ratios, intervals, inverse
from kduel.report.plots.tails import log_ticks, survival_chart, tail_of
from kduel.report.plots.trials import SliceDot, summarize_slices


def strings(node: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], str]]:
    """Every string of a specification with where it stands."""
    if isinstance(node, dict):
        return [
            found
            for name, inner in node.items()
            for found in [*strings(inner, (*path, name)), ((*path, "key"), name)]
        ]
    if isinstance(node, list):
        return [found for inner in node for found in strings(inner, path)]
    return [(path, node)] if isinstance(node, str) else []


def test_strangers_strings_are_data_only() -> None:
    results = hostile()
    names = [visible(contender.name) for contender in results.contenders]
    rows = valueplots.value_rows(results, results.metrics[0])
    for spec in (
        plots.forest(results.metrics, 1.0, plots.PICTURE),
        valueplots.strip(names, plots.PICTURE, rows, unit="s", width=400),
    ):
        for path, text in strings(spec):
            if "script" in text:
                assert path[:2] == ("data", "values") or path[-2:] == ("scale", "domain"), path


@pytest.mark.slow
@pytest.mark.parametrize("example", ["published", "simulated", "three", "broken", "undecided"])
def test_pictures_are_drawn(example: str) -> None:
    results = ALL[example]()
    names = [contender.name for contender in results.contenders]
    drawn = plots.svg(plots.forest(results.metrics, 1.0, plots.PICTURE, width=800))
    assert "sysbench-cpu-" in drawn
    metric = results.metrics[1]
    rows = valueplots.value_rows(results, metric)
    assert len(rows) == sum(value is not None for values in metric.values.values() for value in values)
    strip = plots.svg(valueplots.strip(names, plots.PICTURE, rows, unit=metric.unit, width=400))
    assert all(name in strip for name in names)


def test_forest_cuts_wide_intervals_and_says_so() -> None:
    metrics = published().metrics
    scale = plots.forest_scale(metrics, 1.0)
    rows = {row["label"]: row for row in plots.forest_rows(metrics, scale)}
    wide, switches = rows["cyclictest/max_latency"], rows["perf-stat/context_switches"]
    assert wide["over"] == wide["high"] == scale.high
    assert switches["over"] is None and switches["under"] is None
    assert scale.low < switches["low"] < switches["effect"] < switches["high"] < 0


@pytest.mark.slow
def test_forest_is_logarithmic_where_a_change_is_large() -> None:
    """A wide interval squeezed all others, and its axis went to -158 %."""
    from msgspec.structs import replace

    metrics = published().metrics
    for low, high, labels in ((-99.5, 9e5, ("0", "+900", "−90")), (-250.0, 140.0, ("0", "+100", "−50"))):
        wide = [replace(metric, ci_low_pct=low, effect_pct=5.0, ci_high_pct=high) for metric in metrics]
        scale = plots.forest_scale(wide, 1.0)
        first, last = plots.on_axis(scale.low, scale), plots.on_axis(scale.high, scale)
        assert first > 0 and first * last == pytest.approx(1), (
            "half as much is as far from no change as twice as much"
        )
        rows = plots.forest_rows(wide, scale)
        assert {row["low"] for row in rows} == {row["under"] for row in rows} == {scale.low}
        assert {row["high"] for row in rows} == {min(high, scale.high)}
        drawn = plots.forest(wide, 1.0, plots.PICTURE, 400)
        scales = [each["scale"] for layer in drawn["layer"] if "scale" in (each := layer["encoding"]["x"])]
        assert {(each["type"], *each["domain"]) for each in scales} == {("log", first, last)}
        assert all(f">{text}<" in plots.svg(drawn) for text in labels)
    narrow = [replace(metric, ci_low_pct=-2.0, effect_pct=1.0, ci_high_pct=4.0) for metric in metrics]
    scale = plots.forest_scale(narrow, 1.0)
    drawn = plots.forest(narrow, 1.0, plots.PICTURE, 400)
    assert drawn["layer"][0]["encoding"]["x"]["scale"] == {"domain": [-scale.high, scale.high], "nice": False}


def test_an_axis_with_a_large_change_is_logarithmic_so_that_small_ones_are_seen() -> None:
    from msgspec.structs import replace

    made = published().metrics[0]

    def around(change: float) -> MetricResult:
        return replace(
            made,
            better="none",
            verdict="lower",
            effect_pct=change,
            ci_low_pct=change - 1,
            ci_high_pct=change + 1,
            conditions=[],
        )

    small = intervals([around(3.0), around(-40.0)], 1.0, "axis")
    assert small is not None and small.unit == "%" and small.scale.share(0) == 0.5
    large = intervals([around(3.0), around(900.0), around(-80.0)], 1.0, "axis")
    assert large is not None and large.unit == "%, logarithmic"
    share = large.scale.share
    # As far to the left as to the right; on a linear axis +3 % would be 0.3 % of the way.
    assert share(0) == pytest.approx(0.5) and share(100) - share(0) == pytest.approx(share(0) - share(-50))
    assert share(900) < 1 and share(3) - share(0) > 0.005
    drawn = large.axis()
    assert all(f">{text}<" in drawn for text in ("0", "+100", "−50", "+400", "−80"))
    sided = intervals([replace(around(900.0), better="higher")], 1.0, "axis")
    assert sided is not None and ">×5<" in sided.axis() and sided.head.endswith("◂ worse, better ▸")
    assert large.head == large.unit, "no words of a side where no metric has one"
    assert "◂" not in large.row(around(-80.0), "worse") and "▸" not in large.row(around(900.0), "better")
    # However far an axis goes, its labels have room, and there are some.
    for farthest in range(110, 9900, 97):
        axis = Ratios(low=inverse(farthest), high=float(farthest))
        places = [axis.share(value) for value in axis.ticks(4) if axis.share(value) <= 0.96]
        assert inverse(50) not in axis.ticks(4) or len(places) == 3, "−33.3 is too long a label beside −50"
        assert len(places) >= 3 and all(after - before > 0.12 for before, after in itertools.pairwise(places)), places
    # Beyond a hundred times as much there is an arrow.
    farthest = intervals([around(3.0), around(50_000.0)], 1.0, "axis")
    assert farthest is not None and "▸" in farthest.row(around(50_000.0), "better")


def test_forest_keeps_the_decided_ones_of_many() -> None:
    results = simulated(blocks=12, metrics=120)
    kept = plots.forest_metrics(results.metrics)
    assert len(kept) == plots.FOREST_ROWS
    assert all(metric.verdict != "undecided" for metric in kept)


def test_jitter_is_spread_and_always_the_same() -> None:
    places = [valueplots.jitter(index, 0) for index in range(100)]
    assert places == [valueplots.jitter(index, 0) for index in range(100)]
    assert min(places) < -0.95
    assert max(places) > 0.95


def test_a_page_with_very_many_slices_stays_small() -> None:
    """A run of 20 blocks, 6 metrics and 100 slices had a page of 930 kB."""
    results = simulated(blocks=20, metrics=6)
    draw = np.random.default_rng(1)
    for metric in results.metrics:
        metric.slices = {
            name: [[SliceValue(10.0 * at, value * float(np.exp(0.01 * draw.normal()))) for at in range(100)] if value else [] for value in values]
            for name, values in metric.values.items()
        }  # fmt: skip
    page = report_format("html").render(results)
    assert "each dot the median of up to" in page
    assert len(page.encode()) < 300_000


def test_a_dot_for_several_slices_keeps_the_worst_of_them() -> None:
    slices = [
        SliceDot(arm=0, trial=trial, began=float(at), value=float(at), worse=50.0 if at == 3 else 0.0, waited=None)
        for trial in (1, 2)
        for at in range(6)
    ]
    assert summarize_slices(slices, 12) == (slices, 1)
    found, size = summarize_slices(slices, 4)
    assert size == 3 and [one.trial for one in found] == [1, 1, 2, 2]
    assert [(one.began, one.value, one.worse, one.waited) for one in found[:2]] == [
        (0.0, 1.0, 0.0, None), (3.0, 4.0, 50.0, None)
    ]  # fmt: skip


def test_commands_in_a_text_are_code_and_backquotes_of_names_stay() -> None:
    from kduel.report.page.render import mark_code

    assert (
        mark_code("use `kduel report <x>` & `go`") == "use <code>kduel report &lt;x&gt;</code> &amp; <code>go</code>"
    )
    assert mark_code("hardware (`--machine ssh` or KVM)") == "hardware (<code>--machine ssh</code> or KVM)"
    assert mark_code("kernel a`b <i>") == "kernel a`b &lt;i&gt;"
    assert mark_code("a``<i>") == "a``&lt;i&gt;"
    assert mark_code("a`b is slower than c`d") == "a`b is slower than c`d"


def test_commands_are_code_in_markdown_too_and_nothing_else_is_markup() -> None:
    from kduel.report.markdown import mark_code

    assert mark_code("use `kduel report <x>` & *go*") == "use `kduel report <x>` &amp; \\*go\\*"
    assert mark_code("kernel a`b <i>") == "kernel a&#96;b &lt;i&gt;"
    assert mark_code("a`b <i> c`d") == "a&#96;b &lt;i&gt; c&#96;d"
    # Mentions of people and issues are looked for in the text that Markdown has become.
    assert mark_code("@you, #1") == "@&#8203;you, \\#&#8203;1"
    assert mark_code(":smile: [vulnerability:3] *iteration:1 12:30:45") == (
        ":&#8203;smile: \\[&#8203;vulnerability:3\\] \\*&#8203;iteration:1 12:30:45"
    )
    assert mark_code("http://a www.b GH-12 !3 %v1 12 %") == (
        "http:&#8203;//a www&#8203;.b GH&#8203;-12 \\!&#8203;3 %&#8203;v1 12 %"
    )
    assert mark_code("~bug $4 &5") == "\\~&#8203;bug &#36;&#8203;4 &amp;&#8203;5"


def test_a_page_is_the_same_whatever_was_made_before() -> None:
    results = simulated()
    first = report_format("html").render(results)
    assert 'id="axis1"' in first and 'id="picture0"' in first
    assert report_format("html").render(results) == first


def test_the_curve_of_a_tail_reaches_its_largest_measurement_at_the_last_height() -> None:
    """The largest of all orders the contenders: in the second, which ends further left without it."""
    first = tail("a", 44_634, [(1_000, 0.5), (30_000, 0.02), (40_000, 0.01)])
    second = tail("b", 70_344, [(1_000, 0.5), (31_093, 0.02), (33_947, 0.01)])
    assert tail_of(first)[-2:] == [(40_000, 0.01), (44_634, 0.01)]
    assert tail_of(second)[-2:] == [(33_947, 0.01), (70_344, 0.01)]
    marks = re.findall(r'class="dots [^"]*" d="M(\d+) (\d+)h0"', survival_chart([(0, first), (1, second)], "tails"))
    (left, height), (right, other) = (map(int, mark) for mark in marks)
    assert left < right <= 10_000 and height == other


def tail(contender: str, largest: float, survival: list[tuple[float, float]]) -> TailResult:
    """A tail of one boot."""
    return TailResult(
        benchmark="wakes", metric="latency", unit="us", contender=contender, boots=1, samples=100, largest=largest,
        level=0.05, survival=survival,
    )  # fmt: skip


def test_the_value_of_a_sliced_metric_is_told_as_it_was_reduced() -> None:
    """The page said "the mean within a trial" of the mean of the better half of the slices, the text nothing of it."""
    results = simulated(blocks=6, metrics=2)
    results.study.slices, results.study.reduce = 4, "better-half"
    metric, whole = results.metrics[0], results.metrics[1]
    metric.statistic = whole.statistic = "median"
    metric.slices = {name: [[SliceValue(0.0, 1.0)] * 4 for _ in values] for name, values in metric.values.items()}
    words = {group.name: group.value_words for group in metric_groups(results)}
    assert words[f"{whole.benchmark}/{whole.metric}"] == "the median within a trial"
    sliced = words[f"{metric.benchmark}/{metric.metric}"]
    assert sliced == "the median within a slice, and of these values the mean of the better half of a trial's slices"
    assert sliced in report_format("html").render(results).replace("&#39;", "'")
    told = "A trial's value of a metric in slices is the mean of the better half of them"
    assert told in " ".join(report_format("text").render(results).split())
    metric.statistic = "max"
    assert value_words(metric, "better-half") == "the max within a trial"
    metric.statistic, metric.better = "value", "none"
    assert value_words(metric, "better-half") == "the mean of a trial's slices"
    metric.slices = {}
    assert told not in " ".join(report_format("text").render(results).split())


def test_every_axis_has_two_labels_at_least() -> None:
    for limit in np.geomspace(0.5, 20_000, 500):
        wide = Ratios(low=inverse(limit), high=limit)
        axis = Intervals(scale=Scale(low=-limit, high=limit) if limit <= LARGE else wide, delta=1.0, name="axis")
        assert axis.axis().count("<text") >= 2, limit
        assert Intervals(scale=wide, delta=1.0, name="axis").axis().count("<text") >= 2, limit  # beside −100 % alone
        for low in (0.0, 0.3 * limit, 0.7 * limit, 0.95 * limit, -limit):
            for about in (2, 3, 4, 6, 8):
                assert len(Scale(low=low, high=limit).ticks(about)) >= 2, (low, limit, about)
    for low in (55.0, 101.0, 250.0):
        assert len(log_ticks(Scale(low=math.log10(low), high=math.log10(1.3 * low)))) >= 2
