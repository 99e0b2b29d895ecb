"""Delays of tasks around a step, as kdelay leaves them."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from kduel.benchmarks.support import delays
from kduel.benchmarks.support.output import ParseError
from kduel.benchmarks.support.service import Service
from kduel.core.cache import Cache
from kduel.core.errors import InputError
from kduel.guest import programs

# Of a guest of 6.1 whose only user tasks were a shell's.
CAPTURED = """version 13
release 6.1.0-44-cloud-amd64
switch 1
tasks 61
longest 50851587
cpu 507 165005270
io 139 72365189
swap 0 0
reclaim 0 0
thrash 0 0
compact 0 0
copy 586 49503788
"""


def read(place: Path, text: str) -> dict[str, float]:
    (place / delays.KEPT).write_text(text)
    return delays.read_delays(place)


def test_delays_are_read_by_name(tmp_path: Path) -> None:
    found = read(tmp_path, CAPTURED)
    assert found == {
        "sched-tasks": 61, "sched-task-wait": pytest.approx(165.00527 / 61), "sched-task-wait-longest": 50.851587,
        "sched-delay-io": 72.365189, "sched-delay-swap": 0, "sched-delay-reclaim": 0, "sched-delay-thrash": 0,
        "sched-delay-compact": 0, "sched-delay-copy": 49.503788,
    }  # fmt: skip


@pytest.mark.parametrize(
    "why", ["this kernel has no taskstats", "some tasks ended unseen", "unknown version of taskstats"]
)
def test_a_kernel_without_the_account_gives_no_number(tmp_path: Path, why: str) -> None:
    assert read(tmp_path, f"version 18\nabsent {why}\n") == {}
    (tmp_path / delays.KEPT).unlink()
    assert delays.read_delays(tmp_path) == {}


def test_what_was_not_switched_on_or_cannot_be_is_no_zero(tmp_path: Path) -> None:
    cpus = {"sched-tasks", "sched-task-wait", "sched-task-wait-longest"}
    assert read(tmp_path, CAPTURED.replace("switch 1", "switch 0")).keys() == cpus
    # 5.10 has no switch and counts always.
    assert "sched-delay-io" in read(tmp_path, CAPTURED.replace("switch 1", "switch -"))


@pytest.mark.parametrize(
    ("release", "counted"),
    [("5.10.0", True), ("6.11.9", True), ("6.12.74", False), ("6.18", False), ("7.3-rc1", False)],
)
def test_waits_for_devices_of_a_kernel_that_mistakes_tasks_are_left_out(
    tmp_path: Path, release: str, counted: bool
) -> None:
    """Whatever they are: most of the wrong ones are not impossible."""
    found = read(tmp_path, CAPTURED.replace("6.1.0-44-cloud-amd64", release))
    assert ("sched-delay-io" in found) is counted and found["sched-delay-copy"] == 49.503788
    assert "sched-delay-io" not in read(tmp_path, CAPTURED.replace("release", "of"))


def test_a_kernel_that_fills_in_zeros_gives_no_number(tmp_path: Path) -> None:
    """With CONFIG_TASKSTATS and without CONFIG_TASK_DELAY_ACCT: the program itself ran, and no task did."""
    none = (
        CAPTURED.replace("switch 1", "switch -")
        .replace("tasks 61", "tasks 0")
        .replace("longest 50851587", "longest 0")
    )
    assert read(tmp_path, none.replace("507 165005270", "0 0")) == {}


@pytest.mark.parametrize(
    "change", [("tasks 61\n", ""), ("cpu 507 165005270", "cpu 507"), ("longest 5", "longest -5")]
)
def test_what_is_not_the_programs_is_refused(tmp_path: Path, change: tuple[str, str]) -> None:
    with pytest.raises(ParseError, match="file delays of the step is not kdelay's"):
        read(tmp_path, CAPTURED.replace(*change))


def test_a_task_that_ended_and_was_not_waited_for_counts_once(tmp_path: Path) -> None:
    """Its message counted it, and it can still be asked for."""
    try:
        program = programs.build(delays.PROGRAM, platform.machine(), cache=Cache(tmp_path / "cache"))
    except InputError as error:
        pytest.skip(str(error))
    many = 2000
    left = f"import os\nfor _ in range({many}):\n    if not os.fork(): os._exit(0)"
    subprocess.run(
        [program, delays.KEPT, sys.executable, "-c", f"{left}\nimport time; time.sleep(1)"], cwd=tmp_path, check=True
    )
    text = (tmp_path / delays.KEPT).read_text()
    if "\ntasks " not in text or "\ntasks 0\n" in text:
        pytest.skip(f"no account of tasks here: {text}")
    # All of the machine's tasks count.
    assert many <= int(text.split("\ntasks ")[1].split()[0]) < 1.8 * many


def test_a_service_has_delays_too_and_puts_the_switch_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    switch = tmp_path / "task_delayacct"
    switch.write_text("0\n")
    monkeypatch.setattr(delays, "SWITCH", str(switch))
    service = delays.switch_on(Service(name="server", start=f"cp {switch} seen", stop="echo stopped >>seen"))
    environment = {"KDUEL_SERVICE": str(tmp_path), "PATH": "/usr/bin:/bin"}
    for script in (service.start, service.stop):
        subprocess.run(["sh", "-e", "-c", script], cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "seen").read_text() == "1\nstopped\n" and switch.read_text() == "0\n"
