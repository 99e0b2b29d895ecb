"""Probe whether KVM works: only a guest that boots proves it, for /dev/kvm may answer everything and run nothing."""

import hashlib
import time
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from kduel.core.cache import Cache, as_cache_error
from kduel.core.errors import HostError
from kduel.core.progress import Progress
from kduel.core.temporary import temporary_directory
from kduel.core.untrusted import NOT_JSON
from kduel.guest import confine
from kduel.guest.confine import KVM
from kduel.guest.console import read_console
from kduel.guest.cpio import Cpio
from kduel.guest.launch import Launch, run
from kduel.guest.vm import VirtualMachine
from kduel.guest.watch import GAVE_UP

KVM_SECONDS = 10.0
TCG_SECONDS = 60.0
BELIEVED_SECONDS = 3600.0
"""A host may be repaired, or less busy, an hour later."""
_INIT = b"""#!/bin/busybox sh
/bin/busybox echo "kduel: probe"
/bin/busybox poweroff -f
"""


class Verdict(Struct, frozen=True):
    works: bool
    reason: str = ""
    made: float = 0.0
    """Seconds since 1970."""
    booting: bool = False
    """Whether the guest's kernel reported its version, at least."""


def kvm(kernel: Path, busybox: Path, *, cache: Cache) -> Verdict:
    """Boot a tiny guest with this kernel under KVM. That it works is kept until the host boots again, that it does not
    for BELIEVED_SECONDS.

    On a busy host KVM gets twice the time that the emulator needs for the same guest, which is the slower of the two;
    so it does where the emulator came too late, as in a virtual machine that is emulated itself. A kernel that begins
    under neither accelerator proves nothing of KVM: then KVM is taken not to work, this time.
    """
    if why := why_closed():
        return Verdict(False, why)
    session = Path("/proc/sys/kernel/random/boot_id").read_text().strip() + f"-{KVM.stat().st_ctime_ns}"
    note = cache.root / "probe" / f"kvm-{hashlib.sha256(session.encode()).hexdigest()[:16]}.json"
    with as_cache_error(cache.root):
        note.parent.mkdir(parents=True, exist_ok=True)
        try:
            known = msgspec.json.decode(note.read_bytes(), type=Verdict)
        except (FileNotFoundError, *NOT_JSON):
            known = None
    if known and (known.works or 0 <= time.time() - known.made < BELIEVED_SECONDS):
        return known
    verdict = _try(kernel, busybox, "kvm", KVM_SECONDS)
    if not verdict.works:
        began = time.monotonic()
        emulated = _try(kernel, busybox, "tcg", TCG_SECONDS)
        if not (emulated.works or emulated.booting or verdict.booting):
            return verdict
        if (needed := time.monotonic() - began) > KVM_SECONDS / 2:
            # The host is busy, and KVM had no fair chance.
            verdict = _try(kernel, busybox, "kvm", 2 * needed)
    with as_cache_error(cache.root):
        note.write_bytes(msgspec.json.encode(structs.replace(verdict, made=time.time())))
    return verdict


def why_closed() -> str:
    """Reason why nothing can open /dev/kvm, which is seen at once; empty where QEMU can."""
    if not KVM.exists():
        return "this host has no /dev/kvm"
    try:
        confine.check_kvm()
    except HostError as error:
        return f"{error.message}. {error.remedy}"
    return ""


def no_kvm(why: str) -> HostError:
    """The error where KVM is requested and does not work."""
    return HostError(f"KVM does not work on this host: {why}", 'Repair it, or allow accel = "tcg".')


def choose_accelerator(wanted: str, kernel: Path, busybox: Path, cache: Cache, progress: Progress) -> str:
    """`kvm` or `tcg`. Raises HostError where `kvm` is requested and does not work."""
    if wanted == "tcg":
        return "tcg"
    verdict = kvm(kernel, busybox, cache=cache)
    if verdict.works:
        return "kvm"
    if wanted == "kvm":
        raise no_kvm(verdict.reason)
    progress.info(
        f"KVM does not work on this host ({verdict.reason}): guests run in an emulator, whose timings are its own."
    )
    return "tcg"


def _try(kernel: Path, busybox: Path, accelerator: str, seconds: float) -> Verdict:
    archive = Cpio()
    archive.character_device("dev/console", 5, 1)
    archive.file("bin/busybox", busybox.read_bytes(), 0o755)
    archive.file("init", _INIT, 0o755)
    with temporary_directory() as place, confine.nameless(archive.finish()) as initrd:
        console = place / "console"
        machine = VirtualMachine(
            accelerator=accelerator, cpus=1, memory_mib=256, kernel=kernel, initrd=initrd,
            cmdline="console=ttyS0 panic=-1 reboot=t",
        )  # fmt: skip
        try:
            done = run(machine, console, Launch(boot_deadline=seconds, deadline=seconds))
        except HostError as error:
            return Verdict(False, error.message)
        lines = list(read_console(console))
        if any("kduel: probe" in line for line in lines):
            return Verdict(True)
        booting = any("Linux version" in line for line in lines)
        gave_up = GAVE_UP.search(done.stderr)
        told = gave_up[0] if gave_up else (done.stderr.strip().splitlines() or ["silently"])[-1]
        what = f"within {seconds:g} s" if done.ended.endswith("deadline") else f"(QEMU ended: {told})"
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        said = f"; its console ended with {last[:200]!r}" if last else "; its console stayed empty"
        return Verdict(False, f"/dev/kvm is there, but a tiny guest did not boot {what}{said}", booting=booting)
