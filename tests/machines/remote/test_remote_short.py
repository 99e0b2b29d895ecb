"""The whole machine in short: one block by `kduel run` and grub-reboot, then kexec and a clock that jumps. `./run-tests --all`
has the long form (test_remote_machine.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from real_machine import Real, boot, study

from kduel.machines.host.doctor import examine_tree
from kduel.machines.remote.connection import Connection
from kduel.machines.remote.snapshot import bring

pytestmark = pytest.mark.guest


def test_a_study(real: Real, tmp_path: Path) -> None:
    study(real, tmp_path, f"installed:{real.releases[1]}")


def test_kexec_and_a_clock_that_jumps(real: Real, tmp_path: Path) -> None:
    machine, (arm, _) = real.prepare(*[f"installed:{release}" for release in real.releases], boot="kexec")
    outcome = boot(machine, arm, tmp_path / "kexec", 'date -s "+1 hour" >/dev/null; cat /proc/cmdline >"$1"/cmdline')
    assert outcome.void == "", outcome.message
    assert "root=/dev/nvme0n1p1" in (tmp_path / "kexec" / "cmdline").read_text()
    assert 3590 < outcome.facts["clock_jump_seconds"] < 3700
    assert "its clock jumped" in (tmp_path / "kexec" / "console.log").read_text()


def test_doctor(real: Real, tmp_path: Path) -> None:
    where = real.settings()
    connection = Connection(
        where["place"], port=where["port"], identity=where["identity"], known_hosts=where["known_hosts"]
    )
    said = [finding.what for finding in examine_tree(bring(connection, tmp_path))]
    assert any("hardware thread" in one for one in said), said
    assert "its services and timers cannot be listed" not in said
