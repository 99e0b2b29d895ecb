"""A run goes on where it stopped, whatever stopped it, and comes to the same end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cut_runs import cut_run
from waiting import wait_for


def trials(run: Path) -> list[str]:
    found = run / "trials"
    return sorted(p.name for p in found.iterdir() if not p.name.startswith(".")) if found.is_dir() else []


def start(write_study, run: Path, environment, **study) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "kduel", "run", str(write_study(**study)), "--out", str(run), "--seed", "7"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_killed_run_goes_on_and_ends_like_an_uninterrupted_one(
    kduel, write_study, environment, tmp_path: Path, kill
):
    run = tmp_path / "run"
    with start(write_study, run, environment, machine="sleep = 0.3") as runner:
        wait_for(lambda: len(trials(run)) >= 2, "second trial")
        runner.send_signal(kill)
        _, said = runner.communicate(timeout=600)
    kept = trials(run)
    plan = (run / "plan.jsonl").read_bytes()
    assert 2 <= len(kept) < 6
    if kill != signal.SIGKILL:
        assert runner.returncode == 130, said
        assert f"kduel resume {run}" in said
        assert not list((run / "trials").glob(".new-*"))

    stamps = {name: (run / "trials" / name / "trial.json").stat().st_mtime_ns for name in kept}
    done = kduel("resume", run)
    assert done.returncode == 0, done.stderr
    assert f"{len(kept):4}  kept\n" in done.stderr, "what is there is counted from the start"
    assert (run / "plan.jsonl").read_bytes() == plan
    assert len(trials(run)) == 6
    assert all((run / "trials" / n / "trial.json").stat().st_mtime_ns == s for n, s in stamps.items())
    assert not list((run / "trials").glob(".new-*"))

    whole = tmp_path / "whole"
    assert kduel("run", write_study(machine="sleep = 0.3"), "--out", whole, "--seed", "7").returncode == 0
    assert (whole / "plan.jsonl").read_bytes() == plan
    first, second = (json.loads(kduel("report", r, "--format", "json").stdout) for r in (run, whole))
    assert first["metrics"] == second["metrics"]


@pytest.mark.slow
def test_the_same_command_goes_on_too_and_a_finished_run_is_reported_again(kduel, write_study, tmp_path: Path):
    run = tmp_path / "run"
    study = write_study()
    assert kduel("run", study, "--out", run).returncode == 0
    cut_run(run, trials(run)[3:])
    assert kduel("run", study, "--out", run).returncode == 0
    assert len(trials(run)) == 6
    again = kduel("run", study, "--out", run)
    assert again.returncode == 0
    assert " ok" not in again.stderr


@pytest.mark.slow
def test_only_a_real_machine_is_asked_to_record_itself(kduel, write_study, tmp_path: Path):
    """In a guest this would be the guest's own doing, and each line of its script changes what is counted."""
    run = tmp_path / "run"
    assert kduel("run", write_study(blocks="fixed = 1"), "--out", run).returncode == 0
    for trial in (run / "trials").iterdir():
        assert "totals" not in (trial / "guest.sh").read_text()
        assert not (trial / "host").exists() and json.loads((trial / "trial.json").read_text())["host"] == {}


@pytest.mark.slow
@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGTERM])
def test_signals_that_come_in_a_row_end_a_run_once_and_cleanly(write_study, environment, tmp_path: Path, kill):
    run = tmp_path / "run"
    with start(write_study, run, environment, machine="sleep = 5", blocks="fixed = 40") as runner:
        wait_for(lambda: list((run / "trials").glob(".new-*")), "trial under way")
        while runner.poll() is None:
            runner.send_signal(kill)
            time.sleep(0.005)
        _, said = runner.communicate(timeout=600)
    assert runner.returncode == 130
    assert "Traceback" not in said and said.count("kduel resume") == 1
    assert not list((run / "trials").glob(".new-*"))


@pytest.mark.slow
def test_another_study_in_the_same_directory_is_refused(kduel, write_study, tmp_path: Path):
    run = tmp_path / "run"
    assert kduel("run", write_study(), "--out", run).returncode == 0
    other = kduel("run", write_study(blocks="fixed = 4"), "--out", run)
    assert other.returncode == 2
    assert "study.fixed: 3 in the run, 4 now" in other.stderr
    assert len(trials(run)) == 6
    seeded = kduel("run", write_study(), "--out", run, "--seed", "1")
    assert seeded.returncode == 2
    assert "--seed" in seeded.stderr


