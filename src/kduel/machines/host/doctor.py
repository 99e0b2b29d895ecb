"""Conditions of a host that prevent or disturb measuring. Reads /proc and /sys (below `root`, for tests); changes nothing."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from kduel.core.cache import cache_root
from kduel.core.errors import HostError
from kduel.core.host_packages import install_command
from kduel.core.text import plural
from kduel.guest import confine, priority
from kduel.guest.emulator import has_patching_fault, qemu_version
from kduel.guest.namespaces import explain_refusal
from kduel.guest.root import BUNDLE
from kduel.kernels.apt.mirror import keyring
from kduel.machines.host.processors import is_virtual

MEMORY_FOR_GUEST = 5 << 30
DISK_FOR_CACHE = 4 << 30
STOLEN = 0.01
"""Share of steal time from which on it is reported."""
PROGRAMS = ("qemu-system-x86_64", "mkfs.ext4", "setpriv", "zstd")
ROOT_PROGRAMS = ("mmdebstrap", "mksquashfs", "apt-get", "dpkg-deb")
"""What fetching Debian's kernels and making a guest's root takes."""
BUSY_SERVICES = ("apt-daily", "unattended-upgrades", "packagekit", "tracker-miner-fs", "laptop-mode", "tlp", "tuned")

TUNERS = (
    "laptop-mode",
    "tlp",
    "tuned",
    "power-profiles-daemon",
    "thermald",
    "cpupower",
    "cpufrequtils",
    "auto-cpufreq",
)
"""Services that set what a comparison should hold still; two of them at once fight."""


class Check(Struct, kw_only=True):
    """`what` is there, what it does to a measurement, and what to do about it."""

    weight: Literal["good", "disturbs", "prevents"]
    what: str
    effect: str = ""
    remedy: str = ""


def examine_host(root: Path = Path("/")) -> list[Check]:
    """Everything worth telling, what prevents first."""
    looks = (
        programs,
        guest_root,
        kvm,
        memory,
        disk,
        load,
        weight,
        emulator,
        steal,
        governor,
        turbo,
        throttling,
        smt,
        battery,
        services,
    )
    found = [finding for look in looks for finding in look(root)]
    order = {"prevents": 0, "disturbs": 1, "good": 2}
    return sorted(found, key=lambda finding: order[finding.weight])


def examine_tree(root: Path) -> list[Check]:
    """Conditions of another machine, whose files lie below `root`, that bias measurements on it. A run reports what
    prevents them."""
    looks = (load, steal, governor, turbo, throttling, smt, battery, services, units, threads)
    found = [finding for look in looks for finding in look(root)]
    return sorted(found, key=lambda finding: finding.weight == "good")


def read(path: Path) -> str | None:
    """A small file's text, or None where it cannot be read."""
    try:
        return path.read_text("utf-8", errors="replace").strip()
    except OSError:
        return None


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
            weight="disturbs",
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
            weight="disturbs",
            what=f"{closed.message}: guests run in an emulator (TCG), whose timings are its own",
            remedy=closed.remedy,
        )
        return
    yield Check(weight="good", what="/dev/kvm can be opened; `kduel run` tests it with a guest before it uses it")
    if is_virtual():
        yield Check(
            weight="disturbs",
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
                    weight="disturbs",
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
            weight="disturbs",
            what=f"{free / 2**30:.1f} GiB are free for the cache ({cache_root()})",
            remedy="Free some space, or name another place in KDUEL_CACHE.",
        )


def load(root: Path) -> Iterator[Check]:
    """Other work on the host."""
    text = read(root / "proc/loadavg")
    if text and float(text.split()[0]) > 0.5:
        yield Check(
            weight="disturbs",
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
            weight="disturbs",
            what="guests have the same priority as other work" + (f" (only {', '.join(got)})" if got else ""),
            effect="With one busy program per CPU a guest waits for half of its time: wider intervals.",
            remedy="Run KDuel as root, which gives the guests' group the largest weight; or end other work.",
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
            weight="disturbs",
            what=f"QEMU {version.split()[0]} fails now and then while an emulated kernel patches its code (fixed in 8.1)",
            effect="On a busy host up to one boot in six ends with an int3 oops, and is repeated.",
            remedy="Install a newer QEMU (Debian 12: apt-get install -t bookworm-backports qemu-system-x86); or give cpus = 1.",
        )


def steal(root: Path) -> Iterator[Check]:
    """CPU time that the host of a virtual machine gave to others."""
    words = ((read(root / "proc/stat") or "").splitlines() or [""])[0].split()
    if len(words) < 9 or words[0] != "cpu" or not all(word.isdigit() for word in words[1:9]):
        return
    times = [int(word) for word in words[1:9]]
    wanted = sum(times) - times[3] - times[4]
    if wanted and times[7] / wanted > STOLEN:
        yield Check(
            weight="disturbs",
            what=f"noisy neighbours: CPU steal time of {100 * times[7] / wanted:.1f} %",
            effect="Trials slow down by the load of other virtual machines: wider intervals, and drift.",
            remedy="Measure on a machine, or a virtual one with CPUs, of your own; or count instructions (machine icount).",
        )


