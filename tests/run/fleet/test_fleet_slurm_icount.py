"""Exact values do not depend on how many nodes of a Slurm cluster count them: Slurm is real and on loopback, the guests are
booted by its jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loopback import Cluster, started
from test_fleet_icount import STUDY, counted
from test_fleet_runs import records

pytestmark = [pytest.mark.guest, pytest.mark.network]
NODES, BLOCKS = 4, 4


@pytest.fixture(scope="module")
def cluster(need: Callable[..., str]) -> Iterator[Cluster]:
    for program in ("slurmctld", "slurmd", "munged", "sbatch", "qemu-system-x86_64"):
        need(program)
    with started(NODES) as own:
        yield own


def test_one_and_four_nodes_count_the_same(cluster: Cluster, tmp_path: Path):
    """Each count boots eight guests; two workers are counted in test_fleet_icount.py."""
    study = tmp_path / "nodes.toml"
    study.write_text(STUDY.format(operations='"null-call"', blocks=BLOCKS))
    found = {}
    for count in (1, NODES):
        run = tmp_path / str(count)
        found[count] = counted(study, run, f"slurm:nodes={count},exclusive=false,poll=0.5")
        blocks = {f"n{number}": 2 * BLOCKS // count for number in range(1, count + 1)}
        assert Counter(one["member"] for one in records(run)) == blocks
    assert found[1] == found[NODES] and found[1]
    assert all(None not in values for by_arm in found[1].values() for values in by_arm.values())
    assert cluster.ask("squeue", "-h") == ""
