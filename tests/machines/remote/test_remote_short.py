"""The whole machine in short: one block by `kduel run` and grub-reboot, and what `kduel doctor` finds there. `./run-tests --all`
has the long form (test_remote_machine.py), with kexec.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from real_machine import Real, study

from kduel.machines.host.doctor import examine_tree
from kduel.machines.remote.connection import Connection
from kduel.machines.remote.snapshot import bring

pytestmark = pytest.mark.guest


def test_a_study(real: Real, tmp_path: Path) -> None:
    study(real, tmp_path, f"installed:{real.releases[1]}")


def test_doctor(real: Real, tmp_path: Path) -> None:
    where = real.settings()
    connection = Connection(
        where["place"], port=where["port"], identity=where["identity"], known_hosts=where["known_hosts"]
    )
    said = [finding.what for finding in examine_tree(bring(connection, tmp_path))]
    assert any("hardware thread" in one for one in said), said
    assert "its services and timers cannot be listed" not in said
