"""The whole machine in short: one block by `kduel run` and grub-reboot, then kexec, the clock, a panic. `./run-tests --all`
has the long form (test_remote_machine.py).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from real_machine import Real, boot

from kduel.doctor import examine_tree
from kduel.remote.connection import Connection
from kduel.remote.looking import bring

pytestmark = pytest.mark.guest
SOURCE = Path(__file__).parents[2] / "src"
CUT = (
    '(sleep 2; for p in /proc/[0-9]*; do read -r c <$p/comm; [ "$c" != sshd ] || [ ${p#/proc/} = $(cat /run/sshd.pid) ] || '
    "kill ${p#/proc/}; done) 2>/dev/null & sleep 8; cat /proc/sys/vm/swappiness"
)
"""The machine's own sshd ends every session while the script runs."""


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    machine = Real(tmp_path_factory.mktemp("machine"))
    machine.switch_on()
    try:
        machine.wait()
        yield machine
    finally:
        machine.switch_off()


def test_a_study(real: Real, tmp_path: Path) -> None:
    """Two kernels, one with a word for its command line and a sysctl; the connection is cut in each trial."""
    machine = "\n".join(f"{key} = {json.dumps(value)}" for key, value in real.settings("tuner").items())
    old, new = real.releases
    study = tmp_path / "study.toml"
    study.write_text(
        f'[study]\nname = "real"\n[[contender]]\nkernel = "installed:{old}"\nname = "old"\n'
        f'[[contender]]\nkernel = "installed:{new}"\nname = "new"\ncmdline = "kduel_test=1"\n'
        f'sysctl = {{"vm.swappiness" = 7}}\n[machine]\nkind = "ssh"\n{machine}\n'
        '[settle]\nmode = "fixed"\nseconds = 0\n[blocks]\nfixed = 1\n'
        '[[benchmark]]\nuse = "sysbench-cpu"\ntime = 1\nprimary = ["events-per-second"]\n'
        '[[benchmark]]\nuse = "systemd-analyze"\n[[benchmark]]\nuse = "command"\nlabel = "cut"\n'
        f"command = '''{CUT}'''\n"
        'metrics = [{name = "swappiness", unit = "1", better = "none", regex = "(\\\\d+)"}]\n'
    )
    done = subprocess.run(
        [sys.executable, "-m", "kduel", "run", str(study), "--out", str(tmp_path / "run"), "--seed", "1"],
        env=os.environ | {"PYTHONPATH": str(SOURCE), "NO_COLOR": "1"},
        capture_output=True, text=True, timeout=3000, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    seen = {}
    for trial in sorted((tmp_path / "run" / "trials").iterdir()):
        record = json.loads((trial / "trial.json").read_text())
        assert record["status"] == "ok", record
        assert record["facts"]["connection_cuts"] >= 1
        captured = json.loads((trial / "environment.json").read_text())
        assert "ssh.service" in captured["conditions"]["services"]
        assert "Startup finished" in (trial / "02-boot-time" / "stdout").read_text()
        cmdline = (trial / "environment" / "files").read_text()
        seen[captured["release"]] = ("kduel_test=1" in cmdline, (trial / "03-cut" / "stdout").read_text())
    assert seen == {old: (False, "60\n"), new: (True, "7\n")}
    assert "real · 1 block · 2 trials · ssh" in done.stdout
    # Nothing of ours is left: no choice for the next boot, no entry, no file, no setting.
    left = real.ssh(
        "cat /boot/grub/grubenv; ls /boot/grub/custom.cfg /var/lib/kduel*; ls /var/tmp; sysctl -n vm.swappiness"
    )
    assert "next_entry=\n" in left and "kduel" not in left and left.endswith("60\n"), left


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


def test_a_kernel_that_panics_is_survived_and_told(real: Real, tmp_path: Path) -> None:
    machine, (broken, _) = real.prepare("installed:9.9.9-broken", f"installed:{real.releases[0]}")
    outcome = boot(machine, broken, tmp_path / "broken", "echo never")
    assert outcome.void == "fell-back", outcome.message
    assert f"came back with {real.releases[0]}" in outcome.message
