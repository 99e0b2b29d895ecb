"""Exact values do not depend on how many workers count them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.guest, pytest.mark.network]

SOURCE = Path(__file__).parents[2] / "src"
STUDY = """
[study]
name = "workers"
delta = 1.0
[[contender]]
kernel = "debian:6.1-cloud"
[[contender]]
kernel = "debian:6.12-cloud"
[machine]
kind = "icount"
workers = 1
[settle]
mode = "fixed"
seconds = 0
[blocks]
fixed = 2
[[benchmark]]
use = "kbench"
mode = "exact"
operation = ["null-call", "pipe"]
conditions = 0
primary = ["instructions"]
"""


def test_one_and_two_workers_count_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    study = tmp_path / "workers.toml"
    study.write_text(STUDY)
    found = {}
    for workers in (1, 2):
        run = tmp_path / str(workers)
        fleet = f"local:workers={workers},poll=0.2"
        command = [sys.executable, "-P", "-m", "kduel", "run", study, "--fleet", fleet, "--out", run, "--quiet"]
        done = subprocess.run(
            list(map(str, command)),
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": str(SOURCE)},
            check=False,
        )
        assert done.returncode == 0, done.stderr
        results = json.loads((run / "results.json").read_bytes())
        found[workers] = {(one["benchmark"], one["metric"]): one["values"] for one in results["metrics"]}
        records = [json.loads(path.read_bytes()) for path in run.glob("trials/*/trial.json")]
        assert {one["member"] for one in records} == {f"worker{number}" for number in range(1, workers + 1)}
        assert all(one["status"] == "ok" for one in records)
    assert found[1] == found[2] and found[1]
