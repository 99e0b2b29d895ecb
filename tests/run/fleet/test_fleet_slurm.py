"""Slurm, really running on loopback (scripts/slurm-loopback): a run, and what happens when its parts are killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loopback import Cluster, started
from test_fleet_runs import is_whole, records, workers
from waiting import wait_for

NODES = 3
FLEET = f"slurm:nodes={NODES},poll=0.5"


@pytest.fixture(scope="module")
def cluster(need: Callable[..., str]) -> Iterator[Cluster]:
    for program in ("slurmctld", "slurmd", "munged", "sbatch"):
        need(program)
    with started(NODES, furnish) as own:
        yield own


def furnish(directory: Path) -> None:
    """A prolog that fails on a node while DIR/NODE.broken is there."""
    (directory / "prolog").write_text(f'#!/bin/sh\n[ ! -e "{directory}/$SLURMD_NODENAME.broken" ]\n')
    (directory / "prolog").chmod(0o755)
    (directory / "local.conf").write_text(f"Prolog={directory}/prolog\n")


def crash(cluster: Cluster, run: Path, name: str) -> None:
    """A node fails: its daemon, the job's keeper (slurmstepd), its script and the worker are gone at once."""
    os.kill(cluster.pid(name), signal.SIGKILL)
    for pid in workers(run / "fleet" / name):
        above, keeper = [pid], ""
        while keeper != "slurmstepd" and above[-1] > 1:
            above.append(int(Path(f"/proc/{above[-1]}/stat").read_text().rpartition(") ")[2].split()[1]))
            keeper = Path(f"/proc/{above[-1]}/comm").read_text().strip()
        assert keeper == "slurmstepd", "the worker is a job's"
        for one in reversed(above):
            os.kill(one, signal.SIGKILL)


@pytest.fixture
def shared(cluster: Cluster, environment: dict[str, str]) -> Cluster:
    """The cluster, with `environment` knowing the way to it."""
    environment["SLURM_CONF"] = os.environ["SLURM_CONF"]
    return cluster


@pytest.mark.slow
def test_a_run_on_nodes_whose_daemon_controller_and_job_are_killed(
    kduel, start, write_study, tmp_path: Path, shared: Cluster
):
    run = tmp_path / "run"
    words = ("run", write_study("sleep = 2.5", "fixed = 9"), "--fleet", FLEET, "--out", run, "--seed", 7)
    with start(*words) as controller:
        wait_for(lambda: len(records(run)) >= 2 or controller.poll() is not None, "trial")
        # A node's daemon: its job goes on or is repeated by Slurm, and nothing is run twice.
        os.kill(shared.pid("n1"), signal.SIGKILL)
        # The controller of KDuel: the jobs go on by themselves.
        controller.kill()
        controller.communicate()
    seen = {record["id"] for record in records(run)}
    assert shared.ask("squeue", "-h", "-o", "%j").count("kduel-run-") >= 1
    shared.script("node", "n1")
    controller_of_slurm, before = shared.pid("slurmctld"), shared.saved
    wait_for(lambda: shared.saved != before, "saved state of Slurm")
    os.kill(controller_of_slurm, signal.SIGKILL)
    with start("resume", run) as controller:
        time.sleep(2)
        shared.script("controller")
        wait_for(lambda: len(records(run)) > len(seen) or controller.poll() is not None, "trial after the restart")
        # A job that somebody cancels: the block is run again.
        shared.ask("scancel", "--full", f"--user={os.getuid()}", "-w", "n2")
        _, said = controller.communicate(timeout=600)
    assert controller.returncode == 0, said
    is_whole(run, 9)
    assert seen <= {record["id"] for record in records(run)}
    assert "nothing changed afterwards" in kduel("verify", run).stdout
    shared.await_no_job()


@pytest.mark.slow
def test_a_node_that_fails_and_one_that_cannot_start_a_job(start, write_study, tmp_path: Path, shared: Cluster):
    run, broken = tmp_path / "run", shared.directory / "n2.broken"
    words = ("run", write_study("sleep = 1.5", "fixed = 6"), "--fleet", FLEET, "--out", run, "--seed", 7)
    with start(*words) as controller:
        wait_for(lambda: (run / "fleet").is_dir() or controller.poll() is not None, "start")
        broken.touch()
        wait_for(lambda: workers(run / "fleet" / "n1") or controller.poll() is not None, "work on n1")
        crash(shared, run, "n1")
        shared.script("node", "n1")
        wait_for(lambda: "drain" in shared.ask("sinfo", "-h", "-n", "n2", "-o", "%T"), "job that fails to start")
        wait_for(lambda: "requeued held" not in shared.ask("squeue", "-h", "-o", "%r"), "end of the held job")
        broken.unlink()
        shared.ask("scontrol", "update", "nodename=n2", "state=resume")
        _, said = controller.communicate(timeout=600)
    assert controller.returncode == 0, said
    is_whole(run, 6)
    said = " ".join(said.split())
    assert "Slurm could not start job" in said and "on n2, and holds it (launch failed requeued held)" in said
    assert "n1: " not in said, "Slurm itself repeats the job of a node that failed"
    assert "is lost" not in said
    shared.await_no_job()


@pytest.mark.slow
def test_jobs_are_cancelled_when_the_run_is_interrupted(start, write_study, tmp_path: Path, shared: Cluster):
    run = tmp_path / "run"
    words = ("run", write_study("sleep = 30", "fixed = 9"), "--fleet", FLEET, "--out", run, "--seed", 7)
    with start(*words) as controller:
        wait_for(lambda: shared.ask("squeue", "-h", "-t", "running", "-o", "%j").count("-n") >= NODES, "jobs")
        wait_for(lambda: (run / "fleet" / "n1" / "worker.log").exists(), "worker")
        controller.send_signal(signal.SIGINT)
        controller.communicate(timeout=600)
    assert controller.returncode == 130
    shared.await_no_job()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fleet", "status", "said"),
    [
        ("slurm:partition=nosuch", 2, "Slurm has no partition 'nosuch'\nGive partition=NAME; it has: guests."),
        ("slurm:nodes=9", 3, "3 node(s) of the partition guests are usable; 9 are requested"),
        ("slurm:nodelist=n[2-4]", 2, "the partition guests has no node n4"),
        ("slurm:python=/nowhere/python", 3, "/nowhere/python"),
        ("slurm:account=nobody,nodes=1,time=nonsense", 3, "sbatch"),
    ],
)
def test_what_slurm_cannot_do_is_told_before_the_first_trial(
    kduel, write_study, tmp_path: Path, shared: Cluster, fleet: str, status: int, said: str
):
    done = kduel("run", write_study(), "--fleet", fleet, "--out", tmp_path / "run")
    assert (done.returncode, "Traceback" in done.stderr) == (status, False), done.stderr
    assert said in done.stderr
    assert not (tmp_path / "run").exists()


def test_nodes_of_two_architectures_are_refused(monkeypatch: pytest.MonkeyPatch):
    from kduel.core.errors import InputError
    from kduel.fleets import slurm
    from kduel.machines.slurm import cluster

    def scontrol(*words: str, stdin: str = "") -> str:
        return "\n".join(
            f"NodeName=n{number} Arch={architecture} State=IDLE Partitions=guests,all"
            for number, architecture in ((10, "aarch64"), (2, "x86_64"))
        )

    monkeypatch.setattr(cluster, "slurm", scontrol)
    assert [node.name for node in cluster.nodes()] == ["n2", "n10"]
    with pytest.raises(InputError, match="different architectures: n10 is aarch64, n2 is x86_64"):
        slurm.choose(slurm.SlurmSettings(), "guests", ())
