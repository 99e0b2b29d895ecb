"""The outputs of a virtual machine that runs, and how it ends."""

import io
import os
import re
import selectors
import subprocess
import time
from collections.abc import Callable

from kduel.guest import envelope
from kduel.guest.console import ConsoleLog
from kduel.guest.hostrecord import HostRecorder, Scheduling

SILENT_SECONDS = 60.0
"""Seconds without output after which a guest with virtual time may sleep for ever, and is looked at."""

GAVE_UP = re.compile(
    r"^(?:KVM internal error|KVM: (?:entry failed|unknown exit)|error: kvm run failed)[^\n]*", re.MULTILINE
)
"""What QEMU says where the processor refuses to run a guest; it stops the guest then, and does not end."""
SHORTEST_WAIT = 0.05
"""Seconds; a deadline does not come nearer while a guest is held."""
LAST_WORDS_SECONDS = 1.0
"""Seconds in which QEMU says all of it."""


class Watch:
    """Reads a running machine's three outputs and detects when it has ended."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        console: io.FileIO,
        results: io.FileIO,
        log: ConsoleLog,
        inbox: envelope.Inbox,
        started: float,
        recorder: HostRecorder | None,
        scheduling: Scheduling | None,
        asleep: Callable[[], bool] | None,
        stop: int | None,
        held: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`held` gives the seconds in which the guest was held: they count nowhere."""
        assert process.stderr is not None
        self.process, self.started, self.log, self.inbox, self.held = process, started, log, inbox, held
        self.recorder, self.scheduling, self.asleep = recorder, scheduling, asleep
        self._heard = time.monotonic()
        """Time of the last output, or of the last look at a silent guest."""
        self.waited = 0.0
        """Seconds that do not count towards a deadline, as last read."""
        self.stderr = bytearray()
        self.timings: dict[str, float] = {}
        self._gave_up_at: float | None = None
        """Since when QEMU has given up, as deadlines count it."""
        self._home, self._home_at = False, 0.0
        """True if the results are complete, and the time since when, as deadlines count it."""
        self._selector = selectors.DefaultSelector()
        self._gone = os.pidfd_open(process.pid)
        for source, take in (
            (console, self._take_console),
            (results, self._take_results),
            (process.stderr, self._take_stderr),
        ):
            os.set_blocking(source.fileno(), False)
            self._selector.register(source, selectors.EVENT_READ, take)
        self._selector.register(self._gone, selectors.EVENT_READ, None)
        self._stop = stop
        if stop is not None:
            self._selector.register(stop, selectors.EVENT_READ, None)

    def until_gone(self, boot_deadline: float, deadline: float, linger: float) -> str:
        """Read until the machine is off or must be killed; gives `Run.ended`."""
        while True:
            if self._gave_up_at is not None:
                limit, name = self._gave_up_at + LAST_WORDS_SECONDS, "failed"
            elif self._home:
                limit, name = self._home_at + linger, "lingered"
            elif "ready" in self.timings or boot_deadline >= deadline:
                limit, name = deadline, "deadline"
            else:
                limit, name = boot_deadline, "boot-deadline"
            passed = self.own_seconds()
            if passed - self.waited >= limit:
                self._read_waited(passed)
            left = limit - (passed - self.waited)
            if left <= 0:
                # It may have ended while this process was stopped, or waited for a CPU itself.
                return "off" if self.process.poll() is not None else name
            waits = [max(left, SHORTEST_WAIT)]
            if self.recorder and (reading := self.recorder.tick()) is not None:
                waits.append(reading)
            if self.asleep is not None:
                if time.monotonic() - self._heard >= SILENT_SECONDS:
                    if self.asleep():
                        return name
                    self._heard = time.monotonic()
                waits.append(self._heard + SILENT_SECONDS - time.monotonic())
            for key, _ in self._selector.select(max(0.0, min(waits))):
                if key.fd == self._gone:
                    return "off"
                if key.fd == self._stop:
                    return "off" if self.process.poll() is not None else "partner"
                self._take(key)
            if self.inbox.full:
                return "flood"

    def own_seconds(self) -> float:
        """Seconds since the start, less those in which the guest was held."""
        return time.monotonic() - self.started - self.held()

    def _read_waited(self, passed: float) -> None:
        if self.scheduling is not None:
            self.waited = max(self.waited, self.scheduling.kept_waiting(passed))

    def drain(self) -> None:
        """Take what is still in the pipes, and close."""
        os.close(self._gone)
        self._selector.unregister(self._gone)
        if self._stop is not None:
            self._selector.unregister(self._stop)
        while self._selector.get_map():
            events = self._selector.select(0)
            if not events:
                break
            for key, _ in events:
                self._take(key)
        self._selector.close()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def _take(self, key: selectors.SelectorKey) -> None:
        try:
            data = os.read(key.fd, 1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._heard = time.monotonic()
            key.data(data)
        else:
            self._selector.unregister(key.fileobj)

    def _take_console(self, data: bytes) -> None:
        self.log.feed(data)
        if self.recorder:
            self.recorder.feed(data)

    def _take_stderr(self, data: bytes) -> None:
        self.stderr += data[: (64 << 10) - len(self.stderr)]
        if self._gave_up_at is None and GAVE_UP.search(self.stderr.decode("utf-8", errors="replace")):
            self._gave_up_at = self.own_seconds() - self.waited

    def _take_results(self, data: bytes) -> None:
        self.inbox.feed(data)
        now = self.own_seconds()
        for name in ("ready", "done"):
            if name not in self.timings and self.inbox.has(name.upper()):
                self.timings[name] = now
        if not self._home and self.inbox.home:
            self._home = True
            self.timings.setdefault("done", now)
            self.timings["home"] = now
            self._read_waited(now)
            self._home_at = now - self.waited
