"""The table of intervals that fits a screen, and the result on one screen."""

from __future__ import annotations

import math
from typing import Any

import pytest
from examples import simulated
from hypothesis import given
from hypothesis import strategies as st

from kduel.core.metric_results import MetricResult
from kduel.core.results import Difference
from kduel.judge.lint.examine import findings_of_run
from kduel.report.content.closing import closing
from kduel.report.content.overview import axis, bar, overview


def metric(low: float | None, middle: float | None, high: float | None, **changes: Any) -> MetricResult:
    given: dict[str, Any] = {
        "benchmark": "fork", "metric": "rate", "unit": "1/s", "better": "higher", "role": "primary",
        "baseline": "old", "contender": "new", "n": 6, "baseline_mean": 100.0, "baseline_sd": 1.0, "mean": 101.0,
        "sd": 1.0, "effect_pct": middle, "ci_low_pct": low, "ci_high_pct": high, "verdict": "undecided",
    }  # fmt: skip
    return MetricResult(**given | changes)


def text(lines: list[list[tuple[str, str]]]) -> list[str]:
    return ["".join(piece for piece, _ in line) for line in lines]


def test_what_is_too_small_to_matter_is_called_nothing_else():
    small = metric(0.2, 0.3, 0.4, verdict="slower", below_delta=True)
    (_, found) = overview([small], 1.0, 80, 6)
    assert "▼ too small" in text([found])[0] and not any("red" in style for _, style in found)


def test_bars_lie_on_one_axis_with_delta_marked():
    reach = 5.0
    assert bar(metric(1.0, 2.0, 4.0), 21, reach, 1.0) == "        ┊ │ ├─●───┤  "
    assert bar(metric(-0.5, 0.0, 0.5), 21, reach, 1.0) == "        ┊├●┤┊        "
    assert bar(metric(None, None, None), 21, reach, 1.0) == "        ┊ │ ┊        "
    assert bar(metric(-50.0, -20.0, 0.0), 21, reach, 1.0).startswith("◂───────┼─┤")


@pytest.mark.parametrize(
    ("intervals", "reach"),
    [
        ([(-0.4, 0.9)], 2.0),
        ([(-4.2, 1.0)], 5.0),
        ([(-4.2, 1.0), (-300.0, 900.0)], 10.0),
        ([(-70.0, 300.0)], 100.0),
        ([(-99.0, 9e5)], 100.0),
        ([(-99.0, 9e5), (250.0, 420.0)], 500.0),
        ([(250.0, 420.0), (-1.0, 2.0)], 10.0),
        ([(400.0, 4e6)], 1000.0),
    ],
)
def test_the_axis_ends_at_a_round_number(intervals: list[tuple[float, float]], reach: float):
    assert axis([metric(low, (low + high) / 2, high) for low, high in intervals], 1.0) == reach


@pytest.mark.parametrize(
    ("intervals", "head", "bars"),
    [
        ([(1.0, 2.0, 4.0)], "−5 %               0               +5 %", ["                ┊   │   ├───●──────┤"]),
        # An interval with zero in it that goes beyond a doubling tells nothing there: it is cut.
        (
            [(-99.0, 300.0, 9e5)],
            "−100 %             0             +100 %",
            ["├──────────────────┼──────────────────▸"],
        ),
        (
            [(-60.0, 5.0, 140.0)],
            "−100 %             0             +100 %",
            ["        ├──────────┼●─────────────────▸"],
        ),
        # One that excludes zero is shown whole, and no change is below -100 %.
        (
            [(250.0, 300.0, 420.0), (-99.0, 300.0, 9e5)],
            "−100 %                         +500 %",
            ["      │              ├──●──────┤", "├─────┼─────────────────●───────────▸"],
        ),
        ([(150.0, 170.0, 220.0)], "−100 %    0                      +300 %", ["         ┊│             ├─●───┤"]),
    ],
)
def test_no_axis_begins_below_minus_100_per_cent(
    intervals: list[tuple[float, float, float]], head: str, bars: list[str]
):
    first, *rest = text(overview([metric(*each) for each in intervals], 1.0, 73, 20))
    assert head in first
    assert all(drawn in line for drawn, line in zip(bars, rest, strict=True))


