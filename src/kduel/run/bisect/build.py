"""Building a commit of a kernel tree, or finding that it does not build."""

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from kduel.core.errors import HostError, InputError
from kduel.core.progress import Progress
from kduel.core.this_host import text_of
from kduel.kernels.compile.make import FIXED, Make, StoppedBuild, Unbuildable, log_command, wants_modules
from kduel.kernels.compile.recipe import RUNNING, TARGET_NAME, KernelRecipe, configure, fingerprint, read_recipe
from kduel.run.bisect.named import named_files

__all__ = ["Builder", "Unbuildable"]


LANGUAGES = ("LANG", "LANGUAGE", "LC_MESSAGES")
UNFINISHED = ".kduel-building"
"""In the build directory: there while a build runs, and after one that was cut off. What is newer may not be whole."""
DOUBTED_SECONDS = 2.0
"""Seconds before an interruption: files that a build wrote in them are built again."""

BUILT = ".kduel-built"
"""In the build directory: the commit that was built last, while nothing was begun since."""


class Builder(Struct, frozen=True, kw_only=True):
    """Settings for building a kernel from a source tree."""

    source: Path
    """A checkout that this builder may change."""
    build: Path
    """Directory of the objects, kept from commit to commit."""
    config: Path | None = None
    """The .config to start from; by default the one in `build`."""
    recipe: str = ""
    """In place of `config`: a configuration as that of a kernel from source, such as tinyconfig+guest."""
    warn: Callable[[str], None] = Progress().warn
    """Told of options that a tree does not accept."""
    command: str = ""
    """Instead of make: a shell command run in `source`, with $KDUEL_BUILD set to `build`."""
    image: str = ""
    """With `command`: the kernel that it makes, relative to `build`."""
    jobs: int = 0
    log: Path

    def check(self) -> None:
        """Check that there is what make needs, as far as it is known before the checkout, which takes minutes. Raises InputError."""
        if self.command:
            return
        # The kernel's make refuses to build elsewhere what was built in place: no commit would build.
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
        if self.recipe:
            return
        given = self.config or self._own_config
        if not given.is_file():
            missing = f"{given} is not there" if self.config else "the tree has no .config"
            raise InputError(
                f"there is no configuration to build with: {missing}",
                "Give one with --config FILE; distributions keep theirs in /boot/config-*.",
            )

    def make(self) -> str:
        """Build what is checked out. Gives the kernel's specification. Raises Unbuildable, HostError, InputError."""
        self.build.mkdir(parents=True, exist_ok=True)
        (self.build / BUILT).unlink(missing_ok=True)
        # The user's own environment counts here: the result is to hold for what they build with.
        # In English, as causes are read from its messages; the kernel's make keeps LC_ALL from compilers, not LANG.
        kept = {name: value for name, value in os.environ.items() if name not in LANGUAGES}
        environment = {**kept, **FIXED, "LC_ALL": "C.UTF-8", "KDUEL_BUILD": str(self.build)}
        if self.command:
            try:
                log_command(["sh", "-c", self.command], self.log, environment=environment, cwd=self.source)
            except Unbuildable as error:
                raise self._classify(error) from error
            image = self.build / self.image
            if not image.is_file():
                raise Unbuildable(f"the build command left no {self.image}")
            return str(image)
        self.check()
        marker = self.build / UNFINISHED
        remove_unfinished(self.build)
        marker.touch()
        make = Make(
            source=self.source,
            build=self.build,
            log=self.log,
            # Without its name x86's tinyconfig is 32 bits wide.
            target=parse_recipe(self.recipe).target if self.recipe else None,
            ccache=shutil.which("ccache") is not None,
            environment=environment,
        )
        try:
            self._configure(make)
            config = (self.build / ".config").read_text("utf-8", errors="replace")
            targets = ["bzImage", *(["modules"] if wants_modules(config) else [])]
            make.run(f"-j{self.jobs or len(os.sched_getaffinity(0))}", *targets)
        except StoppedBuild as error:
            # make removed what was not whole; what it wrote at the end is not trusted all the same.
            trusted = error.asked - DOUBTED_SECONDS
            os.utime(marker, (trusted, trusted))
            raise
        except Unbuildable as error:
            # make removed what the failing command left.
            marker.unlink()
            raise self._classify(error) from error
        marker.unlink()
        return f"tree:{self.build}"

    def _classify(self, error: Unbuildable) -> Exception:
        """A failed build as one of the commit, or of the host, where it lacked space or memory."""
        if error.why.passing:
            # Of this commit it says nothing, and the next one would fail in the same way.
            return HostError(f"the build was cut off: {error}", error.why.remedy)
        return Unbuildable(str(error).replace(f"{self.source}/", ""), error.why)

    def built_commit(self) -> str:
        """The commit of which everything in the build directory is; empty where that is not known."""
        return text_of(self.build / BUILT).strip()

    def note_commit(self, commit: str) -> None:
        """Keep that what was just made is of this commit, for `built`."""
        (self.build / BUILT).write_text(f"{commit}\n", "ascii")

    @property
    def _own_config(self) -> Path:
        return self.build / ".config"

    def settings(self) -> str:
        """All that determines the configuration, as text. Raises InputError, HostError."""
        if self.recipe:
            return fingerprint(parse_recipe(self.recipe))
        return self.config.read_text("utf-8", errors="replace") if self.config else ""

    def files_of_command(self) -> list[str]:
        """The files that the build command names, with digests of their contents."""
        return named_files(self.command, self.source)

    def identity(self) -> tuple[str, ...]:
        """Options and files that determine the kernel of a commit. Raises InputError, HostError."""
        return (self.command, self.image, self.settings(), *self.files_of_command())

    def _configure(self, make: Make) -> None:
        if self.recipe:
            if missed := configure(parse_recipe(self.recipe), make):
                self.warn(f"the tree did not accept {', '.join(missed)}")
            return
        if self.config and self.config != self._own_config:
            shutil.copyfile(self.config, self._own_config)
        make.run("olddefconfig")


def parse_recipe(config: str) -> KernelRecipe:
    """A configuration as it is written in a kernel's specification. Raises InputError that lists what there is."""
    return read_recipe(f",config={config}")[1]


def read_config_option(given: str) -> tuple[Path | None, str]:
    """Value of --config: a file, or else a recipe, which is checked. Raises InputError."""
    if Path(given).exists() or not ("+" in given or TARGET_NAME.fullmatch(given) or given == RUNNING):
        return Path(given).resolve(), ""
    return None, parse_recipe(given).config


def remove_unfinished(build: Path) -> None:
    """Remove the objects of a build that was killed, which make would take for new; all else is whole."""
    marker = build / UNFINISHED
    if not marker.exists():
        return
    began = marker.stat().st_mtime_ns
    for folder, folders, names in os.walk(build):
        folders[:] = [name for name in folders if name not in ("include", "source")]
        for name in names:
            path = Path(folder, name)
            if path != marker and not name.startswith(".config") and not path.is_symlink():
                with contextlib.suppress(FileNotFoundError):
                    if path.stat().st_mtime_ns >= began:
                        path.unlink()
