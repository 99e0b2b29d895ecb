"""Loads under which QEMU's own threads run at the worst moments: what a trial on the exact machine must not notice."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kduel.core.temporary import temporary_directory
from kduel.guest import launch
from kduel.machines.icount import IcountMachine


@contextlib.contextmanager
def stopped_and_continued(machine: IcountMachine) -> Iterator[None]:
    """Every QEMU that is started is stopped and continued some hundred times a second, at random."""

    def torment(process: Any, over: threading.Event) -> None:
        draw = random.Random(process.pid)
        with contextlib.suppress(ProcessLookupError):
            while not over.is_set() and process.poll() is None:
                time.sleep(draw.uniform(0.0002, 0.004))
                os.kill(process.pid, signal.SIGSTOP)
                time.sleep(draw.uniform(0.0001, 0.003))
                os.kill(process.pid, signal.SIGCONT)

    with _each_process(torment):
        yield


@contextlib.contextmanager
def polled(machine: IcountMachine) -> Iterator[None]:
    """QEMU's monitor is asked without pause, so that its main loop wakes up all the time."""
    kept = machine.fixed_options

    def torment(process: Any, over: threading.Event) -> None:
        while not paths and not over.is_set():
            time.sleep(0.01)
        path = paths.pop()
        while not path.exists() and process.poll() is None:
            time.sleep(0.01)
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as monitor:
            monitor.connect(str(path))
            stream = monitor.makefile("rwb", buffering=0)
            stream.readline()
            for command in _commands():
                if over.is_set() or process.poll() is not None:
                    break
                stream.write(b'{"execute":"%s"}\n' % command)
                # QEMU 7.2 may hang at its end where it is asked even then.
                if (line := stream.readline()) == b"" or b'"SHUTDOWN"' in line:
                    break
            patience = time.monotonic() + 30
            while process.poll() is None and time.monotonic() < patience and not over.is_set():
                time.sleep(0.1)
            process.kill()

    def fixed(block: int) -> list[str]:
        path = Path(tempfile.mkdtemp(dir=place)) / "monitor"
        path.parent.chmod(0o777)
        paths.append(path)
        return [*kept(block), "-qmp", f"unix:{path},server=on,wait=off"]

    paths: list[Path] = []
    with temporary_directory(prefix="kduel-polled-") as place:
        place.chmod(0o755)
        machine.fixed_options = fixed  # type: ignore[method-assign]
        try:
            with _each_process(torment):
                yield
        finally:
            machine.fixed_options = kept  # type: ignore[method-assign]


def _commands() -> Iterator[bytes]:
    yield b"qmp_capabilities"
    while True:
        yield b"query-status"


@contextlib.contextmanager
def _each_process(torment: Any) -> Iterator[None]:
    """Start `torment(process, over)` in a thread for every QEMU that is started."""
    start, over = launch._start, threading.Event()
    threads: list[threading.Thread] = []

    def started(*words: Any, **options: Any) -> Any:
        process = start(*words, **options)
        threads.append(threading.Thread(target=torment, args=(process, over), daemon=True))
        threads[-1].start()
        return process

    launch._start = started
    try:
        yield
    finally:
        over.set()
        launch._start = start
        for thread in threads:
            thread.join(5)
