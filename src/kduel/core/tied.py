"""Commands that leave nobody behind, however they end and however we end.

Such a command runs in a session of its own, with a watcher that is no child of it: when we are killed, the watcher ends the whole
session, also what timeout(1) put into a process group of its own. Not covered are processes that made another session (setsid, a
daemon) or run as another user, and all of them where the watcher itself is killed.

As a program, `tied.py LEADER`: end that session.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

WITH_US = """exec 3<&0 </dev/null
((read -r over || { "$0" -I -S "$1" $$; kill -KILL 0; }) <&3 >&- 2>&- &)
exec 3<&-
shift
exec "$@"
"""
"""Runs a command in a session that is ended when the other end of its standard input is closed without a word."""
AGAIN = 0.02
"""Seconds between two looks for what is left of a session."""


@contextmanager
def tied(
    command: Sequence[str],
    *,
    stdout: IO[bytes],
    stderr: IO[bytes],
    environment: Mapping[str, str],
    cwd: Path | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command without standard input. Its session ends with the block, or with us. Raises OSError."""
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            process = subprocess.Popen(
                ["/bin/sh", "-c", WITH_US, sys.executable, __file__, *command], cwd=cwd, env=dict(environment),
                stdin=theirs.fileno(), stdout=stdout, stderr=stderr, start_new_session=True,
            )  # fmt: skip
        try:
            yield process
        finally:
            with contextlib.suppress(OSError):
                ours.send(b"\n")
            end_session(process.pid)
            process.wait()


def end_session(leader: int, but: Collection[int] = ()) -> None:
    """Kill a session's processes, but these and those of other users, until there are none."""
    spared = set(but)
    while found := [pid for pid in session(leader) if pid not in spared]:
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            except PermissionError:
                spared.add(pid)
        time.sleep(AGAIN)


def session(leader: int) -> list[int]:
    """The processes of a session that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # After the name, which may hold anything: state, parent, process group, session.
            state, _, _, sid, *_ = stat.read_text("utf-8", errors="replace").rpartition(")")[2].split()
            if sid == str(leader) and state not in "ZX":
                found.append(int(stat.parent.name))
    return found


if __name__ == "__main__":
    end_session(int(sys.argv[1]), (os.getpid(), os.getppid()))
