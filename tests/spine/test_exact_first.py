"""A run with an exact part, from its command to its end, with a machine that boots nothing in place of the exact one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PATCH = """
import kduel.study.first_part as module

def first_part(study):
    from kduel.study.load import assemble, parse_study
    text = study.text.replace('name = "letters"', 'name = "counted"').replace("sleep", "#").replace("max = 6", "fixed = 1")
    return assemble(parse_study(text, "counted"), text, "counted")

module.first_part = first_part
"""
"""Stands for the study of the exact part."""


@pytest.fixture
def patched(environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    (tmp_path / "site" / "sitecustomize.py").write_text(PATCH)
    return environment


def trials(run: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in sorted((run / "trials").iterdir())}


def test_it_comes_first_is_kept_apart_and_survives_an_interruption(patched, kduel, write_study, tmp_path: Path):
    study, run = write_study(machine="noisy = true\nsleep = 0.5", blocks="max = 6"), tmp_path / "run"
    words = ["run", study, "--out", run, "--seed", "3", "--exact-first"]
    process = subprocess.Popen(
        [sys.executable, "-m", "kduel", *map(str, words)], env=patched, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    limit = time.monotonic() + 240
    while not list((run / "trials").glob("[0-9]*")) and time.monotonic() < limit:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=240)
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


def test_what_cannot_have_one_is_refused_before_anything_is_made(kduel, write_study, tmp_path: Path):
    done = kduel("run", write_study(), "--out", tmp_path / "run", "--exact-first")
    assert done.returncode == 2 and "not on process" in done.stderr
    assert not (tmp_path / "run").exists()
