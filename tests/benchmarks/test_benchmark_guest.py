"""Every benchmark's script in a real guest: the root has what it needs, and the parser reads what comes home."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
STUDY = """
[study]
name = "all-benchmarks"
[[contender]]
kernel = "debian:6.1-cloud"
[[contender]]
kernel = "debian:6.12-cloud"
[machine]
kind = "qemu"
boot_deadline = 900
memory = "1024M"
disk = "512M"
[host]
max_wait = 100 # other tests are no fault
[settle]
mode = "fixed"
seconds = 0
[blocks]
fixed = 1
[[benchmark]]
use = "sysbench-cpu"
time = 1
threads = [1, 4]
[[benchmark]]
use = "sysbench-memory"
time = 1
[[benchmark]]
use = "sysbench-fileio"
mode = ["seqwr", "rndrw", "seqrd"]
file_total_size = "4M"
file_num = 4
time = 1
[[benchmark]]
use = "vmstat"
time = 2
load = ["idle", "sysbench-cpu"]
as_published = true
[[benchmark]]
use = "perf-stat"
time = 1
load = ["idle", "hackbench", "sysbench-cpu-2x"]
[[benchmark]]
use = "perf-sched-pipe"
loops = 200
pinned = [true, false]
[[benchmark]]
use = "perf-sched-messaging"
groups = 1
loops = 2
threads = [true, false]
[[benchmark]]
use = "hackbench"
groups = 1
fds = 2
loops = 20
[[benchmark]]
use = "cyclictest"
loops = 1000
threads = 2
load = ["idle", "hackbench"]
[[benchmark]]
use = "stress-ng"
stressor = [
    "switch", "context", "yield", "pipe", "futex", "sem", "eventfd", "sock", "fork", "vfork", "pthread",
    "mmap", "fault", "timer", "nanosleep",
]
# On a busy host an emulated guest may clone nothing within two seconds: "nothing was measured", rightly.
[[benchmark]]
use = "stress-ng"
stressor = "clone"
time = 8
[[benchmark]]
use = "fio"
rw = ["read", "randwrite"]
direct = [true, false]
size = "4M"
time = 1
[[benchmark]]
use = "command"
command = 'test -d "$KDUEL_SCRATCH" && echo "answer: 42"'
metrics = [{ name = "answer", unit = "1", better = "none", regex = "answer: ([0-9]+)$" }]
[[benchmark]]
use = "schbench"
"""


@pytest.mark.guest
@pytest.mark.network
@pytest.mark.alone
def test_every_benchmark_gives_its_metrics_in_a_guest(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    run = tmp_path / "run"
    done = subprocess.run(
        [sys.executable, "-m", "kduel", "run", str(study), "--out", str(run)],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    trials = [json.loads(path.read_text()) for path in sorted(run.glob("trials/*/trial.json"))]
    assert len(trials) == 2
    for trial in trials:
        failed = trial["failed_steps"]
        assert "schbench is not in the PATH" in failed.pop("schbench-1m"), "no Debian package has it"
        assert failed == {}, trial["id"]
