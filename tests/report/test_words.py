"""The digest, the numbers and the escapes that all formats share."""

from __future__ import annotations

import math
import re
import unicodedata
from pathlib import Path

import pytest
from examples import ALL, FindingResult, Results, broken, exact, published, rough, simulated, single, three, undecided
from hypothesis import given
from hypothesis import strategies as st

from kduel.cli.write_up import conclude
from kduel.core import format
from kduel.core.format import (
    MISSING,
    amount,
    change,
    detectable,
    effect,
    interval_text,
    mean_and_sd,
    percent,
    signed_number,
    with_sign,
)
from kduel.core.metric_results import MetricResult, Verdict
from kduel.core.results import PartResult
from kduel.core.text import ascii_only, visible
from kduel.judge.verdict.headline import headline
from kduel.report import report_format
from kduel.report.content.digest import NAMED, conclusions, digest, foremost
from kduel.report.content.methods import methods
from kduel.report.text import render_text

HEADLINES = {
    "published": ["linux-6.6.0 differs from linux-4.19.309 in 1 of 5 metrics (a hint; 2 more set by the benchmark)"],
    "simulated": ["debian-6.12 is faster than debian-6.1 in 1 of 3 primary metrics, and slower in 1"],
    "undecided": ["Undecided: this run cannot distinguish debian-6.12 from debian-6.1"],
    "single": ["Undecided: too few trials for a verdict on debian-6.12 against debian-6.1"],
    "exact": ["patched takes fewer instructions than parent in 1 of 4 primary metrics, and more in 1"],
    "empty": ["Nothing was measured on both debian-6.12 and debian-6.1"],
}


@pytest.mark.parametrize("example", HEADLINES)
def test_headline(example: str) -> None:
    assert [c.headline for c in digest(ALL[example]()).comparisons] == HEADLINES[example]


def metric(verdict: Verdict, effect_pct: float = 3.0, *, small: bool = False, better: str = "higher") -> MetricResult:
    values: dict[str, list[float | None]] = {"a": [1.0, 1.1], "b": [1.0, 1.2]}
    made = rough("bench", f"m{effect_pct}", "u", better, values, baseline="a", contender="b")
    made.verdict, made.below_delta, made.effect_pct = verdict, small, effect_pct
    return made


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ([], "Nothing was measured on both b and a"),
        ([metric("faster")], "b is faster than a"),
        ([metric("slower")], "b is slower than a"),
        ([metric("faster"), metric("undecided")], "b is faster than a in 1 of 2 metrics"),
        ([metric("higher", better="none")], "b differs from a"),
        ([metric("equivalent")], "b and a are equivalent within ±1 %"),
        ([metric("equivalent"), metric("equal")], "b and a are equivalent within ±1 % in all 2 metrics"),
        ([metric("equal"), metric("equal")], "b and a are exactly equal in all 2 metrics"),
        ([metric("faster", small=True)], "b differs from a, but by too little to matter"),
        ([metric("faster", small=True), metric("slower")], "b is slower than a in 1 of 2 metrics"),
        (
            [metric("equivalent"), metric("undecided")],
            "No difference shown between b and a: equivalent within ±1 % in 1 of 2 metrics, undecided in 1",
        ),
    ],
)
def test_headline_of_every_kind(metrics: list[MetricResult], said: str) -> None:
    assert headline(metrics, "a", "b", "metric", 1.0) == said


def test_too_few_trials_are_not_called_no_difference_seen() -> None:
    for low, enough in (
        (-2.0, "this run cannot distinguish b from a"),
        (1.0, "the requirements of a verdict on b against a are not met"),
    ):
        made = metric("undecided")
        made.n, made.ci_low_pct, made.ci_high_pct = 5, low, 5.0
        assert headline([made], "a", "b", "metric", 1.0, fewest=5) == f"Undecided: {enough}"
        made.n = 4
        assert (
            headline([made], "a", "b", "metric", 1.0, fewest=5)
            == "Undecided: too few trials for a verdict on b against a"
        )


def test_by_a_clock_that_counts_instructions_nothing_is_simply_faster() -> None:
    made = [metric("faster"), metric("slower")]
    for one in made:
        one.scale, one.effect = "exact", 3.0
    said = headline(made, "a", "b", "metric", 1.0, virtual=True)
    assert said == "b is faster in virtual time than a in 1 of 2 metrics, and slower in 1"
    results = exact()
    results.metrics = made
    for one in made:
        one.baseline, one.contender = "parent", "patched"
    assert "faster in virtual time" in digest(results).comparisons[0].headline
    results.machine.exact = False
    assert "virtual" not in digest(results).comparisons[0].headline


