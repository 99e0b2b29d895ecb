"""Base of the sources whose kernels are built here: a tree, a recipe, one build, kept in the cache."""

import hashlib
import os
import re
import shutil
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from kduel.core.background_task import repeat_beside
from kduel.core.cache import Cache, as_cache_error, key_part
from kduel.core.errors import NotMeasuredError
from kduel.core.progress import Progress, Task
from kduel.core.temporary import temporary_directory
from kduel.kernels import Available, Kernel, KernelSource
from kduel.kernels.compile.make import Make, StoppedBuild, Unbuildable, clean_environment, run_logged, wants_modules
from kduel.kernels.compile.recipe import KernelRecipe, configure, fingerprint, read_recipe
from kduel.kernels.compile.source import SourceTree, patch_tree
from kduel.kernels.compile.toolchain import compiler_version
from kduel.kernels.files import store as stored
from kduel.kernels.files.image import identify
from kduel.kernels.sizes import objects
from kduel.kernels.tree import copy_modules, module_files, read_built_tree

PREFIX = "built-"
STOPPED = "stopped-builds"
"""Below the cache: the objects of builds that were interrupted, by their key."""
DOUBTED_SECONDS = 2.0
"""Files that a build wrote so shortly before it was interrupted are built again."""
TOOLS, UNUSED_TOOLS = "tools", ("testing", "perf")
"""The part of a tree that make enters by itself, for objtool, and what is large there and is not."""
OBJECT = re.compile(rb"^  (?:CC|AS|LD|AR|HOSTCC|HOSTLD)(?: \[M\])? ", re.MULTILINE)
"""A line of a kernel build's log about something that it has begun to make."""


class CompilePlan(Struct, frozen=True, kw_only=True):
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
        facts: dict[str, Any] = msgspec.to_builtins(self.source.facts)
        return {
            **facts,
            "identity": self.source.identity,
            "version": self.source.version,
            "exact": self.exact,
            "recipe": self.recipe.config,
            "architecture": self.recipe.arch,
            "compiler": self.compiler,
        }


class FromSource(KernelSource):
    prefix: ClassVar[str]
    brings_modules = True

    @abstractmethod
    def source(self, place: str, *, cache: Cache, progress: Progress, offline: bool) -> SourceTree:
        """The tree that `place` (what follows the prefix) means. Raises InputError, HostError."""

    def accepts(self, spec: str) -> bool:
        return spec.startswith(self.prefix)

    def check_place(self, place: str) -> None:
        """Raise InputError where `place` (what follows the prefix) is no source, as far as that is seen at once."""

    def check_spec(self, spec: str) -> None:
        self.check_place(read_recipe(spec)[0].removeprefix(self.prefix))

    def check_kept(self, spec: str, *, cache: Cache, offline: bool) -> bool:
        """Look for what all sources look for, and for the compiler."""
        compiler_version(read_recipe(spec)[1].target)
        return super().check_kept(spec, cache=cache, offline=offline)

    def architecture(self, spec: str) -> str:
        return read_recipe(spec)[1].target.machine

    def plan(self, spec: str, *, cache: Cache, progress: Progress, offline: bool = False) -> CompilePlan:
        """Get the source and look for the compiler; nothing is built. Raises InputError, HostError."""
        place, recipe = read_recipe(spec)
        with_compiler = compiler_version(recipe.target)
        source = self.source(place.removeprefix(self.prefix), cache=cache, progress=progress, offline=offline)
        if recipe.patch:
            source = patch_tree(source, Path(recipe.patch).expanduser(), cache=cache)
        stamp = hashlib.sha256("\0".join((source.identity, fingerprint(recipe), with_compiler)).encode())
        return CompilePlan(spec=spec, source=source, recipe=recipe, compiler=with_compiler, key=stamp.hexdigest())

    def resolve(
        self, spec: str, *, cache: Cache, progress: Progress, offline: bool = False, modules: str = ""
    ) -> Kernel:
        planned = self.plan(spec, cache=cache, progress=progress, offline=offline)
        name = f"{PREFIX}{key_part(planned.source.version)}-{planned.recipe.arch}-{planned.key[:16]}"
        entry = cache.entry(
            stored.KIND, name, lambda into: compile_kernel(planned, into, cache=cache, progress=progress)
        )
        return stored.read(entry, spec)

    def available(self, *, cache: Cache, progress: Progress, offline: bool = False) -> list[Available]:
        return [
            Available(spec=record.provenance["exact"], version=record.release, where="built here", cached=True)
            for _, record in stored.entries(cache, PREFIX)
            if record.provenance["exact"].startswith(self.prefix)
        ]


