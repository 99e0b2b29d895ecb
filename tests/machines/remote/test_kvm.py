"""The machine `qemu` by KVM, in a virtual machine whose emulated processor has AMD's virtualisation. With `./run-tests --all`."""

from __future__ import annotations

import pytest
from kvm_machine import CONTENDERS, USER, KvmMachine

pytestmark = [pytest.mark.guest, pytest.mark.network]
MACHINE = KvmMachine
SHORT = """
[study]
name = "short"
[[contender]]
kernel = "debian:6.1-cloud"
[[contender]]
kernel = "debian:6.12-cloud"
[machine]
kind = "qemu"
accel = "kvm"
memory = "512M"
boot_deadline = 900
[host]
max_wait = 100
[settle]
mode = "fixed"
seconds = 0
[blocks]
fixed = 1
[[benchmark]]
use = "kbench"
operation = "null-call"
time = 0.05
"""


def test_a_device_of_root_alone_is_told_with_what_opens_it(real: KvmMachine) -> None:
    """The advice is what `open_device` does."""
    real.write("/tmp/closed.toml", SHORT)
    real.close_device()
    try:
        status, said = real.kduel_as("root", "run closed.toml --offline --out /tmp/closed")
    finally:
        real.open_device()
    assert status == 3 and "only root may open /dev/kvm (mode 0600" in said, said
    assert "groupadd -f kvm; chgrp kvm /dev/kvm; chmod 660 /dev/kvm" in " ".join(said.split())


def test_a_block_reaches_its_verdict_with_the_tsc(real: KvmMachine) -> None:
    """The main job: both kernels through /dev/kvm, no trial void, values and a verdict."""
    real.must("rm -rf /tmp/main")
    words = "--offline --machine qemu:accel=kvm,boot_deadline=900 --blocks 1 --no-exact-first --out /tmp/main"
    status, said = real.kduel_as(USER, f"run {' '.join(CONTENDERS)} {words}")
    assert status == 0, said
    trials = real.records("/tmp/main")
    assert [trial["status"] for trial in trials] == ["ok", "ok"], trials
    assert all(trial["failed_steps"] == {} for trial in trials), trials
    assert "1 block · 2 trials · qemu kvm" in said and "sysbench-cpu" in said, said
    assert "hypervisors" in real.must("cat /tmp/main/report/index.html"), "times by nested KVM carry a warning"


def test_an_interrupted_run_is_resumed_and_nothing_is_left(real: KvmMachine) -> None:
    real.write("/tmp/stopped.toml", SHORT)
    process = real.start("run stopped.toml --offline --out /tmp/stopped")
    real.until("ls /tmp/stopped/trials/*/trial.json")
    real.signal("INT")
    said, _ = process.communicate()
    assert process.returncode == 130 and "kduel resume" in said, said
    assert real.run("pgrep -x qemu-system-x86")[0] == 1, "a guest outlived its run"
    status, said = real.kduel_as(USER, "resume /tmp/stopped")
    assert status == 0, said
    assert [trial["status"] for trial in real.records("/tmp/stopped")] == ["ok", "ok"], said
