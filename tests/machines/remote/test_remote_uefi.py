"""A machine with UEFI and systemd-boot: `boot = "bootctl"`. With `./run-tests --all`."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from real_machine import UP, boot, study
from uefi_machine import Uefi

pytestmark = pytest.mark.guest
MACHINE = Uefi


def reboot(real: Uefi) -> tuple[str, str]:
    """As its administrator would; the release and the command line that it comes back with."""
    before = real.ssh("cat /proc/sys/kernel/random/boot_id")
    real.ssh("systemctl reboot")
    end = time.monotonic() + UP
    while (now := real.ssh("cat /proc/sys/kernel/random/boot_id")) in ("", before):
        assert time.monotonic() < end, now
        time.sleep(3)
    return real.ssh("uname -r").strip(), real.ssh("cat /proc/cmdline")


def test_a_study(real: Uefi, tmp_path: Path) -> None:
    """Alternating boots by set-oneshot, words of the contender's own; at the end nothing of ours is left."""
    study(real, tmp_path, f"installed:{real.releases[1]}", boot="bootctl")
    release, cmdline = reboot(real)
    assert release == real.releases[1] and "kduel" not in cmdline, "the default, which is the newest"


def test_an_entry_of_our_own_is_not_the_default(real: Uefi, tmp_path: Path) -> None:
    machine, (arm,) = real.prepare(f"installed:{real.releases[1]}", boot="bootctl", cmdline="kduel_test=2")
    release, cmdline = reboot(real)
    assert release == real.releases[1] and "kduel" not in cmdline
    assert "-kduel-1.conf" in real.ssh("ls /efi/loader/entries")
    outcome = boot(machine, arm, tmp_path / "own", 'cat /proc/cmdline >"$1"/cmdline')
    assert outcome.void == "", outcome.message
    assert "kduel_test=2" in (tmp_path / "own" / "cmdline").read_text()
    machine.close()
    assert "kduel" not in real.ssh("ls /efi/loader/entries")


def test_an_entry_that_panics_is_survived_and_told(real: Uefi, tmp_path: Path) -> None:
    machine, (broken, good) = real.prepare("installed:9.9.9-broken", f"installed:{real.releases[0]}", boot="bootctl")
    outcome = boot(machine, broken, tmp_path / "broken", "echo never")
    assert outcome.void == "fell-back", outcome.message
    assert f"booted {real.releases[1]}" in outcome.message
    outcome = boot(machine, good, tmp_path / "good", "true")
    assert outcome.void == "", outcome.message
