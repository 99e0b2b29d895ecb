"""End to end on a machine that is real to KDuel: Debian with systemd, sshd, GRUB and two kernels, reached by SSH alone.

It runs in QEMU on loopback with a disk of its own, and reboots like any other.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import build_machine
import pytest
from real_machine import UP, Real, boot, study

from kduel.core.errors import HostError, InputError

pytestmark = pytest.mark.guest
SOURCE = Path(__file__).parents[3] / "src"


def test_a_study_with_alternating_reboots(real: Real, tmp_path: Path) -> None:
    """Randomised blocks, grub-reboot, raw files home, verdicts: by `kduel run`, as a user would."""
    machine = "\n".join(f"{key} = {json.dumps(value)}" for key, value in real.settings("tuner").items())
    contenders = "\n".join(f'[[contender]]\nkernel = "installed:{release}"' for release in real.releases)
    study = tmp_path / "study.toml"
    study.write_text(
        f'[study]\nname = "real"\n{contenders}\n[machine]\nkind = "ssh"\n{machine}\n'
        '[settle]\nmode = "fixed"\nseconds = 1\n[blocks]\nfixed = 1\n'
        '[[benchmark]]\nuse = "sysbench-cpu"\ntime = 1\nprimary = ["events-per-second"]\n'
        '[[benchmark]]\nuse = "systemd-analyze"\n[[benchmark]]\nuse = "system-size"\ninitramfs = false\n'
    )
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "kduel", "run", str(study), "--out", str(tmp_path / "run"), "--seed", "1"],
        env=environment, capture_output=True, text=True, timeout=3000, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    trials = sorted((tmp_path / "run" / "trials").iterdir())
    assert len(trials) == 2
    seen = {}
    for trial in trials:
        record = json.loads((trial / "trial.json").read_text())
        assert record["status"] == "ok", record
        captured = json.loads((trial / "environment.json").read_text())
        assert captured["release"] in record["contender"]
        assert "ssh.service" in captured["conditions"]["services"]
        steps = record["host"]
        assert set(steps) == {"sysbench-cpu-1t-1s", "boot-time", "system-no-initramfs"}
        assert steps["sysbench-cpu-1t-1s"]["seconds"] >= 0.9 and steps["sysbench-cpu-1t-1s"]["interrupts"] > 0
        assert all(step["vcpu_run_s"] is None and step["other_work"] is None for step in steps.values())
        seen[captured["release"]] = (trial / "02-boot-time" / "stdout").read_text()
    assert set(seen) == set(real.releases) and all("Startup finished" in text for text in seen.values())
    assert "next_entry=\n" in real.ssh("cat /boot/grub/grubenv; echo")


def test_a_kernel_that_panics_is_survived_and_told(real: Real, tmp_path: Path) -> None:
    machine, (broken, good) = real.prepare("installed:9.9.9-broken", f"installed:{real.releases[0]}")
    outcome = boot(machine, broken, tmp_path / "broken", "echo never")
    assert outcome.void == "fell-back", outcome.message
    assert f"booted {real.releases[0]}" in outcome.message
    # And the machine is as good as before: kexec this time, and its clock jumps.
    machine, (_, arm) = real.prepare(*[f"installed:{r}" for r in real.releases], boot="kexec")
    outcome = boot(machine, arm, tmp_path / "kexec", 'date -s "+1 hour" >/dev/null; cat /proc/cmdline >"$1"/cmdline')
    assert outcome.void == "", outcome.message
    assert "root=/dev/nvme0n1p1" in (tmp_path / "kexec" / "cmdline").read_text()
    assert 3590 < outcome.facts["clock_jump_seconds"] < 3700
    assert "its clock jumped" in (tmp_path / "kexec" / "console.log").read_text()
    assert good.kernel.release == real.releases[0]


def test_a_connection_cut_in_mid_trial_is_survived(real: Real, tmp_path: Path) -> None:
    """The machine's own sshd ends every session while the script runs; the script lives on, and is found again."""
    machine, (arm, _) = real.prepare()
    script = (
        '(sleep 3; for p in /proc/[0-9]*; do read -r c <$p/comm; [ "$c" != sshd ] || [ ${p#/proc/} = $(cat /run/sshd.pid) ] '
        '|| kill ${p#/proc/}; done) 2>/dev/null &\nsleep 12; echo whole >"$1"/end'
    )
    outcome = boot(machine, arm, tmp_path / "cut", script)
    assert outcome.void == "", outcome.message
    assert outcome.facts["connection_cuts"] >= 1
    assert (tmp_path / "cut" / "end").read_text() == "whole\n"
    assert "connection cut in mid-trial" in (tmp_path / "cut" / "console.log").read_text()
    assert real.ssh("ls /var/tmp | grep kduel-") == ""


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"user": "plain"}, "sudo asks for a password or refuses"),
        ({"user": "nobody-here"}, "does not admit this user without a password"),
        ({"known_hosts": "/dev/null"}, "host key is not the one that is known"),
        ({"free_mib": 100_000}, "100000 are required"),
        ({"port": 1}, "cannot be reached"),
        ({"place": "root@no-such-host.invalid"}, "name cannot be resolved"),
    ],
)
def test_trouble_is_told_before_anything_is_rebooted(real: Real, change: dict[str, Any], says: str) -> None:
    before = real.ssh("cat /proc/sys/kernel/random/boot_id")
    with pytest.raises(HostError, match=says):
        real.prepare(**change)
    assert real.ssh("cat /proc/sys/kernel/random/boot_id") == before


