"""The console log: what a guest prints, each line with the host's time of its first byte, bounded in size."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from kduel.core.regular_files import open_regular

LIMIT = 8 << 20
"""Bytes of a console that are kept; a guest that floods its console is cut there, with a line in the log."""


class ConsoleLog:
    """Takes the console's bytes as they come and writes `SECONDS line` into a file."""

    def __init__(self, path: Path, started: float, limit: int = LIMIT) -> None:
        self._file: BinaryIO = path.open("wb", buffering=0)
        self._started = started
        self.held: Callable[[], float] = lambda: 0.0
        """Seconds since the start that do not count: in which the guest was held."""
        self._left = limit
        self._at_line_start = True
        self.first: float | None = None
        """Seconds from the start to the first byte."""
        self.received = 0

    def feed(self, data: bytes) -> None:
        """Some bytes that have just come."""
        now = time.monotonic() - self._started - self.held()
        if data and self.first is None:
            self.first = now
        self.received += len(data)
        if self._left <= 0:
            return
        data = data.replace(b"\r", b"").replace(b"\0", b"")
        stamp = b"%10.3f " % now
        pieces = []
        for line in data.splitlines(keepends=True):
            if self._at_line_start:
                pieces.append(stamp)
            pieces.append(line)
            self._at_line_start = line.endswith(b"\n")
        out = b"".join(pieces)[: self._left]
        self._left -= len(out)
        if self._left <= 0:
            out += b"\n[the console is cut here: it printed too much]\n"
        self._file.write(out)

    def close(self) -> None:
        self._file.close()


def read_console(path: Path, limit: int = LIMIT + 4096) -> list[str]:
    """The lines of a console log without the host's times, decoded leniently; [] where there is no log."""
    try:
        with open_regular(path) as stream:
            text = stream.read(limit).decode("utf-8", errors="replace")
    except FileNotFoundError:
        return []
    return [line[11:] if line[:10].strip().replace(".", "").isdigit() else line for line in text.split("\n")]
