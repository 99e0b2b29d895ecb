"""The completion script in an interactive bash: what a line becomes by the tabulator key."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

LATEST = 120.0
"""Seconds until an answer; a busy host takes its time."""


@pytest.fixture
def complete(program: Path, environment: dict[str, str], tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """complete(LINE): the line after the tabulator key, in a directory with runs of odd names."""
    for name in ("with space", "qu'ote"):
        (tmp_path / "kduel-runs" / name).mkdir(parents=True)
        (tmp_path / "kduel-runs" / name / "lock.json").touch()
    script = subprocess.run(
        [program, "--completion", "bash"], env=environment, capture_output=True, text=True, check=True
    )
    settings = tmp_path / "rc"
    settings.write_text(
        f"PS1='> '\nPATH={program.parent}:$PATH\nbind 'set enable-bracketed-paste off'\n{script.stdout}"
    )
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        words = ["bash", "--noprofile", "--rcfile", str(settings), "-i"]
        os.execvpe("bash", words, environment | {"TERM": "dumb", "COLUMNS": "200"})

    def read_until(mark: str) -> str:
        end, text = time.monotonic() + LATEST, ""
        while mark not in text:
            ready, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
            assert ready, text
            text += os.read(terminal, 4096).decode()
        return text

    def call(line: str) -> str:
        # What follows shows that bash has done with the key; Ctrl-U then empties the line.
        os.write(terminal, f"{line}\t<done>".encode())
        shown = read_until("<done>")
        os.write(terminal, b"\x15\n")
        read_until("> ")
        return written(shown.replace("\a", "").partition("<done>")[0].rpartition("> ")[2])

    read_until("> ")
    yield call
    os.close(terminal)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def written(stream: str) -> str:
    """The line that a terminal shows after these characters, some of which go back by one."""
    shown: list[str] = []
    place = 0
    for character in stream:
        if character == "\b":
            place -= 1
        else:
            shown[place : place + 1] = [character]
            place += 1
    return "".join(shown)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("kduel doc", "kduel doctor "),
        ("kduel run --benchmark redi", "kduel run --benchmark redis "),
        ("kduel run --benchmark=redi", "kduel run --benchmark=redis "),
        ("kduel run --suite=exact-q", "kduel run --suite=exact-quick "),
        ("kduel run debian-so", "kduel run debian-source:"),
        ("kduel run outside:old-a", "kduel run outside:old-and-slow "),
        ("kduel report kduel-runs/w", "kduel report kduel-runs/with\\ space "),
        ("kduel report kduel-runs/with\\ s", "kduel report kduel-runs/with\\ space "),
        ('kduel report "kduel-runs/w', 'kduel report "kduel-runs/with space" '),
        ("kduel report 'kduel-runs/qu", "kduel report 'kduel-runs/qu'\\''ote' "),
        ("COMP_WORDBREAKS=' ';\nkduel run --benchmark=redi", "kduel run --benchmark=redis "),
        ("COMP_WORDBREAKS=' ';\nkduel run outside:old-a", "kduel run outside:old-and-slow "),
        ("kduel run 'outside:old-a", "kduel run 'outside:old-and-slow' "),
        ('kduel run "outside:old-a', 'kduel run "outside:old-and-slow" '),
        ("kduel run outside\\:old-a", "kduel run outside:old-and-slow "),
        ("kduel nope ", "kduel nope "),
        ("kduel list nope x", "kduel list nope x"),
        ("kduel run --machine icou", "kduel run --machine icount "),
        ("kduel run --fleet slu", "kduel run --fleet slurm "),
        ("kduel list benchmarks pgb", "kduel list benchmarks pgbench "),
        ("kduel list boards arm64", "kduel list boards arm64-virt "),
        ("kduel schedulers build scx_bp", "kduel schedulers build scx_bpfland "),
    ],
)
def test_a_line_is_completed(complete: Callable[[str], str], line: str, completed: str) -> None:
    assert complete(line).rstrip() == completed.rstrip()
