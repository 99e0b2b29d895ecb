"""A run with an exact part, from its command to its end, with a machine that boots nothing in place of the exact one."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kduel.store.rundir import RunDir

PATCH = """
import os
import kduel.study.first_part as module

def first_part(study):
    from kduel.study.file import parse_study
    from kduel.study.load import assemble
    text = study.text.replace('name = "letters"', 'name = "counted"').replace("max = 6", "fixed = 1")
    if not os.environ.get("TEST_COUNTING"):
        text = text.replace("sleep", "#")
    return assemble(parse_study(text, "counted"), text, "counted")

module.first_part = first_part
module.SUITE = "counted"

import time
from pathlib import Path
import kduel.machines
from kduel.core.background_task import run_program
from kduel.core.errors import HostError

def prepare_early(self, settings, needs, *, cache, progress, offline=False):
    wanted = os.environ.get("TEST_ROOT", "")
    if wanted:
        with progress.task("making the guest root"):
            if wanted == "broken":
                raise HostError("the guest root cannot be made", "Mend it.")
            if wanted == "endless":
                run_program(["sleep", "600"], environment=os.environ)
                raise HostError("ended")
            limit = time.monotonic() + 600
            while not Path(wanted).exists() and time.monotonic() < limit:
                time.sleep(0.05)
            if not Path(wanted).exists():
                raise HostError("the exact part waits for the root")

kduel.machines.MachineKind.prepare_early = prepare_early
"""
"""Stands for the study of the exact part, and for what makes the guest's root."""


