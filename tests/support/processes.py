"""Processes of this host, any of which may end while it is looked at."""

from __future__ import annotations

import contextlib
from pathlib import Path


def command_lines() -> dict[int, bytes]:
    """The command lines of all processes, each word with a NUL behind it."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        # FileNotFoundError before it is opened, ProcessLookupError behind that.
        with contextlib.suppress(OSError):
            found[int(path.parent.name)] = path.read_bytes()
    return found


def own_children() -> dict[int, bytes]:
    """The command lines of the processes that this one started."""
    children: set[int] = set()
    for path in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            children |= set(map(int, path.read_text().split()))
    return {pid: words for pid, words in command_lines().items() if pid in children}


def is_alive(pid: int) -> bool:
    """True if a process has not ended."""
    with contextlib.suppress(OSError):
        # After the name, which may hold anything, comes the state.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
