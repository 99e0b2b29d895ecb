"""Slow work in a thread of its own, beside what the caller does meanwhile, and ended with it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from subprocess import Popen
from types import TracebackType
from typing import Any, Self

from kduel.core.progress import Progress, Task

_here = threading.local()
"""In a thread of `Beside`: which one it is."""


class Beside:
    """Calls `work` in a thread, with a progress of its own, from the beginning of the `with` block.

    Where the block ends by an exception, such as Ctrl-C, the program that the work is running is terminated, and no other
    one is started. The block never ends before the work.
    """

    def __init__(self, work: Callable[[Progress], Any], progress: Progress) -> None:
        self.progress = progress
        self.doing = ""
        """What takes long at the moment, in words; empty where nothing does."""
        self._work = work
        self._failure: BaseException | None = None
        self._lock = threading.Lock()
        self._stopped = False
        self._process: Popen[Any] | None = None
        self._thread = threading.Thread(target=self._run, name="kduel-beside")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        if kind is not None:
            self.stop()
        self._thread.join()

    def wait(self) -> None:
        """Return when the work is done, and show what is still to be waited for. Raises what it raised."""
        if self._thread.is_alive() and self.doing:
            with self.progress.task(f"still {self.doing}"):
                self._thread.join()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """End the work: terminate its program, and every one that it would start."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.terminate()

    def _run(self) -> None:
        _here.work = self
        try:
            self._work(_Told(self))
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            self._failure = error

    @contextmanager
    def _running(self, process: Popen[Any]) -> Iterator[None]:
        with self._lock:
            self._process = process
            if self._stopped:
                process.terminate()
        try:
            yield
        finally:
            with self._lock:
                self._process = None


class _Told(Progress):
    """Reports work that is not the only one under way: a line where it begins, and no bar."""

    def __init__(self, beside: Beside) -> None:
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


@contextmanager
def ended_with_us(process: Popen[Any]) -> Iterator[None]:
    """A program that was started: it is terminated where the work of this thread is ended from outside (`Beside`), and
    where an exception comes. It is waited for in any case."""
    work: Beside | None = getattr(_here, "work", None)
    try:
        if work is None:
            yield
        else:
            with work._running(process):
                yield
    except BaseException:
        process.terminate()
        raise
    finally:
        process.wait()