@pytest.fixture
def patched(environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    (tmp_path / "site" / "sitecustomize.py").write_text(PATCH)
    return environment


def trials(run: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in sorted((run / "trials").iterdir())}


@pytest.mark.slow
def test_it_comes_first_is_kept_apart_and_survives_an_interruption(patched, kduel, write_study, tmp_path: Path):
    study, run = write_study(machine="noisy = true\nsleep = 0.5", blocks="max = 6"), tmp_path / "run"
    words = ["run", study, "--out", run, "--seed", "3", "--exact-first"]
    process = subprocess.Popen(
        [sys.executable, "-m", "kduel", *map(str, words)], env=patched, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    limit = time.monotonic() + 600
    while not list((run / "trials").glob("[0-9]*")) and time.monotonic() < limit:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 130, err
    assert out.startswith("counted · 1 block") and "letters ·" not in out
    assert f"The exact part is complete: {run}/exact/report/index.html" in err and f"kduel resume {run}" in err
    counted = trials(run / "exact")
    assert len(counted) == 2 and 1 <= len(trials(run)) < 12
    resumed = kduel("resume", run)
    assert resumed.returncode == 0, resumed.stderr
    assert "counted ·" not in resumed.stdout, "what is there is not counted again"
    assert trials(run / "exact") == counted and len(trials(run)) == 12
    results = json.loads((run / "results.json").read_text())
    assert results["study"]["name"] == "letters" and results["exact"]["study"]["name"] == "counted"
    assert "nothing changed afterwards" in kduel("verify", run).stdout


@pytest.mark.slow
def test_what_an_emulator_makes_exploratory_is_so_after_an_exact_part(patched, kduel, write_study, tmp_path: Path):
    study, run = write_study(machine="emulated = true", blocks="fixed = 1"), tmp_path / "run"
    with study.open("a") as stream:
        stream.write('label = "decides"\n[[benchmark]]\nuse = "outside-letters"\ntext = ["beside"]\n')
        stream.write('label = "beside"\nprimary = ["letters"]\nemulated = "exploratory"\n')
    done = kduel("run", study, "--out", run, "--exact-first")
    assert done.returncode == 0, done.stderr
    assert "are exploratory: beside" in " ".join(done.stderr.split())
    metrics = json.loads((run / "results.json").read_text())["metrics"]
    roles = {one["benchmark"].partition("-")[0]: one["role"] for one in metrics}
    assert roles == {"decides": "primary", "beside": "exploratory"}
    assert kduel("resume", run).returncode == 0, "it is the same experiment"


@pytest.mark.slow
def test_it_does_not_wait_for_the_root_of_the_timed_part(patched, kduel, write_study, tmp_path: Path):
    run = tmp_path / "run"
    patched["TEST_ROOT"] = str(run / "exact" / "results.json")
    done = kduel("run", write_study(), "--out", run, "--exact-first")
    assert done.returncode == 0, done.stderr
    assert done.stdout.index("counted ·") < done.stdout.index("letters ·")
    assert done.stderr.count("making the guest root, in the background") == 1
    assert len(trials(run / "exact")) == len(trials(run)) == 6
    assert "nothing changed afterwards" in kduel("verify", run).stdout


@pytest.mark.slow
def test_a_root_that_cannot_be_made_is_told_after_it_and_loses_nothing(patched, kduel, write_study, tmp_path: Path):
    run = tmp_path / "place" / "kduel-runs" / "letters-outside-old-vs-outside-new"
    words = ["run", write_study(), "--exact-first"]
    patched["TEST_ROOT"] = "broken"
    failed = kduel(*words)
    assert failed.returncode == 3 and failed.stdout.startswith("counted · 3 blocks")
    *_, told, what, remedy = failed.stderr.splitlines()
    assert told == "The exact part is complete: kduel-runs/letters-outside-old-vs-outside-new/exact/report/index.html"
    assert "the guest root cannot be made" in what and remedy == "Mend it."
    assert RunDir.open(run).lock(prepared=False).prepared is False
    said = kduel("report", run).stderr
    assert f"kduel resume {run}` goes on" in said and f"kduel report {run}/exact`" in said
    counted = trials(run / "exact")
    del patched["TEST_ROOT"]
    done = kduel(*words)
    assert done.returncode == 0, done.stderr
    assert "counted ·" not in done.stdout, "what is there is not counted again"
    assert trials(run / "exact") == counted and len(trials(run)) == 6
    assert [path.name for path in run.parent.iterdir()] == [run.name]
    assert json.loads((run / "results.json").read_text())["exact"]["study"]["name"] == "counted"


@pytest.mark.slow
def test_an_interruption_before_the_run_ends_the_making_of_the_root_and_keeps_what_was_counted(
    patched, kduel, write_study, tmp_path: Path
):
    run = tmp_path / "run"
    words = ["run", str(write_study()), "--out", str(run), "--exact-first", "--seed", "5"]
    process = subprocess.Popen(
        [sys.executable, "-m", "kduel", *words], env=patched | {"TEST_ROOT": "endless"}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    limit = time.monotonic() + 600
    while not (run / "exact" / "report" / "index.html").exists() and time.monotonic() < limit:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130, err
    assert f"The exact part is complete: {run}/exact/report/index.html" in err
    assert f"Go on with: kduel resume {run}" in err
    said = kduel("status", run).stdout
    assert f"{run}: not running; nothing is timed yet; exact part: 3 of 3 blocks, 6 boots counted" in said
    assert f"continue with: kduel resume {run}\n" in said and f"kduel report {run}/exact" in said
    assert "letters of outside-new" in said
    found = json.loads(kduel("status", run, "--format", "json").stdout)
    assert (found["run"], found["part"], found["state"]) == (str(run), "exact", "stopped")
    done = kduel("resume", run)
    assert done.returncode == 0, done.stderr
    assert "counted ·" not in done.stdout and len(trials(run)) == 6
    assert json.loads((run / "lock.json").read_text())["seed"] == 5
    assert json.loads(kduel("status", run, "--format", "json").stdout)["part"] == ""


def test_what_cannot_have_one_is_refused_before_anything_is_made(kduel, write_study, tmp_path: Path):
    done = kduel("run", write_study(), "--out", tmp_path / "run", "--exact-first")
    assert done.returncode == 2 and "not on process" in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.parametrize("when", ["counting", "making the root"])
def test_a_second_command_is_refused_while_the_first_is_at_work(
    patched, kduel, write_study, tmp_path: Path, when: str
):
    """In the exact part and between the parts: it must not measure time beside the first one."""
    run = tmp_path / "place" / "kduel-runs" / "letters-outside-old-vs-outside-new"
    words = ["run", str(write_study(machine="sleep = 60")), "--exact-first"]
    patched |= {"TEST_ROOT": "endless", "TEST_COUNTING": "slow" if when == "counting" else ""}
    first = subprocess.Popen(
        [sys.executable, "-m", "kduel", *words], env=patched, cwd=tmp_path / "place", text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        there = run / "exact" / ("trials" if when == "counting" else "report/index.html")
        limit = time.monotonic() + 600
        while not there.exists() and time.monotonic() < limit:
            time.sleep(0.02)
        patched |= {"TEST_ROOT": "broken"}
        for again in ([*words, "--out", run], ["resume", run], words):
            second = kduel(*again)
            assert first.poll() is None
            assert second.returncode == 2 and "another kduel is at work in" in second.stderr, second.stderr
            assert "the guest root" not in second.stderr and not second.stdout
        assert ": running; nothing is timed yet; exact part:" in kduel("status", run).stdout
    finally:
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=600)
    assert first.returncode == 130 and [path.name for path in run.parent.iterdir()] == [run.name]


@pytest.mark.slow
def test_of_two_that_begin_to_count_together_one_is_refused(kduel, patched, write_study, tmp_path: Path):
    """Where the look at the beginning finds nobody, the lock itself decides."""
    run = tmp_path / "run"
    (tmp_path / "site" / "sitecustomize.py").write_text(
        f"{PATCH}\nimport kduel.store.run_lock\nkduel.store.run_lock.refuse_second = print\n"
    )
    assert kduel("run", write_study(), "--out", run, "--exact-first").returncode == 0
    shutil.rmtree(run / "exact" / "report")
    with RunDir.open(run / "exact").hold():
        done = kduel("run", write_study(), "--out", run)
    assert (
        done.returncode == 2
        and "another kduel is at work in" in done.stderr
        and "Nothing is counted" not in done.stderr
    )


def listed(place: Path) -> list[str]:
    return sorted(str(path.relative_to(place)) for path in place.rglob("*"))


@pytest.mark.slow
@pytest.mark.parametrize("place", ["directory", "file", "no place", "in a file"])
def test_a_place_that_cannot_hold_the_run_is_refused_before_anything_is_counted(
    patched, kduel, write_study, tmp_path: Path, place: str
):
    out = {"no place": Path("/proc/x"), "in a file": tmp_path / "out" / "run"}.get(place, tmp_path / "out")
    if place == "directory":
        out.mkdir()
        for number in range(5):
            (out / f"{number}.txt").write_text("mine")
    elif place != "no place":
        (tmp_path / "out").write_text("mine")
    before = listed(tmp_path / "out")
    done = kduel("run", write_study(), "--out", out, "--exact-first")
    assert done.returncode in (2, 3) and not done.stdout, done.stderr
    assert "counted exactly" not in done.stderr and "Nothing is counted first" not in done.stderr, done.stderr
    assert str(tmp_path / "out" if place == "in a file" else out) in done.stderr, done.stderr
    assert listed(tmp_path / "out") == before
    if place == "directory":
        assert "0.txt, 1.txt, 2.txt and 2 more" in done.stderr and "--out" in done.stderr


def left_with_its_exact_part(run: Path, patched, kduel, study: Path) -> Path:
    """A run of which nothing but the exact part could be made; the next one can."""
    patched["TEST_ROOT"] = "broken"
    assert kduel("run", study, "--out", run, "--exact-first").returncode == 3
    del patched["TEST_ROOT"]
    return run


@pytest.mark.slow
def test_the_exact_part_of_another_study_is_not_made_the_part_of_this_one(
    patched, kduel, write_study, tmp_path: Path
):
    run = left_with_its_exact_part(tmp_path / "run", patched, kduel, write_study())
    before = listed(run)
    other = write_study()
    other.write_text(other.read_text().replace('"outside:old"', '"outside:new"\nname = "old"'))
    done = kduel("run", other, "--out", run)
    assert done.returncode == 2 and "holds a run that differs from this one" in done.stderr, done.stderr
    assert "outside-old" in done.stderr and listed(run) == before


@pytest.mark.slow
def test_a_run_of_another_study_is_refused_before_an_exact_part_is_counted_in_it(
    patched, kduel, write_study, tmp_path: Path
):
    run = tmp_path / "run"
    assert kduel("run", write_study(), "--out", run).returncode == 0
    done = kduel("run", write_study(blocks="fixed = 4"), "--out", run, "--exact-first")
    assert done.returncode == 2 and "study.fixed: 3 in the run, 4 now" in done.stderr, done.stderr
    assert not (run / "exact").exists()


@pytest.mark.slow
def test_an_exact_part_that_cannot_be_completed_here_is_not_made_the_part_of_a_run_that_is_timed_now(
    patched, kduel, write_study, tmp_path: Path
):
    """What is found only when the machine is ready."""
    run = left_with_its_exact_part(tmp_path / "run", patched, kduel, write_study())
    shutil.rmtree(run / "exact" / "report")
    lock = run / "exact" / "lock.json"
    document = json.loads(lock.read_text())
    document["machine"]["facts"]["clock"] = "another"
    lock.write_text(json.dumps(document))
    done = kduel("run", write_study(), "--out", run)
    assert done.returncode == 2 and "holds a run that differs from this one" in done.stderr, done.stderr
    assert RunDir.open(run).lock(prepared=False).prepared is False
