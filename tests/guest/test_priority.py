"""The weight that QEMU gets: by which means, and that nothing of it is left behind."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kduel.core.errors import InputError
from kduel.guest import priority


@pytest.fixture(autouse=True)
def with_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a user's machine; tests/conftest.py switches it off for all others."""
    monkeypatch.delenv(priority.CHOICE)


@pytest.fixture
def sleeper() -> Iterator[int]:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        yield process.pid
        process.kill()


def tree(root: Path, process: int, *, cgroup: str, autogroup: str = "1") -> Path:
    """Files that look like /proc and a control group hierarchy."""
    (root / f"proc/{process}/task/{process}").mkdir(parents=True)
    (root / f"proc/{process}/cgroup").write_text(cgroup)
    (root / f"proc/{process}/autogroup").write_text("/autogroup-7 nice 0\n")
    (root / "proc/sys/kernel").mkdir(parents=True)
    (root / "proc/sys/kernel/sched_autogroup_enabled").write_text(f"{autogroup}\n")
    (root / "sys/fs/cgroup").mkdir(parents=True)
    return root


def words(root: Path, process: int) -> str:
    return (root / f"proc/{process}/autogroup").read_text()


def test_a_session_in_the_root_group_is_raised_by_its_autogroup(tmp_path: Path, sleeper: int) -> None:
    tree(tmp_path, sleeper, cgroup="1:cpu:/\n0::/\n")
    with priority.raise_priority(sleeper, tmp_path):
        assert words(tmp_path, sleeper) == f"{priority.NICE}\n"
    assert not list((tmp_path / "sys/fs/cgroup").iterdir())


@pytest.mark.parametrize("why", ["disabled", "own group", "own group of version 1"])
def test_where_autogroups_rest_a_control_group_is_made_and_removed(tmp_path: Path, sleeper: int, why: str) -> None:
    own = {"disabled": "0::/\n", "own group": "0::/user.slice\n", "own group of version 1": "4:cpu,cpuacct:/user\n"}
    tree(tmp_path, sleeper, cgroup=own[why], autogroup="0" if why == "disabled" else "1")
    top = tmp_path / "sys/fs/cgroup"
    (top / "user.slice").mkdir()
    (top / "user.slice/cpu.weight").write_text("100\n")
    (top / "cgroup.controllers").write_text("cpu io memory\n")
    with priority.raise_priority(sleeper, tmp_path) as got:
        assert got[-1] == f"cgroup weight {priority.WEIGHT}" and words(tmp_path, sleeper) == "/autogroup-7 nice 0\n"
        made = top / f"kduel-{sleeper}"
        assert (made / "cpu.weight").read_text() == f"{priority.WEIGHT}\n"
        assert (made / "cgroup.procs").read_text() == f"{sleeper}\n"
        for file in made.iterdir():
            file.unlink()  # as the kernel's own files go with the group
    assert not made.exists()


def test_what_a_killed_runner_left_is_removed(tmp_path: Path, sleeper: int) -> None:
    tree(tmp_path, sleeper, cgroup="0::/\n", autogroup="0")
    left = tmp_path / "sys/fs/cgroup/kduel-123"
    left.mkdir()
    with priority.raise_priority(sleeper, tmp_path):
        assert not left.exists()


def test_nothing_is_claimed_that_was_not_got(tmp_path: Path, sleeper: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, sleeper, cgroup="0::/\n", autogroup="0")

    def refuse(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr("kduel.guest.priority.os.setpriority", refuse)
    with priority.raise_priority(sleeper, tmp_path) as got:
        assert got == []


def test_the_environment_switches_it_off(tmp_path: Path, sleeper: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, sleeper, cgroup="1:cpu:/\n0::/\n")
    monkeypatch.setenv(priority.CHOICE, "normal")
    with priority.raise_priority(sleeper, tmp_path) as got:
        assert got == [] and words(tmp_path, sleeper) == "/autogroup-7 nice 0\n"
    monkeypatch.setenv(priority.CHOICE, "low")
    with pytest.raises(InputError, match="KDUEL_PRIORITY is 'low'"), priority.raise_priority(sleeper, tmp_path):
        pass


def test_this_host_gives_what_it_says(sleeper: int) -> None:
    with priority.raise_priority(sleeper) as got:
        for word in got:
            if word.startswith("nice "):
                assert os.getpriority(os.PRIO_PROCESS, sleeper) == int(word.split()[1])
            if word.startswith("autogroup"):
                assert Path(f"/proc/{sleeper}/autogroup").read_text().rstrip().endswith(f"nice {priority.NICE}")
    assert os.getpriority(os.PRIO_PROCESS, 0) == os.nice(0), "our own is as it was"


def test_threads_that_are_no_vcpus_leave_the_vcpus_cores(sleeper: int) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    pinned = cpus[-1:]
    left = set(cpus) - set().union(*(priority.siblings(cpu) for cpu in pinned))
    priority.keep_off(sleeper, [], pinned)
    assert os.sched_getaffinity(sleeper) == (left or set(cpus))
    priority.keep_off(sleeper, [], cpus)
    assert os.sched_getaffinity(sleeper) == (left or set(cpus)), "there is nowhere to go"


def test_a_thread_that_lets_guests_go_comes_first_and_nothing_inherits_that() -> None:
    """In a session of its own it would wait for a CPU beside a guest that keeps all of them busy."""
    before = os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)
    with priority.raise_own_thread():
        if os.geteuid() == 0:
            assert os.sched_getscheduler(0) == os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
        child = subprocess.run(["cat", "/proc/self/sched"], capture_output=True, text=True, check=True).stdout
        assert "policy" in child and next(line for line in child.splitlines() if line.startswith("policy")).endswith(
            " 0"
        )
    assert (os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)) == before


def test_a_user_who_may_not_has_the_thread_run_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    monkeypatch.setattr(os, "setpriority", refuse)
    before = os.sched_getscheduler(0)
    with priority.raise_own_thread():
        assert os.sched_getscheduler(0) == before


def test_other_work_on_the_host_goes_on() -> None:
    """Ten to twenty times an ordinary program's weight: more would stop a machine that two runs are on."""
    weight = {-10: 9548, -11: 11916, -12: 14949, -13: 18154, -14: 23254}  # sched_prio_to_weight
    assert 10 <= weight[priority.NICE] / 1024 <= 20
    assert 10 <= priority.WEIGHT / 100 <= 20
