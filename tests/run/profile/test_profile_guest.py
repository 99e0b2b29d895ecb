"""A profile of a timed run in real guests: recorded, named by the guest's own symbols, adding up."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.guest

STUDY = """
[study]
name = "profiled"
[machine]
kind = "qemu"
boot_deadline = 900
cpus = 1
[settle]
mode = "fixed"
seconds = 0
[host]
max_wait = 100
[blocks]
fixed = 1
[[contender]]
name = "A"
kernel = "debian:6.12-cloud"
[[contender]]
name = "B"
kernel = "debian:6.12-cloud"
[[benchmark]]
use = "kbench"
operation = "pipe"
time = 1.0
primary = ["time-mean"]
"""


def kduel(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kduel", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)


def test_a_kernel_against_itself_is_profiled_in_guests(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    run = tmp_path / "run"
    measured = kduel("run", tmp_path / "study.toml", "--out", run)
    assert measured.returncode == 0, measured.stderr
    done = kduel("explain", run, "-b", "pipe", "--blocks", "2", "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    functions = {name for chain in found["stacks"] for name in chain.split(";")}
    assert {"pipe_read", "pipe_write", "do_syscall_64"} <= functions
    assert all(row["only"] == "" for row in found["rows"])
    for which in ("baseline", "contender", "difference"):
        parts = math.fsum(row["cost"][which] for row in found["rows"])
        assert math.isclose(parts, found["whole"][which], rel_tol=1e-6, abs_tol=1e-3)
    assert min(found["samples"]) > 500
    assert found["exact"].startswith("kduel explain debian:6.12-cloud debian:6.12-cloud")
    again = kduel("explain", run, "-b", "pipe", "--blocks", "2", "--format", "json")
    assert json.loads(again.stdout) == found
