"""Conditions of a host that prevent or disturb measuring. Reads /proc and /sys (below `root`, for tests); changes nothing."""

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from kduel.core.cache import cache_root
from kduel.core.errors import HostError
from kduel.core.host_packages import install_command
from kduel.core.text import plural
from kduel.guest import confine, priority
from kduel.guest.emulator import has_patching_fault, qemu_version
from kduel.guest.namespaces import explain_refusal
from kduel.guest.root import BUNDLE
from kduel.kernels.apt.mirror import keyring
from kduel.machines.host.hardware import Check, battery, clock, governor, read, smt, steal, threads, throttling, turbo
from kduel.machines.host.processors import is_virtual

MEMORY_FOR_GUEST = 5 << 30
DISK_FOR_CACHE = 4 << 30
PROGRAMS = ("qemu-system-x86_64", "mkfs.ext4", "setpriv", "zstd")
ROOT_PROGRAMS = ("mmdebstrap", "mksquashfs", "apt-get", "dpkg-deb")
"""What fetching Debian's kernels and making a guest's root takes."""
BUSY_SERVICES = (
    "apt-daily", "unattended-upgrades", "packagekit", "tracker-miner-fs", "laptop-mode", "tlp", "tuned",
    "ananicy-cpp",
)  # fmt: skip

TUNERS = (
    "laptop-mode", "tlp", "tuned", "power-profiles-daemon", "thermald", "cpupower", "cpufrequtils", "auto-cpufreq",
    "ananicy",
)  # fmt: skip
"""Services that set what a comparison should hold still; two of them at once fight."""


def examine_host(root: Path = Path("/")) -> list[Check]:
    """Everything worth telling, what prevents first."""
    looks = (
        programs, guest_root, kvm, memory, disk, load, weight, emulator, steal, clock, governor, turbo, throttling,
        smt, battery, services,
    )  # fmt: skip
    found = [finding for look in looks for finding in look(root)]
    order = {"prevents": 0, "disturbs": 1, "good": 2}
    return sorted(found, key=lambda finding: order[finding.weight])


def examine_tree(root: Path) -> list[Check]:
    """Conditions of another machine, with files below `root`, that bias measurements and do not prevent them."""
    looks = (load, steal, clock, governor, turbo, throttling, smt, battery, services, units, threads)
    found = [finding for look in looks for finding in look(root)]
    return sorted(found, key=lambda finding: finding.weight == "good")


def programs(_: Path) -> Iterator[Check]:
    """The programs that the machine qemu needs."""
    for problem in missing_programs(PROGRAMS):
        yield Check(weight="prevents", what=problem.message, remedy=problem.remedy)


