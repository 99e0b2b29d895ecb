"""Run a command and end its whole session, however it ends and however we end.

Such a command runs in a session of its own, with a watcher that is no child of it: when we are killed, the watcher ends the whole
session, also what timeout(1) put into a process group of its own. Not covered are processes that made another session (setsid, a
daemon) or run as another user, and all of them where the watcher itself is killed.

As a program, `supervised_process.py LEADER SECONDS`: end that session, which has so long to end by itself when it is asked.
"""

import contextlib
import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

WITH_US = """read -r start || exit 1
exec 3<&0 <"$3"
((trap "" TERM; read -r over || { "$0" -I -S "$1" $$ "$2"; kill -KILL 0; }) <&3 >&- 2>&- &)
exec 3<&-
shift 3
exec "$@"
"""
"""Runs a command, once it is told to by a line, in a session that is ended when the other end of its standard input is closed
without another. The command reads a file in place of that."""
NOTHING = Path(os.devnull)
AGAIN = 0.02
"""Seconds between two looks for what is left of a session."""
START_TIME = 22 - 5
"""Place of the field `starttime` of proc_pid_stat(5) among those that follow the parent."""


@contextmanager
def supervised_process(
    command: Sequence[str],
    *,
    stdout: IO[bytes] | int,
    stderr: IO[bytes] | int,
    environment: Mapping[str, str],
    cwd: Path | None = None,
    stdin: Path = NOTHING,
    patience: float = 0.0,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command that reads the file `stdin`; its session ends with the block or us. Raises OSError."""
    if shutil.which(command[0], path=environment.get("PATH")) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            process = subprocess.Popen(
                ["/bin/sh", "-c", WITH_US, sys.executable, __file__, str(patience), str(stdin.absolute()), *command],
                cwd=cwd, env=dict(environment),
                stdin=theirs.fileno(), stdout=stdout, stderr=stderr, start_new_session=True,
            )  # fmt: skip
        try:
            # The command starts here: an interruption of the call above would leave one of which nobody knows.
            with contextlib.suppress(OSError):
                ours.send(b"\n")
            yield process
        finally:
            with contextlib.suppress(OSError):
                ours.send(b"\n")
            end_session(process.pid)
            process.wait()


def run_text(command: Sequence[str | Path], **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, whatever its status, and keep what it prints. `settings` are those of subprocess. Raises OSError."""
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, **settings)


def end_session(leader: int, but: Collection[int] = ()) -> None:
    """Kill a session's processes, but these and those of other users, until there are none."""
    spared = set(but)
    while found := [pid for pid in session_processes(leader) if pid not in spared]:
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            except PermissionError:
                spared.add(pid)
        time.sleep(AGAIN)


def ask_session(leader: int, patience: float, but: Collection[int] = ()) -> None:
    """Ask a session's processes, but these, to end, and give them so many seconds; those that do not end stay. What
    one of them starts after it was asked may be what cleans up: it is asked when half of that time is over."""
    begin = time.monotonic()
    asked = set(but)
    spare_children = False
    while (left := session_processes(leader)).keys() - set(but) and (spent := time.monotonic() - begin) < patience:
        for pid, parent in left.items():
            if pid not in asked and not (spare_children and parent in left and spent < patience / 2):
                asked.add(pid)
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGTERM)
        spare_children = True
        time.sleep(AGAIN)


def ask_to_end(leader: int) -> None:
    """Ask the processes of a session to end, the latest first: what writes a file is stopped before what removes it."""
    for pid in reversed(session_processes(leader)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGTERM)


def session_processes(leader: int) -> dict[int, int]:
    """The processes of a session that have not ended, with their parents: the oldest first, so parents before children."""
    found = []
    for pid in [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdecimal()]:
        # One that has ended since is none of it.
        with contextlib.suppress(OSError):
            if os.getsid(pid) != leader:
                continue
            # After the name, which may hold anything: proc_pid_stat(5) counts from the state, its third field.
            stat = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
            state, parent, *others = stat.rpartition(")")[2].split()
            if state not in "ZX":
                found.append((int(others[START_TIME]), pid, int(parent)))
    return {pid: parent for _, pid, parent in sorted(found)}


if __name__ == "__main__":
    us = os.getpid(), os.getppid()
    ask_session(int(sys.argv[1]), float(sys.argv[2]), us)
    end_session(int(sys.argv[1]), us)
