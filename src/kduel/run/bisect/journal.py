"""The measurements of a search on disk, from which it goes on when it was killed: a line of JSON each, written and
synced before the next one begins. A last line that is not whole is dropped."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from kduel.core.errors import InputError
from kduel.core.progress import Progress
from kduel.core.untrusted import NOT_JSON, read_whole
from kduel.run.bisect.terms import Unmeasurable
from kduel.store.whole_files import as_disk_error, write_whole

SCHEMA = 1
FILE = "measurements.jsonl"
ANEW = "Give --restart to measure again."


class Head(Struct, frozen=True, kw_only=True):
    """The first line: what is searched, and how."""

    schema: int = SCHEMA
    good: str
    bad: str
    commits: str
    """A digest of the commits between the ends."""
    subject: str
    """Benchmark or command, and machine."""
    seed: int
    made_by: str = ""
    """A digest of what besides that determines a measurement; empty where nothing does."""


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A measurement, or why a commit has none."""

    commit: str
    block: int
    value: float | None = None
    why: str = ""


@contextmanager
def hold_directory(directory: Path) -> Iterator[None]:
    """Hold a directory for one process. Raises InputError where another kduel works there, HostError."""
    with as_disk_error(directory, "Free some space, correct the permissions, or name another directory."):
        directory.mkdir(parents=True, exist_ok=True)
        handle = (directory / ".held").open("a")
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"another kduel bisect is at work in {directory}",
                "Wait for it to end, or give this one another directory with --build-dir.",
            ) from None
        yield


class Journal:
    """Answers from the file as long as it has some, then from `measure`, and keeps what that gave. Raises InputError
    for another search's file or a damaged one, HostError where it cannot be written."""

    def __init__(
        self,
        directory: Path,
        head: Head,
        measure: Callable[[str], float],
        progress: Progress,
        *,
        restart: bool = False,
    ) -> None:
        self.path = directory / FILE
        self.measure, self.progress = measure, progress
        self.ends = (head.good, head.bad)
        with as_disk_error(self.path, "Free some space or correct the permissions; the same command continues."):
            if restart or not self.path.is_file():
                write_whole(self.path, msgspec.json.encode(head) + b"\n")
            lines = read_whole(self.path).split(b"\n")
            whole = b"\n".join([*lines[:-1], b""])
            if lines[-1]:
                write_whole(self.path, whole)
        self.entries = self._read(lines[:-1], head)
        self.next = 0
        if self.entries:
            progress.info(f"Resuming: {len(self.entries)} measurements are in {self.path}.")

    def _read(self, lines: list[bytes], head: Head) -> list[Entry]:
        found = []
        for number, line in enumerate(lines, 1):
            try:
                if number == 1:
                    known = msgspec.json.decode(line, type=Head)
                    if known.schema > SCHEMA:
                        raise InputError(f"{self.path} was written by a later KDuel", "Update KDuel.")
                    if known != head:
                        raise InputError(f"{self.path} holds the measurements of another search", ANEW)
                else:
                    found.append(msgspec.json.decode(line, type=Entry))
            except NOT_JSON as error:
                raise InputError(f"{self.path}, line {number}, is damaged: {error}", ANEW) from error
        if not lines:
            raise InputError(f"{self.path} is empty", ANEW)
        return found

    def __call__(self, commit: str, block: int) -> float:
        """The value of a commit. Raises Unmeasurable, and what `measure` raises."""
        if self.next < len(self.entries):
            entry = self.entries[self.next]
            if (entry.commit, entry.block) != (commit, block):
                raise InputError(
                    f"{self.path}, line {self.next + 2}: the search would now measure another commit, "
                    f"{commit[:12]} in place of {entry.commit[:12]}: it was written by another version of KDuel",
                    ANEW,
                )
        else:
            try:
                entry = Entry(commit=commit, block=block, value=self.measure(commit))
            except Unmeasurable as error:
                entry = Entry(commit=commit, block=block, why=error.message)
                if commit in self.ends:
                    # Without it there is no search: the next one shall try again.
                    raise
                self.progress.info(f"{commit[:12]} is skipped: {entry.why}")
            self._append(entry)
        self.next += 1
        if entry.value is None:
            raise Unmeasurable(entry.why)
        return entry.value

    def _append(self, entry: Entry) -> None:
        self.entries.append(entry)
        with as_disk_error(self.path, "Free some space; the same command continues."), self.path.open("ab") as stream:
            stream.write(msgspec.json.encode(entry) + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
