"""What the host does while a guest runs a step, from /proc and /sys: cheap enough to look at each start and end.

The guest marks on its console when a step begins and ends. Scheduling times are those of `schedstat` (the kernel's
Documentation/scheduler/sched-stats.rst), pressure that of Documentation/accounting/psi.rst.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from msgspec import Struct

from kduel.core.host import BOOT, HostStep

MARK = re.compile(rb"kduel: step ([A-Za-z0-9._-]{1,110})( ended)?\s*$")
LONGEST = 200
"""Bytes of a console line that are searched for a mark."""
MOST_MARKS = 4000
"""A guest that prints more of them is not examined any more."""
CLOCK_SECONDS = 2.0
"""Between two readings of the clock's frequency: the only figure that is no running total."""


class ThreadTimes(Struct, frozen=True):
    """Of one or more threads, in seconds since they began."""

    run: float
    wait: float


class HostSnapshot(Struct, frozen=True, kw_only=True):
    """Running totals at one moment; None where the host does not report it."""

    at: float
    """Seconds of the monotonic clock."""
    vcpus: ThreadTimes | None
    others: ThreadTimes | None
    stalled: float | None
    """Seconds in which some task waited for a CPU."""
    steal: float | None
    busy: float | None
    """CPU seconds of all programs and interrupts together."""
    own: float
    """CPU seconds of this process."""