def test_a_kernel_that_is_not_installed_is_named(real: Real) -> None:
    with pytest.raises(HostError, match=f"no kernel 5.10.0; it has .*{real.releases[0]}"):
        real.prepare("installed:5.10.0", f"installed:{real.releases[0]}")


def test_a_kernel_is_brought_and_taken_away(real: Real, tmp_path: Path) -> None:
    """With a GRUB entry of ours; at the end the machine runs its default again, as if nothing had been."""
    study(real, tmp_path, "debian:7.3-cloud")
    assert "7.3" not in real.ssh("ls /boot /lib/modules /boot/grub /var/lib; uname -r")


def test_a_release_that_is_there_is_not_overwritten(real: Real) -> None:
    before = real.ssh("sha256sum /boot/vmlinuz-*")
    with pytest.raises(InputError, match="which KDuel will not overwrite"):
        real.prepare(f"installed:{real.releases[0]}", build_machine.KERNELS[1])
    assert real.ssh("sha256sum /boot/vmlinuz-*") == before


def test_a_disk_that_fills_up_in_mid_trial_is_told(real: Real, tmp_path: Path) -> None:
    machine, (arm, _) = real.prepare(directory="/mnt/small", free_mib=8)
    script = 'echo before >"$1"/before; dd if=/dev/zero of=/mnt/small/filler bs=64k 2>/dev/null; echo after >"$1"/after\nexit 0'
    outcome = boot(machine, arm, tmp_path / "full", script)
    assert outcome.void == "disk-full", outcome.message
    assert (tmp_path / "full" / "before").read_text() == "before\n", "what was written before came home"
    assert real.ssh("ls /mnt/small") == "filler\n"


def test_a_reboot_in_mid_trial_is_told(real: Real, tmp_path: Path) -> None:
    machine, (arm, _) = real.prepare()
    outcome = boot(machine, arm, tmp_path / "reboot", "sleep 3; systemctl reboot -f; sleep 600")
    assert outcome.void == "rebooted", outcome.message
    assert "kduel" not in real.ssh("ls /var/tmp /var/lib"), "nothing of the trial is left"


def test_a_machine_that_never_returns_is_given_up_in_time(real: Real, tmp_path: Path) -> None:
    """Last, since it switches the machine off."""
    machine, (arm, _) = real.prepare(boot_deadline=20.0)
    switch_off = threading.Timer(6.0, real.switch_off)
    switch_off.start()
    before = time.monotonic()
    outcome = boot(machine, arm, tmp_path / "gone", "echo never")
    switch_off.join()
    assert outcome.void in ("no-return", "unreachable"), outcome.message
    assert time.monotonic() - before < UP, "its own deadline ended it, not the usual one"