def throttling(root: Path) -> Iterator[Check]:
    """Clocks lowered for heat, since the boot."""
    counts = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/core_throttle_count")
    most = max((int(text) for path in counts if (text := read(path)) and text.isdigit()), default=0)
    if most:
        yield Check(
            weight="disturbs",
            what=f"a core has throttled {most} times for heat since the boot",
            effect="Later trials are slower than earlier ones, and long benchmarks than short ones.",
            remedy="Switch turbo off, or wait before trials: temperature_below in [machine.conditions].",
        )


def threads(root: Path) -> Iterator[Check]:
    """The numbers of threads at which scaling shows: one, the performance cores, all cores, all hardware threads."""
    cpu = root / "sys/devices/system/cpu"
    siblings = [read(path) for path in cpu.glob("cpu[0-9]*/topology/thread_siblings_list")]
    cores = {text for text in siblings if text}
    if not cores:
        return
    fast = cpus_in(read(root / "sys/devices/cpu_core/cpus") or "")
    performance = {text for text in cores if cpus_in(text) & fast}
    counts = sorted({1, *([len(performance)] if performance else []), len(cores), len([t for t in siblings if t])})
    yield Check(
        weight="good",
        what=f"{plural(len(cores), 'core')}"
        + (f", {len(performance)} of them performance cores" if performance and len(performance) < len(cores) else "")
        + f", {plural(len([t for t in siblings if t]), 'hardware thread')}: threads = {counts} shows how sysbench-cpu scales",
    )


def cpus_in(text: str) -> set[int]:
    """`0-3,8` as a set; what is no such list is empty."""
    if not re.fullmatch(r"\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*", text):
        return set()
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def governor(root: Path) -> Iterator[Check]:
    """The CPU frequency governor."""
    paths = sorted((root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor"))
    found = {text for text in map(read, paths) if text}
    if found - {"performance"}:
        yield Check(
            weight="disturbs",
            what=f"the frequency governor is {', '.join(sorted(found))}",
            effect="The clock follows the load with a delay: short benchmarks run at a random speed.",
            remedy="cpupower frequency-set -g performance",
        )


def turbo(root: Path) -> Iterator[Check]:
    """Frequencies that depend on temperature and on what other CPUs do."""
    cpu = root / "sys/devices/system/cpu"
    if read(cpu / "intel_pstate/no_turbo") == "0" or read(cpu / "cpufreq/boost") == "1":
        yield Check(
            weight="disturbs",
            what="turbo is on",
            effect="Speed depends on temperature and on what other CPUs do: the first trials are quicker than the later ones.",
            remedy="echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 0 > .../cpufreq/boost",
        )


def smt(root: Path) -> Iterator[Check]:
    """Two guest CPUs on one core."""
    if read(root / "sys/devices/system/cpu/smt/active") == "1":
        yield Check(
            weight="disturbs",
            what="SMT is on",
            effect="Two threads share a core: their placement by the scheduler decides the speed of both.",
            remedy="echo off > /sys/devices/system/cpu/smt/control",
        )


def battery(root: Path) -> Iterator[Check]:
    """Running on battery."""
    for supply in sorted((root / "sys/class/power_supply").glob("*")):
        if read(supply / "type") == "Battery" and read(supply / "status") == "Discharging":
            yield Check(
                weight="disturbs",
                what="it runs on battery",
                effect="Firmware and services lower the power limits as the battery empties: a drift over the run.",
                remedy="Connect the power supply.",
            )


def services(root: Path) -> Iterator[Check]:
    """Services that start work at times of their own."""
    running = set()
    for entry in (root / "proc").glob("[0-9]*/comm"):
        running.add(read(entry) or "")
    for name in BUSY_SERVICES:
        if any(comm.startswith(name[:15]) for comm in running if comm):
            yield Check(
                weight="disturbs",
                what=f"{name} is running",
                effect="It works, or changes settings, at times of its own: in some trials and not in others.",
                remedy=f"systemctl stop {name}",
            )


def units(root: Path) -> Iterator[Check]:
    """Services of another machine that change its settings, and timers that start work (a file `units` at the top)."""
    told = read(root / "units")
    if told is None:
        yield Check(
            weight="disturbs",
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
                weight="disturbs",
                what=f"{unit} is enabled",
                effect="It changes governor, limits and power saving, at another time of each boot; two of them override each other.",
                remedy=f"systemctl disable --now {unit}; enable it again after measuring",
            )
    timers = [unit for unit in known if unit.endswith(".timer")]
    if timers:
        yield Check(
            weight="disturbs",
            what=f"{plural(len(timers), 'timer')} may start work in mid-trial: {', '.join(timers[:6])}",
            effect="A trial that one of them falls into is slower than the others.",
            remedy=f"systemctl stop {' '.join(timers)} (they are back after the next boot)",
        )
