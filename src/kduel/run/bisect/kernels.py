"""The kernels of commits, kept in the cache: each is built once, whatever is measured of it."""

import hashlib
import os
import shutil
from pathlib import Path

from kduel.core.cache import Cache
from kduel.core.errors import HostError, InputError
from kduel.core.progress import Progress
from kduel.kernels import resolve
from kduel.kernels.compile.toolchain import TARGETS, compiler_version, own_target
from kduel.run.bisect.build import Builder, Unbuildable
from kduel.run.bisect.git import check_out, git

KIND = "bisected-kernels"
SYMBOLS = "System.map"


INFLUENCES = ("ARCH", "CC", "CROSS_COMPILE", "KAFLAGS", "KCFLAGS", "KCPPFLAGS", "LD", "LLVM", "MAKEFLAGS")
"""Variables of the user's environment that change a kernel."""


def compiler_words() -> str:
    """This host's compiler with its version; empty where there is none, as a build command may bring its own."""
    try:
        return compiler_version(TARGETS[own_target()])
    except HostError:
        return ""


class CommitKernels:
    """Builds commits in the worktree that the builder has for its own."""

    def __init__(self, builder: Builder, *, cache: Cache, progress: Progress) -> None:
        self.builder, self.cache, self.progress = builder, cache, progress

    def __call__(self, commit: str) -> Path:
        """The kernel's image, its configuration and modules beside it. Raises Unbuildable, and what builders raise."""
        place = self.builder.source
        parts = (
            git(place, "rev-parse", f"{commit}^{{tree}}"), self.builder.command, self.builder.image,
            self.builder.settings(), *(f"{name}={os.environ[name]}" for name in INFLUENCES if name in os.environ),
            compiler_words(), *self.builder.files_of_command(),
        )  # fmt: skip
        key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]

        def build(into: Path) -> None:
            check_out(place, commit)
            with self.progress.task(f"building {commit[:12]}"):
                spec = self.builder.make()
            if not self.builder.command:
                self.builder.note_commit(commit)
            try:
                made = resolve(spec, cache=self.cache, progress=self.progress)
            except InputError as error:
                raise Unbuildable(f"what was built cannot be used: {error.message}") from error
            home = into / made.release
            home.mkdir()
            shutil.copyfile(made.image, home / "vmlinuz")
            if made.config:
                shutil.copyfile(made.config, home / "config")
            if made.modules:
                shutil.copytree(made.modules, home, dirs_exist_ok=True)
            if made.vmlinux and (symbols := made.vmlinux.with_name(SYMBOLS)).is_file():
                # For kernels that do not export their symbol names.
                shutil.copyfile(symbols, home / SYMBOLS)

        return next(self.cache.entry(KIND, key, build).glob("*/vmlinuz"))