@pytest.mark.slow
def test_a_second_runner_in_the_same_directory_is_turned_away(kduel, write_study, environment, tmp_path: Path):
    run = tmp_path / "run"
    with start(write_study, run, environment, machine="sleep = 5", blocks="fixed = 40") as runner:
        wait_for(lambda: trials(run), "trial")
        other = kduel("resume", run)
        assert other.returncode == 2
        assert "another kduel is at work" in other.stderr
        runner.send_signal(signal.SIGINT)
        runner.communicate(timeout=600)
    assert runner.returncode == 130


def test_a_contender_that_always_panics_is_not_measured(kduel, write_study, tmp_path: Path):
    run = tmp_path / "run"
    done = kduel("run", write_study(machine='panics = ["new"]', blocks="max = 20"), "--out", run)
    assert done.returncode == 1
    assert "outside-new could not be measured" in done.stderr
    assert "panic" in done.stderr
    assert 3 <= len(trials(run)) <= 4
    report = kduel("report", run, "--format", "json")
    results = json.loads(report.stdout)
    assert {m["verdict"] for m in results["metrics"]} == {"undecided"}
    assert all(m["mean"] is None for m in results["metrics"])
    assert [t["status"] for t in results["trials"] if t["contender"] == "outside-new"] == ["void"] * 2

    told = " ".join(kduel("report", run).stdout.split())
    assert "continue the run" not in told and "outside-old yet" not in told
    before = trials(run)
    again = kduel("resume", run)
    assert again.returncode == 1 and "outside-new could not be measured" in again.stderr
    assert trials(run) == before, "it was measured on to the last block"
    assert json.loads(kduel("status", run, "-f", "json").stdout)["state"] == "finished"
    checked = kduel("verify", run)
    assert checked.returncode == 3
    assert "results.json is missing: the run has ended and was never written up; `kduel report " in " ".join(
        checked.stdout.split()
    )


@pytest.mark.slow
def test_slower_is_a_status_only_where_it_is_asked_for(kduel, write_study, tmp_path: Path):
    study = write_study(machine='shorter = ["new"]', blocks="fixed = 10")
    assert kduel("run", study, "--out", tmp_path / "plain").returncode == 0
    failed = kduel("run", study, "--out", tmp_path / "run", "--fail-on", "slower")
    assert failed.returncode == 10
    assert "slower" in failed.stdout and failed.stdout.count("Report: ") == 1 and "Written" not in failed.stderr
    same = write_study(blocks="fixed = 10")
    assert kduel("run", same, "--out", tmp_path / "same", "--fail-on", "slower").returncode == 0


@pytest.mark.slow
def test_a_command_gets_the_verdict_when_the_run_has_ended(kduel, write_study, tmp_path: Path):
    study, got = write_study(machine='shorter = ["new"]', blocks="fixed = 10"), tmp_path / "got"
    command = f'{{ echo "$KDUEL_STATUS $KDUEL_RUN"; cat; }} >{got}; exit 3'
    done = kduel("run", study, "--out", tmp_path / "run", "--fail-on", "slower", "--notify", command)
    first, _, verdict = got.read_text().partition("\n")
    assert first == f"10 {tmp_path / 'run'}" and "slower" in verdict
    assert done.returncode == 10, "its status is the run's, not the command's"
    assert "--notify ended with status 3" in done.stderr
    again = kduel("resume", tmp_path / "run", "--notify", f"cat >{got}")
    assert again.returncode == 0 and got.read_text() == verdict


def test_an_unknown_kernel_leaves_nothing_behind(kduel, write_study, tmp_path: Path):
    run = tmp_path / "run"
    study = write_study()
    study.write_text(study.read_text().replace("outside:new", "outside:unknown"))
    done = kduel("run", study, "--out", run)
    assert done.returncode == 2
    assert "outside knows no kernel 'unknown'" in done.stderr
    assert not run.exists()


def test_every_contender_that_could_not_be_measured_is_named(kduel, write_study, tmp_path: Path):
    study = write_study(machine='panics = ["new", "third"]', blocks="max = 20")
    third = '[[contender]]\nkernel = "outside:third"\n[machine]'
    study.write_text(study.read_text().replace("[machine]", third))
    done = kduel("run", study, "--out", tmp_path / "run")
    assert done.returncode == 1
    last = done.stderr.split("kduel: ")[-1]
    assert "outside-new could not be measured" in last and "outside-third could not be measured" in last, last


