"""What a kbench leaves that is ended early, and what a host's settings are after one: on this very host."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kduel.core.cache import Cache
from kduel.guest import programs

MISSING = 4
"""The exit status of an operation that this kernel cannot do."""
FAKE = 'mount -t tmpfs none /sys/fs/cgroup && cp -r "$0"/. /sys/fs/cgroup && { "$@"; status=$?; cp -r /sys/fs/cgroup/. "$0"; exit $status; }'


@pytest.fixture
def kbench() -> str:
    return str(programs.build("kbench", cache=Cache()))


@pytest.fixture
def groups(tmp_path: Path, need: Callable[..., str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """groups(WORD, ...): runs these words where /sys/fs/cgroup holds the files of tmp_path/groups."""
    unshare = need("unshare")
    if subprocess.run([unshare, "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not make mount namespaces")
    place = tmp_path / "groups"
    for group in (place, place / "kbench-a", place / "kbench-b"):
        group.mkdir()
        (group / "cgroup.procs").touch()
        (group / "cpu.weight").touch()
    (place / "cgroup.subtree_control").write_text("cpuset memory\n")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [unshare, "--mount", "sh", "-c", FAKE, str(place), *words],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip

    return run


def test_a_directory_that_a_killed_one_left_is_used_again_and_removed(kbench: str, tmp_path: Path) -> None:
    (tmp_path / "kbench.mount").mkdir()
    done = subprocess.run([kbench, "--time", "0.01", "tmpfs-create"], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_second_one_in_the_same_directory_is_refused_and_the_first_one_unharmed(
    kbench: str, tmp_path: Path
) -> None:
    words = [kbench, "--time", "3", "tmpfs-create"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as first:
        while not (tmp_path / "kbench.mount").exists() and first.poll() is None:
            time.sleep(0.01)
        time.sleep(0.2)
        second = subprocess.run(
            [kbench, "--time", "0.01", "tmpfs-fsync"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        _, errors = first.communicate()
    assert second.returncode == 1 and "another kbench uses kbench.mount" in second.stderr
    assert first.returncode == 0, errors
    assert not list(tmp_path.iterdir())


def test_control_groups_that_a_killed_one_left_are_used_again(
    kbench: str, groups: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = groups(kbench, "--time", "0.01", "cgroup-attach")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("before", "after"), [("cpuset memory\n", "-cpu"), ("cpuset cpu memory\n", "cpuset")])
def test_control_groups_have_the_same_controllers_afterwards(
    kbench: str,
    groups: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path: Path,
    before: str,
    after: str,
) -> None:
    control = tmp_path / "groups/cgroup.subtree_control"
    control.write_text(before)
    assert groups(kbench, "--time", "0.01", "cgroup-attach").returncode == 0
    assert control.read_text().startswith(after)


def test_groups_without_shares_of_the_cpu_are_not_what_is_measured(
    kbench: str, groups: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    for group in ("kbench-a", "kbench-b"):
        (tmp_path / "groups" / group / "cpu.weight").unlink()
    done = groups(kbench, "--time", "0.01", "cgroup-attach")
    assert done.returncode == MISSING and "control groups" in done.stderr and not done.stdout


def test_a_second_one_in_the_same_groups_is_refused(
    kbench: str, groups: Callable[..., subprocess.CompletedProcess[str]], need: Callable[..., str]
) -> None:
    done = groups(need("flock"), "/sys/fs/cgroup/kbench-a", kbench, "--time", "0.01", "cgroup-attach")
    assert done.returncode == 1 and "another kbench uses /sys/fs/cgroup/kbench-a" in done.stderr
