"""What the machine `qemu` says of KVM, without a guest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kduel.core.cache import Cache
from kduel.guest.root import Root
from kduel.machines import qemu
from kduel.machines.guests.judged import QemuSettings
from kduel.machines.host.processors import is_virtual
from kduel.machines.qemu import QemuMachine

ROOT = Root(image=Path("root"), busybox=Path("busybox"), sha256="0", suite="bookworm", packages={})


@pytest.mark.parametrize(
    ("accelerator", "virtual", "says"),
    [("kvm", True, "two hypervisors"), ("kvm", False, ""), ("tcg", True, "emulator")],
)
def test_times_by_nested_kvm_carry_a_warning(
    accelerator: str, virtual: bool, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "halt_poll_ns").write_text("200000\n")
    monkeypatch.setattr(qemu, "HALT_POLL", tmp_path / "halt_poll_ns")
    monkeypatch.setattr(qemu, "is_virtual", lambda: virtual)
    monkeypatch.setattr(qemu, "qemu_version", lambda: "9.2.0")
    machine = QemuMachine(QemuSettings(), accelerator, ROOT, {}, {}, None, Cache(tmp_path / "cache"))
    assert says in machine.timing_warning and bool(says) == bool(machine.timing_warning)
    assert machine.facts.get("halt_poll_ns") == (200000 if accelerator == "kvm" else None)


@pytest.mark.parametrize(("cpus", "says"), [(1, False), (2, False), (3, True)])
def test_more_cpus_than_the_host_has_carry_a_warning(
    cpus: int, says: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {4, 7})
    monkeypatch.setattr(qemu, "is_virtual", lambda: False)
    monkeypatch.setattr(qemu, "qemu_version", lambda: "9.2.0")
    machine = QemuMachine(QemuSettings(cpus=cpus), "kvm", ROOT, {}, {}, None, Cache(tmp_path / "cache"))
    assert ("has 3 CPUs, and KDuel may use 2 of this host's" in machine.timing_warning) == says
    assert bool(machine.timing_warning) == says


def test_a_virtual_host_is_known_by_its_cpu(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    for flags, virtual in (("fpu svm hypervisor npt", True), ("fpu svm npt", False), ("fpu hypervisor_x", False)):
        info.write_text(f"processor\t: 0\nflags\t\t: {flags}\nbugs\t\t: hypervisor\n")
        assert is_virtual(info) == virtual
