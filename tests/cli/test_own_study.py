"""`kduel run A B --command`: a command of the user's own without a study file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    path = tmp_path / "bench"
    path.write_text('#!/bin/sh\necho "took $1 ms"\n')
    path.chmod(0o755)
    return path


def test_a_program_of_this_host_is_brought_along_and_locked(kduel, bench: Path, tmp_path: Path) -> None:
    words = ["run", "outside:old", "outside:new", "--machine", "process", "--blocks", "4", "--out", tmp_path / "run",
             "--command", f"{bench} 7", "--regex", "took ([0-9.]+) ms", "--unit", "ms"]  # fmt: skip
    done = kduel(*words)
    # The machine of the tests brings nothing along: what counts is what it is asked to run.
    lock = json.loads((tmp_path / "run/lock.json").read_text())
    assert lock["study"]["title"] == "bench 7"
    [step] = lock["steps"]
    assert step["parameters"]["command"] == "bench 7"
    assert list(step["parameters"]["files"]) == [str(bench)]
    assert step["parameters"]["metrics"][0]["unit"] == "ms" and step["parameters"]["metrics"][0]["better"] == "lower"
    bench.write_text("#!/bin/sh\necho changed\n")
    again = kduel("resume", tmp_path / "run")
    assert again.returncode == 2 and "is not the file with the SHA-256" in again.stderr, done.stderr + again.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["outside:old", "outside:new", "--regex", "x"], "--regex describes what --command prints"),
        (["outside:old", "outside:new", "--command", "true", "--suite", "quick"], "takes the place of a suite"),
        (["study.toml", "--command", "true"], "takes the place of a suite or a study file"),
        (["outside:old", "outside:new", "--command", "echo 'x"], "Check its quotes"),
        (["outside:old", "outside:new", "--command", " "], "command"),
        (["outside:old", "outside:new", "--command", "true", "--regex", "no group"], "has 0 groups"),
    ],
)
def test_what_does_not_fit_is_an_error(kduel, words: list[str], said: str) -> None:
    done = kduel("run", *words)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr, done.stderr
