"""A worker on another machine, through the system's own ssh: the run's documents go there, trials come back."""

import io
import re
import shlex
import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kduel.core.errors import HostError
from kduel.core.tar_stream import RefusedArchive
from kduel.fleets.workers.process import Worker
from kduel.guest import untar
from kduel.machines.remote.connection import (
    REMEDIES,
    CommandResult,
    Connection,
    ConnectionLost,
    TrialRefused,
    last_line,
)

TRIAL = re.compile(r"[0-9]{4,9}-b[0-9]{2,9}-[A-Za-z0-9._+-]{1,60}")
DESCRIBED = "described.json"
SECONDS = 600.0
"""That a transfer may take."""
RECEIVE = """set -e
mkdir -p {there}/trials
rm -rf {there}/.received && mkdir {there}/.received
tar -xf - -C {there}/.received
for one in {there}/.received/trials/*; do
    [ ! -d "$one" ] || [ -e {there}/trials/"${{one##*/}}" ] || mv "$one" {there}/trials/
done
for one in {there}/.received/*; do [ -d "$one" ] || mv -f "$one" {there}/; done
rm -rf {there}/.received
"""
"""Trials that are there are left alone, and none is there in parts."""


class RemoteWorker(Worker):
    """A worker at the other end of a connection. `there` is its directory, from the home directory of its user."""

    def __init__(self, connection: Connection, program: str, there: str) -> None:
        self.connection, self.there = connection, there
        # One line for the shell of the other side; its own argument `--stdin` follows.
        line = f"exec {program} worker {shlex.quote(there)}"
        super().__init__(lambda _: [*connection.argv, line], self.bring_home)

    def start(self, directory: Path, blocks: Sequence[int]) -> None:
        """Start as any worker; the run's documents, and what is there of its blocks, go there first. Raises HostError."""
        if self.process is None or self.process.poll() is not None:
            self.push(directory)
        super().start(directory, blocks)

    def push(self, directory: Path) -> None:
        """Send the member's directory. Raises HostError."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
            for path in sorted(directory.iterdir()):
                if path.name in ("study.toml", "lock.json", "plan.jsonl", "draft.json", "trials"):
                    tar.add(path, path.name)
        self.ask(RECEIVE.format(there=shlex.quote(self.there)), packed.getvalue())

    def bring_home(self, directory: Path, trial: str) -> None:
        """Bring a trial home, or the description of the machine where none is named. Raises HostError."""
        if not trial:
            (directory / DESCRIBED).write_bytes(self.ask(f"cat {shlex.quote(self.there)}/{DESCRIBED}").stdout)
            return
        if not TRIAL.fullmatch(trial):
            raise HostError(f"{self.connection.place} names a trial {trial[:80]!r}", "See what `kduel` is there.")
        home = directory / "trials"
        if (home / trial).exists():
            return
        done = self.ask(f"tar --format=ustar -cf - -C {shlex.quote(self.there)}/trials/{shlex.quote(trial)} .")
        staged = Path(tempfile.mkdtemp(prefix=".fetched-", dir=home))
        try:
            stream = io.BytesIO(done.stdout)
            untar.write(stream, untar.members(stream, 0, len(done.stdout)), staged)
            staged.replace(home / trial)
        except RefusedArchive as error:
            raise HostError(
                f"the trial {trial} did not arrive completely: {error}", "It is fetched again."
            ) from error
        finally:
            shutil.rmtree(staged, ignore_errors=True)

    def ask(self, lines: str, stdin: bytes = b"") -> CommandResult:
        """Shell lines there that must succeed. Raises HostError."""
        try:
            done = self.connection.run(lines, stdin=stdin, timeout=SECONDS, root=False)
        except (ConnectionLost, TrialRefused) as error:
            raise HostError(str(error), REMEDIES[getattr(error, "void", "unreachable")]) from error
        if done.status:
            why = last_line(done.stderr, "no reason given")
            raise HostError(
                f"{self.connection.place}: {why}", f"See {self.there} there, in the user's home directory."
            )
        return done

    def remove(self) -> None:
        """Remove the directory there, where it can be reached."""
        try:
            self.connection.run(f"rm -rf {shlex.quote(self.there)}", root=False)
        except (ConnectionLost, TrialRefused):
            return
