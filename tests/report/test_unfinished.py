"""A run that its own stopping rule has not ended says so, and what is still to come is no reason to be undecided."""

from __future__ import annotations

import pytest
from examples import Results, simulated

from kduel.core.experiment import RESOLUTION, MachineRecord, Void
from kduel.core.metric_results import ConditionResult, FindingResult
from kduel.judge.verdict.headline import headline_of
from kduel.judge.verdict.unfinished import find_unfinished
from kduel.report import report_format
from kduel.report.content.answer import next_step
from kduel.report.content.closing import closing
from kduel.report.content.digest import digest
from kduel.report.content.undecided import by_reason


def interrupted(fixed: int | None, most: int = 20, blocks: int = 4) -> Results:
    """A run of so many whole blocks, of which every primary metric is undecided though its interval excludes 0."""
    results = simulated(blocks=blocks, metrics=2)
    results.study.fixed, results.study.max = fixed, most
    for metric in results.metrics:
        metric.role, metric.verdict, metric.n, metric.effect_pct = "primary", "undecided", blocks, 17.9
        metric.scale, metric.ci_low_pct, metric.ci_high_pct, metric.warnings = "ratio", 15.4, 20.5, []
    results.warnings = []
    return results


@pytest.mark.parametrize("form", ["text", "markdown", "summary", "mail", "html", "latex"])
def test_every_text_format_tells_that_the_last_block_is_lacking(form: str) -> None:
    """Whole blocks looked like a whole run."""
    told = " ".join(report_format(form).render(interrupted(5)).split())
    assert "4 of 5 blocks" in told and "The run is not finished" in told and "kduel resume RUN" in told
    assert "not finished" not in report_format(form).render(interrupted(4))


def test_a_run_ends_by_its_own_rule() -> None:
    results = interrupted(None)
    found = find_unfinished(results)
    assert found is not None and found.blocks == "4 of up to 20 blocks"
    results.metrics[0].verdict = "faster"
    assert find_unfinished(results) is not None
    results.metrics[1].verdict = "equivalent"
    assert find_unfinished(results) is None, "all is decided"
    results.study.fixed = 6
    assert find_unfinished(results) is not None, "a fixed number of blocks is made whole"
    assert find_unfinished(interrupted(None, most=4)) is None
    imported = interrupted(6)
    imported.study.imported = True
    assert find_unfinished(imported) is None


def test_a_run_of_exact_cpus_ends_where_further_blocks_decide_nothing() -> None:
    """It was not finished for good: its figures without conditions repeat, and what depends on conditions stays so."""
    results = interrupted(None)
    results.machine = MachineRecord(exact=True, facts={RESOLUTION: 40_000})
    few, depends = results.metrics
    few.scale = depends.scale = "exact"
    few.withheld = "under one condition any difference may be chance"
    depends.ci_low, depends.ci_high = -1.0, 1.0
    assert find_unfinished(results) is None
    few.conditions = [ConditionResult(name="c0", block=1, baseline=1.0, contender=2.0)]
    assert find_unfinished(results) is not None, "others may decide it"


def test_a_run_that_may_decide_nothing_any_more_may_be_continued() -> None:
    """status and verify called a killed run finished, which resume measured on."""
    results = interrupted(None)
    results.warnings = [FindingResult(code="futile", message="No primary metric can be decided any more.")]
    assert find_unfinished(results) is not None
    results.warnings = [FindingResult(code="machine-out", message="rack1 is lost.")]
    assert find_unfinished(results) is None


def test_a_run_with_a_contender_that_cannot_be_measured_has_ended() -> None:
    results = interrupted(6)
    for trial in results.trials:
        if trial.contender == results.contenders[1].name:
            trial.status, trial.void = "void", Void("oops", "it crashed")
    assert find_unfinished(results) is None
    for trial in results.trials:
        if trial.void:
            trial.void = Void("host-disturbed", "other work")
    assert find_unfinished(results) is not None, "that is not its fault"


