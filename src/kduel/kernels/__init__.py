"""Sources of kernels, one module each, here or behind an entry point `kduel.kernels`; `PLUGIN`: a `KernelSource`."""

import re
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct, field

from kduel.core.cache import Cache
from kduel.core.errors import InputError
from kduel.core.plugins import plugins
from kduel.core.progress import Progress
from kduel.core.text import did_you_mean
from kduel.kernels.files.modules import modules_place

OTHER_WAYS = (
    "Three other ways to a kernel: packages of a distribution that has it, ubuntu:bionic-4.15 or ./A.deb,./B.deb; a file with "
    "its modules, ./vmlinuz,modules=DIR; or a build, source:linux-4.19.325.tar.xz or git:DIR#v4.19 (docs/old-kernels.md)."
)
"""The remedy where an archive has no kernel of that series."""


class Kernel(Struct, frozen=True, kw_only=True):
    """A kernel that can be booted."""

    spec: str
    """Specification as the user wrote it."""
    release: str
    """Output of its `uname -r`."""
    architecture: str = "x86_64"
    """Output of `uname -m`: x86_64, aarch64, riscv64, ppc, ..."""
    image: Path
    """The bootable image: bzImage, Image, ..."""
    sha256: str
    """SHA-256 of the image, hexadecimal."""
    config: Path | None = None
    """The .config it was built with."""
    modules: Path | None = None
    """The directory that holds `kernel/` and its modules (lib/modules/RELEASE)."""
    vmlinux: Path | None = None
    """An ELF with symbols, where there is one."""
    provenance: dict[str, Any] = field(default_factory=dict)
    """Origin: packages with versions and hashes, suite, tree's commit, ..."""

    @property
    def parts(self) -> str:
        """Key of the files that a guest gets of it: one image may come with several directories of modules."""
        return f"{self.sha256} {self.modules or ''}"


class InstalledKernel(Kernel, frozen=True, kw_only=True):
    """A kernel on the machine that is measured: its files are there, and none of them here. `image` is not to be read."""


class Available(Struct, frozen=True, kw_only=True):
    """A line of `kduel list kernels`."""

    spec: str
    version: str
    where: str
    """Suite, directory, ..."""
    cached: bool
    """It needs no download, unpacking or build."""


class KernelSource(ABC):
    """One way to get a kernel. Resolving may download and unpack; everything it makes is in the cache."""

    name: ClassVar[str]
    summary: ClassVar[str]
    """One line: the form of a specification, a colon and a space, and what it means."""
    brings_modules: ClassVar[bool] = False
    """True if its kernels have all their modules, so that modules=DIR is refused."""
    installed: ClassVar[bool] = False
    """True if its kernels are on the machine that is measured: each is an InstalledKernel."""

    @abstractmethod
    def accepts(self, spec: str) -> bool:
        """True if `spec` means this source: by its prefix, or by what the file is."""

    def check_spec(self, spec: str) -> None:  # noqa: B027 - most sources see nothing at once
        """Raise InputError where `spec` is impossible, as far as seen at once; `resolve` need not repeat it."""

    def check_kept(self, spec: str, *, cache: Cache, offline: bool) -> bool:
        """True if all that `resolve` looks up is here, and there is such a kernel; False where an archive must be asked. Raises
        what `resolve` does then; nothing is fetched, unpacked or built."""
        return True

    def ask_archive(self, spec: str, *, cache: Cache, progress: Progress) -> None:  # noqa: B027 - most ask none
        """Read the archive's list anew where that in the cache is not trusted any more, for `check_kept`. Raises HostError."""

    def architecture(self, spec: str) -> str:
        """Architecture of the kernel, as `uname -m` has it, where that is seen at once; empty where it is not."""
        return ""

    @abstractmethod
    def resolve(
        self, spec: str, *, cache: Cache, progress: Progress, offline: bool = False, modules: str = ""
    ) -> Kernel:
        """The kernel. Raises InputError for what is wrong with `spec`, HostError for what the host lacks."""

    def available(self, *, cache: Cache, progress: Progress, offline: bool = False) -> list[Available]:
        """Kernels that can be had from here, by the least precise specification."""
        return []


def resolve(spec: str, *, cache: Cache, progress: Progress, offline: bool = False, modules: str = "") -> Kernel:
    """The kernel that `spec` means, from whichever source accepts it. Raises InputError where none does."""
    source = find_source(spec, modules)
    return source.resolve(spec, cache=cache, progress=progress, offline=offline, modules=modules)


def find_source(spec: str, modules: str = "") -> KernelSource:
    """The source that accepts `spec`, its form and its modules' place being right. Raises InputError."""
    sources = plugins("kernels").values()
    source: KernelSource
    for source in sources:
        if source.accepts(spec):
            source.check_spec(spec)
            check_modules(source, spec, modules)
            return source
    raise InputError(
        f"{spec!r} is not a kernel that KDuel knows how to get",
        f"{suggest_spec(spec)}Give {', '.join(source.summary.partition(': ')[0] for source in sources)}; `kduel list sources` explains each.",
    )


def suggest_spec(spec: str) -> str:
    """`Did you mean debian:6.1? ` for a version alone, or a misspelt prefix; else empty."""
    if version := re.fullmatch(r"[vV]?(\d+(\.\d+)+\S*)", spec):
        return f"Did you mean debian:{version[1]}? "
    prefix, colon, rest = spec.partition(":")
    known = [found[1] for one in plugins("kernels").values() if (found := re.match(r"([a-z-]+):[^ ]", one.summary))]
    return did_you_mean(prefix, known, f"{{}}:{rest.replace('{', '{{').replace('}', '}}')}") if colon else ""


def check_modules(source: KernelSource, spec: str, modules: str) -> None:
    """Raises InputError where the kernels of a source take no modules=DIR, or DIR is not there."""
    if modules and source.brings_modules:
        raise InputError(f"{spec} brings its own modules", "Leave out modules=.")
    if modules:
        modules_place(modules)
