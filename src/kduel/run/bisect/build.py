"""Building a commit of a kernel tree, or finding that it does not build."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from msgspec import Struct

from kduel.core.errors import InputError
from kduel.kernels.build.make import FIXED, Make, Unbuildable, log_command, wants_modules

__all__ = ["Builder", "Unbuildable"]


class Builder(Struct, frozen=True, kw_only=True):
    """How to make a kernel of a source tree."""

    source: Path
    """A checkout that this builder may change."""
    build: Path
    """Where objects go, kept from commit to commit."""
    config: Path | None = None
    """The .config to start from; by default the one in `build`."""
    command: str = ""
    """Instead of make: a shell command run in `source`, with $KDUEL_BUILD set to `build`."""
    image: str = ""
    """With `command`: the kernel that it makes, relative to `build`."""
    jobs: int = 0
    log: Path

    def make(self) -> str:
        """Build what is checked out. Gives the kernel's specification. Raises Unbuildable, HostError, InputError."""
        self.build.mkdir(parents=True, exist_ok=True)
        # The user's own environment counts here: the result is to hold for what they build with.
        environment = {**os.environ, **FIXED, "KDUEL_BUILD": str(self.build)}
        if self.command:
            log_command(["sh", "-c", self.command], self.log, environment=environment, cwd=self.source)
            image = self.build / self.image
            if not image.is_file():
                raise Unbuildable(f"the build command left no {self.image}")
            return str(image)
        self._check_clean()
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

    def _check_clean(self) -> None:
        """The kernel's make refuses to build elsewhere what was built in place: no commit would build."""
        found = [
            left
            for pattern in (".config", "include/config", "arch/*/include/generated")
            for left in self.source.glob(pattern)
        ]
        if found:
            raise InputError(
                f"{self.source} was configured or built in place ({found[0]} is there): KDuel builds outside the source",
                f"Keep the configuration (cp .config ../my.config), clean the tree (make -C {self.source} mrproper), "
                "and give --config ../my.config.",
            )

    def _configure(self, make: Make) -> None:
        own = self.build / ".config"
        given = self.config or own
        if not given.is_file():
            raise InputError("there is no configuration to build with", "Give one with --config FILE.")
        if given != own:
            shutil.copyfile(given, own)
        make.run("olddefconfig")