@pytest.mark.parametrize(
    ("verdict", "effect_pct", "unit", "word", "said"),
    [
        ("slower", -8.8, "KiB", "smaller", "b is worse than a"),
        ("slower", 14.0, "B", "larger", "b is worse than a"),
        ("faster", -8.6, "MiB", "smaller", "b is better than a"),
        ("faster", 3.0, "MB/s", "faster", "b is faster than a"),
        ("undecided", 3.0, "B", "undecided", "Undecided"),
    ],
)
def test_a_size_is_no_faster_or_slower(verdict: Verdict, effect_pct: float, unit: str, word: str, said: str) -> None:
    made = metric(verdict, effect_pct)
    made.unit, made.scale = unit, "ratio"
    assert made.word == word
    assert headline([made], "a", "b", "metric", 1.0).startswith(said)


@pytest.mark.parametrize(("verdict", "word"), [("faster", "steadier"), ("slower", "less steady")])
def test_a_spread_is_no_faster_or_slower(verdict: Verdict, word: str) -> None:
    made = metric(verdict, 30.0, better="lower")
    made.statistic, made.scale = "sd", "ratio"
    assert made.word == word
    said = "better" if verdict == "faster" else "worse"
    assert headline([made], "a", "b", "metric", 1.0).startswith(f"b is {said} than a")


def test_a_run_without_any_value_is_not_called_unable_to_distinguish() -> None:
    """Interrupted before its first block was complete."""
    empty = metric("undecided")
    empty.n = 0
    assert headline([empty, empty], "a", "b", "metric", 1.0) == "Nothing was measured on both b and a"
    assert headline([empty, metric("undecided")], "a", "b", "metric", 1.0).startswith("Undecided")


def test_the_few_that_are_named_are_of_both_sides() -> None:
    many = [metric("higher", 900.0 + n, better="none") for n in range(9)]
    better = [metric("faster", 10.0 + n) for n in range(9)]
    worse = [metric("slower", -10.0 - n) for n in range(9)]
    assert [m.effect_pct for m in foremost([*many, *better, *worse])] == [18, 17, 16, -18, -17, -16]
    assert [m.verdict for m in foremost([*many, *better, *worse[:1]])] == [*["faster"] * 5, "slower"]
    assert [m.verdict for m in foremost([*many, *better[:1]])] == ["faster", *["higher"] * 5]
    assert len(foremost(better)) == 6


@pytest.mark.parametrize(
    ("count", "said"),
    [(1, "1 more metric differs; the table has it."), (2, "2 more metrics differ; the table has them.")],
)
def test_those_that_are_not_named_are_counted(count: int, said: str) -> None:
    results = simulated()
    different = [metric("slower", -10.0 - n) for n in range(NAMED + count)]
    assert said in conclusions(different, digest(results).notes, 1.0)


@pytest.mark.parametrize("name", ["junit", "kcidb", "latex", "mail", "markdown", "summary", "text"])
def test_what_is_too_small_to_matter_is_said_to_be_so(name: str) -> None:
    results = simulated()
    results.metrics[0].verdict, results.metrics[0].below_delta, results.metrics[0].metric = "slower", True, ""
    said = report_format(name).render(results)
    assert "too small to matter" in " ".join(said.split())
    assert f"{results.metrics[0].benchmark}/." not in said, "a metric without a name of its own"


def test_a_job_is_red_only_for_what_matters() -> None:
    results = simulated()
    for metric in results.metrics:
        metric.verdict, metric.below_delta = "slower", True
    assert conclude(results, "slower")[0] == 0
    results.metrics[0].below_delta = False
    first = results.metrics[0]
    said = f"status 10 by --fail-on slower: {first.benchmark}/{first.metric} of {first.contender}"
    assert conclude(results, "slower") == (10, said)


def test_what_is_undecided_is_never_called_equal() -> None:
    said = digest(undecided()).comparisons[0]
    assert said.can == []
    assert "not the same as equal" in said.cannot[0]
    assert "about 14 more blocks" in said.cannot[0]


def test_what_the_harness_sets_is_no_conclusion() -> None:
    said = digest(published()).comparisons[0]
    assert not any("total_time" in sentence or "task_clock" in sentence for sentence in said.can)
    assert any(
        "task_clock [2], sysbench-fileio-seqwr/total_time [2]: the benchmark's settings" in s for s in said.cannot
    )


