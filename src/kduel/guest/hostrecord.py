"""Record of the host while a guest runs a step, whose marks are on its console, from /proc and /sys (`schedstat`:
Documentation/scheduler/sched-stats.rst), cheap to look at; kduel.guest.hosttotals reads totals."""

import os
import re
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from kduel.core.host import BOOT, HostStep
from kduel.guest import hosttotals

MARK = re.compile(rb"kduel: step ([A-Za-z0-9._-]{1,110})( ended)?\s*$")
LONGEST = 200
"""Bytes of a console line that are searched for a mark."""
MOST_MARKS = 4000
"""A guest that prints more of them is not examined any more."""
CLOCK_SECONDS = 2.0
"""Between two readings of the clock's frequency: the only figure that is no running total."""
MOST_INTERRUPTS = 256 << 10
"""Bytes of /proc/interrupts that are read: with hundreds of CPUs it takes longer than a step may cost."""


class Scheduling:
    """Times that the threads of one QEMU process ran, and waited for a CPU of the host."""

    def __init__(self, process: int, vcpus: Collection[int], proc: Path = Path("/proc")) -> None:
        """`vcpus` are the thread ids of the guest's CPUs."""
        self.tasks, self.vcpus = proc / str(process) / "task", frozenset(vcpus)
        self._threads: dict[int, hosttotals.ThreadTimes] = {}

    def look(self) -> tuple[hosttotals.ThreadTimes | None, hosttotals.ThreadTimes | None]:
        """Times of the guest's CPUs and QEMU's other threads, ended ones included. None without such a report."""
        try:
            threads = [int(name) for name in os.listdir(self.tasks)]  # noqa: PTH208 - names only
        except OSError:
            return None, None
        known = False
        for thread in threads:
            if (times := self._times(thread)) is not None:
                known = True
                self._threads[thread] = times
        if not known:
            return None, None
        vcpus = [times for thread, times in self._threads.items() if thread in self.vcpus]
        others = [times for thread, times in self._threads.items() if thread not in self.vcpus]
        return (_sum(vcpus) if vcpus else None), _sum(others)

    def vcpu_seconds(self) -> float:
        """Seconds that the guest's CPUs ran so far, exact while they stand; 0 where the host does not report it."""
        return sum(times.run for thread in self.vcpus if (times := self._times(thread)) is not None)

    def _times(self, thread: int) -> hosttotals.ThreadTimes | None:
        """Times of a thread so far; None where the host does not report them, or it has ended."""
        words = _read(self.tasks / str(thread) / "schedstat").split()
        return hosttotals.ThreadTimes(int(words[0]) / 1e9, int(words[1]) / 1e9) if len(words) == 3 else None

    def kept_waiting(self, passed: float) -> float:
        """Seconds, of the `passed` since QEMU began, those in which the guest could not go on because the host gave QEMU no CPU:
        its threads waited, and the guest's CPUs did not run. 0 where the host does not report it."""
        vcpus, others = self.look()
        if vcpus is None:
            return 0.0
        return max(0.0, min(passed - vcpus.run, vcpus.wait + (others.wait if others else 0.0)))


class HostRecorder:
    """Follows one QEMU process: feed it the console, and take `steps` when the guest is gone."""

    def __init__(
        self,
        process: int,
        vcpus: Collection[int],
        cpus: Sequence[int] = (),
        *,
        root: Path = Path("/"),
        partner: Scheduling | None = None,
    ) -> None:
        """`vcpus` are thread ids, `cpus` the host's CPUs for them (empty: all); `partner` counts as this guest."""
        self.proc, self.partner = root / "proc", partner
        self.scheduling = Scheduling(process, vcpus, self.proc)
        self.steps: list[tuple[str, HostStep]] = []
        """Directory and record of each step that ended, in the order of time."""
        self._began: tuple[str, hosttotals.HostSnapshot] | None = None
        """The step that runs; before the first one the boot."""
        self._line = b""
        self._marks = 0
        self._cpus = sorted(set(cpus) or os.sched_getaffinity(0))
        places = [root / f"sys/devices/system/cpu/cpu{cpu}" for cpu in self._cpus]
        self._clocks = [path for place in places if (path := place / "cpufreq/scaling_cur_freq").is_file()]
        self._throttles = [
            path for place in places if (path := place / "thermal_throttle/core_throttle_count").is_file()
        ]
        self._readings: list[float] = []
        self._next_reading = 0.0
        self._began = BOOT, self.look()

    def feed(self, data: bytes) -> None:
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
            if (found := hosttotals.clock_of(map(_read, self._clocks))) is not None:
                self._readings.append(found)
        return max(0.0, self._next_reading - now)

    def look(self) -> hosttotals.HostSnapshot:
        """The totals now."""
        vcpus, others = self.scheduling.look()
        if self.partner is not None:
            further = self.partner.look()
            vcpus, others = _add_times(vcpus, further[0]), _add_times(others, further[1])
        busy, steal = hosttotals.cpu_times(_read(self.proc / "stat"))
        return hosttotals.HostSnapshot(
            at=time.monotonic(), vcpus=vcpus, others=others,
            stalled=hosttotals.stalled_seconds(_read(self.proc / "pressure/cpu")),
            io_stalled=hosttotals.stalled_seconds(_read(self.proc / "pressure/io")),
            memory_stalled=hosttotals.stalled_seconds(_read(self.proc / "pressure/memory")), steal=steal, busy=busy,
            interrupts=self._interrupts(), throttled=hosttotals.sum_of_files(map(_read, self._throttles)),
            own=time.process_time(),
        )  # fmt: skip

    def _mark(self, label: str, *, ended: bool) -> None:
        if not ended:
            self._began, self._readings, self._next_reading = (label, self.look()), [], 0.0
            self.tick()
        elif self._began is not None and self._began[0] == label:
            record = hosttotals.compare_snapshots(
                self._began[1], self.look(), sum(self._readings) / max(1, len(self._readings)) or None
            )
            self.steps.append((label, record))
            self._began = None

    def _interrupts(self) -> int | None:
        """On the CPUs that the guest may use."""
        text = _read(self.proc / "interrupts", MOST_INTERRUPTS + 1)
        return hosttotals.interrupts_on(text, self._cpus) if len(text) <= MOST_INTERRUPTS else None


def _sum(times: Sequence[hosttotals.ThreadTimes]) -> hosttotals.ThreadTimes:
    return hosttotals.ThreadTimes(sum(one.run for one in times), sum(one.wait for one in times))


def _add_times(
    own: hosttotals.ThreadTimes | None, other: hosttotals.ThreadTimes | None
) -> hosttotals.ThreadTimes | None:
    return None if own is None or other is None else _sum([own, other])


def _read(path: Path, most: int = -1) -> str:
    """A small file's text, or its first bytes; empty where it cannot be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(most).decode("ascii", errors="replace")
    except OSError:
        return ""
