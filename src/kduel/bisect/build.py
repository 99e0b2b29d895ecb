"""Building a commit of a kernel tree, or finding that it does not build."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from kduel.errors import HostError, InputError

FIXED = {"KBUILD_BUILD_TIMESTAMP": "2026-01-01", "KBUILD_BUILD_USER": "kduel", "KBUILD_BUILD_HOST": "kduel"}
"""So that equal sources give equal kernels."""


class Unbuildable(Exception):
    """A commit that does not build. The message says how it failed."""


class Builder(Struct, frozen=True, kw_only=True):
    """How to make a kernel of a source tree."""

    source: Path
    """A checkout that this builder may change."""
    build: Path
    """Where objects go, kept from commit to commit."""
    config: Path | None = None
    """The .config to start from; by default the one in `build`, or the tree's own."""
    command: str = ""
    """Instead of make: a shell command run in `source`, with $KDUEL_BUILD set to `build`."""
    image: str = ""
    """With `command`: the kernel that it makes, relative to `build`."""
    jobs: int = 0
    log: Path

    def make(self) -> str:
        """Build what is checked out. Gives the kernel's specification. Raises Unbuildable, HostError, InputError."""
        self.build.mkdir(parents=True, exist_ok=True)
        if self.command:
            self._run(["sh", "-c", self.command], cwd=self.source)
            image = self.build / self.image
            if not image.is_file():
                raise Unbuildable(f"the build command left no {self.image}")
            return str(image)
        if shutil.which("make") is None:
            raise HostError("make is not installed", "Install what a kernel build needs: make, gcc, flex, bison, bc.")
        self._configure()
        targets = ["bzImage"]
        if re.search(r"^CONFIG_\w+=m$", (self.build / ".config").read_text(errors="replace"), re.MULTILINE):
            targets.append("modules")
        self._make([f"-j{self.jobs or len(os.sched_getaffinity(0))}", *targets])
        return f"tree:{self.build}"

    def _configure(self) -> None:
        own = self.build / ".config"
        given = self.config or (own if own.exists() else self.source / ".config")
        if not given.is_file():
            raise InputError(
                f"there is no configuration to build with: {given} does not exist",
                "Give one with --config FILE.",
            )
        if given != own:
            shutil.copyfile(given, own)
        self._make(["olddefconfig"])

    def _make(self, words: Sequence[str]) -> None:
        compiler = ["CC=ccache gcc"] if shutil.which("ccache") else []
        self._run(["make", "-s", "-C", str(self.source), f"O={self.build}", *compiler, *words])

    def _run(self, command: list[str], cwd: Path | None = None) -> None:
        environment = {**os.environ, **FIXED, "KDUEL_BUILD": str(self.build)}
        with self.log.open("ab") as log:
            log.write(f"\n$ {' '.join(command)}\n".encode())
            log.flush()
            begin = log.tell()
            done = subprocess.run(
                command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False
            )
        if done.returncode:
            said = self.log.read_bytes()[begin:].decode(errors="replace").strip().splitlines()
            errors = [line for line in said if "error" in line.lower()] or said
            raise Unbuildable(
                f"{errors[0].strip()[:200] if errors else f'status {done.returncode}'} (see {self.log})"
            )
