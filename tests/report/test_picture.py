"""The page's picture: what is drawn, in which order, and on which side of its axis."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from examples import exact, simulated, single, three, undecided
from msgspec.structs import replace
from pages import contradicting, in_turns, with_exact

from kduel.core.metric_results import ConditionResult
from kduel.core.results import Results
from kduel.report import report_format
from kduel.report.content.answer import next_step
from kduel.report.content.digest import digest
from kduel.report.page.picture import FEWEST_ROWS, MOST_ROWS, Picture, picture_part


def picture(results: Results) -> Picture:
    found = picture_part(results, digest(results))
    assert found is not None
    return found


def place(drawn: str) -> float:
    """Where the effect lies, in per cent of the axis from the left."""
    (found,) = re.findall(r'<use href="#dot-\w+" x="([\d.]+)%"', drawn)
    return float(found)


def test_gains_come_first_then_losses_each_from_the_largest_then_the_rest() -> None:
    results = simulated()
    first, second, third = results.metrics[:3]
    more = [
        replace(second, benchmark="small-loss", effect_pct=2.0, ci_low_pct=1.5, ci_high_pct=2.5),
        replace(third, benchmark="small-gain", effect_pct=-3.0, ci_low_pct=-3.5, ci_high_pct=-2.5),
        replace(first, benchmark="open", verdict="undecided", effect_pct=90.0, ci_low_pct=-5.0, ci_high_pct=200.0),
    ]
    results.metrics[:] = [*more, first, second, third]
    (group,) = picture(results).groups
    assert [(row.code.split("/")[0], row.tone) for row in group.rows] == [
        ("hackbench-10g", "better"),
        ("small-gain", "better"),
        ("perf-bench-sched-pipe", "worse"),
        ("small-loss", "worse"),
        ("sysbench-cpu-2t", "same"),
        ("open", "undecided"),
    ]


@pytest.mark.parametrize("sides", [("higher", "lower"), ("lower",)])
def test_better_is_right_whether_more_or_less_is_better(sides: tuple[str, ...]) -> None:
    """It was left where less was better in every row: readers who went from page to page took a loss for a gain."""
    results = simulated()
    results.metrics[:] = [metric for metric in results.metrics if metric.better in sides and metric.role == "primary"]
    drawn = picture(results)
    assert [group.ends for group in drawn.groups] == [("worse", "better")]
    shown = [row for row in drawn.groups[0].rows if row.tone in ("better", "worse")]
    assert shown
    for row in shown:
        assert (place(row.drawn) > 50) == (row.tone == "better") and not row.sign


def test_metrics_without_a_better_side_stand_apart_from_those_with_one() -> None:
    results = simulated()
    lower = next(metric for metric in results.metrics if metric.better == "lower")
    lower.better, lower.verdict, lower.effect_pct, lower.ci_low_pct, lower.ci_high_pct = (
        "none",
        "lower",
        -9.0,
        -10.0,
        -8.0,
    )
    sided, neutral = picture(results).groups
    assert neutral.heading == "Neither way is better" and sided.heading == ""
    (row,) = neutral.rows
    assert place(row.drawn) < 50, "less is left where neither is better"
    assert all("neutral" not in row.tone for row in sided.rows)


def test_a_table_with_both_kinds_says_where_more_is() -> None:
    """A row that is neither better nor worse lay below the word better."""
    results = simulated()
    first, *others = results.metrics[:3]
    results.metrics[:] = [first, *(replace(one, role="exploratory", better="lower") for one in [first, *others])]
    said = "Where neither way is better, right is more."
    assert said not in report_format("html").render(results)
    results.metrics[-1].better, results.metrics[-1].verdict = "none", "higher"
    assert report_format("html").render(results).count(said) == 1
    for metric in results.metrics:
        metric.better = "none"
    assert said not in report_format("html").render(results), "an axis without sides has signs"


def test_an_interval_within_the_band_that_is_undecided_is_explained() -> None:
    results = simulated()
    results.study.delta = 1.0
    assert "within the band" not in picture(results).told
    for metric in results.metrics:
        metric.verdict, metric.n, metric.ci_low_pct, metric.effect_pct, metric.ci_high_pct = (
            "undecided",
            6,
            -0.4,
            0.1,
            0.5,
        )
    assert "undecided (equivalence takes 10 values of each)" in picture(results).told


def test_an_arrowhead_of_what_goes_on_is_on_its_own_side() -> None:
    results = simulated()
    for metric in results.metrics[:3]:
        metric.verdict, metric.ci_low_pct, metric.ci_high_pct = "undecided", -1.0, 1.0
    lower = next(metric for metric in results.metrics if metric.better == "lower")
    lower.ci_high_pct = 90.0
    (row,) = [row for row in picture(results).groups[0].rows if "beyond" in row.drawn]
    assert "◂" in row.drawn and "▸" not in row.drawn, "90 % more time is worse, which is left"


def test_machines_that_contradict_each_other_are_drawn_without_a_verdict(tmp_path: Path) -> None:
    """A reader took the question mark beside an interval far from the band for a fault."""
    (group,) = picture(contradicting(tmp_path)).groups
    assert [(row.tone, row.sign, row.side) for row in group.rows] == [
        ("undecided", "", ""),
        ("undecided", "", ""),
    ]
    assert {row.side for one in picture(simulated()).groups for row in one.rows if row.tone == "undecided"} <= {""}


def test_neither_end_is_better_where_no_metric_has_a_side() -> None:
    results = simulated()
    for metric in results.metrics:
        metric.better, metric.verdict = "none", "undecided"
    assert [group.ends for group in picture(results).groups] == [("less", "more")]
    assert not any(group.heading for group in picture(results).groups)


def test_no_row_without_a_better_side_stands_above_the_words_worse_and_better() -> None:
    results = simulated()
    results.metrics[0].better = "none"
    first, second = picture(results).groups
    assert (first.ends, second.ends) == (("worse", "better"), ("less", "more")) and second.heading
    assert {row.side for row in first.rows} == {"worse", "better"}, "as colours do not say which"
    (third,) = second.rows
    assert third.side == ""


def test_the_picture_has_no_link_as_it_is_an_image(tmp_path: Path) -> None:
    results = with_exact(tmp_path)
    counts = [ConditionResult(name=f"{n}", block=1, baseline=1.0, contender=1.0) for n in range(5)]
    for metric in results.exact.metrics:  # type: ignore[union-attr]
        metric.conditions = counts
    page = report_format("html").render(results)
    image = page[page.index('<div role="img" aria-label="Effects') : page.index("<figcaption>")]
    assert "under 5 conditions" in image and "<a " not in image


def test_what_is_too_small_to_matter_has_the_sign_of_that() -> None:
    results = simulated()
    results.metrics[1].below_delta = True
    assert [row.sign for row in picture(results).groups[0].rows if row.tone == "same"] == ["≈", "≈"]


def test_parts_and_contenders_share_one_axis_and_few_rows(tmp_path: Path) -> None:
    drawn = picture(with_exact(tmp_path))
    assert [group.heading for group in drawn.groups] == [
        "Counted exactly: debian-6.12 against debian-6.1",
        "Neither way is better",
        "Timed: debian-6.12 against debian-6.1",
    ]
    assert "±0.1 % (counted exactly), ±1 % (timed)" in drawn.told
    assert len(picture(three()).groups) == 2
    many = simulated(metrics=40)
    for metric in many.metrics:
        metric.role = "primary"
    (group,) = picture(many).groups
    assert len(group.rows) == MOST_ROWS and group.more == f"{40 - MOST_ROWS} more in the table"
    whole = picture(in_turns())
    assert [group.more for group in whole.groups] == ["2 more in the table", "", ""], "below those that they are like"
    wide = simulated(contenders=("a", "b", "c", "d", "e", "f"), metrics=8)
    assert all(len(group.rows) <= max(FEWEST_ROWS, MOST_ROWS // 4) for group in picture(wide).groups)
    assert len(picture(wide).groups) == 4


def test_what_is_too_small_to_matter_has_no_side() -> None:
    results = simulated()
    results.metrics[2].below_delta = True
    rows = {row.code.split("/")[0]: row.tone for row in picture(results).groups[0].rows}
    assert rows["hackbench-10g"] == "same"


def test_one_trial_each_is_drawn_without_an_interval_and_as_undecided() -> None:
    results = single()
    rows = [row for group in picture(results).groups for row in group.rows]
    assert rows and {row.tone for row in rows} == {"undecided"}
    ends = [re.findall(r'x[12]="([\d.]+%)"', re.findall("<line [^>]*reach[^>]*>", row.drawn)[0]) for row in rows]
    assert all(first == last for first, last in ends)


def test_a_change_whose_interval_says_nothing_is_too_early() -> None:
    results = undecided()
    metric = next(m for m in results.metrics if m.role == "primary")
    metric.n, metric.ci_low_pct, metric.ci_high_pct = 3, -99.0, 9000.0
    rows = {row.code: row.change for row in picture(results).groups[0].rows}
    assert rows[f"{metric.benchmark}/{metric.metric}"] == "too early"
    metric.n = 4
    rows = {row.code: row.change for row in picture(results).groups[0].rows}
    assert rows[f"{metric.benchmark}/{metric.metric}"] != "too early"


def test_an_operation_is_named_in_words_and_by_its_code_name() -> None:
    results = exact()
    results.metrics[0].benchmark, results.metrics[0].words = "switch-8-0k", "a hop in a ring of 8 processes"
    (row,) = [row for row in picture(results).groups[0].rows if row.words]
    assert row.words == "a hop in a ring of 8 processes" and row.code.startswith("switch-8-0k")


def test_machines_that_contradict_each_other_are_drawn_one_by_one_and_no_blocks_are_asked_for(tmp_path: Path) -> None:
    """Their mean lay in the middle of the band in which nothing matters."""
    results = contradicting(tmp_path)
    (group,) = picture(results).groups
    assert {row.code: row.change[:2] for row in group.rows} == {"job/time on rack1": "+5", "job/time on rack2": "−5"}
    assert {row.tone for row in group.rows} == {"undecided"}
    assert next_step(results, "RUN")[1] == "kduel report RUN/runs/a"


def test_the_caption_names_no_line_and_no_interval_where_there_is_none() -> None:
    once = picture(single()).told
    assert "Lines" not in once and once.endswith("an arrow at an end: the value lies farther out.")
    assert "Lines are intervals" in picture(simulated()).told


def test_the_caption_has_the_band_of_each_part_and_calls_no_machine_undecided(tmp_path: Path) -> None:
    assert "In the shaded band, ±0.1 % (counted exactly), ±1 % (timed), a" in picture(with_exact(tmp_path)).told
    assert picture(contradicting(tmp_path)).told.endswith("grey and hollow: no one verdict holds for all machines.")


def test_a_summary_calls_things_as_the_headline_does(tmp_path: Path) -> None:
    torn = report_format("summary").render(contradicting(tmp_path))
    assert "No one verdict holds for all machines in job/time: they contradict each other." in " ".join(torn.split())
    assert "Equivalent: " in report_format("summary").render(simulated())
