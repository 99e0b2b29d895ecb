"""The answer line: the largest gain and loss by name, how sure, what next; never more than the verdicts that decide."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from examples import exact, published, simulated, single, three, undecided
from made_runs import make_run
from msgspec import structs
from pages import KINDS, matrix, with_exact

from kduel.benchmarks.kbench import PLUGIN, KbenchParameters
from kduel.benchmarks.support.operations import OPERATIONS
from kduel.benchmarks.support.schedstat import GROUP
from kduel.core.experiment import RESOLUTION
from kduel.core.metric_results import HARNESS, ConditionResult, FindingResult
from kduel.core.samples import StepResult
from kduel.judge.evaluate import judge_run
from kduel.judge.lint.finding import catalogue
from kduel.judge.verdict.headline import headlines
from kduel.judge.verdict.unfinished import EMULATED
from kduel.report import report_format
from kduel.report.campaigns.page import CampaignPage, PageSection, text
from kduel.report.content.answer import answer, blocks_wanted, change_words
from kduel.report.content.closing import closing
from kduel.report.content.digest import digest
from kduel.report.page.matrix import matrix_part
from kduel.report.text import show_closing

CLOSED = "Nothing is left to decide: no further trial is needed"


def test_it_names_the_largest_loss_and_gain_of_both_parts(tmp_path: Path) -> None:
    counted, timed = answer(with_exact(tmp_path)).parts
    change = r"([\w-]+) takes ([\d.]+) % (more|fewer|longer|less)"
    assert re.findall(change, counted.text) == [("getpid", "0.581", "more"), ("context-switch", "2.88", "fewer")]
    assert (
        "with debian-6.12 against debian-6.1" in counted.text
        and "Others: 1 different (neither way is better), 1 equivalent." in counted.text
    )
    assert "against" not in timed.text and "Others: 1 equivalent." in timed.text, "which pair it is stands above"
    assert answer(with_exact(tmp_path)).meaning, "counted, one is better and one is worse; timed, too"
    assert re.findall(change, timed.text) == [
        ("perf-bench-sched-pipe", "3.9", "longer"), ("hackbench-10g", "6.7", "less")
    ]  # fmt: skip
    assert "(+2.2 to +5.7 %)" in timed.text and "95 %" in timed.sure and "emulated" in timed.sure


def test_a_difference_too_small_to_matter_is_not_called_equivalent() -> None:
    """Where the page says slower by too little to matter, the answer said equivalent."""
    timed, counted = simulated(), exact()
    small = next(m for m in timed.metrics if m.verdict == "equivalent")
    small.verdict, small.effect_pct, small.ci_low_pct, small.ci_high_pct = "slower", 0.5, 0.2, 0.8
    small.below_delta = counted.metrics[0].below_delta = True
    assert "Others: 1 too small to matter." in answer(timed).text
    assert "1 too small to matter, 1 equivalent." in answer(counted).text


def test_how_sure_speaks_for_no_metric_that_was_not_measured() -> None:
    results = undecided()
    results.metrics[0].n = 0
    assert "still possible" not in answer(results).text
    for metric in results.metrics[1:]:
        metric.n = 1
    assert "not at all: nothing was measured more than once" in answer(results).text


def test_an_operation_has_words_beside_its_name() -> None:
    results = exact()
    count = results.metrics[0]
    count.benchmark, count.metric, count.words = "switch-8-0k", "instructions", "a hop in a ring of 8 processes"
    assert f"{count.words} ({count.benchmark}) takes 0.581 %" in answer(results).text


def test_a_timed_operation_has_words_too() -> None:
    results = simulated()
    for metric in results.metrics[:3]:
        metric.words = f"what {metric.benchmark} does"
    assert "what perf-bench-sched-pipe does (perf-bench-sched-pipe) takes 3.9 %" in answer(results).text
    rate = results.metrics[0]
    rate.benchmark, rate.verdict, rate.effect_pct, results.metrics[1].verdict = (
        "stress-ng",
        "faster",
        9.0,
        "undecided",
    )
    assert f"stress-ng ({rate.words}) does 9.00 %" in answer(results).text
    loss = results.metrics[1]
    loss.benchmark, loss.verdict = "wakeup-4w-3c-1000hz-250r-work-200-8hogs", "slower"
    assert f"{loss.words} takes 3.9 %" in answer(results).text, "a long name is no help"
    loss.words = rate.words
    assert f"{loss.words} ({loss.benchmark}" in answer(results).text, "but where it distinguishes"


def test_contenders_that_differ_come_first() -> None:
    results = simulated(contenders=("old", "same", "new"))
    for metric in results.metrics:
        if metric.contender == "same":
            metric.verdict = "equivalent"
    said = answer(results).text
    assert said.index("new against old") < said.index("same")


def test_what_begins_like_a_sentence_follows_a_full_stop() -> None:
    results = simulated(contenders=("old", "open", "new"))
    for metric in results.metrics:
        if metric.contender == "open":
            metric.verdict = "undecided"
    results.headlines = headlines(results)
    assert re.search(r"new against old, .*\. (Undecided|No|None)", answer(results).text)


def test_a_change_from_nothing_has_its_unit() -> None:
    results = exact()
    late = results.metrics[0]
    late.unit, late.better, late.verdict = "%", "lower", "slower"
    late.baseline_mean, late.mean, late.effect, late.effect_pct = 0.0, 6.9149, 6.9149, None
    assert "is 6.91 percentage points higher" in answer(results).text


def test_a_maximum_comes_after_what_many_samples_decide() -> None:
    results = simulated()
    pipe, hackbench = results.metrics[1:3]
    hackbench.verdict, hackbench.effect_pct = "slower", 9.0
    assert answer(results).text.startswith(f"With debian-6.12 against debian-6.1, {hackbench.benchmark}")
    hackbench.warnings = [FindingResult(code="maximum", message="one sample")]
    assert answer(results).text.startswith(f"With debian-6.12 against debian-6.1, {pipe.benchmark}")


def test_a_manifold_time_is_said_so_and_a_loss_comes_before_what_is_neither() -> None:
    results = exact()
    results.machine.facts[RESOLUTION] = 40_000
    for metric, (unit, before, after, verdict) in zip(
        results.metrics,
        (
            ("us", 50.0, 4550.0, "slower"),
            ("us", 50.0, 275.0, "slower"),
            ("count", 1.0, 2.0, "higher"),
            ("us", 1.0, 1.0, "equal"),
        ),
        strict=True,
    ):
        metric.unit, metric.verdict, metric.better = unit, verdict, "none" if unit == "count" else "lower"  # type: ignore[assignment]
        metric.baseline_mean, metric.mean, metric.effect = before, after, after - before
    said = answer(results).text
    assert re.findall(r"([\w-]+) takes ([\d.]+) times as long \(\+([\d,.]+) %\)", said) == [
        ("getpid", "91", "9,000"), ("context-switch", "5.5", "450")
    ], "with the number of the table"  # fmt: skip
    assert "Others: 1 different" in said
    assert said.endswith(
        ". How sure: 95 % confidence for all 4 comparisons together; conditions are a sample; in virtual time: not the "
        "times of real hardware."
    )
    for metric in results.metrics:
        metric.role, metric.scheduled = "exploratory", True
    assert "hints only, as no primary metric is named" in answer(results).text
    assert all(one.exploratory_note == "hints, no proof" for one in digest(results).comparisons)
    results.machine.facts.clear()
    assert answer(results).text.endswith(": not the times of real hardware."), "a time of one CPU is virtual, too"
    for metric in results.metrics:
        metric.unit = "instructions"
    assert answer(results).text.endswith(". How sure: exact, a repetition gives the same numbers."), (
        "how sure, for counts, too"
    )


def test_a_name_is_short_only_where_the_change_says_what_is_measured() -> None:
    results = simulated()
    pipe = results.metrics[1]
    assert "perf-bench-sched-pipe takes" in answer(results).text
    pipe.aspect = "wakeup-latency"
    assert f"{pipe.benchmark}/{pipe.metric} is 3.9 % longer" in answer(results).text, (
        "a latency is not the time that it takes"
    )
    pipe.aspect, pipe.statistic = "scheduling", "p99"
    assert f"{pipe.benchmark}/{pipe.metric} takes" in answer(results).text, "nor is a percentile"
    pipe.statistic, results.metrics[2].benchmark = "mean", pipe.benchmark
    assert f"{pipe.benchmark}/{pipe.metric} takes" in answer(results).text, "nor one of two metrics"


def test_words_of_an_operation_lean_on_no_other() -> None:
    for name in OPERATIONS:
        for mode in ("time", "exact"):
            for metric in PLUGIN.metrics(KbenchParameters(operation=name, mode=mode)):
                assert metric.words and "the same" not in metric.words


def test_one_sentence_is_for_all_contenders_only_where_it_holds_for_each() -> None:
    results = simulated(contenders=("old", *"abcde"))
    results.study.fixed = len(results.blocks)
    for metric in results.metrics:
        metric.verdict = "undecided"
    assert "any of 5 contenders against old" in answer(results).text
    one = results.gating[-1]
    for name, value in (("contradicted", True), ("scale", "exact"), ("baseline", "a")):
        kept = getattr(one, name)
        setattr(one, name, value)
        assert "any of 5" not in answer(results).text, name
        setattr(one, name, kept)
    one.n = 0
    assert "any of 5" in answer(results).text, "its contender has other metrics"
    for metric in results.gating:
        metric.n = 0 if metric.contender == one.contender else metric.n
    assert "any of 5" not in answer(results).text


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        ("ops/s", "does 5.00 % more ops/s"),
        ("Gops", "does 5.00 % more Gops"),
        ("ns/switch", "is 5.00 % higher"),
        ("us/ops", "is 5.00 % higher"),
        ("drops", "is 5.00 % higher"),
        ("MB/s", "is 5.00 % higher"),
        ("Mbit/s", "is 5.00 % higher"),
    ],
)
def test_a_rate_is_of_what_is_done(unit: str, said: str) -> None:
    metric = simulated().metrics[0]
    metric.unit = unit
    assert change_words(metric, "+5.00 %") == said


def test_where_nothing_is_decided_it_is_the_headline() -> None:
    results = undecided()
    said, lacks = f"{headlines(results)[0].text}.", "6 of up to 20 blocks, not finished."
    possible = "changes from −4.0 to +5.1 % are still possible (95 % confidence for all 3 comparisons together)"
    assert answer(results).text == f"{said} How sure: {possible}; {EMULATED}. {lacks}"
    for metric in results.metrics:
        metric.contradicted = True
    assert "possible" not in answer(results).text, "nothing of an interval that shows another verdict than before"
    assert answer(results, "RUN").command == "kduel resume RUN"


def test_what_was_measured_once_is_not_sure_at_all() -> None:
    said = answer(single())
    assert "How sure: not at all: each contender was measured once" in said.text
    assert said.step == "Measure each 5 times or more (10 to show that no difference matters).", "why stands above"


def test_what_comes_next_says_why_nothing_is_decided_and_asks_for_blocks() -> None:
    results = simulated()
    said = answer(results)
    assert said.step == "Before you decide, measure on a real machine: this one was emulated."
    assert said.command == ""
    results.machine.timing_warning = ""
    assert answer(results).step == f"{CLOSED}."
    results.metrics[0].verdict, results.study.fixed = "undecided", len(results.blocks)
    said = answer(results, "RUN")
    assert re.match(r"1 comparison is undecided, as ", said.step) and said.command == "kduel plan RUN"
    results.metrics[0].n = 4
    assert answer(results, "RUN").command == "" and "measure more" in answer(results, "RUN").step, "it takes five"
    said = answer(published())
    assert said.step.endswith("To see how many it takes:") and said.command == "kduel plan RUN"
    assert "nothing is shown to be faster or slower: of 5 metrics, 2 undecided, 2 equivalent." in said.text
    assert "(−31.4 to −12.7 %; neither way is better)" in said.text, "what is neither faster nor slower"
    assert not re.search(r"\d of \d", said.step), "the answer counts, and nothing counts otherwise"
    assert "too coarse" not in said.step, "as no number of trials helps that"


def test_more_trials_are_advised_only_where_they_help() -> None:
    results = published()
    for metric in results.gating:
        if metric.open:
            metric.warnings = [FindingResult(code="quantised", message="seen")]
    said = answer(results)
    assert said.command == "" and said.step.endswith(f"{catalogue()['quantised'].undecided}.")
    first, *_ = (metric for metric in results.gating if metric.open)
    first.warnings, first.contradicted = [], True
    assert answer(results).command == "", "what data contradict, no number of trials settles"


def test_nothing_is_called_settled_beside_a_heavy_finding() -> None:
    results = simulated()
    results.machine.timing_warning = ""
    for metric in results.metrics:
        metric.warnings = [FindingResult(code=code, message="seen") for code in ("drift", HARNESS)]
    assert answer(results).step == f"{CLOSED}.", "what is light, or no fault of the run, changes nothing"
    results.metrics[0].warnings.append(FindingResult(code="repeated-values", message="seen"))
    assert "[1]" in (step := answer(results).step) and step.endswith(f"{catalogue()['repeated-values'].cause}.")
    results.metrics[0].warnings.pop()
    results.warnings.append(FindingResult(code="confounds", message="seen"))
    assert answer(results).step.endswith(f"{catalogue()['confounds'].cause}.")


def test_what_conditions_leave_open_is_not_called_decided() -> None:
    results = exact()
    results.study.fixed = 1
    counts = [ConditionResult(name=str(n), block=1, baseline=100.0, contender=100.0 + n) for n in (-3, 4)]
    for metric in results.metrics:
        metric.verdict, metric.conditions, metric.ci_low, metric.ci_high = "undecided", counts, -3.0, 4.0
    said = answer(results)
    assert "depend on conditions" in said.text and said.step == "No further trial decides what depends on conditions."


def test_no_ten_blocks_are_asked_for_where_no_block_gave_a_value() -> None:
    results = simulated()
    results.study.fixed = len(results.blocks)
    for metric in results.metrics:
        metric.verdict, metric.n = "undecided", 0
    assert answer(results).step.endswith("read why trials are void or steps failed.")


def test_every_answer_has_a_next_command_or_says_that_none_is_needed(tmp_path: Path) -> None:
    for kind, make in KINDS.items():
        said = answer(make(tmp_path / kind))
        alone = any(words in said.step for words in ("no further trial is needed", "measure on a real machine"))
        assert said.command.startswith("kduel ") or alone, kind
        assert said.step.endswith(":" if said.command else "."), kind


def test_hints_ask_for_primary_metrics() -> None:
    results = simulated()
    for metric in results.metrics:
        metric.role, metric.verdict = "exploratory", "faster"
    results.study.fixed = len(results.blocks)
    assert answer(results).step.startswith("For verdicts in place of hints, name primary metrics")


def test_what_schedulers_did_is_the_next_question_where_the_run_can_tell() -> None:
    results = simulated()
    results.metrics[-1].group = GROUP
    assert answer(results).command == "kduel explain RUN --scheduler"
    last = ["".join(words for words, _ in line) for line in closing(results, "RUN", 100, 24)]
    assert any(line.endswith(" kduel explain RUN --scheduler") for line in last)
    woken = results.metrics[1]
    results.steps = [StepResult(label=woken.benchmark, benchmark="wakeup", parameters={})]
    assert answer(results).command == "kduel explain RUN --scheduler", "times of real CPUs are not watched"
    results.machine.settings["scheduling"] = True
    assert answer(results).command == f"kduel explain RUN -b {woken.benchmark}"


@pytest.mark.parametrize("name", ["text", "markdown", "summary", "matrix", "html"])
def test_formats_that_are_read_beside_the_run_have_it(name: str) -> None:
    text = " ".join(report_format(name).render(undecided()).split())
    assert text.index("Undecided") < text.index("To go on:") < text.index("kduel resume RUN")
    assert name == "matrix" or text.index("To go on:") < text.index("hackbench", text.index("Undecided"))


def test_only_what_decides_is_in_it() -> None:
    results = simulated()
    primary = [m for m in results.metrics if m.role == "primary"]
    for metric in primary:
        metric.verdict = "undecided"
    said = answer(results).text
    assert "takes" not in said and "does" not in said and "is 1" not in said
    for metric in primary:
        metric.role = "exploratory"
    sure = "hints only, as no primary metric is named: 95 % confidence in each by itself, not in all together"
    assert sure in answer(results).text
    for metric in results.metrics:
        metric.verdict = "equivalent"
    assert sure in answer(results).text
    for metric in results.metrics:
        metric.role = "primary"
    assert f"How sure: 95 % confidence for all {len(results.metrics)} comparisons together" in answer(results).text


def test_what_the_benchmark_sets_is_not_in_it() -> None:
    results = simulated(metrics=3)
    for metric in results.metrics:
        metric.warnings = [FindingResult(code=HARNESS, message="set")]
    assert answer(results).text.startswith("Nothing follows on debian-6.12 and debian-6.1")


@pytest.mark.parametrize("name", ["text", "markdown", "mail", "summary", "latex", "matrix", "html", "badge"])
def test_every_format_for_readers_begins_with_it(name: str) -> None:
    text = report_format(name).render(simulated())
    text = html.unescape(re.sub(r"<(script|style).*?</\\1>", "", text, flags=re.DOTALL))
    text = re.sub(r"<[^>]*>", "", text).replace("\\allowbreak{}", "").replace("\\", "")
    said = " ".join(text.split())
    first = said.index("With debian-6.12 against debian-6.1, perf-bench-sched-pipe")
    assert first < said.index("sysbench") if "sysbench" in said else True


def test_the_last_screen_has_the_answer_of_both_parts_whole(tmp_path: Path) -> None:
    """Of a run with a counted part the timed one was cut: the sentence that was asked for."""
    results = with_exact(tmp_path)
    screen = ["".join(part for part, _ in line) for line in closing(results, "RUN", 100, 22)]
    assert answer(results).text in " ".join(screen) and len(screen) <= 22
    assert any(line.startswith("Timed: perf-bench-sched-pipe") for line in screen)
    assert screen[-1] == "→ 5 exploratory metrics: kduel report RUN"


@pytest.mark.slow
def test_the_last_screen_begins_with_it_and_ends_with_the_command(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run", 0.0, blocks=3, most=20, sd_pct=3.0)
    lines = show_closing(judge_run(path), "RUN", 3).splitlines()
    assert lines[1].startswith("Undecided") and "3 of up to 20 blocks" in " ".join(lines[1:4])
    assert "kduel resume RUN" in "\n".join(lines)


def test_a_matrix_is_counted_in_one_way(tmp_path: Path) -> None:
    """Six of nine were undecided in the answer, and four of nine in the table below it."""
    results = matrix(tmp_path)
    first, second = answer(results).parts[0].claims
    part = matrix_part(results) or pytest.fail("no matrix")
    cells = {
        head: [cell for cell in part.heat if cell.column.startswith(head)] for head in ("SCHED_OTHER", "SCHED_FIFO")
    }
    for claim, mine in zip((first, second), cells.values(), strict=True):
        open_ones = sum(cell.tone == "undecided" for cell in mine)
        said = f"{open_ones} undecided" if open_ones < 9 else "all 9 benchmarks undecided"
        assert len(mine) == 9 and said in claim
    better = sum(cell.tone == "better" for cell in cells["SCHED_OTHER"])
    assert "Others: io-large −25.8 % better, mixed-large −22.0 % better, 6 undecided" in first and better == 3
    assert not re.search(r"\d of \d", answer(results).step)
    undecided = sum(cell.tone == "undecided" for mine in cells.values() for cell in mine)
    assert answer(results).step.startswith(f"{undecided} cells are undecided"), "those in sight"
    assert not part.exploratory and "false discovery" not in part.sure


def test_what_else_differs_in_a_matrix_is_counted_where_its_first_metric_shows_nothing(tmp_path: Path) -> None:
    results = matrix(tmp_path)
    (second,) = [one for one in answer(results).parts[0].claims if "SCHED_FIFO" in one]
    shown = [m for m in results.gating if m.contender == "SCHED_FIFO" and m.claimed and m.verdict != "equivalent"]
    assert len(shown) == 3 and "Besides" not in second, "what has no better side is in the tables"
    times = "nothing is shown to be faster or slower in time (wall): all 9 benchmarks undecided"
    assert second.startswith(f"With SCHED_FIFO against SCHED_RR, {times}"), "its times first"
    assert answer(results).step.startswith("15 cells are undecided"), "those that the answer counts"


def test_a_direction_is_named_for_each_that_is_only_counted() -> None:
    results = simulated()
    many = [
        structs.replace(results.metrics[1], benchmark=f"job{n}", verdict=word)
        for n, word in enumerate(["slower", "faster"] * 3)
    ]
    results.metrics[:] = [*many, structs.replace(many[1], benchmark="last")]
    assert "Others: 2 worse, 3 better." in answer(results).text


def test_what_has_no_better_side_answers_no_question_after_what_is_faster() -> None:
    results = published()
    for metric in results.metrics:
        metric.better = "none"
    assert "nothing is shown" not in answer(results).text, "where nothing has a better side"
    results = published()
    results.metrics[0].unit = "MB"
    assert "nothing is shown to be better or worse: " in answer(results).text, "where not all of it is speed"


def test_two_candidates_are_set_against_each_other_by_intervals_that_hold_together(tmp_path: Path) -> None:
    results = three()
    between = ". debian-7.1 is better in hackbench-10g and worse in perf-bench-sched-pipe than debian-6.12."
    assert between in answer(results).text
    near = next(m for m in results.gating if m.contender == "debian-7.1" and m.benchmark == "hackbench-10g")
    near.ci_high_pct, kept = -8.0, near.ci_high_pct
    assert ". debian-7.1 is worse in perf-bench-sched-pipe than" in answer(results).text, "they overlap"
    near.ci_high_pct, near.withheld = kept, "values are missing"
    assert ". debian-7.1 is worse in perf-bench-sched-pipe than" in answer(results).text, "no verdict"
    for metric in results.metrics:
        metric.role = "exploratory"
    assert ". debian-7.1 is" not in answer(results).text, "intervals of hints do not hold together"
    assert ". b is" not in answer(simulated(contenders=("old", "a", "b", "c"))).text


def test_a_bound_has_its_verdict_on_every_contender(tmp_path: Path) -> None:
    said = "Limit of at most 0.1 % of cyclictest-idle/latency above 150 us: "
    all_of_it = f"{said}exceeded by debian-6.12; undecided for debian-6.1; kept by debian-7.1 (95 % confidence)."
    assert all_of_it in answer(KINDS["tails"](tmp_path)).text


def test_machines_that_contradict_each_other_have_an_interval_each_and_a_confidence(tmp_path: Path) -> None:
    said = answer(KINDS["contradicting"](tmp_path)).text
    assert re.search(
        r"5.19 % higher on rack1 \(\+4.67 to \+5.72 %\), 5.02 % lower on rack2 \(−5.73 to −4.32 %\)", said
    )
    assert "95 % confidence that the contradiction is not chance" in said and "ndecided" not in said


def test_a_loss_is_explained_first_and_a_gain_only_where_nothing_is_open(tmp_path: Path) -> None:
    results = with_exact(tmp_path)
    timed = next(m for m in results.metrics if m.verdict == "slower")
    said = answer(results).step
    assert re.search(
        r"time the largest loss, perf-bench-sched-pipe \(\+3.9 %\), on a real machine. Where the loss in getpid", said
    )
    results.machine.timing_warning = ""
    assert "perf-bench-sched-pipe" in answer(results).step and "real machine" not in answer(results).step
    timed.effect_pct = 0.5
    assert answer(results).step == "Where the loss in getpid comes from:", "the counted one is the largest"
    timed.verdict = "equivalent"
    assert answer(results).step == "Where the loss in getpid comes from:"
    results.metrics[0].verdict, results.study.fixed = "undecided", len(results.blocks)
    assert answer(results).step == "Where the loss in getpid comes from:"
    assert results.exact
    results.exact.metrics[0].verdict = "equal"
    assert answer(results).command == "kduel plan RUN"
    results.metrics[0].verdict = "equivalent"
    assert answer(results).step == "Where the gain in context-switch comes from:"


def test_counts_that_agree_with_times_need_no_word_on_what_they_are() -> None:
    whole = with_exact(Path())
    for metric in [*whole.metrics, *whole.exact.metrics]:  # type: ignore[union-attr]
        metric.verdict = "faster" if metric.scale != "exact" else "fewer"
        if metric.scale == "exact":
            metric.effect = -1.0
    assert answer(whole).meaning == ""


def test_a_command_in_mail_is_not_folded_and_in_plain_text_harmless() -> None:
    results = simulated()
    results.metrics[0].verdict, results.study.fixed = "undecided", len(results.blocks)
    found = answer(results)
    assert f"\n  {found.command}\n" in report_format("mail").render(results)
    section = PageSection(heading="", step="The whole report:", command="kduel report 'a\nb\x1b[2J'")
    shown = text(CampaignPage(title="t", sections=[section]))
    assert "\x1b" not in shown and "a\nb" not in shown


def test_of_exact_cpus_as_many_blocks_are_asked_for_as_have_conditions_enough() -> None:
    results = simulated()
    for metric in results.metrics:
        metric.scale, metric.verdict, metric.withheld, metric.n = "exact", "undecided", "under 4 conditions", 1
        metric.conditions = [
            ConditionResult(name=f"c{at}", block=1, baseline=100.0, contender=200.0 + at) for at in range(4)
        ]
    assert blocks_wanted(results.gating, results) == 2, "four comparisons: eight conditions with one sign"
    results.metrics[0].conditions = results.metrics[0].conditions[:2]
    assert blocks_wanted(results.gating, results) == 4, "the one with the fewest conditions decides"
    results.metrics[0].conditions = []
    assert blocks_wanted(results.gating, results) == 0, "further blocks repeat what has no conditions"
    for metric in results.metrics:
        metric.scale, metric.withheld = "ratio", ""
    assert blocks_wanted(results.gating, results) == 10


@pytest.mark.parametrize("kind", ["tails", "import", "matrix"])
def test_the_last_screen_cuts_what_was_found_before_how_sure_it_is(tmp_path: Path, kind: str) -> None:
    results = KINDS[kind](tmp_path)
    screen = " ".join("".join(part for part, _ in line) for line in closing(results, "RUN", 100, 24))
    assert answer(results).parts[-1].sure in screen and answer(results).parts[-1].sure.startswith("How sure: ")