@pytest.mark.parametrize("width", [40, 44, 50, 60, 80])
@pytest.mark.parametrize("more", [None, 7])
def test_names_that_are_cut_still_differ(width: int, more: int | None):
    """At 40 columns `switch-2-0k` and `switch-2-16k` were both `switch-2…`."""
    operations = ("switch-2-0k", "switch-2-16k", "switch-8-0k", "switch-8-16k", "pipe", "fork-exit")
    metrics = [metric(-1.0, 1.0, 2.0, benchmark=operation, blocks_more=more) for operation in operations]
    lines = text(overview(metrics, 1.0, width, 20))[1:]
    names = [line.split()[0] for line in lines]
    assert len(set(names)) == len(operations), names
    assert names[4] == "pipe" and (names[5] == "fork-exit" or (more and width == 40))
    assert max(map(len, lines)) <= width


@given(
    st.lists(st.tuples(st.floats(-1e9, 1e9), st.floats(0, 1e9), st.floats(0, 1e9)), min_size=1, max_size=40),
    st.floats(0.01, 100), st.integers(20, 160), st.integers(2, 40),
)  # fmt: skip
def test_it_keeps_to_its_lines_and_columns(
    found: list[tuple[float, float, float]], delta: float, width: int, most: int
):
    metrics = [
        metric(middle - below, middle, middle + above, metric=f"m{number}", blocks_more=number * 100)
        for number, (middle, below, above) in enumerate(found)
    ]
    lines = text(overview(metrics, delta, width, most))
    assert len(lines) <= most
    assert {len(line) for line in lines} <= set(range(max(40, min(width, 120)) + 1))
    shown = len(lines) - 1
    assert shown == len(metrics) or f"and {len(metrics) - shown + 1} more" in lines[-1]
    assert math.isfinite(axis(metrics, delta))


def test_several_contenders_have_headings_and_one_line_tells_what_is_left_out():
    metrics = [metric(-1, 0, 1, contender=name, metric=f"m{n}") for name in ("one", "two") for n in range(4)]
    lines = text(overview(metrics, 1.0, 80, 40))
    assert [line for line in lines if line.endswith(":")] == ["one:", "two:"] and len(lines) == 11
    assert text(overview(metrics, 1.0, 80, 6))[-1] == "and 6 more: 6 undecided"
    assert [line for line in text(overview(metrics, 1.0, 80, 6)) if line.endswith(":")] == ["one:", "two:"]


def test_what_is_too_small_to_matter_is_not_counted_with_what_is_not_as_in_the_headline():
    large = {"verdict": "faster", "effect_pct": 5.0, "ci_low_pct": 4.0, "ci_high_pct": 6.0}
    small = {"verdict": "slower", "effect_pct": -0.2, "ci_low_pct": -0.3, "ci_high_pct": -0.1, "below_delta": True}
    kinds = [large] * 6 + [small] * 3
    metrics = [metric(None, None, None, benchmark=f"b{number}", **kind) for number, kind in enumerate(kinds)]
    shown = len(text(overview(metrics, 1.0, 80, 6))) - 2
    assert (
        text(overview(metrics, 1.0, 80, 6))[-1] == f"and {9 - shown} more: 3 too small to matter, {6 - shown} faster"
    )


def test_what_is_needed_and_what_is_no_ratio():
    lines = text(overview([metric(-1, 0, 1, blocks_more=12), metric(-9, 0, 9, blocks_more=4000)], 1.0, 80, 9))
    assert lines[1].endswith("~12") and lines[2].endswith(">1000")
    plain = metric(None, None, None, scale="difference", effect=-0.25, ci_low=-1.0, ci_high=0.5, unit="ms")
    assert "−0.25 ms" in text(overview([plain], 1.0, 80, 9))[1]


@pytest.mark.parametrize("declared", [True, False])
def test_the_screen_says_once_how_the_contenders_differ(declared: bool):
    results = simulated(metrics=2)
    values: dict[str, str | None] = {"old": "250", "new": "1000"}
    results.differences = [Difference(group="config", key="CONFIG_HZ", values=values, declared=declared)]
    results.warnings = list(findings_of_run(results, []))
    (line,) = [line for line in text(closing(results, "RUN", 200, 40)) if line.startswith("1. ")]
    assert line.startswith(f"1. {results.warnings[0].message[:40]}"), "its heading says the same in other words"
