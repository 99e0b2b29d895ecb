"""Slurm reboots two whole machines into the kernels of a study: Debian with GRUB, munge and slurmd in QEMU, the node
features by the shipped helper, the reboot by Slurm's RebootProgram. The controller is on this host's loopback.

It boots machines many times without KVM: ./run-tests leaves it out unless --all.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loopback import NODE_STUDY
from slurm_machine import RESUME, Rebooted, rebooted
from test_fleet_runs import records

pytestmark = pytest.mark.guest
LONGEST = 7200.0
"""Seconds that a run may take in an emulator on a busy host."""
BENCHMARK = r'''
label = "loop"
command = """
t=$(date +%s%N); i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; echo ns: $(($(date +%s%N) - t))
"""
primary = ["time"]
metrics = [{ name = "time", unit = "ns", better = "lower", regex = "ns: ([0-9]+)" }]
'''


@pytest.fixture(scope="module")
def nodes(need: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rebooted]:
    for program in ("slurmctld", "munged", "sbatch", "srun", "qemu-system-x86_64"):
        need(program)
    if os.geteuid() != 0:
        pytest.skip("jobs run on the machines under the id of the user who submits them, and only root is there")
    with rebooted(tmp_path_factory.mktemp("nodes")) as found:
        yield found


@pytest.fixture
def write(tmp_path: Path, nodes: Rebooted, environment: dict[str, str]) -> Callable[..., Path]:
    environment["SLURM_CONF"] = os.environ["SLURM_CONF"]

    def call(blocks: int, deadline: int = RESUME) -> Path:
        path = tmp_path / "rebooted.toml"
        old, new = nodes.releases
        path.write_text(
            NODE_STUDY.format(
                machine="free_mib = 64", benchmark=BENCHMARK, old=old, new=new, blocks=blocks, deadline=deadline
            )
        )
        return path

    return call


def test_slurm_reboots_two_machines_into_two_kernels(start, kduel, write, nodes: Rebooted, tmp_path: Path):
    before = {name: machine.ssh("cat /proc/sys/kernel/random/boot_id") for name, machine in nodes.machines.items()}
    run = tmp_path / "run"
    with start("run", write(blocks=4), "--fleet", "slurm:nodelist=n[1-2]", "--out", run, "--seed", 7) as controller:
        try:
            out, err = controller.communicate(timeout=LONGEST)
        finally:
            controller.kill()
    assert controller.returncode == 0, err
    found = records(run)
    assert Counter((one["member"], one["status"]) for one in found) == {("n1", "ok"): 4, ("n2", "ok"): 4}, err
    nodes.longest = max(one["timings"]["kernel"] for one in found)
    boots = {one["facts"]["boot_id"] for one in found} | {text.strip() for text in before.values()}
    assert len(boots) == 8 + 2, "a boot of its own for each trial"
    for one in found:
        (release,) = [release for release in nodes.releases if release in one["contender"]]
        environment = run / "trials" / one["id"] / "environment"
        assert release in (environment / "uname").read_text()
        assert f"BOOT_IMAGE=/boot/vmlinuz-{release} " in (environment / "files").read_text()
    assert re.search("undecided|faster|slower|equivalent", out), out
    assert "nothing changed afterwards" in kduel("verify", run).stdout
    # Nothing of it is left: no job, no choice of a kernel, no file.
    nodes.cluster.await_no_job()
    for machine in nodes.machines.values():
        left = machine.ssh("cat /boot/grub/grubenv; ls /var/tmp /var/lib /tmp; ps -e -o args")
        assert not re.search("next_entry=.", left) and "kduel" not in left, left


def test_a_machine_that_never_returns_is_told_and_the_other_goes_on(start, write, nodes: Rebooted, tmp_path: Path):
    """Its power is cut while it reboots. Afterwards it is switched on, and Slurm has it back by itself."""
    gone = nodes.machines["n2"]
    run = tmp_path / "run"
    deadline = round(max(120.0, 3 * nodes.longest))
    study = write(blocks=2, deadline=deadline)
    with start("run", study, "--fleet", "slurm:nodelist=n[1-2]", "--out", run, "--seed", 7) as controller:
        try:
            while not nodes.cluster.ask("squeue", "-h", "-t", "CONFIGURING", "-w", "n2"):
                assert controller.poll() is None, controller.communicate()[1]
                time.sleep(1)
            time.sleep(3)
            gone.switch_off()
            _, err = controller.communicate(timeout=LONGEST)
        finally:
            controller.kill()
    assert controller.returncode == 0, err
    ends = {(one["member"], one["status"]) for one in records(run)}
    assert ends == {("n1", "ok"), ("n2", "void")}, err
    assert f"no-return: Slurm did not bring n2 up within {deadline} s" in err and "no-node: n2 is " in err
    nodes.cluster.await_no_job()
    gone.switch_on()
    nodes.await_idle()
