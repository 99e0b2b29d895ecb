"""A worker that is a child process: blocks by its standard input, which ends with us; events by its output."""

import contextlib
import re
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from kduel.core.errors import os_errors
from kduel.fleets import IDLE, Beat

LOG = "worker.log"
SILENT = 60.0
"""Seconds without an event after which a worker is taken to be gone: it sends one every few seconds."""
TO_END = 20.0
"""Seconds that a worker has to end by itself."""


class Worker:
    """The process that works on a member, or none at present."""

    def __init__(
        self, command: Callable[[Path], Sequence[str]], fetch: Callable[[Path, str], None] | None = None
    ) -> None:
        self.command, self.fetch = command, fetch
        self.process: subprocess.Popen[str] | None = None
        self.todo: set[int] = set()
        self.last = 0.0
        self.describes = False
        self.trouble = ""
        """Why results could not be fetched."""
        self.listener: threading.Thread | None = None

    def start(self, directory: Path, blocks: Sequence[int]) -> None:
        """Give it blocks; it is started where it does not run. Without blocks it describes the machine and ends."""
        if self.process is None or self.process.poll() is not None:
            self.launch(directory, describe=not blocks)
        self.todo |= set(blocks)
        assert self.process is not None and self.process.stdin is not None
        # Where it has just died, its exit status shows why.
        with contextlib.suppress(OSError):
            self.process.stdin.write("".join(f"{block}\n" for block in blocks))
            self.process.stdin.flush()

    def launch(self, directory: Path, *, describe: bool) -> None:
        self.todo, self.trouble, self.last, self.describes = set(), "", time.monotonic(), describe
        with os_errors("cannot start a worker", "See whether its program is there."):
            log = (directory / LOG).open("ab")
            with log:
                self.process = subprocess.Popen(
                    [*self.command(directory), "--stdin", *(["--describe"] if describe else [])],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, errors="replace",
                    start_new_session=True,
                )  # fmt: skip
        self.listener = threading.Thread(target=self.listen, args=(self.process, directory), daemon=True)
        self.listener.start()

    def listen(self, process: subprocess.Popen[str], directory: Path) -> None:
        """Take the worker's events: `alive`, `trial ID`, `done BLOCK`, `described`."""
        assert process.stdout is not None
        for line in process.stdout:
            self.last = time.monotonic()
            word, _, what = line.strip().partition(" ")
            try:
                if word in ("trial", "described") and self.fetch is not None:
                    self.fetch(directory, what)
                elif word == "done":
                    self.todo.discard(int(what))
            except Exception as error:  # noqa: BLE001 - reported by the next heartbeat
                self.trouble = str(error)
                process.kill()

    def beat(self, directory: Path) -> Beat:
        process = self.process
        if process is None:
            return IDLE
        status = process.poll()
        if status is None:
            if (silent := time.monotonic() - self.last) > SILENT:
                process.kill()
                return Beat(active=True, message=f"no sign of life for {silent:.0f} s")
            return Beat(active=not self.idle, working=True)
        if self.listener is not None:
            self.listener.join(TO_END)
        self.process = None
        with contextlib.suppress(OSError):
            process.stdin.close()  # type: ignore[union-attr]
        if status or self.todo or self.trouble:
            return Beat(active=False, failed=True, message=self.trouble or last_words(directory, status))
        return IDLE

    @property
    def idle(self) -> bool:
        """True if it waits for blocks; one that describes its machine is never idle."""
        return not self.describes and not self.todo

    def cancel(self) -> None:
        """End it: close its input, then kill it."""
        process, self.process = self.process, None
        if process is None:
            return
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(TO_END)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self.listener is not None:
            self.listener.join(TO_END)


def last_words(directory: Path, status: int | None = None) -> str:
    """The last message of a worker that failed: the paragraph after `kduel:`, else its last line."""
    try:
        with (directory / LOG).open("rb") as stream:
            stream.seek(0, 2)
            stream.seek(max(0, stream.tell() - 8192))
            text = stream.read().decode(errors="replace").strip()
    except OSError:
        text = ""
    paragraphs = re.split(r"^kduel: ", text, flags=re.MULTILINE)
    said = paragraphs[-1] if len(paragraphs) > 1 else text[text.rfind("\n") + 1 :]
    ended = f"the worker ended with status {status}" if status is not None else "the worker ended"
    return said.strip()[:1000] or ended
