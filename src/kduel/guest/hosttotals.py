"""Running totals of a whole machine, read from the texts of its /proc and /sys, and what passed between two readings.

The same texts come from the host under a guest (kduel.guest.hostrecord) and from inside a real machine
(kduel.guest.hostinside). Pressure is that of the kernel's Documentation/accounting/psi.rst, the rest that of
Documentation/filesystems/proc.rst; thermal_throttle is in Documentation/ABI/testing/sysfs-devices-system-cpu.
"""

import os
import re
from collections.abc import Collection, Iterable

from msgspec import Struct

from kduel.core.host import HostStep

STALLED = re.compile(r"^some [^\n]*\btotal=([0-9]{1,18})\b", re.MULTILINE)
ALL_INTERRUPTS = re.compile(r"^intr ([0-9]{1,18})\b", re.MULTILINE)
NO_CPU = frozenset({"ERR:", "MIS:"})
"""Lines of /proc/interrupts that are totals of no CPU."""


class ThreadTimes(Struct, frozen=True):
    """Times of one or more threads, in seconds since they began."""

    run: float
    wait: float


class HostSnapshot(Struct, frozen=True, kw_only=True):
    """Running totals at one moment; None where the host does not report it."""

    at: float
    """Seconds of a clock that is never set."""
    vcpus: ThreadTimes | None = None
    others: ThreadTimes | None = None
    stalled: float | None = None
    """Seconds in which some task waited for a CPU."""
    io_stalled: float | None = None
    """Seconds for a disk or another device, page cache included."""
    memory_stalled: float | None = None
    """Seconds for memory."""
    steal: float | None = None
    busy: float | None = None
    """CPU seconds of all programs and interrupts together."""
    interrupts: int | None = None
    throttled: int | None = None
    own: float = 0.0
    """CPU seconds of this process."""
    held: float = 0.0
    """Seconds in which the guest was held, for guests in turns (kduel.guest.turns)."""
    partners: float = 0.0
    """CPU seconds of its partners' QEMU."""


def compare_snapshots(first: HostSnapshot, last: HostSnapshot, clock_mhz: float | None) -> HostStep:
    """Difference of two snapshots; a guest that was held has its part by time, and then unknown interrupts."""
    seconds, held = last.at - first.at, last.held - first.held
    part = max(0.0, seconds - held) / seconds if held and seconds > 0 else 1.0

    def time_between(before: float | None, after: float | None) -> float | None:
        return None if before is None or after is None else round(max(0.0, after - before), 6)

    def times(before: ThreadTimes | None, after: ThreadTimes | None) -> tuple[float | None, float | None]:
        if before is None or after is None:
            return None, None
        return time_between(before.run, after.run), time_between(before.wait, after.wait)

    def share(before: float | None, after: float | None) -> float | None:
        stalled = time_between(before, after)
        return None if stalled is None or seconds <= 0 else _share(stalled, seconds)

    def increase(before: int | None, after: int | None) -> int | None:
        # A CPU that went off line takes its count along: then nothing is known.
        return None if before is None or after is None or after < before else after - before

    run, wait = times(first.vcpus, last.vcpus)
    steal = time_between(first.steal, last.steal)
    _, other_wait = times(first.others, last.others)
    return HostStep(
        seconds=round(seconds * part, 3), vcpu_run_s=run, vcpu_wait_s=wait, other_wait_s=other_wait,
        psi_cpu_some=share(first.stalled, last.stalled), psi_io_some=share(first.io_stalled, last.io_stalled),
        psi_memory_some=share(first.memory_stalled, last.memory_stalled),
        steal_s=None if steal is None else round(steal * part, 6),
        interrupts=None if held else increase(first.interrupts, last.interrupts),
        clock_mhz=None if clock_mhz is None else round(clock_mhz, 1),
        throttled=increase(first.throttled, last.throttled),
        other_work=None if run is None else taken_by_others(first, last),
    )  # fmt: skip


def taken_by_others(first: HostSnapshot, last: HostSnapshot) -> float | None:
    """The share (0 to 1) of the host's CPU time that programs other than QEMU and KDuel took; None if unknown."""
    seconds = last.at - first.at
    if first.busy is None or last.busy is None or seconds <= 0:
        return None
    ours = last.own - first.own + last.partners - first.partners
    for before, after in ((first.vcpus, last.vcpus), (first.others, last.others)):
        if before is not None and after is not None:
            ours += max(0.0, after.run - before.run)
    return _share(last.busy - first.busy - ours, seconds * (os.cpu_count() or 1))


def _share(part: float, whole: float) -> float:
    return round(min(1.0, max(0.0, part / whole)), 4)


def cpu_times(text: str) -> tuple[float | None, float | None]:
    """Busy and stolen seconds over all CPUs from /proc/stat, whose USER_HZ is 100 on all architectures known here."""
    words = text.partition("\n")[0].split()
    if len(words) < 9 or words[0] != "cpu" or not all(re.fullmatch("[0-9]{1,18}", word) for word in words[1:9]):
        return None, None
    user, nice, system, _, _, irq, softirq, steal = (int(word) / os.sysconf("SC_CLK_TCK") for word in words[1:9])
    return user + nice + system + irq + softirq, steal


def stalled_seconds(text: str) -> float | None:
    """Seconds in which some task waited, from a file of /proc/pressure."""
    found = STALLED.search(text)
    return int(found[1]) / 1e6 if found else None


def all_interrupts(text: str) -> int | None:
    """Interrupts on all CPUs, from /proc/stat."""
    found = ALL_INTERRUPTS.search(text)
    return int(found[1]) if found else None


def interrupts_on(text: str, cpus: Collection[int]) -> int | None:
    """Interrupts on some CPUs, from /proc/interrupts; timers and those between CPUs included. None where a CPU is missing."""
    lines = text.splitlines()
    names = lines[0].split() if lines else []
    columns = [1 + names.index(name) for cpu in cpus if (name := f"CPU{cpu}") in names]
    if not columns or len(columns) < len(cpus):
        return None
    total = 0
    for line in lines[1:]:
        words = line.split(None, len(names) + 1)
        if len(words) > len(names) and words[0] not in NO_CPU:
            counts = [words[column] for column in columns]
            if not all(re.fullmatch("[0-9]{1,18}", count) for count in counts):
                return None
            total += sum(map(int, counts))
    return total


def sum_of_files(texts: Iterable[str]) -> int | None:
    """The sum of files with one number each; None where there is no file, or one is no number."""
    found = [text.strip() for text in texts]
    return sum(map(int, found)) if found and all(re.fullmatch("[0-9]{1,18}", one) for one in found) else None


def clock_of(texts: Iterable[str]) -> float | None:
    """The mean in MHz of CPUs' scaling_cur_freq, those that report one."""
    found = [int(text) / 1000 for one in texts if re.fullmatch("[0-9]{1,12}", text := one.strip())]
    return sum(found) / len(found) if found else None
