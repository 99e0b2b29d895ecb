"""Work in a thread beside other work."""

from __future__ import annotations

import subprocess
import threading
import time

import pytest

from kduel.core.beside import Beside, ended_with_us
from kduel.core.errors import HostError
from kduel.core.progress import Progress


class Heard(Progress):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, text: str) -> None:
        self.lines.append(text)


def test_what_it_raises_is_raised_where_it_is_waited_for():
    def work(_: Progress) -> None:
        raise HostError("no room")

    with Beside(work, Progress()) as beside:
        while threading.active_count() > 1 and beside._thread.is_alive():
            time.sleep(0.01)
        with pytest.raises(HostError, match="no room"):
            beside.wait()


def test_it_says_what_it_does_and_that_it_is_not_alone():
    heard = Heard()

    def work(progress: Progress) -> None:
        with progress.task("making the root"):
            pass

    with Beside(work, heard) as beside:
        beside.wait()
    assert heard.lines == ["making the root, in the background"] and not beside.doing


def test_an_exception_ends_its_program_and_every_further_one():
    started: list[int | None] = []

    def work(_: Progress) -> None:
        for _ in range(2):
            with subprocess.Popen(["sleep", "600"]) as process, ended_with_us(process):
                process.wait()
            started.append(process.returncode)

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), Beside(work, Progress()):
        raise KeyboardInterrupt
    assert started == [-15, -15] and time.monotonic() - began < 60


def test_a_program_of_the_caller_itself_ends_with_an_exception():
    with (
        pytest.raises(KeyboardInterrupt),
        subprocess.Popen(["sleep", "600"]) as process,
        ended_with_us(process),
    ):
        raise KeyboardInterrupt
    assert process.returncode == -15
