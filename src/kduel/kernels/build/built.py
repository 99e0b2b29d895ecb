"""What the sources of kernels that are built have in common: a tree, a recipe, one build, kept in the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct

from kduel.core.cache import Cache, as_cache_error
from kduel.core.errors import InputError, NotMeasuredError
from kduel.core.progress import Progress
from kduel.core.temporary import temporary_directory
from kduel.kernels import Available, Kernel, KernelSource
from kduel.kernels.build.make import Make, Unbuildable, clean_environment, wants_modules
from kduel.kernels.build.recipe import KernelRecipe, configure, fingerprint, read_recipe
from kduel.kernels.build.source import SourceTree, as_facts
from kduel.kernels.build.toolchain import compiler
from kduel.kernels.files import store as stored
from kduel.kernels.files.image import identify
from kduel.kernels.sizes import objects
from kduel.kernels.tree import built, copy_modules, module_files

PREFIX = "built-"


class Planned(Struct, frozen=True, kw_only=True):
    """A build that could be made: everything that determines it."""

    spec: str
    source: SourceTree
    recipe: KernelRecipe
    compiler: str
    key: str
    """Over source, recipe and compiler, hexadecimal."""

    @property
    def exact(self) -> str:
        """The specification that means this very kernel."""
        return self.source.exact + self.recipe.words()

    @property
    def facts(self) -> dict[str, Any]:
        """For the provenance."""
        return {
            **as_facts(self.source),
            "exact": self.exact,
            "recipe": self.recipe.config,
            "architecture": self.recipe.arch,
            "compiler": self.compiler,
        }


class FromSource(KernelSource):
    """A kernel that is built here."""

    prefix: ClassVar[str]

    @abstractmethod
    def source(self, place: str, *, cache: Cache, progress: Progress, offline: bool) -> SourceTree:
        """The tree that `place` (what follows the prefix) means. Raises InputError, HostError."""

    def accepts(self, spec: str) -> bool:
        return spec.startswith(self.prefix)

    def plan(
        self, spec: str, *, cache: Cache, progress: Progress, offline: bool = False, modules: str = ""
    ) -> Planned:
        """Get the source and look for the compiler; nothing is built. Raises InputError, HostError."""
        if modules:
            raise InputError(f"{spec} brings its own modules", "Leave out modules=.")
        place, recipe = read_recipe(spec)
        with_compiler = compiler(recipe.target)
        source = self.source(place.removeprefix(self.prefix), cache=cache, progress=progress, offline=offline)
        stamp = hashlib.sha256("\0".join((source.identity, fingerprint(recipe), with_compiler)).encode())
        return Planned(spec=spec, source=source, recipe=recipe, compiler=with_compiler, key=stamp.hexdigest())

    def resolve(
        self, spec: str, *, cache: Cache, progress: Progress, offline: bool = False, modules: str = ""
    ) -> Kernel:
        planned = self.plan(spec, cache=cache, progress=progress, offline=offline, modules=modules)
        name = f"{PREFIX}{planned.source.version}-{planned.recipe.arch}-{planned.key[:16]}"
        entry = cache.entry(stored.KIND, name, lambda into: _build(planned, into, cache=cache, progress=progress))
        return stored.read(entry, spec)

    def available(self, *, cache: Cache, progress: Progress, offline: bool = False) -> list[Available]:
        return [
            Available(spec=record.provenance["exact"], version=record.release, where="built here", cached=True)
            for _, record in stored.entries(cache, PREFIX)
            if record.provenance["exact"].startswith(self.prefix)
        ]


def _build(planned: Planned, into: Path, *, cache: Cache, progress: Progress) -> None:
    """Configure, build, and keep what belongs to the kernel. Raises NotMeasuredError with the log's decisive lines."""
    target = planned.recipe.target
    logs = cache.root / "build-logs"
    with as_cache_error(cache.root):
        logs.mkdir(exist_ok=True)
    with temporary_directory(cache.root, ".building-", as_cache_error(cache.root)) as place:
        log = logs / f"{planned.source.version}-{target.name}-{planned.key[:16]}.log"
        log.unlink(missing_ok=True)
        make = Make(
            source=planned.source.tree, build=place, log=log, target=target, ccache=planned.recipe.ccache,
            environment=clean_environment(),
        )  # fmt: skip
        told = f"building {planned.source.version} for {target.name} ({planned.recipe.config})"
        try:
            with progress.task(told):
                missed = configure(planned.recipe, make)
                if missed:
                    progress.warn(f"{planned.spec}: this tree did not accept {', '.join(missed)}")
                config = (place / ".config").read_text("utf-8", errors="replace")
                jobs = len(os.sched_getaffinity(0))
                make.run(f"-j{jobs}", target.make, *(["modules"] if wants_modules(config) else []))
            _keep(planned, place, into, missed)
            shutil.copyfile(log, into / "build.log")
            log.unlink()
        except Unbuildable as error:
            raise NotMeasuredError(
                f"{planned.spec} does not build: {error}", error.why.remedy or f"The whole log: {log}"
            ) from error


def _keep(planned: Planned, place: Path, into: Path, missed: list[str]) -> None:
    """What belongs to the kernel, out of its build directory."""
    config, image, release = built(place)
    files = module_files(place, config)
    copied, digest = stored.copy_image(image, into)
    (into / "config").write_text(config, "utf-8")
    copy_modules(place, files, into / "lib/modules" / release)
    objects.keep(place, into, planned.recipe.target, planned.source.tree)
    kernel = Kernel(
        spec=planned.spec,
        release=release,
        architecture=identify(image).architecture,
        image=copied,
        sha256=digest,
        config=into / "config",
        modules=into / "lib/modules" / release if files else None,
        vmlinux=into / "vmlinux",
        provenance=planned.facts | ({"not_taken": missed} if missed else {}),
    )
    stored.write(into, kernel)
