"""An interrupted run by KVM, on the virtual machine of test_kvm.py. With `./run-tests --all`."""

from __future__ import annotations

import pytest
from kvm_machine import USER, KvmMachine

pytestmark = [pytest.mark.guest, pytest.mark.network]
MACHINE = KvmMachine
STUDY = """
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
QEMU = "pgrep -x qemu-system-x86"


def test_an_interrupted_run_is_resumed_and_nothing_is_left(real: KvmMachine) -> None:
    real.write("/tmp/study.toml", STUDY)
    process = real.start("run study.toml --offline --out /tmp/stopped")
    real.until("ls /tmp/stopped/trials/*/trial.json")
    real.signal("INT")
    said, _ = process.communicate()
    assert process.returncode == 130 and "kduel resume" in said, said
    assert real.run(QEMU)[0] == 1, "a guest outlived its run"
    status, said = real.kduel_as(USER, "resume /tmp/stopped")
    assert status == 0, said
    assert [trial["status"] for trial in real.records("/tmp/stopped")] == ["ok", "ok"], said