class HostRecorder:
    """Follows one QEMU process: feed it the console, and take `steps` when the guest is gone."""

    def __init__(
        self, process: int, vcpus: Collection[int], cpus: Sequence[int] = (), *, root: Path = Path("/")
    ) -> None:
        """`vcpus` are the thread ids of the guest's CPUs, `cpus` the host's CPUs that they may use (empty: all)."""
        self.proc, self.process, self.vcpus = root / "proc", process, frozenset(vcpus)
        self.steps: list[tuple[str, HostStep]] = []
        """Directory and record of each step that ended, in the order of time."""
        self._threads: dict[int, ThreadTimes] = {}
        self._began: tuple[str, HostSnapshot] | None = None
        """The step that runs; before the first one the boot."""
        self._line = b""
        self._marks = 0
        allowed = cpus or sorted(os.sched_getaffinity(0))
        clocks = (root / f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq" for cpu in allowed)
        self._clocks = [path for path in clocks if path.is_file()]
        self._readings: list[float] = []
        self._next_reading = 0.0
        self._began = BOOT, self.look()

    def feed(self, data: bytes) -> None:
        """Some bytes of the console."""
        *lines, rest = (self._line + data).split(b"\n")
        for line in lines:
            if (found := MARK.search(line[-LONGEST:])) and self._marks < MOST_MARKS:
                self._marks += 1
                self._mark(found[1].decode(), ended=found[2] is not None)
        self._line = rest[-LONGEST:]

    def stop(self) -> None:
        """The guest is about to be cut off: the step that runs ends here, or the boot where there was none."""
        if self._began is not None:
            self._mark(self._began[0], ended=True)

    def tick(self) -> float | None:
        """Read the clocks if it is time to; gives the seconds until the next reading, None where there is none."""
        if self._began is None or self._began[0] == BOOT or not self._clocks:
            return None
        now = time.monotonic()
        if now >= self._next_reading:
            self._next_reading = now + CLOCK_SECONDS
            found = [float(text) / 1000 for path in self._clocks if (text := _read(path)).strip().isdigit()]
            if found:
                self._readings.append(sum(found) / len(found))
        return max(0.0, self._next_reading - now)

    def look(self) -> HostSnapshot:
        """The totals now."""
        vcpus, others = self._scheduling()
        busy, steal = cpu_times(_read(self.proc / "stat"))
        return HostSnapshot(
            at=time.monotonic(),
            vcpus=vcpus,
            others=others,
            stalled=_stalled(_read(self.proc / "pressure/cpu")),
            steal=steal,
            busy=busy,
            own=time.process_time(),
        )

    def _mark(self, label: str, *, ended: bool) -> None:
        if not ended:
            self._began, self._readings, self._next_reading = (label, self.look()), [], 0.0
            self.tick()
        elif self._began is not None and self._began[0] == label:
            record = between(self._began[1], self.look(), sum(self._readings) / max(1, len(self._readings)) or None)
            self.steps.append((label, record))
            self._began = None

    def _scheduling(self) -> tuple[ThreadTimes | None, ThreadTimes | None]:
        """Of the guest's CPUs, and of QEMU's other threads. What a thread that has ended used up stays in the sum."""
        tasks = self.proc / str(self.process) / "task"
        try:
            threads = [int(name) for name in os.listdir(tasks)]  # noqa: PTH208 - names only
        except OSError:
            return None, None
        known = False
        for thread in threads:
            words = _read(tasks / str(thread) / "schedstat").split()
            if len(words) == 3:
                known = True
                self._threads[thread] = ThreadTimes(int(words[0]) / 1e9, int(words[1]) / 1e9)
        if not known:
            return None, None
        vcpus = [times for thread, times in self._threads.items() if thread in self.vcpus]
        others = [times for thread, times in self._threads.items() if thread not in self.vcpus]
        return (_sum(vcpus) if vcpus else None), _sum(others)


def between(first: HostSnapshot, last: HostSnapshot, clock_mhz: float | None) -> HostStep:
    """What happened between two looks."""
    seconds = last.at - first.at

    def passed(before: float | None, after: float | None) -> float | None:
        return None if before is None or after is None else round(max(0.0, after - before), 6)

    def times(before: ThreadTimes | None, after: ThreadTimes | None) -> tuple[float | None, float | None]:
        if before is None or after is None:
            return None, None
        return passed(before.run, after.run), passed(before.wait, after.wait)

    run, wait = times(first.vcpus, last.vcpus)
    other_run, other_wait = times(first.others, last.others)
    stalled, busy = passed(first.stalled, last.stalled), passed(first.busy, last.busy)
    ours = (last.own - first.own) + (run or 0.0) + (other_run or 0.0)
    known = busy is not None and run is not None and seconds > 0
    return HostStep(
        seconds=round(seconds, 3),
        vcpu_run_s=run,
        vcpu_wait_s=wait,
        other_wait_s=other_wait,
        psi_cpu_some=None if stalled is None or seconds <= 0 else round(min(1.0, stalled / seconds), 4),
        steal_s=passed(first.steal, last.steal),
        clock_mhz=None if clock_mhz is None else round(clock_mhz, 1),
        other_work=_share((busy or 0.0) - ours, seconds * (os.cpu_count() or 1)) if known else None,
    )


def _share(part: float, whole: float) -> float:
    return round(min(1.0, max(0.0, part / whole)), 4)


def _sum(times: Sequence[ThreadTimes]) -> ThreadTimes:
    return ThreadTimes(sum(one.run for one in times), sum(one.wait for one in times))


def _read(path: Path) -> str:
    """A small file's text; empty where it cannot be read."""
    try:
        return path.read_text("ascii", errors="replace")
    except OSError:
        return ""


def _stalled(text: str) -> float | None:
    """From /proc/pressure/cpu."""
    found = re.search(r"^some .*\btotal=(\d+)", text, re.MULTILINE)
    return int(found[1]) / 1e6 if found else None


def cpu_times(text: str) -> tuple[float | None, float | None]:
    """Busy and stolen time from the first line of /proc/stat, in seconds over all CPUs; user time has that of guests."""
    words = text.partition("\n")[0].split()
    if len(words) < 9 or words[0] != "cpu" or not all(word.isdigit() for word in words[1:9]):
        return None, None
    user, nice, system, _, _, irq, softirq, steal = (int(word) / os.sysconf("SC_CLK_TCK") for word in words[1:9])
    return user + nice + system + irq + softirq, steal