@pytest.mark.slow
def test_a_kernel_that_does_not_build_is_left_out_and_the_others_go_on(kduel, write_study, tmp_path: Path):
    run = tmp_path / "run"
    study = write_study(blocks="fixed = 4")
    third = '[[contender]]\nkernel = "outside:broken"\n[machine]'
    study.write_text(study.read_text().replace("[machine]", third))
    done = kduel("run", study, "--out", run)
    assert done.returncode == 1
    assert "outside-broken could not be measured" in done.stderr
    assert "no such thing" in done.stderr and "Traceback" not in done.stderr
    results = json.loads(kduel("report", run, "--format", "json").stdout)
    told = {t["reason"] for t in results["trials"] if t["contender"] == "outside-broken"}
    assert len(told) == 1 and "not measurable: outside:broken does not build" in told.pop()
    others = [t["status"] for t in results["trials"] if t["contender"] != "outside-broken"]
    assert others == ["ok"] * 8
    # The last screen has room for it only where paths are short; its last line says it anyhow.
    assert "not measured: outside-broken" in done.stderr
    assert "outside-broken could not be measured" in kduel("report", run).stdout
    # What goes on later does not build it again.
    cut_run(run, [max(trials(run))])
    again = kduel("resume", run)
    assert again.returncode == 1 and "is left out" not in again.stderr
    assert len(trials(run)) == 12


def test_where_nothing_would_be_left_to_compare_a_kernel_must_build(kduel, write_study, tmp_path: Path):
    run = tmp_path / "run"
    study = write_study()
    study.write_text(study.read_text().replace("outside:new", "outside:broken"))
    done = kduel("run", study, "--out", run)
    assert done.returncode == 1
    assert "no such thing" in done.stderr and "Mend it." in done.stderr
    assert not run.exists()


def test_a_wrong_setting_of_the_machine_names_the_file(kduel, write_study, tmp_path: Path):
    study = write_study(machine="memmory = 5")
    done = kduel("run", study, "--out", tmp_path / "run")
    assert done.returncode == 2
    assert f"{study}: machine process:" in done.stderr and "memmory" in done.stderr


@pytest.mark.slow
def test_a_changed_raw_file_changes_the_report(kduel, write_study, tmp_path: Path):
    run = tmp_path / "run"
    assert kduel("run", write_study(), "--out", run).returncode == 0
    victim = next(name for name in trials(run) if name.endswith("outside-new"))
    (run / "trials" / victim / "01-letters-hello" / "stdout").write_text("7\n")
    results = json.loads(kduel("report", run, "--format", "json").stdout)
    values = next(m for m in results["metrics"] if m["benchmark"] == "letters-hello")["values"]["outside-new"]
    assert sorted(values) == [5, 5, 7]


@pytest.mark.slow
def test_garbled_output_is_a_missing_value_not_a_number(kduel, write_study, tmp_path: Path):
    run = tmp_path / "run"
    assert kduel("run", write_study(), "--out", run).returncode == 0
    victim = next(name for name in trials(run) if name.endswith("outside-new"))
    (run / "trials" / victim / "01-letters-hello" / "stdout").write_text("5.0.0\n")
    results = json.loads(kduel("report", run, "--format", "json").stdout)
    metric = next(m for m in results["metrics"] if m["benchmark"] == "letters-hello")
    assert sorted(metric["values"]["outside-new"], key=str) == [5, 5, None]
    assert metric["n"] == 2


@pytest.mark.slow
def test_a_run_that_can_decide_nothing_says_so_and_ends_where_that_is_asked_for(kduel, write_study, tmp_path: Path):
    study = write_study(machine="noisy = true", blocks="max = 12")
    stopped = kduel("run", study, "--out", tmp_path / "stopped", "--seed", "5", "--futility", "stop")
    assert stopped.returncode == 0, stopped.stderr
    said = " ".join(stopped.stderr.split())
    assert "No undecided primary metric is likely to be decided within 12 blocks." in said
    assert "What would help:" in said
    blocks = {name.split("-")[1] for name in trials(tmp_path / "stopped")}
    assert 6 <= len(blocks) < 12
    results = json.loads((tmp_path / "stopped" / "results.json").read_text())
    assert {m["verdict"] for m in results["metrics"] if m["role"] == "primary"} == {"undecided"}
    assert [warning["code"] for warning in results["warnings"]].count("futile") == 1
    # Where nobody can be asked the run continues, and so does one that is resumed.
    told = kduel("resume", tmp_path / "stopped")
    assert told.returncode == 0 and "The run continues" in told.stderr
    assert len(trials(tmp_path / "stopped")) == 24
    asked = kduel("run", study, "--out", tmp_path / "asked", "--futility", "ask")
    assert asked.returncode == 3 or "needs a terminal" in asked.stderr
    assert not (tmp_path / "asked").exists()
