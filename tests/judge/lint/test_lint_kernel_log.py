"""Trouble that kernels told of in trials that gave values: in the report, and in the lint where only some arms have it."""

from __future__ import annotations

import pytest

from kduel.core.experiment import MachineRecord
from kduel.core.results import ContenderResult, Results, StudyResult, TrialResult
from kduel.judge.evaluate import trial_result
from kduel.judge.lint.examine import findings_of_run
from kduel.report.content.digest import digest
from kduel.store.rundir import TrialRecord

LINE = "[   17.752027] WARNING: CPU: 1 PID: 140 at mm/slub.c:11 f+0x63/0x1000 \x1b[2J"


def run_of(*trials: tuple[str, dict[str, str], str]) -> Results:
    return Results(
        study=StudyResult(name="s"),
        machine=MachineRecord(kind="qemu"),
        contenders=[ContenderResult(name=name, kernel=name) for name in ("old", "new")],
        trials=[
            TrialResult(id=f"t{n}", block=n // 2, position=n, contender=name, status=status, findings=found)
            for n, (name, found, status) in enumerate(trials)
        ],
        metrics=[],
    )


ONE_ARM = [("old", {}, "ok"), ("new", {"warning": LINE}, "ok"), ("old", {}, "ok"), ("new", {}, "partial")]


def test_what_one_arm_alone_has_is_a_warning_with_its_evidence():
    (found,) = findings_of_run(run_of(*ONE_ARM), [])
    assert found.code == "kernel-log"
    assert "(warning) in 0 of 2 trials of old, 1 of 2 trials of new" in found.message
    assert "t1" in found.message and "mm/slub.c:11" in found.message


@pytest.mark.parametrize(
    "trials",
    [
        [("old", {}, "ok"), ("new", {}, "ok")],
        [("old", {"warning": LINE}, "ok"), ("new", {"warning": LINE}, "ok")],
        [("old", {}, "ok"), ("new", {"oops": LINE}, "void")],
    ],
    ids=["none", "both", "void"],
)
def test_what_all_have_or_none_or_a_void_trial_is_none(trials):
    assert list(findings_of_run(run_of(*trials), [])) == []


@pytest.mark.parametrize("both", [False, True])
def test_the_report_tells_of_it_in_any_case_and_safely(both):
    trials = [("old", {"warning": LINE}, "ok"), *ONE_ARM] if both else ONE_ARM
    (said,) = [line for line in digest(run_of(*trials)).caveats if "kernel's log" in line]
    assert "1 of 2 trials of new" in said and "mm/slub.c:11" in said and said.isprintable()
    assert ("of old" in said) == both


def test_it_comes_from_the_trials_own_record(tmp_path):
    record = TrialRecord(
        id="t", block=1, position=0, contender="old", status="ok", facts={"console_findings": {"a": "b"}}
    )
    assert trial_result(record, tmp_path).findings == {"a": "b"}
    record.facts = {"console_findings": ["spoilt"]}
    assert trial_result(record, tmp_path).findings == {}
