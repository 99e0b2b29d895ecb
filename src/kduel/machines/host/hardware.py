"""Conditions of processors, clocks and power that disturb measuring, and how a condition is told."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct

from kduel.core.text import plural

STOLEN = 0.01
"""Share of steal time from which on it is reported."""
SLOW_CLOCKS = ("hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies")
"""Clock sources of x86 that are no register of the processor."""
INVARIANT = frozenset(("constant_tsc", "nonstop_tsc"))
"""Flags of a TSC that keeps its rate in every state of power."""


class Check(Struct, kw_only=True):
    """`what` is there, what it does to a measurement, and what to do about it."""

    weight: Literal["good", "disturbs", "prevents"] = "disturbs"
    what: str
    effect: str = ""
    remedy: str = ""


def read(path: Path) -> str | None:
    """A small file's text, or None where it cannot be read."""
    try:
        return path.read_text("utf-8", errors="replace").strip()
    except OSError:
        return None


def steal(root: Path) -> Iterator[Check]:
    """CPU time that the host of a virtual machine gave to others."""
    words = ((read(root / "proc/stat") or "").splitlines() or [""])[0].split()
    if len(words) < 9 or words[0] != "cpu" or not all(word.isdigit() for word in words[1:9]):
        return
    times = [int(word) for word in words[1:9]]
    wanted = sum(times) - times[3] - times[4]
    if wanted and times[7] / wanted > STOLEN:
        yield Check(
            what=f"noisy neighbours: CPU steal time of {100 * times[7] / wanted:.1f} %",
            effect="Trials slow down by the load of other virtual machines: wider intervals, and drift.",
            remedy="Measure on a machine, or a virtual one with CPUs, of your own; or count instructions (machine icount).",
        )


def clock(root: Path) -> Iterator[Check]:
    """The clock that the kernel reads, and whether the processor's counter is one (Documentation/virt/kvm/x86/timekeeping.rst)."""
    source = read(root / "sys/devices/system/clocksource/clocksource0/current_clocksource")
    if source in SLOW_CLOCKS:
        yield Check(
            what=f"the clock source is {source}: the kernel does not trust the processor's counter (TSC)",
            effect="Each look at the time is a system call and an access to a device: what reads it often is slower.",
            remedy="`dmesg | grep -i tsc` says why; newer firmware may mend it.",
        )
    flags = re.search(r"^flags\s*:(.*)$", read(root / "proc/cpuinfo") or "", re.MULTILINE)
    lacking = sorted(INVARIANT - set(flags[1].split())) if flags else []
    if lacking:
        yield Check(
            what=f"the processor's counter (TSC) changes its rate or stops ({', '.join(lacking)} missing)",
            effect="A guest that keeps time by it, as KDuel's do, may keep it wrong: its durations are no durations.",
            remedy="With KVM give --machine qemu:clocksource=kvm-clock; or count instructions (machine icount).",
        )


def throttling(root: Path) -> Iterator[Check]:
    """Clocks lowered for heat, since the boot."""
    counts = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/core_throttle_count")
    most = max((int(text) for path in counts if (text := read(path)) and text.isdigit()), default=0)
    if most:
        yield Check(
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
            what=f"the frequency governor is {', '.join(sorted(found))}",
            effect="The clock follows the load with a delay: short benchmarks run at a random speed.",
            remedy="cpupower frequency-set -g performance",
        )


def turbo(root: Path) -> Iterator[Check]:
    """Frequencies that depend on temperature and on what other CPUs do."""
    cpu = root / "sys/devices/system/cpu"
    if read(cpu / "intel_pstate/no_turbo") == "0" or read(cpu / "cpufreq/boost") == "1":
        yield Check(
            what="turbo is on",
            effect="Speed depends on temperature and on what other CPUs do: the first trials are quicker than the later ones.",
            remedy="echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 0 > .../cpufreq/boost",
        )


def smt(root: Path) -> Iterator[Check]:
    """Two guest CPUs on one core."""
    if read(root / "sys/devices/system/cpu/smt/active") == "1":
        yield Check(
            what="SMT is on",
            effect="Two threads share a core: their placement by the scheduler decides the speed of both.",
            remedy="echo off > /sys/devices/system/cpu/smt/control",
        )


def battery(root: Path) -> Iterator[Check]:
    """Running on battery."""
    for supply in sorted((root / "sys/class/power_supply").glob("*")):
        if read(supply / "type") == "Battery" and read(supply / "status") == "Discharging":
            yield Check(
                what="it runs on battery",
                effect="Firmware and services lower the power limits as the battery empties: a drift over the run.",
                remedy="Connect the power supply.",
            )