@pytest.mark.parametrize("name", ["text", "markdown", "html"])
def test_tables_call_nothing_equivalent_that_the_headline_does_not_count(name: str) -> None:
    """Seven metrics of which the benchmark sets two: the headline is about five."""
    results = published()
    (comparison,) = digest(results).comparisons
    assert len(comparison.gating) == 7 and "of 5 metrics" in comparison.headline
    set_ones = [metric for metric in comparison.gating if metric.by_harness]
    assert [metric.word for metric in set_ones] == ["not judged"] * 2
    assert report_format(name).render(results).count("– not judged") >= 2


def test_a_metric_that_is_not_judged_has_no_interval_on_the_page() -> None:
    """A dot in the band beside a smallest detectable change looked like an equivalence."""
    page = report_format("html").render(published())
    verdicts = page.split('<section id="verdicts"')[1].split("</section>")[0]
    rows = [row.split("</tr>")[0] for row in verdicts.split("<tr>") if '<th scope="row">' in row]
    unjudged = [row for row in rows if "– not judged" in row]
    assert (len(rows), len(unjudged)) == (7, 2)
    assert not any("<td>–</td>" not in row or " to " in row for row in unjudged)
    picture = page.split('<figure class="effects">')[1].split("</figure>")[0]
    assert picture.count('<svg class="interval ') == 5, "and none of the two"


def test_exploratory_metrics_are_hints() -> None:
    said = digest(simulated()).comparisons[0]
    assert not any("stress-ng-vm" in sentence for sentence in said.can)
    assert any("a hint and no proof: stress-ng-vm/bogo_ops +10" in sentence for sentence in said.cannot)


def test_each_contender_has_a_comparison_of_its_own() -> None:
    said = digest(three())
    assert [(c.baseline, c.contender) for c in said.comparisons] == [
        ("debian-6.1", "debian-6.12"),
        ("debian-6.1", "debian-7.1"),
    ]
    assert all(len(c.primary) == 3 for c in said.comparisons)


def test_void_trials_are_told() -> None:
    told = digest(broken()).caveats
    assert "debian-6.12: 1 of 12 trials void: nothing of them is used." in told
    assert any(
        sentence.endswith("1 of 12 trials partial. No number from fio-randread-4k: it ended with status 1.")
        for sentence in told
    )


def test_one_trial_gives_no_confidence() -> None:
    said = digest(single())
    assert "Too few trials" in said.sure
    assert "%" not in said.sure


def test_interim_analyses_are_named_only_where_there_are_any() -> None:
    results = simulated()
    assert "adjusted for interim analyses" in digest(results).sure
    results.study.fixed = len(results.blocks)
    assert "interim" not in digest(results).sure


def test_a_block_that_is_not_complete_is_told() -> None:
    """After an interruption: nothing of the contender is lost, and the run can be continued."""
    results = simulated(blocks=12)
    assert not any("not complete" in said for said in digest(results).caveats)
    last = results.trials.pop()
    (said,) = [said for said in digest(results).caveats if "not complete" in said]
    assert said.startswith(f"Block 12 is not complete: it has no trial of {last.contender}. ")  # It is decided.
    results.study.fixed = 12
    told = " ".join(digest(results, "'my run'").caveats)
    assert "The run is not finished: 11 of 12 blocks are complete; kduel resume 'my run' continues it." in told
    assert f"it has no trial of {last.contender} yet." in told
    results.study.parts = [
        PartResult(name=name, machine="m", blocks=6, seed=1, started=None, directory=name) for name in ("a", "b")
    ]
    assert "kduel resume" not in " ".join(digest(results).caveats), "a merged run cannot be continued"
    results.trials = [trial for trial in results.trials if (trial.block, trial.contender) != (6, last.contender)]
    assert any(said.startswith("Blocks 6, 12 are not complete") for said in digest(results).caveats)
    results.trials = []
    assert any(said.startswith("No trial has ended yet") for said in digest(results).caveats)


def test_the_same_warning_gets_one_number_and_names_all_it_touches() -> None:
    results = simulated(metrics=3)
    for one in results.metrics[:2]:
        one.warnings = [FindingResult(code="ties", message="half of the values are equal")]
    results.warnings = [FindingResult(code="drift", message="the machine grew slower")]
    notes = digest(results).notes
    assert [(note.number, note.code, len(note.touches)) for note in notes.notes] == [(1, "drift", 0), (2, "ties", 2)]
    assert [notes.marks_of(one) for one in results.metrics] == [[2], [2], []]


def test_findings_of_one_cause_are_one_note() -> None:
    """A busy quarter of an hour gave a first user 36 notes, most of them the same sentence once a metric."""
    results = simulated(metrics=36)
    for number, one in enumerate(results.metrics):
        code = "drift" if number % 2 else "autocorrelation"
        one.warnings = [FindingResult(code=code, message=f"the values drift by {number} %")]
    (note,) = digest(results).notes.notes
    assert len(note.touches) == 36
    assert note.sentence.startswith("The machine changed during the run, in ")
    assert "and 33 more" in note.sentence and note.sentence.count("the values drift by") == 1
    assert len(note.details) == 35, "folded behind it"


