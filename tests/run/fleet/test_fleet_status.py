"""`kduel status` of a run whose kduel is gone: it does not show its last words as present, and names the way on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from test_fleet_runs import workers
from waiting import wait_for

from kduel.cli.status import MachineStatus, time_left
from kduel.core.text import plural
from kduel.store.run_lock import Holder, own_holder

Kduel = Callable[..., Any]
LEFT = ".held"


def shown(kduel: Kduel, run: Path) -> tuple[dict[str, Any], str]:
    """As JSON, and as text in one line."""
    found: dict[str, Any] = json.loads(kduel("status", run, "--format", "json").stdout)
    return found, " ".join(kduel("status", run).stdout.split())


def killed(start: Kduel, run: Path, study: Path, *fleet: str) -> None:
    """A run whose kduel is killed in mid-trial."""
    with start("run", study, *fleet, "--out", run, "--seed", 7) as controller:
        live = run / "fleet" / "live.json" if fleet else run / LEFT
        said = b'"working"' if fleet else b"{"
        wait_for(lambda: live.is_file() and said in live.read_bytes(), "work")
        controller.kill()
        controller.communicate()
    wait_for(lambda: not workers(run), "end of the workers, whose controller is gone")


def left_by(run: Path, **changes: str) -> None:
    """As if a kduel of another boot or host had been killed there."""
    holder: Holder = msgspec.structs.replace(own_holder(), **changes)
    (run / LEFT).write_bytes(msgspec.json.encode(holder))


@pytest.mark.slow
def test_a_fleets_machines_do_not_work_when_its_controller_was_killed(kduel, start, write_study, tmp_path: Path):
    run = tmp_path / "a run"
    killed(start, run, write_study("sleep = 30"), "--fleet", "local:workers=2,poll=0.05")
    found, text = shown(kduel, run)
    assert found["state"] == "stopped"
    assert [(one["state"], one["doing"]) for one in found["machines"]] == [("stopped", [])] * 2
    assert "not running, 0 of 6 blocks nobody is at work in it" in text and "working" not in text
    assert f"continue with: kduel resume '{run}'" in text
    left_by(run, boot="another boot")
    assert shown(kduel, run)[0]["state"] == "stopped", "the host was restarted: a power cut"
    # The directory is on a file server, and the controller's host is another one: its locks need not be visible.
    left_by(run, boot="another boot", host="build7", machine="another machine")
    found, text = shown(kduel, run)
    assert (found["state"], [one["state"] for one in found["machines"]]) == ("unknown", ["working"] * 2)
    assert "cannot be seen from this host" in text and "on build7 was at work in it last" in text
    assert "nobody" not in text


@pytest.mark.slow
def test_a_run_that_works_has_ended_or_was_interrupted_raises_no_alarm(kduel, start, write_study, tmp_path: Path):
    run = tmp_path / "run"
    study = write_study("sleep = 0.5", "max = 20")
    with start("run", study, "--out", run, "--seed", 7) as controller:
        wait_for(lambda: (run / "trials").is_dir() and (run / LEFT).is_file(), "run")
        wait_for((run / LEFT).read_bytes, "holder")
        found, text = shown(kduel, run)
        assert found["state"] == "running" and "resume" not in text
        assert f"process {controller.pid} on " in found["holder"]
        controller.terminate()
        controller.communicate()
    found, text = shown(kduel, run)
    assert found["state"] == "stopped" and "killed" not in text and "kduel resume" in text
    assert (run / LEFT).read_bytes() == b""
    study.write_text(study.read_text().replace("sleep = 0.5", ""))
    other = tmp_path / "other"
    assert kduel("run", study, "--out", other, "--seed", 7).returncode == 0
    found, text = shown(kduel, other)
    assert found["blocks"] < found["planned"] == 20, "it was decided sooner"
    assert found["state"] == "finished" and "resume" not in text


@pytest.mark.slow
def test_a_run_of_one_machine_names_the_process_that_was_killed(kduel, start, write_study, tmp_path: Path):
    run = tmp_path / "run"
    killed(start, run, write_study("sleep = 30"))
    found, text = shown(kduel, run)
    assert found["state"] == "stopped" and f"({found['holder']} was killed" in text and "kduel resume" in text
    (run / LEFT).write_bytes(b"\0" * 90)
    assert shown(kduel, run)[0]["state"] == "stopped", "a power cut may leave zeros"


@pytest.mark.slow
def test_a_run_that_works_shows_what_runs_and_afterwards_what_is_kept(kduel, start, write_study, tmp_path: Path):
    """An exact run of two minutes was one line, and after Ctrl-C a line for each metric that cannot be decided."""
    run = tmp_path / "run"
    with start("run", write_study("sleep = 4"), "--out", run, "--seed", 7) as controller:
        wait_for(lambda: list((run / "trials").glob(".new-0-*")), "first trial")
        found, text = shown(kduel, run)
        (boot,) = found["running"]
        assert boot["block"] == 1 and boot["contender"].startswith("outside-") and boot["steps"] == 2
        assert f"now: block 1, {boot['contender']}, {boot['phase']} (2 steps in all)" in text
        assert "0 of 12 trials" in text and "known after the first complete trial" in text
        wait_for(lambda: [path for path in (run / "trials").iterdir() if path.name[0] != "."], "complete trial")
        controller.terminate()
        _, said = controller.communicate()
    found, text = shown(kduel, run)
    kept = plural(found["trials"], "complete trial")
    assert f"{kept} {'is' if found['trials'] == 1 else 'are'} kept" in text and kept in said
    assert found["running"] == [] and "Cannot decide" not in text
    if found["blocks"] == 0:
        assert found["metrics"] == [] and found["waiting"] == 2
        assert "2 primary metrics not judged yet" in text


@pytest.mark.slow
def test_what_was_interrupted_before_its_first_trial_keeps_none(kduel, start, write_study, tmp_path: Path):
    run = tmp_path / "run"
    with start("run", write_study("sleep = 30"), "--out", run) as controller:
        wait_for(lambda: list((run / "trials").glob(".new-0-*")), "first trial")
        controller.terminate()
        _, said = controller.communicate()
    assert "no trial is complete yet. Go on with: kduel resume" in said and "kept" not in said
    assert "kept" not in shown(kduel, run)[1]


def test_trials_that_run_at_once_take_less_time():
    machine = MachineStatus(
        name="", state="", doing=[], blocks=1, planned=5, trials=3, void=0, seconds=20.0, message=""
    )
    assert time_left([machine], 2, 1) == 70.0 and time_left([machine], 2, 2) == 35.0
    empty = msgspec.structs.replace(machine, blocks=0, trials=0, seconds=0.0)
    assert time_left([empty], 2, 2) is None