def compile_kernel(planned: CompilePlan, into: Path, *, cache: Cache, progress: Progress) -> None:
    """Configure, build, and keep what belongs to the kernel. Raises NotMeasuredError with the log's decisive lines."""
    target = planned.recipe.target
    logs = cache.root / "build-logs"
    with as_cache_error(cache.root):
        logs.mkdir(exist_ok=True)
    stopped = cache.root / STOPPED / planned.key
    with temporary_directory(cache.root, ".building-", as_cache_error(cache.root)) as held:
        place = held / "objects"
        if stopped.is_dir():
            stopped.rename(place)
        else:
            place.mkdir()
        log = logs / f"{planned.source.version}-{target.name}-{planned.key[:16]}.log"
        log.unlink(missing_ok=True)
        source, environment = planned.source.tree, clean_environment()
        if planned.recipe.ccache:
            source, settings = stand_in(source, held)
            environment |= settings
        make = Make(
            source=source, build=place, log=log, target=target, ccache=planned.recipe.ccache, environment=environment
        )
        told = f"building {planned.source.version} for {target.name} ({planned.recipe.config})"
        try:
            with progress.task(told) as task, count_objects(log, told, task):
                with keep_time_if_equal(place / ".config"):
                    missed = configure(planned.recipe, make)
                if missed:
                    progress.warn(f"{planned.spec}: this tree did not accept {', '.join(missed)}")
                config = (place / ".config").read_text("utf-8", errors="replace")
                jobs = len(os.sched_getaffinity(0))
                # Not silent: its lines are counted.
                run_logged([f"-j{jobs}", target.make, *(["modules"] if wants_modules(config) else [])], make)
            keep_kernel(planned, place, into, missed)
            shutil.copyfile(log, into / "build.log")
            log.unlink()
        except StoppedBuild as error:
            with as_cache_error(cache.root):
                keep_objects(place, stopped, error.asked)
            progress.info(f"what was built of {planned.source.version} is kept: the same command continues it")
            raise
        except Unbuildable as error:
            raise NotMeasuredError(
                f"{planned.spec} does not build: {error}", error.why.remedy or f"The whole log: {log}"
            ) from error


@contextmanager
def keep_time_if_equal(path: Path) -> Iterator[None]:
    """Keep a file's time where it is written anew with the same bytes: what depends on it is not built again."""
    before = (path.read_bytes(), path.stat()) if path.exists() else None
    yield
    if before and path.read_bytes() == before[0]:
        os.utime(path, ns=(before[1].st_atime_ns, before[1].st_mtime_ns))


@contextmanager
def count_objects(log: Path, text: str, task: Task) -> Iterator[None]:
    """Show how many objects a build has made, each a line of its log, and where the log is."""

    def count() -> None:
        with suppress(OSError):
            task.describe(f"{text}: {len(OBJECT.findall(log.read_bytes()))} objects; log: {log}")

    with repeat_beside(count, 1.0):
        yield


def keep_objects(place: Path, stopped: Path, asked: float) -> None:
    """Keep the objects of a build that was interrupted; what was written at its end is not trusted."""
    for path in place.rglob("*"):
        if not path.is_symlink() and path.is_file() and path.stat().st_mtime > asked - DOUBTED_SECONDS:
            path.unlink()
    stopped.parent.mkdir(exist_ok=True)
    place.rename(stopped)


def keep_kernel(planned: CompilePlan, place: Path, into: Path, missed: list[str]) -> None:
    """Copy what belongs to the kernel out of its build directory."""
    config, image, release = read_built_tree(place)
    files = module_files(place, config)
    copied, digest = stored.copy_image(image, into)
    (into / "config").write_text(config, "utf-8")
    copy_modules(place, files, into / "lib/modules" / release)
    objects.keep_objects_list(place, into, planned.recipe.target, planned.source.tree)
    kernel = Kernel(
        spec=planned.spec, release=release, architecture=identify(image).architecture, image=copied, sha256=digest,
        config=into / "config", modules=into / "lib/modules" / release if files else None, vmlinux=into / "vmlinux",
        provenance=planned.facts | ({"not_taken": missed} if missed else {}),
    )  # fmt: skip
    stored.write(into, kernel)


def stand_in(tree: Path, held: Path) -> tuple[Path, dict[str, str]]:
    """A tree of links to `tree` in the directory `held`, which also takes the objects, and ccache's settings, by which every
    path is relative to the objects: what two commits share is compiled once (ccache(1), "Compiling in different directories").
    Raises HostError."""
    links = held / "linux"
    # To directories: 90,000 links to files take half a minute. make takes the real path of one that it enters by itself.
    with as_cache_error(held):
        for folder, folders, names in os.walk(tree):
            inside = Path(folder).relative_to(tree)
            entered = [one for one in folders if (inside / one).parts[0] == TOOLS and one not in UNUSED_TOOLS]
            (links / inside).mkdir()
            for name in {*folders, *names}.difference(entered):
                (links / inside / name).symlink_to(Path(folder, name))
            folders[:] = entered
    return links, {"CCACHE_BASEDIR": str(held), "CCACHE_NOHASHDIR": "true"}