def test_metrics_with_the_same_evidence_share_one_line() -> None:
    """Two void trials of a real run gave 25 metrics the same sentence each."""
    results = simulated(metrics=6)
    for one in results.metrics:
        one.warnings = [FindingResult(code="values-missing", message="new has 18 values and old 20")]
    names = [f"{one.benchmark}/{one.metric}" for one in results.metrics]
    (note,) = digest(results).notes.notes
    assert note.details == [f"Metrics: {', '.join(names)}."], "the sentence names three of them"
    results.warnings = [FindingResult(code="values-missing", message="2 of 20 trials of new are void")]
    (note,) = digest(results).notes.notes
    (line,) = note.details
    assert line == f"{', '.join(names)}: new has 18 values and old 20"


def test_the_three_weightiest_causes_are_shown_and_the_rest_on_demand() -> None:
    results = simulated(metrics=4)
    codes = ["config-differs", "drift", "ties", "confounds", "page-cache"]
    results.warnings = [FindingResult(code=code, message=f"evidence of {code}") for code in codes]
    notes = digest(results).notes
    assert [note.code for note in notes.important] == ["confounds", "page-cache", "drift"]
    assert [note.code for note in notes.others] == ["ties", "config-differs"]
    short, full = (
        render_text(results, width=100, colour=False, all_findings=everything) for everything in (False, True)
    )
    assert "evidence of drift" in short and "evidence of ties" not in short
    assert "2 more findings: kduel report RUN --all-findings" in short
    assert all(f"evidence of {code}" in full for code in codes) and "--all-findings" not in full
    page = re.sub("<[^>]*>", "", report_format("html").render(results))
    assert re.search(r"[0-9] more cautions and findings", page) and all(
        f"evidence of {code}" in page for code in codes
    )


def test_a_primary_metrics_finding_comes_before_an_exploratory_ones() -> None:
    results = simulated(metrics=8)
    results.metrics[-1].warnings = [FindingResult(code="fixed-by-harness", message="a limit")]
    results.metrics[0].warnings = [FindingResult(code="drift", message="a drift")]
    assert [note.code for note in digest(results).notes.notes] == ["drift", "fixed-by-harness"]


def test_undecided_metrics_come_with_a_reason_to_act_on() -> None:
    results = undecided()
    first, second, *_ = results.metrics
    first.warnings = [FindingResult(code="two-modes", message="two groups")]
    second.n = 2
    sentences = " ".join(digest(results).comparisons[0].cannot)
    assert f"{first.benchmark}/{first.metric} [1]" in sentences
    assert "The reason: the boots fall into two groups: find what differs between them." in sentences
    assert "The reason: only 2 values of each contender can be compared, and a verdict takes" in sentences


def test_methods_say_only_what_is_true_of_the_run() -> None:
    assert "random order (seed 7)" in " ".join(methods(simulated()))
    told = " ".join(methods(published()))
    assert "neither interleaved nor randomised" in told
    assert "random order" not in told
    assert "deterministic" in methods(exact())[0]
    assert "interval" not in " ".join(methods(exact()))


@pytest.mark.parametrize(
    ("value", "spread", "shown"),
    [
        (3230.663, 5.4967, "3,230.7"),
        (6477.699, 10.52, "6,478"),
        (10.00356, 0.000858, "10.00356"),
        (1204551, None, "1,204,551"),
        (0.8312345, None, "0.83123"),
        (0.0, None, "0"),
        (6.21, None, "6.21"),
        (0.01, 0.0, "0.01"),
        (20000.5, None, "20,000.5"),
        (None, None, MISSING),
        (math.nan, None, MISSING),
        (-4.26, 0.11, "−4.26"),
        (1e18, None, "1e+18"),
        (2.0, 0.0, "2"),
    ],
)
def test_amount(value: float | None, spread: float | None, shown: str) -> None:
    assert amount(value, spread) == shown


def test_mean_and_sd_share_their_decimals() -> None:
    assert mean_and_sd(3230.663, 5.4967) == "3,230.7 ± 5.5"
    assert mean_and_sd(3230.663, None) == "3,230.7"
    assert mean_and_sd(8392.0, 1.888e-12) == "8,392 ± 0", "equal values, not a spread"
    assert mean_and_sd(None, None) == MISSING


