"""Boots in threads: an interruption kills their machines, and is not kept waiting by them."""

from __future__ import annotations

import subprocess
import threading

import pytest

from kduel.guest import boots


def boot(started: threading.Event, ended: list[int]) -> None:
    """A machine that would run for an hour."""
    with subprocess.Popen(["sleep", "3600"]) as process, boots.running(process):
        started.set()
        ended.append(process.wait())


def test_an_interruption_kills_the_machines_of_its_threads() -> None:
    ended: list[int] = []
    started = [threading.Event(), threading.Event()]

    def interrupted() -> None:
        with boots.pool(2) as threads:
            for event in started:
                threads.submit(boot, event, ended)
            later = threads.submit(boot, threading.Event(), ended)
            assert all(event.wait(60) for event in started)
            try:
                raise KeyboardInterrupt
            finally:
                cancelled.append(later)

    cancelled: list[object] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert ended == [-9, -9]
    # The next pool boots again.
    with boots.pool(1) as threads, subprocess.Popen(["true"]) as process:
        with boots.running(process):
            pass
        threads.submit(process.wait).result()
    assert process.returncode == 0


def test_a_machine_that_starts_while_its_pool_ends_is_killed_too() -> None:
    """As a second boot of the same thread would."""
    ended: list[int] = []
    started = threading.Event()

    def two_boots() -> None:
        boot(started, ended)
        boot(threading.Event(), ended)

    def interrupted() -> None:
        with boots.pool(1) as threads:
            threads.submit(two_boots)
            assert started.wait(60)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert ended == [-9, -9]
