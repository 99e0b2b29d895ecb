"""Whether KVM works: only a guest that boots proves it, for /dev/kvm may answer everything and run nothing."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

import msgspec
from msgspec import Struct

from kduel.core.cache import Cache, told_as_cache_trouble
from kduel.core.errors import HostError
from kduel.guest.console import read_console
from kduel.guest.cpio import Cpio
from kduel.guest.launch import run
from kduel.guest.vm import VirtualMachine

KVM_SECONDS = 10.0
TCG_SECONDS = 60.0
_INIT = b"""#!/bin/busybox sh
/bin/busybox echo "kduel: probe"
/bin/busybox poweroff -f
"""


class Verdict(Struct, frozen=True):
    """Whether KVM can be used here, and why not."""

    works: bool
    reason: str = ""


def kvm(kernel: Path, busybox: Path, *, cache: Cache) -> Verdict:
    """Boot a tiny guest with this kernel under KVM. The answer is kept until the host boots anew.

    A kernel that boots under neither accelerator proves nothing of KVM: then KVM is taken not to work, this time.
    """
    device = Path("/dev/kvm")
    if not device.exists():
        return Verdict(False, "this host has no /dev/kvm")
    if not os.access(device, os.R_OK | os.W_OK):
        return Verdict(False, "/dev/kvm may not be opened by this user (join the group kvm)")
    session = Path("/proc/sys/kernel/random/boot_id").read_text().strip() + f"-{device.stat().st_ctime_ns}"
    note = cache.root / "probe" / f"kvm-{hashlib.sha256(session.encode()).hexdigest()[:16]}.json"
    with told_as_cache_trouble(cache.root):
        note.parent.mkdir(parents=True, exist_ok=True)
        try:
            return msgspec.json.decode(note.read_bytes(), type=Verdict)
        except (FileNotFoundError, msgspec.DecodeError):
            pass
    verdict = _try(kernel, busybox, "kvm", KVM_SECONDS)
    if verdict.works or _try(kernel, busybox, "tcg", TCG_SECONDS).works:
        with told_as_cache_trouble(cache.root):
            note.write_bytes(msgspec.json.encode(verdict))
    return verdict


def _try(kernel: Path, busybox: Path, accelerator: str, seconds: float) -> Verdict:
    archive = Cpio()
    archive.character_device("dev/console", 5, 1)
    archive.file("bin/busybox", busybox.read_bytes(), 0o755)
    archive.file("init", _INIT, 0o755)
    with tempfile.TemporaryDirectory(prefix="kduel-probe-") as name:
        initrd, console = Path(name) / "initrd", Path(name) / "console"
        initrd.write_bytes(archive.finish())
        machine = VirtualMachine(
            accelerator=accelerator,
            cpus=1,
            memory_mib=256,
            kernel=kernel,
            initrd=initrd,
            cmdline="console=ttyS0 panic=-1 reboot=t",
        )
        try:
            done = run(machine, console, boot_deadline=seconds, deadline=seconds)
        except HostError as error:
            return Verdict(False, error.message)
        if any("kduel: probe" in line for line in read_console(console)):
            return Verdict(True)
        told = done.stderr.strip().splitlines()
        what = f"within {seconds:g} s" if done.ended != "off" else f"(QEMU ended: {told[0] if told else 'silently'})"
        return Verdict(False, f"/dev/kvm is there, but a tiny guest did not boot {what}")