def test_nothing_is_minus_nothing() -> None:
    assert signed_number(-0.0001, 2) == "0.00"
    assert signed_number(0.004, 2) == "0.00"
    assert signed_number(-0.006, 2) == "−0.01"


@pytest.mark.parametrize(
    ("pct", "low", "high", "shown", "bounds"),
    [
        (-22.62, -30.2, -14.2, "−22.6 %", "−30.2 to −14.2 %"),
        (0.037, -0.24, 0.316, "+0.04 %", "−0.24 to +0.32 %"),
        (2.0, -35.0, 60.1, "+2 %", "−35 to +60 %"),
        (12.3, None, None, "+12.3 %", MISSING),
        (12.3, -100.0, 4e80, "+12 %", "−100 to over +10,000 %"),
        (None, None, None, MISSING, MISSING),
    ],
)
def test_effect_has_the_digits_its_interval_supports(
    pct: float | None, low: float | None, high: float | None, shown: str, bounds: str
) -> None:
    one = metric("undecided")
    one.effect_pct, one.ci_low_pct, one.ci_high_pct = pct, low, high
    assert (effect(one), interval_text(one)) == (shown, bounds)


@pytest.mark.parametrize(("pct", "shown"), [(8.91, "8.9 %"), (4e23, "over 10,000 %"), (None, MISSING)])
def test_what_a_run_could_have_seen(pct: float | None, shown: str) -> None:
    one = metric("undecided")
    one.mde_pct = pct
    assert detectable(one) == shown


def test_effect_on_other_scales_is_in_the_unit() -> None:
    one = metric("undecided")
    one.scale, one.unit, one.effect_pct, one.ci_low_pct, one.ci_high_pct = "difference", "ms", None, None, None
    one.effect, one.ci_low, one.ci_high = -0.31, -0.52, -0.1
    assert (effect(one), interval_text(one)) == ("−0.31 ms", "−0.52 to −0.10 ms")
    found: Results = exact()
    assert effect(found.metrics[0]) == "+7 (+0.581 %)"
    assert effect(found.metrics[2]) == "0"
    assert interval_text(found.metrics[0]) == "exact"


def test_a_signed_number_is_written_in_one_place() -> None:
    """Tables had a minus and sentences of the same report a hyphen."""
    source = Path(format.__file__).parents[1]
    here = [path.name for path in source.rglob("*.py") if re.search(r"\{[^{}\n]*:\+[,.\dgf{]", path.read_text())]
    assert here == ["format.py"]
    assert (percent(-0.5), change(-1650.0, ""), amount(-0.25), with_sign(-1e-7, ".2g")) == (
        "−0.500 %", "−1,650", "−0.25", "−1e−07"
    )  # fmt: skip


@given(st.floats(-1e300, 1e300), st.none() | st.floats(0, 1e300))
def test_amount_is_near_the_value(value: float, spread: float | None) -> None:
    shown = float(amount(value, spread).replace(",", "").replace("−", "-"))
    assert shown == pytest.approx(value, rel=1e-3, abs=max(1e-5, (spread or 0)))


@given(st.text(max_size=300))
def test_visible_hides_nothing(text: str) -> None:
    shown = visible(text)
    assert shown.isprintable()
    assert visible(shown) == shown
    assert visible(text, 10_000).replace("\\", "").isprintable()
    if text.isprintable():
        assert shown == text


def test_visible_shows_tricks() -> None:
    assert visible("\x1b[31m\u202eexe\u200b\x9b\x00") == "\\x1b[31m\\u202eexe\\u200b\\x9b\\x00"
    assert visible("two\r\nlines\tand\xa0more") == "two  lines and more"
    assert visible("x" * 3000, 5) == "xxxxx... (2,995 more characters)"
    assert all(not unicodedata.category(c).startswith("C") for c in visible("\U000e0041\ufeff\ue000\ud800"))


@given(st.text(max_size=100))
def test_ascii_only_is(text: str) -> None:
    assert ascii_only(text).isascii()


def test_compilers_quotes_are_readable_in_ascii() -> None:
    assert ascii_only("error: ‘LVL_DEPTHS’ undeclared; “x” – no") == "error: 'LVL_DEPTHS' undeclared; \"x\" - no"


@pytest.mark.parametrize("name", ["text", "markdown", "mail", "latex"])
def test_a_metric_without_a_unit_has_no_empty_one(name: str) -> None:
    results = simulated(blocks=6, metrics=1)
    results.metrics[0].unit, results.metrics[0].better = "", "none"
    said = report_format(name).render(results)
    assert (
        ("neither way is better" in said) == (name != "latex")
        and "()" not in said
        and not re.search(r"(^|\s|\()\s*, neither way", said)
    )
