"""RUN/.held: the lock of the command that is at work in a run, and who that is. It is empty after a command that ended by
itself; one that was killed leaves its name there, without the lock."""

import fcntl
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from kduel.core.errors import InputError
from kduel.core.this_host import boot_id, machine_hash
from kduel.core.untrusted import NOT_JSON

NAME = ".held"
MOST_BYTES = 4096

A_LOOK = 0.1
"""Seconds within which a look at who holds a run (`at_work`) is over; during it nobody can take the run."""

AtWork = Literal["yes", "no", "unknown"]
"""unknown: one of another host was at work there last, and a lock need not be visible from host to host."""


class Holder(Struct, frozen=True, kw_only=True):
    """A process that is or was at work in a run."""

    pid: int
    host: str
    """The host's name."""
    boot: str
    """The host's boot id; empty where it has none to show."""
    machine: str
    """A hash of its machine id, the same as in lock.json; empty where it has none."""

    def is_of_this_host(self, own: "Holder") -> bool:
        """True if it is or was of the same host, perhaps in an earlier boot: its lock would be visible."""
        return bool(own.boot and own.boot == self.boot) or (
            bool(own.machine) and (own.host, own.machine) == (self.host, self.machine)
        )


def own_holder() -> Holder:
    """This process."""
    return Holder(pid=os.getpid(), host=platform.node(), boot=boot_id(), machine=machine_hash())


class HeldError(InputError):
    def __init__(self, run: Path) -> None:
        super().__init__(
            f"another kduel is at work in {run}",
            "Wait for it to end, or measure in another directory: `kduel run` with another --out.",
        )


def refuse_second(run: Path) -> None:
    """Raises HeldError where another command is at work in a run; before anything slow, and without holding it."""
    if at_work(run)[0] == "yes":
        raise HeldError(run)


@contextmanager
def hold(run: Path, patience: float) -> Iterator[None]:
    """Hold the run for writing. Raises HeldError where another has it for more than `patience` seconds, and OSError."""
    with (run / NAME).open("a") as handle:
        end = time.monotonic() + max(patience, A_LOOK)
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise HeldError(run) from None
                time.sleep(A_LOOK / 2)
        handle.truncate(0)
        handle.write(msgspec.json.encode(own_holder()).decode())
        handle.flush()
        os.fsync(handle.fileno())
        try:
            yield
        finally:
            handle.truncate(0)


def at_work(run: Path) -> tuple[AtWork, Holder | None]:
    """State of a run's lock, and the command that has or had it, if known."""
    try:
        with (run / NAME).open("rb") as handle:
            said = decode_holder(handle.read(MOST_BYTES))
            # On a file system without locks nobody of this host can be at work.
            with suppress(OSError):
                try:
                    fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return "yes", said
    except OSError:
        return "no", None
    return "no" if said is None or said.is_of_this_host(own_holder()) else "unknown", said


def decode_holder(data: bytes) -> Holder | None:
    """Holder from the content of the file; None if it is empty, or damaged by a power cut."""
    try:
        return msgspec.json.decode(data, type=Holder)
    except NOT_JSON:
        return None
