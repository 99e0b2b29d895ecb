"""Building a commit of a kernel tree, or finding that it does not build."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from msgspec import Struct

from kduel.building.make import FIXED, Make, Unbuildable, log_command, wants_modules
from kduel.errors import InputError

__all__ = ["Builder", "Unbuildable"]


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
        # The user's own environment counts here: what they build with is what they want to be told of.
        environment = {**os.environ, **FIXED, "KDUEL_BUILD": str(self.build)}
        if self.command:
            log_command(["sh", "-c", self.command], self.log, environment=environment, cwd=self.source)
            image = self.build / self.image
            if not image.is_file():
                raise Unbuildable(f"the build command left no {self.image}")
            return str(image)
        make = Make(
            source=self.source,
            build=self.build,
            log=self.log,
            ccache=shutil.which("ccache") is not None,
            environment=environment,
        )
        self._configure(make)
        config = (self.build / ".config").read_text("utf-8", errors="replace")
        targets = ["bzImage", *(["modules"] if wants_modules(config) else [])]
        make.run(f"-j{self.jobs or len(os.sched_getaffinity(0))}", *targets)
        return f"tree:{self.build}"

    def _configure(self, make: Make) -> None:
        own = self.build / ".config"
        given = self.config or (own if own.exists() else self.source / ".config")
        if not given.is_file():
            raise InputError(
                f"there is no configuration to build with: {given} does not exist",
                "Give one with --config FILE.",
            )
        if given != own:
            shutil.copyfile(given, own)
        make.run("olddefconfig")
