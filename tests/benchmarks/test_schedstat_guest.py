"""The scheduler's counters around a step in real guests, of which 6.1 and 6.12 have them in different columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kduel.benchmarks.support import delays, schedstat
from kduel.core.results import Results
from kduel.store.rundir import RESULTS

pytestmark = [pytest.mark.guest, pytest.mark.network, pytest.mark.usefixtures("shared_cache")]
STUDY = """
[study]
name = "counters"
[machine]
kind = "qemu"
boot_deadline = 900
accel = "tcg"
memory = "512M"
[settle]
mode = "fixed"
seconds = 0
[host]
max_wait = 100
[blocks]
fixed = 1
[[contender]]
kernel = ["debian:6.1-cloud", "debian:6.12-cloud"]
[[benchmark]]
use = "kload"
processes = 4
schedstat = true
"""


def test_counters_of_two_versions(tmp_path: Path, kduel: Callable[..., Any]) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    done = kduel("run", tmp_path / "study.toml", "--out", tmp_path / "run")
    assert done.returncode in (0, 1), done.stderr
    steps = sorted((tmp_path / "run/trials").glob("*/01-*"))
    assert {(step / schedstat.BEFORE).read_text().split("\n")[0] for step in steps} == {"version 15", "version 16"}
    assert [(step / schedstat.SWITCH).read_text() for step in steps] == ["1\n", "1\n"]
    found = msgspec.json.decode((tmp_path / "run" / RESULTS).read_bytes(), type=Results)
    counted = {one.metric: (one.baseline_mean, one.mean) for one in found.metrics if one.metric.startswith("sched-")}
    # Two CPUs have one level of domains, which the sums are of. No kernel of Debian's counts time in interrupts.
    names = {metric.name for metric in schedstat.metrics()} - {"sched-delay-irq"}
    assert counted.keys() == {name for name in names if not name.startswith("sched-domain")}
    assert all(counted["sched-delay-copy"])
    # 6.12 mistakes whose wait for a device it is.
    assert sorted("sched-delay-io" in delays.read_delays(step) for step in steps) == [False, True]
    assert counted["sched-delay-io"] == (None, None)
    assert all(counted["sched-tasks"]) and min(counted["sched-tasks"]) >= 5
    for step in steps:
        assert "release" in (step / delays.KEPT).read_text()
        waits = dict(line.split(" ", 1) for line in (step / delays.KEPT).read_text().splitlines())
        slices, waited = map(int, waits["cpu"].split())
        inside = schedstat.read_step(step)
        # What waited within the counters waited within the account, which is around them.
        assert waits["switch"] == "1" and inside["sched-time-slices"] <= slices
        assert inside["sched-run-delay"] <= waited / 1e6
    for name in ("sched-schedules", "sched-wakeups", "sched-run-time", "sched-time-slices"):
        assert all(value for value in counted[name]), f"{name} stood still"
