"""Each of our programs under policies and schedulers on a machine reached by SSH."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from program_steps import LAUNCHED, OWN_TASKS
from real_machine import SOURCE, Real

pytestmark = pytest.mark.guest


def measure(real: Real, place: Path, contenders: str, benchmarks: str, *, unit: str) -> dict[str, Path]:
    """Carry out one block in a directory whose name has a blank; each contender's trial, if all are valid."""
    place = place / "a run"
    place.mkdir()
    machine = "\n".join(f"{key} = {json.dumps(value)}" for key, value in real.settings().items())
    (place / "study.toml").write_text(
        f'[study]\nname = "programs"\n{contenders}[machine]\nkind = "ssh"\n{machine}\n'
        f'[settle]\nmode = "fixed"\nseconds = 0\n[blocks]\nfixed = 1\nunit = "{unit}"\n{benchmarks}'
    )
    done = subprocess.run(
        [sys.executable, "-P", "-m", "kduel", "run", "study.toml", "--out", "the run", "--seed", "1"],
        cwd=place, env=os.environ | {"PYTHONPATH": str(SOURCE), "NO_COLOR": "1"},
        capture_output=True, text=True, timeout=3000, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    trials = {}
    for trial in sorted((place / "the run" / "trials").iterdir()):
        record: dict[str, Any] = json.loads((trial / "trial.json").read_text())
        assert (record["status"], record["failed_steps"]) == ("ok", {}), record
        trials[record["contender"]] = trial
    assert "kduel" not in real.ssh("ls /var/tmp /var/lib"), "nothing of the trials is left"
    return trials


def test_policies_each_in_a_boot_of_its_own(real: Real, tmp_path: Path) -> None:
    kernel = f'kernel = "installed:{real.releases[0]}"'
    contenders = (
        f'[[contender]]\n{kernel}\nname = "other"\n[[contender]]\n{kernel}\nname = "fifo"\npolicy = "fifo:10"\n'
    )
    trials = measure(real, tmp_path, contenders, LAUNCHED + OWN_TASKS, unit="boot")
    said = {name: next(trial.glob("*-policy/stdout")).read_text() for name, trial in trials.items()}
    assert "SCHED_OTHER" in said["other"] and "SCHED_FIFO" in said["fifo"]


def test_schedulers_policies_and_sysctls_in_one_boot(real: Real, tmp_path: Path) -> None:
    """With a kernel that is brought, as the machine's own have no sched_ext."""
    kinds = {
        "kernel": "",
        "ext": 'scheduler = "scx_plain"',
        "deadline": 'policy = "deadline:2ms,10ms,10ms"',
        "sysctl": 'sysctl = {"vm.swappiness" = 7}',
    }
    contenders = "".join(
        f'[[contender]]\nkernel = "debian:7.3-cloud"\nname = "{name}"\n{kind}\n' for name, kind in kinds.items()
    )
    trials = measure(real, tmp_path, contenders, OWN_TASKS, unit="load")
    assert set(trials) == set(kinds)
    boots = {json.loads((trial / "trial.json").read_text())["facts"]["boot_id"] for trial in trials.values()}
    assert len(boots) == 1
    gates = "".join(path.read_text() for path in trials["ext"].rglob("gates/*") if path.is_file())
    assert "plain" in gates
    assert "7.3" not in real.ssh("ls /boot /lib/modules /boot/grub; uname -r")