def test_before_the_only_analysis_the_reason_is_that_it_is_still_to_come() -> None:
    """It was called too short at this spread."""
    why = "the only analysis comes after 8 blocks, and 6 are complete"
    results = interrupted(8, blocks=6)
    names = [contender.name for contender in results.contenders]
    assert headline_of(results, *names).endswith(f" yet: {why}")
    assert list(by_reason(results.metrics, results)) == [f"{why}: continue the run"]
    assert any(f"The reason: {why}" in said for said in digest(results).comparisons[0].cannot)
    results.metrics[0].role = "exploratory"
    assert len(by_reason(results.metrics, results)) == 2, "hints wait for no analysis"
    assert not any("analysis" in why for why in by_reason(interrupted(6, blocks=6).metrics, interrupted(6, blocks=6)))


def test_where_no_trial_was_made_none_failed() -> None:
    results = interrupted(8, blocks=6)
    results.trials = []
    for metric in results.metrics:
        metric.n = 0
    assert list(by_reason(results.metrics, results)) == ["no trial was measured yet: continue the run"]


def test_the_screen_and_the_answer_say_the_same_of_what_to_do_next() -> None:
    results = interrupted(8, blocks=8)
    results.metrics[0].contradicted = True

    def told() -> str:
        return " ".join("".join(part for part, _ in line) for line in closing(results, "run", 200, 40))

    assert f"→ {' '.join(filter(None, next_step(results, 'run')))}" in told() and "kduel plan run" in told()
    results.metrics[1].contradicted = True
    assert f"→ {' '.join(filter(None, next_step(results, 'run')))}" in told() and "the data contradict" in told()


@pytest.mark.parametrize(
    ("flaw", "said"),
    [
        ({"withheld": "trials are missing"}, "missing values forbid a verdict on "),
        ({"confounded": True}, "the order of the trials cannot be told from the kernels"),
        ({}, "the requirements of a verdict on "),
    ],
)
def test_the_headline_names_the_requirement_that_is_not_met(flaw: dict[str, object], said: str) -> None:
    results = interrupted(8, blocks=8)
    for metric in results.metrics:
        for name, value in flaw.items():
            setattr(metric, name, value)
    assert headline_of(results, *(one.name for one in results.contenders)).startswith(f"Undecided: {said}")


@pytest.mark.parametrize(("more", "said"), [(16, "there are too few values"), (17, "the spread is too large")])
def test_up_to_twice_the_blocks_are_a_way_to_a_verdict(more: int, said: str) -> None:
    results = interrupted(8, blocks=8)
    for metric in results.metrics:
        metric.blocks_more = more
    (why,) = by_reason(results.metrics, results)
    assert why.startswith(said)


def test_an_interval_within_delta_of_too_few_blocks_is_not_open_for_its_spread() -> None:
    """A row whose whole interval lay in the picture's band was called too short at its spread."""
    results = interrupted(6, blocks=6)
    within, wide = results.metrics
    assert results.study.delta == 1
    within.effect_pct, within.ci_low_pct, within.ci_high_pct, within.blocks_more = -0.2, -0.9, 0.7, 4
    wide.effect_pct, wide.ci_low_pct, wide.ci_high_pct, wide.blocks_more = 0.2, -0.9, 1.1, 4
    short, spread = by_reason(results.metrics, results)
    assert short == "the interval lies within ±1 %, which counts from 10 values of each contender on: measure more"
    assert spread == "there are too few values for this spread: measure more"
    within.role, wide.role = "primary", "primary"
    step, _ = next_step(results, "RUN")
    assert step.startswith("Undecided, partly as the interval lies"), "the other one is undecided for its spread"
    within.n = 10
    assert "counts from" not in "".join(by_reason([within], results))


def test_a_real_machine_is_not_called_emulated() -> None:
    """That all its trials share a boot is to be known of its times, too."""
    from kduel.core.experiment import MachineRecord

    warned = [MachineRecord(kind=kind, timing_warning="All trials run in one boot.") for kind in ("local", "qemu")]
    assert [one.unreal for one in (*warned, MachineRecord(kind="qemu"))] == [False, True, False]
