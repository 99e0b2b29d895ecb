"""What `kduel doctor` says prevents the first run of this very user."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kduel.core.cache import Cache
from kduel.core.errors import HostError
from kduel.core.progress import Progress
from kduel.guest import namespaces
from kduel.guest.busybox import busybox
from kduel.guest.root import run_for_guest
from kduel.machines.host.doctor import guest_root, programs
from kduel.machines.host.hardware import steal
from kduel.machines.host.processors import host_cpus

ROOT = Path("/")
NOBODY_KNOWN = 54_321
"""A user without a name and without a range of IDs."""


def test_each_missing_program_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("KDUEL_CACHE", str(tmp_path))
    # What lies in /usr/sbin is found without a PATH, too.
    checks = [check for look in (programs, guest_root) for check in look(ROOT) if check.weight == "prevents"]
    prevented = " ".join(check.what for check in checks)
    for check in checks:
        assert check.remedy.endswith(".") and (". Or bring" in check.remedy) == (check.effect != ""), check.remedy
    with pytest.raises(HostError, match="mmdebstrap is not installed") as refused:
        busybox("x86_64", cache=Cache(tmp_path), progress=Progress())
    assert "docs/offline.md" in refused.value.remedy
    for program in ("qemu-system-x86_64", "mmdebstrap", "mksquashfs", "setpriv", "zstd", "apt-get", "dpkg-deb"):
        assert program in prevented


def test_with_a_root_in_the_cache_making_one_is_not_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDUEL_CACHE", str(tmp_path))
    monkeypatch.setenv("KDUEL_DEBIAN_KEYRING", "/no/such/keys")
    assert [check.weight for check in guest_root(ROOT)] == ["prevents"]
    (tmp_path / "root" / "any").mkdir(parents=True)
    assert [check.weight for check in guest_root(ROOT)] == ["disturbs"]


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_a_user_without_a_range_of_ids_is_told_so_before_and_by_mmdebstrap(tmp_path: Path) -> None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgid(NOBODY_KNOWN)
        os.setuid(NOBODY_KNOWN)
        said = [refused.remedy] if (refused := namespaces.explain_refusal()) else ["nothing"]
        try:
            run_for_guest(
                ["sh", "-c", "echo 'E: unable to pick chroot mode automatically' >&2; exit 1"], "no root", Path()
            )
        except HostError as error:
            said.append(error.remedy)
        os.write(write, "\n".join(said).encode())
        os._exit(0)
    os.waitpid(child, 0)
    before, after = os.read(read, 10_000).decode().split("\n")
    assert before == after
    assert f"--add-subuids 100000-165535 --add-subgids 100000-165535 {NOBODY_KNOWN}" in before or "uidmap" in before


def test_a_range_counts_by_name_and_by_number(tmp_path: Path) -> None:
    path = tmp_path / "subuid"
    path.write_text("someone:100000:65536\n1001:200000:65536\n")
    assert namespaces.has_range(path, {"someone", "1000"}) and namespaces.has_range(path, {"other", "1001"})
    assert not namespaces.has_range(path, {"some"}) and not namespaces.has_range(tmp_path / "none", {"someone"})


@pytest.mark.parametrize("idle", [0, 10**9])
def test_steal_is_a_share_of_the_time_that_was_wanted(idle: int, tmp_path: Path) -> None:
    """Not of all time: on a machine that mostly idles it would be nothing."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/stat").write_text(f"cpu 800 0 150 {idle} {idle} 0 0 50 0 0\n")
    assert [one.what for one in steal(tmp_path)] == ["noisy neighbours: CPU steal time of 5.0 %"]


def test_guests_get_the_last_cpus_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupts and services prefer the first ones."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {9000, 9001, 9002})
    assert host_cpus(2) == [9001, 9002] and host_cpus(3) == [9000, 9001, 9002] and host_cpus(4) == []
