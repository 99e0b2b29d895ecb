"""Exact values do not depend on how many workers count them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_fleet_runs import records

pytestmark = [pytest.mark.guest, pytest.mark.network]

SOURCE = Path(__file__).parents[3] / "src"
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
fixed = {blocks}
[[benchmark]]
use = "kbench"
mode = "exact"
operation = [{operations}]
conditions = 0
primary = ["instructions"]
"""


def counted(study: Path, run: Path, fleet: str) -> dict[tuple[str, str], dict[str, list[float]]]:
    """The values of the study on a fleet, by benchmark and metric. Every trial is good."""
    command = [sys.executable, "-P", "-m", "kduel", "run", study, "--fleet", fleet, "--out", run, "--quiet"]
    done = subprocess.run(
        [*map(str, command), "--seed", "7"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert all(one["status"] == "ok" for one in records(run))
    results = json.loads((run / "results.json").read_bytes())
    return {(one["benchmark"], one["metric"]): one["values"] for one in results["metrics"]}


def test_one_and_two_workers_count_the_same(tmp_path: Path):
    study = tmp_path / "workers.toml"
    study.write_text(STUDY.format(operations='"null-call", "pipe"', blocks=2))
    found = {}
    for workers in (1, 2):
        run = tmp_path / str(workers)
        found[workers] = counted(study, run, f"local:workers={workers},poll=0.2")
        assert {one["member"] for one in records(run)} == {f"worker{number}" for number in range(1, workers + 1)}
    assert found[1] == found[2] and found[1]
