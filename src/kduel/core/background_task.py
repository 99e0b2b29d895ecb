"""Slow work in a thread of its own, beside what the caller does meanwhile, and ended with it."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from subprocess import DEVNULL, Popen, TimeoutExpired
from types import TracebackType
from typing import Any, Self

from kduel.core.progress import Progress, Task
from kduel.core.supervised_process import NOTHING, supervised_process
from kduel.core.temporary import memory_file

PATIENCE = 10.0
"""Seconds that a program has to clean up before it is killed."""

_here = threading.local()
"""In a thread of `BackgroundTask`: which one it is."""


class BackgroundTask:
    """Calls `work` in a thread, with a progress of its own, from the beginning of the `with` block, which never ends
    before it. Where the block ends by an exception (Ctrl-C), programs that the work runs are ended."""

    LOWEST = 19
    """Nice value of the programs that the work runs until somebody waits for it: what is done meanwhile comes first."""

    def __init__(self, work: Callable[[Progress], Any], progress: Progress) -> None:
        self.progress = progress
        self.doing = ""
        """What takes long at the moment, in words; empty where nothing does."""
        self._work = work
        self._failure: BaseException | None = None
        self._lock = threading.Lock()
        self._stopped = False
        self._process: Popen[Any] | None = None
        self._nice = self.LOWEST
        # Not the thread's end: Python 3.11 takes a thread for ended when an exception interrupts join().
        self._done = threading.Event()

    def __enter__(self) -> Self:
        threading.Thread(target=self._run, name="kduel-background").start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        if kind is not None:
            self._end(signal.SIGTERM)
            if not self._done.wait(PATIENCE):
                self._end(signal.SIGKILL)
        self._done.wait()

    def wait(self) -> None:
        """Return when the work is done, and show what is still to be waited for. Raises what it raised."""
        with self._lock:
            self._nice = 0
            if self._process is not None:
                _set_nice(self._process, self._nice)
        if not self._done.is_set() and self.doing:
            with self.progress.task(f"still {self.doing}"):
                self._done.wait()
        self._done.wait()
        if self._failure is not None:
            raise self._failure

    def _end(self, how: signal.Signals) -> None:
        with self._lock:
            self._stopped = True
            if self._process is not None:
                _signal(self._process, how)

    def _run(self) -> None:
        _here.work = self
        try:
            self._work(_LineProgress(self))
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            self._failure = error
        finally:
            self._done.set()

    @contextmanager
    def _running(self, process: Popen[Any]) -> Iterator[None]:
        with self._lock:
            self._process = process
            if self._nice:
                _set_nice(process, self._nice)
            if self._stopped:
                # It has nothing to clean up yet; a SIGTERM before its handler is set would be lost.
                _signal(process, signal.SIGKILL)
        try:
            yield
        finally:
            with self._lock:
                self._process = None


class _LineProgress(Progress):
    """Reports work that is not the only one under way: a line where it begins, and no bar."""

    def __init__(self, beside: BackgroundTask) -> None:
        self.beside = beside

    def info(self, text: str) -> None:
        self.beside.progress.info(text)

    def warn(self, text: str) -> None:
        self.beside.progress.warn(text)

    @contextmanager
    def task(self, text: str, total: float | None = None) -> Iterator[Task]:
        self.beside.progress.info(f"{text}, in the background")
        self.beside.doing = text
        try:
            yield Task()
        finally:
            self.beside.doing = ""


def run_program(command: Sequence[str], *, environment: Mapping[str, str], stdin: Path = NOTHING) -> tuple[int, str]:
    """Run a program that reads a file in a session of its own: its exit status, and standard error. The session is
    asked to end, and killed after PATIENCE, on an exception here, the end of our `BackgroundTask` or our death.
    Raises OSError."""
    work: BackgroundTask | None = getattr(_here, "work", None)
    # A file: a program that cleans up when we are gone would be ended by what it writes to a pipe.
    with memory_file() as errors:
        with supervised_process(
            command, stdin=stdin, stdout=DEVNULL, stderr=errors, environment=environment, patience=PATIENCE
        ) as process:
            try:
                with work._running(process) if work is not None else nullcontext():
                    process.wait()
            except BaseException:
                _signal(process, signal.SIGTERM)
                with suppress(TimeoutExpired):
                    process.wait(PATIENCE)
                raise
        errors.seek(0)
        return process.returncode, errors.read().decode(errors="replace")


@contextmanager
def repeat_beside(work: Callable[[], object], seconds: float) -> Iterator[None]:
    """Do something every so many seconds, in a thread, until the block ends; not at its end."""
    done = threading.Event()

    def repeat() -> None:
        while not done.wait(seconds):
            work()

    thread = threading.Thread(target=repeat, name="kduel-repeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _set_nice(process: Popen[Any], value: int) -> None:
    """Give the program's first process group, and its session's scheduling group, a nice value, as far as this user may."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PGRP, process.pid, value)
    with suppress(OSError):
        Path(f"/proc/{process.pid}/autogroup").write_text(f"{value}\n", "ascii")


def _signal(process: Popen[Any], how: signal.Signals) -> None:
    """To all of its session's first process group, while the program is there."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, how)
