"""A command in an emulated terminal: what a person sees, frame by frame (pyte), or after a resize (tmux, which wraps
the lines of a terminal anew)."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyte

from kduel.cli.screen import WRAP_ON

WIDTH, HEIGHT = 80, 24
PATIENCE = 600.0
"""Seconds without output after which a command is given up, unless the caller says otherwise."""

DRAWING = 0.05
"""A frame is whole when nothing has come for so many seconds."""

DRAWN = f"{WRAP_ON}\r".encode()
"""Ends what is drawn in place (kduel.cli.screen)."""

Frame = list[str]
Resize = Callable[[Frame], tuple[int, int] | None]
"""Sees each frame; gives a new size, in columns and rows, or None."""


def resize(terminal: int, columns: int, rows: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class Cropping(pyte.HistoryScreen):
    """Resized as by xterm, which wraps nothing anew: rows are removed below the cursor, and above it only where it would
    otherwise be outside."""

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        lines, columns = lines or self.lines, columns or self.columns
        row, column = self.cursor.y, self.cursor.x
        for _ in range(above := max(0, row + 1 - lines)):
            self.cursor.y = self.lines - 1
            self.index()
        for gone in range(lines, self.lines):
            self.buffer.pop(gone, None)
        for line in self.buffer.values():
            for x in range(columns, self.columns):
                line.pop(x, None)
        self.lines, self.columns = lines, columns
        self.set_margins()
        self.cursor.y, self.cursor.x = row - above, min(column, columns - 1)


def everything(screen: pyte.HistoryScreen) -> list[str]:
    """The lines that have left the screen at its top, and those on it."""
    gone = ["".join(line[x].data for x in range(screen.columns)).rstrip() for line in screen.history.top]
    return gone + [line.rstrip() for line in screen.display]


class Tmux:
    """A terminal of tmux with its scrollback."""

    def __init__(self, program: str, socket: str) -> None:
        self.program, self.socket = program, socket

    def do(self, *words: str) -> str:
        return subprocess.run(
            [self.program, "-S", self.socket, "-f", "/dev/null", *words], capture_output=True, text=True, check=True
        ).stdout

    def resize(self, columns: int, rows: int) -> None:
        self.do("resize-window", "-x", str(columns), "-y", str(rows))

    def lines(self, scrollback: bool = False) -> list[str]:
        """What is on the screen, or also what has left it."""
        return self.do("capture-pane", "-p", "-J", *(["-S", "-"] if scrollback else [])).splitlines()

    def until(self, seen: Callable[[list[str]], bool]) -> list[str]:
        """The screen once it is as `seen` wants it."""
        end = time.monotonic() + PATIENCE
        while not seen(lines := self.lines()):
            assert time.monotonic() < end, "\n".join(lines)
            time.sleep(0.1)
        return lines


@contextmanager
def in_tmux(program: str, command: list[str], environment: dict[str, str], place: Path) -> Iterator[Tmux]:
    """Run a shell's COMMAND in a terminal of 80 columns and 24 rows; gone at the end."""
    with tempfile.TemporaryDirectory() as folder:  # Its path is short, as that of a socket must be.
        terminal = Tmux(program, f"{folder}/socket")
        given = [f"{name}={value}" for name, value in environment.items() if name not in ("TERM", "TMUX")]
        line = shlex.join(["env", *given, *command])
        try:
            terminal.do("new-session", "-d", "-x", str(WIDTH), "-y", str(HEIGHT), "-c", str(place), line)
            terminal.do("set-option", "-g", "status", "off")
            yield terminal
        finally:
            subprocess.run([program, "-S", terminal.socket, "kill-server"], check=False, capture_output=True)


def watch(
    words: list[str],
    environment: dict[str, str],
    place: Path,
    size: tuple[int, int] = (WIDTH, HEIGHT),
    change: Resize = lambda _: None,
    look: Callable[[pyte.HistoryScreen], None] = lambda _: None,
    patience: float = PATIENCE,
) -> tuple[list[Frame], set[str], int]:
    """Run `kduel WORDS` in a terminal; gives every frame that differs from the one before, the colours
    of its text, and the exit status. `look` is called with the screen of each frame."""
    screen = Cropping(*size)
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
            *drawn, rest = data.split(DRAWN)
            for part in drawn:
                # On a busy host several frames come at once.
                stream.feed(part + DRAWN)
                see()
            stream.feed(rest)
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
