"""Running make on a kernel tree: always out of tree, always with the same environment, with a log."""

import os
import re
import shlex
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from msgspec import Struct

from kduel.core.errors import HostError
from kduel.core.supervised_process import ask_to_end, run_text, supervised_process
from kduel.kernels.compile.cause import BuildFailure, find_cause
from kduel.kernels.compile.toolchain import Target

FIXED = {
    "KBUILD_BUILD_TIMESTAMP": "2026-01-01",
    "KBUILD_BUILD_VERSION": "1",
    "KBUILD_BUILD_USER": "kduel",
    "KBUILD_BUILD_HOST": "kduel",
}
"""Settings with which equal sources give equal kernels."""
HOST_TOOLS = ("WERROR=0", "HOSTCFLAGS=-O2 -Wno-error")
"""For the programs that a build itself runs, objtool and its library: those of old trees take a newer compiler's warnings for
errors. Before 4.18 the second replaces the tree's own flags, which optimise, too."""
KEPT = ("PATH", "HOME", "TMPDIR", "USER", "LOGNAME")
"""Variables of the user's environment that a build sees: ARCH, KCFLAGS, MAKEFLAGS and the like would change the kernel."""
PATIENCE = 20.0
"""Seconds that a build has to end by itself when it is interrupted."""
LOG_END = 1 << 20
"""Bytes of a log that are searched for the cause."""


class Unbuildable(Exception):
    """A kernel that does not build. The message says how it failed; `why` has the log's lines and a remedy."""

    def __init__(self, message: str, why: BuildFailure | None = None) -> None:
        super().__init__(message)
        self.why = why or BuildFailure((message,))


class StoppedBuild(KeyboardInterrupt):
    """An interruption at which the build's programs ended when they were asked to: make has removed what was not whole."""

    def __init__(self, asked: float) -> None:
        """`asked` is the time of day when they were asked, in seconds."""
        super().__init__()
        self.asked = asked


def clean_environment() -> dict[str, str]:
    """The environment of builds whose result or time is kept."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    kept |= {name: value for name, value in os.environ.items() if name.startswith("CCACHE_")}
    return {**kept, **FIXED, "LC_ALL": "C.UTF-8"}


class Make(Struct, frozen=True, kw_only=True):
    """make, for one tree and one build directory."""

    source: Path
    build: Path
    log: Path
    target: Target | None = None
    """None: what the tree's make takes by itself."""
    ccache: bool = False
    environment: Mapping[str, str]

    def argv(self, words: Sequence[str]) -> list[str]:
        command = ["make", "-C", str(self.source), f"O={self.build}"]
        cross = ""
        if self.target is not None:
            cross = self.target.cross
            # Also where it is empty: vendors write their own cross compiler into a tree's Makefile.
            command += [f"ARCH={self.target.arch}", f"CROSS_COMPILE={cross}"]
        # A user's own, where the environment is theirs, stay.
        command += [word for word in HOST_TOOLS if word.partition("=")[0] not in self.environment]
        if self.ccache:
            command += [f"CC=ccache {cross}gcc", "HOSTCC=ccache gcc"]
        return [*command, *words]

    def run(self, *words: str) -> None:
        """Make these. Raises Unbuildable with the log's decisive lines, HostError where make cannot be run."""
        run_logged(["-s", *words], self)

    def release(self) -> str:
        """The release of what is configured there, as its `uname -r` will print it."""
        done = run_text(self.argv(["-s", "kernelrelease"]), env=dict(self.environment), stdin=subprocess.DEVNULL)
        words = done.stdout.split()
        if done.returncode or not words:
            raise Unbuildable("the tree does not state its release", find_cause(done.stderr, done.returncode))
        return words[-1]


def run_logged(words: Sequence[str], make: Make) -> None:
    """Run make with these arguments; its output is appended to the log."""
    log_command(make.argv(words), make.log, environment=make.environment)


def log_command(
    command: Sequence[str], log: Path, *, environment: Mapping[str, str], cwd: Path | None = None
) -> None:
    """Run a command of a build, its output appended to `log`. Raises Unbuildable, HostError."""
    with log.open("ab") as stream:
        stream.write(f"\n$ {shlex.join(command)}\n".encode())
        stream.flush()
        begin = stream.tell()
        try:
            status = _run(command, stream, environment, cwd)
        except OSError as error:
            raise HostError(
                f"{command[0]} cannot be run: {error.strerror}",
                "Install what a kernel build needs: make, gcc, flex, bison, bc, libelf-dev.",
            ) from error
    if status:
        why = find_cause(tail(log, begin), status)
        raise Unbuildable(f"{why.text} (see {log})", why)


def _run(command: Sequence[str], stream: IO[bytes], environment: Mapping[str, str], cwd: Path | None) -> int:
    """The command's status. It and its children end with us, whatever ends us. Raises StoppedBuild."""
    with supervised_process(command, stdout=stream, stderr=stream, environment=environment, cwd=cwd) as process:
        try:
            return process.wait()
        except KeyboardInterrupt as error:
            asked = time.time()
            ask_to_end(process.pid)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                raise error from None
            raise StoppedBuild(asked) from None


def tail(log: Path, begin: int = 0) -> str:
    """The last of a log from a position on, bounded."""
    with log.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(begin, size - LOG_END))
        return stream.read().decode("utf-8", errors="replace")


def wants_modules(config: str) -> bool:
    return "\nCONFIG_MODULES=y\n" in config and re.search(r"^CONFIG_\w+=m$", config, re.MULTILINE) is not None
