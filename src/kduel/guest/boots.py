"""Boots in threads of their own, which end when what waits for them is interrupted."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from subprocess import Popen

_lock = threading.Lock()
_running: set[Popen[bytes]] = set()
_ending = 0
"""Number of pools that are being ended: no machine starts meanwhile."""


@contextmanager
def pool(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that boot machines. At the end those at work are waited for; after an exception their machines are killed
    first, since Python ends no thread, and Ctrl-C would have to wait for whole boots."""
    global _ending
    threads = ThreadPoolExecutor(workers)
    try:
        yield threads
    except BaseException:
        with _lock:
            _ending += 1
            for process in _running:
                process.kill()
        try:
            threads.shutdown(cancel_futures=True)
        finally:
            with _lock:
                _ending -= 1
        raise
    finally:
        threads.shutdown(cancel_futures=True)


@contextmanager
def running(process: Popen[bytes]) -> Iterator[None]:
    """A machine that is running: it is killed where its pool ends."""
    with _lock:
        if _ending:
            process.kill()
        _running.add(process)
    try:
        yield
    finally:
        with _lock:
            _running.discard(process)
