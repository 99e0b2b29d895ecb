"""Exact values do not depend on how many workers, or nodes of a Slurm cluster, count them. Slurm is real and on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loopback import Cluster, started
from test_fleet_runs import records

pytestmark = [pytest.mark.guest, pytest.mark.network]

SOURCE = Path(__file__).parents[3] / "src"
STUDY = """
[study]
name = "workers"
delta = 1.0
# Calibrating the timer of the local APIC takes half of a boot's time.
[[contender]]
kernel = "debian:6.1-cloud"
cmdline = "noapictimer"
[[contender]]
kernel = "debian:6.12-cloud"
cmdline = "noapictimer"
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


NODES, BLOCKS = 2, 2
Values = dict[tuple[str, str], dict[str, list[float]]]


def counted(study: Path, run: Path, fleet: str) -> Values:
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


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study") / "workers.toml"
    path.write_text(STUDY)
    return path


@pytest.fixture(scope="module")
def by_one(study: Path) -> Values:
    """What one worker counts."""
    run = study.parent / "one"
    values = counted(study, run, "local:workers=1,poll=0.2")
    assert {one["member"] for one in records(run)} == {"worker1"} and values
    assert all(None not in values for by_arm in values.values() for values in by_arm.values())
    return values


def test_two_workers_count_what_one_does(study: Path, by_one: Values, tmp_path: Path) -> None:
    assert counted(study, tmp_path / "run", "local:workers=2,poll=0.2") == by_one
    assert {one["member"] for one in records(tmp_path / "run")} == {"worker1", "worker2"}


@pytest.fixture
def cluster(need: Callable[..., str]) -> Iterator[Cluster]:
    for program in ("slurmctld", "slurmd", "munged", "sbatch"):
        need(program)
    with started(NODES) as own:
        yield own


def test_the_nodes_of_a_cluster_count_what_one_worker_does(
    cluster: Cluster, study: Path, by_one: Values, tmp_path: Path
) -> None:
    assert counted(study, tmp_path / "run", f"slurm:nodes={NODES},exclusive=false,poll=0.5") == by_one
    trials = {f"n{number}": 2 * BLOCKS // NODES for number in range(1, NODES + 1)}
    assert Counter(one["member"] for one in records(tmp_path / "run")) == trials
    cluster.await_no_job()
