"""`kduel explain` of a timed run: extra trials with perf around one step, apart from the run's own.

The machine is that of outside.py, which boots nothing, and perf is a script that prints the same samples always.
"""

from __future__ import annotations

import gzip
import json
import math
import os
from pathlib import Path

import pytest

STUDY = """
[study]
name = "pretended"
[[contender]]
kernel = "outside:old"
[[contender]]
kernel = "outside:new"
[machine]
kind = "process"
[settle]
mode = "fixed"
seconds = 0
[blocks]
fixed = 2
[[benchmark]]
use = "command"
label = "work"
command = "echo took 1.$$ s"
metrics = [{name = "seconds", unit = "s", better = "lower", regex = "^took ([0-9.]+) s"},
           {name = "letters", unit = "1", better = "lower", regex = "^took ([0-9.]+) s"}]
primary = ["seconds"]
"""
PERF = """#!/bin/sh
case $1 in
    record) shift; while [ "$1" != -- ] && [ "$1" != true ]; do shift; done; [ "$1" != -- ] || shift; exec "$@" ;;
    script) case "$*" in *period*) cat {samples} ;; *) echo "cpu-clock:" ;; esac ;;
    --version) echo "perf version 6.1" ;;
esac
"""
GREP = """#!/bin/sh
case "$*" in *kallsyms*) cat {symbols} ;; *) exec /usr/bin/env -i PATH=/usr/bin:/bin grep "$@" ;; esac
"""
SYMBOLS = "ffffffff81000000 T entry\nffffffff81001000 T work_of_it\nffffffff81002000 T do_idle\n"


@pytest.fixture
def run(kduel, environment: dict[str, str], tmp_path: Path) -> Path:
    """A run, with a perf and a grep in the path that stand in for a guest's."""
    programs = tmp_path / "programs"
    programs.mkdir()
    sample = "{:5}    1001001 cpu-clock: \n" + "\t{:16x}\n" * 2 + "\n"
    text = (
        sample.format(7, 0xFFFFFFFF81001010, 0xFFFFFFFF81000010) * 30 + sample.format(0, 0xFFFFFFFF81002010, 5) * 10
    )
    (tmp_path / "samples").write_text(text)
    (tmp_path / "symbols").write_text(SYMBOLS)
    for name, script in (("perf", PERF), ("grep", GREP)):
        (programs / name).write_text(script.format(samples=tmp_path / "samples", symbols=tmp_path / "symbols"))
        (programs / name).chmod(0o755)
    environment["PATH"] = f"{programs}:{os.environ['PATH']}"
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    done = kduel("run", study, "--out", tmp_path / "run", "--seed", "7")
    assert done.returncode == 0, done.stderr
    return tmp_path / "run"


@pytest.mark.slow
def test_a_timed_run_is_explained_by_profiled_trials_of_its_own(kduel, run: Path) -> None:
    before = kduel("report", run, "--format", "json").stdout
    done = kduel("explain", run, "-b", "work", "--blocks", "3", "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["schema"], found["benchmark"], found["metric"], found["unit"]) == (1, "work", "seconds", "run")
    assert (found["blocks"], found["event"], found["frequency"], found["samples"]) == (
        3,
        "cpu-clock",
        499,
        [120, 120],
    )
    rows = {row["function"]: row for row in found["rows"]}
    assert set(rows) == {"work_of_it", "do_idle"}
    whole = found["whole"]
    for which in ("baseline", "contender", "difference"):
        assert math.isclose(
            sum(row["cost"][which] for row in found["rows"]), whole[which], rel_tol=1e-9, abs_tol=1e-3
        )
    assert math.isclose(rows["work_of_it"]["cost"]["baseline"], 0.75 * whole["baseline"])
    assert [one["contender"] for one in found["overhead"]] == ["outside-old", "outside-new"]
    (folder,) = (run / "explain").iterdir()
    assert len([trial for trial in (folder / "trials").iterdir() if trial.is_dir()]) == 6
    step = next(folder.glob("trials/*/01-work"))
    assert b"work_of_it" in gzip.decompress((step / "kallsyms.gz").read_bytes())
    assert json.loads((folder / "profile.json").read_text()) == found
    # The run itself is as it was.
    assert kduel("report", run, "--format", "json").stdout == before
    assert kduel("verify", run).returncode == 0
    listed = kduel("query", "--history", run.parent)
    assert "explain" not in listed.stdout


@pytest.mark.slow
def test_trials_that_are_there_are_not_made_again(kduel, run: Path) -> None:
    first = kduel("explain", run, "-b", "work", "--blocks", "2", "--format", "json")
    (folder,) = (run / "explain").iterdir()
    # As after an interruption: the last trial is missing.
    trials = sorted(path for path in (folder / "trials").iterdir() if path.is_dir())
    stamps = {path.name: (path / "trial.json").stat().st_mtime_ns for path in trials[:-1]}
    for path in sorted(trials[-1].rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    trials[-1].rmdir()
    again = kduel("explain", run, "-b", "work", "--blocks", "2", "--format", "json")
    assert again.returncode == 0, again.stderr
    assert {name: (folder / "trials" / name / "trial.json").stat().st_mtime_ns for name in stamps} == stamps
    assert len(json.loads(first.stdout)["rows"]) == len(json.loads(again.stdout)["rows"])
    refused = kduel("resume", folder)
    assert refused.returncode == 2 and "kduel explain" in refused.stderr


REFUSED = [
    (["-b", "nothing"], "no single step 'nothing'"),
    (["-b", "work", "--metric", "letters"], "not a time or a rate of work"),
    (["-b", "work", "--contender", "other"], "no contender 'other'"),
    (["-b", "work", "--annotate", "schedule"], "--annotate shows exact counts"),
]


@pytest.mark.slow
def test_what_cannot_be_profiled_is_refused_before_anything_is_booted(kduel, run: Path) -> None:
    for words, why in REFUSED:
        done = kduel("explain", run, *words)
        assert done.returncode == 2 and why in done.stderr
    assert not (run / "explain").exists()


@pytest.mark.slow
def test_a_guest_without_perf_is_named(kduel, environment, run: Path, tmp_path: Path) -> None:
    (tmp_path / "programs" / "perf").write_text("#!/bin/sh\necho perf: no permission >&2\nexit 129\n")
    done = kduel("explain", run, "-b", "work", "--blocks", "2")
    assert done.returncode == 1 and "no permission" in done.stderr


@pytest.mark.slow
def test_a_run_measured_with_another_kernel_is_refused_with_what_this_command_has(kduel, run: Path):
    lock = run / "lock.json"
    document = json.loads(lock.read_text())
    document["kernels"][1]["release"] = "6.9.9"
    lock.write_text(json.dumps(document))
    done = kduel("explain", run, "-b", "work")
    assert done.returncode == 2 and "6.9.9 in the run" in done.stderr, done.stderr
    assert "--out" not in done.stderr and "explain that run" in done.stderr, "explain has no --out"


@pytest.mark.slow
def test_profiled_trials_need_no_room_for_all_guests_at_once(
    kduel, run: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    study = tmp_path / "turns.toml"
    study.write_text(
        STUDY.replace("fixed = 2", "fixed = 2\nturns = 50").replace('"process"', '"process"\nturns = true')
    )
    done = kduel("run", study, "--out", tmp_path / "turns")
    assert done.returncode == 0, done.stderr
    environment["OUTSIDE_ROOM"] = "1"
    done = kduel("explain", tmp_path / "turns", "-b", "work", "--blocks", "2")
    assert done.returncode == 0, done.stderr