def missing_programs(wanted: Sequence[str]) -> list[HostError]:
    """Programs that this host lacks, each with the command that installs it."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return [
        HostError(f"{program} is missing", f"Install it: {install_command(program)}.")
        for program in wanted
        if not shutil.which(program, path=path)
    ]


def guest_root(_: Path) -> Iterator[Check]:
    """Programs and rights that fetching Debian's kernels and making a guest's root take; less matters where a root is in the cache."""
    problems: list[HostError | None] = [*missing_programs(ROOT_PROGRAMS), explain_refusal()]
    try:
        keyring()
    except HostError as error:
        problems.append(error)
    bundled = any((cache_root() / "root").glob("*"))
    for problem in filter(None, problems):
        yield Check(
            weight="disturbs" if bundled else "prevents",
            what=problem.message,
            effect="Kernels and guest roots cannot be made here; those in the cache can be used.",
            remedy=f"{problem.remedy} {BUNDLE}",
        )


def kvm(root: Path) -> Iterator[Check]:
    """Hardware virtualisation, as far as it shows without booting a guest."""
    if root != Path("/"):
        return
    if not confine.KVM.exists():
        yield Check(
            what="there is no /dev/kvm: guests run in an emulator (TCG), whose timings are its own",
            remedy="Have nested virtualisation switched on for this virtual machine, or trust counts (machine icount), not timings."
            if is_virtual()
            else "Enable virtualisation in the firmware, or trust counts and the machine icount, not timings.",
        )
        return
    try:
        confine.check_kvm()
    except HostError as closed:
        yield Check(
            what=f"{closed.message}: guests run in an emulator (TCG), whose timings are its own",
            remedy=closed.remedy,
        )
        return
    yield Check(weight="good", what="/dev/kvm can be opened; `kduel run` tests it with a guest before it uses it")
    if is_virtual():
        yield Check(
            what="this host is a virtual machine: KVM in it is nested",
            effect="Whatever leaves a guest goes through two hypervisors: wake-ups, interrupts between CPUs and disks are slower.",
            remedy="Measure on a machine of your own; or count instructions (machine icount).",
        )


def memory(root: Path) -> Iterator[Check]:
    """Enough for a guest of 4 GiB."""
    text = read(root / "proc/meminfo") or ""
    for line in text.splitlines():
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) << 10
            if free < MEMORY_FOR_GUEST:
                yield Check(
                    what=f"{free / 2**30:.1f} GiB of memory are available; a guest of 4 GiB may push the host to swap",
                    remedy="End other programs, or give the guest less: --machine qemu:memory=2G.",
                )


def disk(_: Path) -> Iterator[Check]:
    """A place for kernels and root images, with room."""
    place = cache_root()
    try:
        while not place.exists():
            place = place.parent
        usable = place.is_dir() and os.access(place, os.R_OK | os.W_OK | os.X_OK)
    except OSError:
        usable = False
    if not usable:
        yield Check(
            weight="prevents",
            what=f"the cache ({cache_root()}) cannot be written",
            remedy="Make it readable and writable, or name another place in KDUEL_CACHE.",
        )
        return
    free = shutil.disk_usage(place).free
    if free < DISK_FOR_CACHE:
        yield Check(
            what=f"{free / 2**30:.1f} GiB are free for the cache ({cache_root()})",
            remedy="Free some space, or name another place in KDUEL_CACHE.",
        )


def load(root: Path) -> Iterator[Check]:
    """Other work on the host."""
    text = read(root / "proc/loadavg")
    if text and float(text.split()[0]) > 0.5:
        yield Check(
            what=f"the host is busy (load {text.split()[0]})",
            effect="Other work takes CPUs, caches and memory from trials, a different share each time: wider intervals.",
            remedy="End other work; randomised blocks keep the comparison fair, but it takes more blocks. Counts on icount are not affected.",
        )


def weight(root: Path) -> Iterator[Check]:
    """The weight that a guest gets against other work, tried on a process that sleeps."""
    if root != Path("/"):
        return
    got = priority.find_obtainable()
    if got:
        yield Check(weight="good", what=f"guests have priority over other work: {', '.join(got)}")
    if not any(word.startswith(("autogroup", "cgroup")) for word in got):
        yield Check(
            what="guests have the same priority as other work" + (f" (only {', '.join(got)})" if got else ""),
            effect="With one busy program per CPU a guest waits for half of its time: wider intervals.",
            remedy="Run KDuel as root, which gives the guests' group more weight; or end other work."
            if priority.is_wanted()
            else f"Unset {priority.CHOICE}; or end other work.",
        )


def emulator(root: Path) -> Iterator[Check]:
    """A QEMU with a known fault, which matters where guests are emulated."""

    if root != Path("/"):
        return
    with contextlib.suppress(HostError, OSError):
        confine.check_kvm()
        return
    try:
        version = qemu_version()
    except HostError:
        return
    if has_patching_fault(version, 2):
        yield Check(
            what=f"QEMU {version.split()[0]} fails now and then while an emulated kernel patches its code (fixed in 8.1)",
            effect="On a busy host up to one boot in six ends with an int3 oops, and is repeated.",
            remedy="Install a newer QEMU (Debian 12: apt-get install -t bookworm-backports qemu-system-x86); or give cpus = 1.",
        )


def services(root: Path) -> Iterator[Check]:
    """Services that start work at times of their own."""
    running = set()
    for entry in (root / "proc").glob("[0-9]*/comm"):
        running.add(read(entry) or "")
    for name in BUSY_SERVICES:
        if any(comm.startswith(name[:15]) for comm in running if comm):
            yield Check(
                what=f"{name} is running",
                effect="It works, or changes settings, at times of its own: in some trials and not in others.",
                remedy=f"systemctl stop {name}",
            )


def units(root: Path) -> Iterator[Check]:
    """Services of another machine that change its settings, and timers that start work (a file `units` at the top)."""
    told = read(root / "units")
    if told is None:
        yield Check(
            what="its services and timers cannot be listed",
            effect="What they would do to trials is not known.",
            remedy="Look as root: root@HOST.",
        )
    known = (told or "").split()
    for unit in known:
        name, _, kind = unit.rpartition(".")
        tuner = next((tuner for tuner in TUNERS if name.startswith(tuner)), None)
        if kind == "service" and tuner:
            yield Check(
                what=f"{unit} is enabled",
                effect="It changes governor, limits and power saving, at another time of each boot; two of them override each other.",
                remedy=f"systemctl disable --now {unit}; enable it again after measuring",
            )
    timers = [unit for unit in known if unit.endswith(".timer")]
    if timers:
        yield Check(
            what=f"{plural(len(timers), 'timer')} may start work in mid-trial: {', '.join(timers[:6])}",
            effect="A trial that one of them falls into is slower than the others.",
            remedy=f"systemctl stop {' '.join(timers)} (they are back after the next boot)",
        )
