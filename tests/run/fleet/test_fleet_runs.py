"""A run on several workers of this machine: whole, killed at an instant, and refused where it cannot be right."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from processes import command_lines
from waiting import wait_for

from kduel.core.errors import InputError
from kduel.core.progress import Progress
from kduel.fleets import fleet_kind

FLEET = "local:workers=3,poll=0.05"


def records(run: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in sorted(run.glob("trials/[0-9]*/trial.json"))]


def workers(run: Path) -> list[int]:
    """Worker processes of a run."""
    return [pid for pid, words in command_lines().items() if b"\0worker\0" in words and os.fsencode(run) in words]


def is_whole(run: Path, blocks: int) -> None:
    """Every planned trial is there once, on the machine of its block, and nothing was changed."""
    plan = [json.loads(line) for line in (run / "plan.jsonl").read_bytes().splitlines()]
    found = records(run)
    assert sorted(record["id"] for record in found) == sorted(trial["id"] for trial in plan)
    assert len(found) == 2 * blocks
    host = {trial["block"]: trial["host"] for trial in plan}
    assert all(record["member"] == host[record["block"]] for record in found)
    assert Counter(host.values()).most_common()[-1][1] >= blocks // 3
    assert not list(run.rglob(".new-*")) and not list(run.rglob(".link-*"))


@pytest.mark.slow
def test_a_run_on_three_workers_is_a_run_like_any_other(kduel, write_study, tmp_path: Path):
    run = tmp_path / "run"
    done = kduel("run", write_study(), "--fleet", FLEET, "--out", run, "--seed", 7)
    assert done.returncode == 0, done.stderr
    assert "on worker3" in done.stderr
    is_whole(run, 6)
    assert "nothing changed afterwards" in kduel("verify", run).stdout
    lock = json.loads((run / "lock.json").read_bytes())
    assert [member["name"] for member in lock["fleet"]["members"]] == ["worker1", "worker2", "worker3"]
    status = json.loads(kduel("status", run, "--format", "json").stdout)
    assert [(one["state"], one["blocks"]) for one in status["machines"]] == [("done", 2)] * 3
    assert status["state"] == "finished" and status["blocks"] == 6
    assert "worker2" in kduel("status", run).stdout
    assert not workers(run)
    again = kduel("resume", run)
    assert again.returncode == 0 and " ok " not in again.stderr


@pytest.mark.slow
def test_what_the_study_declares_of_the_host_holds_on_every_machine(kduel, write_study, tmp_path: Path):
    table = "[host]\nmax_wait = 30.0\nrepeats = 2\nquiet_seconds = 3\ncovariate = true\n"
    run = tmp_path / "run"
    done = kduel("run", write_study("max_wait = 10.0", f"fixed = 3\n{table}"), "--fleet", FLEET, "--out", run)
    assert done.returncode == 0, done.stderr
    lock = json.loads((run / "lock.json").read_bytes())
    rule = lock["disturbance"]
    assert (rule["max_wait_pct"], rule["repeats"], rule["quiet_seconds"], rule["strict"]) == (30, 2, 3, True)
    assert lock["covariates"] and all(one["other_work_before"] is not None for one in records(run))


@pytest.mark.slow
def test_a_controller_and_workers_killed_at_any_instant_lose_nothing(kduel, start, write_study, tmp_path: Path):
    run = tmp_path / "run"
    chance = random.Random(3)
    words: tuple[object, ...] = ("run", write_study("sleep = 0.1", "fixed = 9"), "--fleet", FLEET)
    seen: dict[str, int] = {}
    for attempt in range(3):
        with start(*words, *(() if words[0] == "resume" else ("--out", run, "--seed", 7))) as controller:
            goal = len(seen) + chance.randint(1, 3)
            wait_for(lambda: len(records(run)) >= goal or controller.poll() is not None, "trial")  # noqa: B023
            time.sleep(chance.uniform(0, 0.2))
            if attempt % 2 and (pids := workers(run)):
                os.kill(chance.choice(pids), signal.SIGKILL)
                time.sleep(0.1)
            controller.kill()
            controller.communicate()
        wait_for(lambda: not workers(run), "end of the workers, whose controller is gone")
        now = {record["id"]: (run / "trials" / record["id"] / "trial.json").stat().st_ino for record in records(run)}
        assert seen.items() <= now.items(), "a trial was lost, or run twice"
        seen, words = now, ("resume", run)
    assert len(seen) >= 3
    done = kduel("resume", run)
    assert done.returncode == 0, done.stderr
    is_whole(run, 9)
    assert "nothing changed afterwards" in kduel("verify", run).stdout


@pytest.mark.slow
def test_a_second_controller_is_turned_away(kduel, start, write_study, tmp_path: Path):
    run = tmp_path / "run"
    with start(
        "run", write_study("sleep = 5", "fixed = 9"), "--fleet", FLEET, "--out", run, "--seed", 7
    ) as controller:
        wait_for(lambda: (run / "fleet" / "worker1" / "trials").is_dir(), "member")
        second = kduel("resume", run)
        assert second.returncode == 2 and "another kduel is at work" in second.stderr
        controller.send_signal(signal.SIGINT)
        _, said = controller.communicate(timeout=600)
    assert controller.returncode == 130 and f"kduel resume {run}" in said
    assert not workers(run)


@pytest.mark.parametrize(
    ("fleet", "said"),
    [
        ("nosuch", "there is no fleet 'nosuch'"),
        ("local:workers=0", "workers"),
        ("local:worker=3", "Its settings: ahead, patience, poll, workers"),
        ("absent.toml", "cannot read the fleet absent.toml"),
    ],
)
def test_a_fleet_that_cannot_be_meant_is_refused_before_anything_is_made(kduel, write_study, tmp_path, fleet, said):
    done = kduel("run", write_study(), "--fleet", fleet, "--out", tmp_path / "run")
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("machine", ["qemu", "local", "build", "board"])
def test_workers_that_would_disturb_each_others_timings_are_refused(machine: str) -> None:
    kind = fleet_kind("local")
    with pytest.raises(InputError, match=f"the machine {machine} measures time, and 2 workers"):
        kind.open(kind.read_settings({"workers": 2}), machine=machine, run="r", known=(), progress=Progress())
    for allowed, workers in ((machine, 1), ("icount", 2), ("ssh", 2), ("slurm-node", 2)):
        settings = kind.read_settings({"workers": workers})
        fleet = kind.open(settings, machine=allowed, run="r", known=(), progress=Progress())
        assert len(fleet.members) == workers


@pytest.mark.slow
def test_a_member_that_cannot_take_part_is_named_before_the_first_trial(kduel, write_study, tmp_path: Path):
    done = kduel("run", write_study("nonsense = 1"), "--fleet", FLEET, "--out", tmp_path / "run")
    assert done.returncode == 3
    assert "worker1" in done.stderr and "nonsense" in done.stderr and "Nothing was measured" in done.stderr
    assert not (tmp_path / "run").exists() and not list(tmp_path.glob(".run-*"))


@pytest.mark.slow
def test_a_class_of_too_few_machines_is_told_before_the_first_trial(kduel, write_study, tmp_path: Path):
    study = write_study(blocks="fixed = 2")
    study.write_text(study.read_text().replace("[study]", '[study]\nmachines = "class"', 1))
    done = kduel("run", study, "--fleet", "local:workers=2", "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    said, _, trials = done.stderr.partition("ok  on worker")
    assert "this fleet has 2" in said and trials
