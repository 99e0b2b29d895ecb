"""A command in an emulated terminal (pyte): what a person sees, frame by frame."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pyte

WIDTH, HEIGHT = 80, 24
PATIENCE = 60.0
"""Seconds without output after which a command is given up, unless the caller says otherwise."""

DRAWING = 0.05
"""A frame is whole when nothing has come for so many seconds."""

Frame = list[str]
Resize = Callable[[Frame], tuple[int, int] | None]
"""Sees each frame; gives a new size, in columns and rows, or None."""


def resize(terminal: int, columns: int, rows: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def watch(
    words: list[str],
    environment: dict[str, str],
    place: Path,
    size: tuple[int, int] = (WIDTH, HEIGHT),
    change: Resize = lambda _: None,
    look: Callable[[pyte.Screen], None] = lambda _: None,
    patience: float = PATIENCE,
) -> tuple[list[Frame], set[str], int]:
    """Run `kduel WORDS` in a terminal; gives every frame that differs from the one before, the colours
    of its text, and the exit status. `look` is called with the screen of each frame."""
    screen = pyte.Screen(*size)
    stream = pyte.ByteStream(screen)
    ours, theirs = pty.openpty()
    resize(theirs, *size)
    process = subprocess.Popen(
        [sys.executable, "-m", "kduel", *words],
        env=environment | {"TERM": "xterm-256color"}, cwd=place, stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(theirs)
    frames: list[Frame] = []
    colours: set[str] = set()

    def see() -> Frame:
        frame = [line.rstrip() for line in screen.display]
        if not frames or frame != frames[-1]:
            frames.append(frame)
            look(screen)
        colours.update(cell.fg for row in screen.buffer.values() for cell in row.values())
        return frame

    try:
        while select.select([ours], [], [], patience)[0]:
            try:
                data = os.read(ours, 1 << 16)
            except OSError:  # The other end is closed.
                break
            if not data:
                break
            stream.feed(data)
            if not select.select([ours], [], [], DRAWING)[0] and (new := change(see())):
                screen.resize(new[1], new[0])
                resize(ours, *new)
        see()
        return frames, colours, process.wait(patience)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        if kept := os.environ.get("KDUEL_TEST_FRAMES"):
            Path(kept).write_text("\n".join("\n".join([*frame, "=" * size[0]]) for frame in frames))
