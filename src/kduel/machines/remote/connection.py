"""One command on another machine, by the system's own ssh client; it never prompts, and every wait is bounded."""

import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, NoReturn

from msgspec import Struct

from kduel.core.errors import HostError
from kduel.core.temporary import as_temporary_error

MOST_BYTES = 300 << 20
FATAL = (
    ("Host key verification failed", "wrong-host-key", "its host key is not the one that is known"),
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", "wrong-host-key", "its host key is not the one that is known"),
    ("Permission denied", "not-admitted", "it does not admit this user without a password"),
    ("Could not resolve hostname", "no-such-host", "its name cannot be resolved"),
    ("Bad configuration option", "ssh-settings", "ssh does not understand its settings"),
)
"""What no waiting will repair: words of ssh's, the trouble's name, and how it is reported."""
REMEDIES = {
    "wrong-host-key": "Find out whether it is the right machine. If it is, log in once by hand, or put its key into the "
    "known_hosts file that the study names.",
    "not-admitted": "Let it admit a key (ssh-copy-id), name the key as `identity`, and unlock it with ssh-agent: KDuel never "
    "types a password.",
    "no-such-host": "Write `place` as you would for ssh.",
    "ssh-settings": "Correct ~/.ssh/config.",
    "no-sudo": "Log in as root, or let the user run sudo without a password there (NOPASSWD).",
    "unreachable": "See whether it is switched on and `ssh` reaches it by hand.",
}


class CommandResult(Struct, frozen=True):
    """A command that ended on the other machine."""

    status: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        return self.stdout.decode("utf-8", errors="replace")


class ConnectionLost(Exception):
    """The connection did not come about or did not last: worth another try."""


class TrialRefused(Exception):
    """No other try will help. `void` names the trouble."""

    def __init__(self, void: str, message: str) -> None:
        super().__init__(message)
        self.void = void


class Connection:
    """Way to reach a machine."""

    def __init__(
        self, place: str, *, port: int = 0, identity: str = "", known_hosts: str = "", sudo: bool = False
    ) -> None:
        self.place = place
        self.sudo = sudo
        self.argv = [
            *("ssh", "-T", "-x", "-a", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"),
            *("-o", "ConnectTimeout=30", "-o", "ConnectionAttempts=1"),
            *("-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3", "-o", "ControlPath=none"),
        ]
        if port:
            self.argv += ["-p", str(port)]
        if identity:
            self.argv += ["-i", str(Path(identity).expanduser()), "-o", "IdentitiesOnly=yes"]
        if known_hosts:
            self.argv += [
                "-o",
                f"UserKnownHostsFile={Path(known_hosts).expanduser()}",
                "-o",
                "GlobalKnownHostsFile=none",
            ]
        self.argv += ["--", place]

    def run(
        self,
        script: str,
        *,
        stdin: bytes = b"",
        timeout: float = 60.0,
        root: bool = True,
        out: BinaryIO | None = None,
    ) -> CommandResult:
        """Shell lines there, as root by default; output into `out`, if given. Raises ConnectionLost, TrialRefused."""
        command = f"sh -c {shlex.quote(script)}"
        if root and self.sudo:
            command = f"sudo -n {command}"
        with ExitStack() as held:
            with as_temporary_error():
                given, kept, err = (held.enter_context(tempfile.TemporaryFile()) for _ in range(3))
                given.write(stdin)
                given.seek(0)
            sink = out or kept
            environment = {key: value for key, value in os.environ.items() if key not in ("SSH_ASKPASS", "DISPLAY")}
            process = subprocess.Popen(
                [*self.argv, command], stdin=given, stdout=sink, stderr=err, env=environment, start_new_session=True
            )
            try:
                status = self.wait(process, sink.fileno(), timeout)
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
            kept.seek(0)
            err.seek(0)
            done = CommandResult(status, kept.read(MOST_BYTES), err.read(64 << 10).decode("utf-8", errors="replace"))
        if status == 255:
            self.complain(done)
        if root and self.sudo and status == 1 and "sudo:" in done.stderr:
            raise TrialRefused(
                "no-sudo", f"{self.place}: sudo asks for a password or refuses: {last_line(done.stderr)}"
            )
        return done

    def wait(self, process: subprocess.Popen[bytes], out: int, timeout: float) -> int:
        """The exit status. Raises ConnectionLost when the time is up or the output without bounds."""
        end = time.monotonic() + timeout
        while True:
            try:
                return process.wait(timeout=min(0.5, max(0.01, end - time.monotonic())))
            except subprocess.TimeoutExpired:
                pass
            if os.fstat(out).st_size > MOST_BYTES:
                raise TrialRefused("too-much-output", f"{self.place} sent more than {MOST_BYTES >> 20} MiB")
            if time.monotonic() >= end:
                raise ConnectionLost(f"{self.place} did not answer within {timeout:.0f} s")

    def complain(self, done: CommandResult) -> None:
        """Raises what ssh's own failure means."""
        for words, void, told in FATAL:
            if words in done.stderr:
                raise TrialRefused(void, f"{self.place} cannot be used: {told} ({last_line(done.stderr)})")
        raise ConnectionLost(f"{self.place} cannot be reached: {last_line(done.stderr)}")


def last_line(text: str, nothing: str = "ssh printed no message") -> str:
    """The last line that is not blank, bounded; `nothing` where none does."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else nothing


TRIES, PAUSE = 3, 3.0


def patiently(what: Callable[[], CommandResult]) -> CommandResult:
    """The answer, with some retries: a busy machine may let a connection wait too long. Raises ConnectionLost, TrialRefused."""
    for _ in range(TRIES - 1):
        try:
            return what()
        except ConnectionLost:
            time.sleep(PAUSE)
    return what()


def run_or_fail(connection: Connection, script: str, failure: str) -> str:
    """The output of shell lines that must succeed. Raises HostError."""
    try:
        done = patiently(lambda: connection.run(script))
    except (ConnectionLost, TrialRefused) as error:
        raise HostError(f"{failure}: {error}", REMEDIES["unreachable"]) from error
    if done.status:
        raise HostError(f"{failure}: {last_line(done.stderr)}", f"Try by hand: ssh {connection.place} {script!r}")
    return done.text


class LocalConnection(Connection):
    """No ssh, no sudo: KDuel itself must be root."""

    def __init__(self) -> None:
        super().__init__("this machine")
        # As sshd does: what it is given is one line for a shell.
        self.argv = ["sh", "-c"]

    def complain(self, done: CommandResult) -> NoReturn:
        """Raises ConnectionLost: 255 is the script's own status."""
        raise ConnectionLost(f"the script ended with 255: {last_line(done.stderr)}")
