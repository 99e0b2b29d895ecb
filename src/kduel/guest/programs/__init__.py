"""Our own static programs, one C file each, compiled for each architecture by one version of the Zig compiler.

The same source with the same compiler gives the same bytes on every host, so a program's hash can stand in a lock
file. That is why those of the usual architectures come ready-made, in `built` (scripts/programs makes them, a test makes
them again and compares); Zig is needed for other architectures, and after a change of a source. Nothing here depends on
the guest's distribution: a program needs the kernel and nothing else.
"""

import hashlib
import lzma
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from kduel.core.cache import Cache
from kduel.core.errors import HostError, InputError, unknown_name
from kduel.core.host_packages import pip_command
from kduel.core.supervised_process import run_text

SOURCES = Path(__file__).parent
BUILT = SOURCES / "built"
"""Ready-made programs, each compressed: PRODUCT-KEY.xz, where KEY follows from the sources, compiler and flags."""
ZIG = "0.13.0.post1"
"""The one version of the Python package ziglang that may compile: another one gives other bytes."""
READY_MADE = ("x86_64", "aarch64")
"""Architectures whose programs come ready-made; the plug-ins of QEMU come for hosts of the first."""
APIS = (1, 3)
"""Versions of QEMU's plug-in interface."""

TARGETS = {
    "x86_64": ("x86_64-linux-musl", "-mcpu=x86_64"), "i686": ("x86-linux-musl", "-mcpu=pentium4"),
    "aarch64": ("aarch64-linux-musl", "-mcpu=generic"), "armv7l": ("arm-linux-musleabihf", "-mcpu=generic+v7a"),
    "riscv64": ("riscv64-linux-musl", "-mcpu=baseline_rv64"), "ppc": ("powerpc-linux-musl", "-mcpu=ppc"),
    "ppc64": ("powerpc64-linux-musl", "-mcpu=ppc64"), "ppc64le": ("powerpc64le-linux-musl", "-mcpu=ppc64le"),
}  # fmt: skip
"""Targets by `uname -m`: Zig's target and the oldest processor that must be able to run it."""

_FLAGS = ("-static", "-O2", "-s", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fno-ident", "-fwrapv")
_PLUGIN_FLAGS = ("-shared", "-fPIC", "-O2", "-s", "-std=gnu11", "-Wall", "-Wextra", "-Werror")
_PLUGIN_GLIBC = "2.28"
"""The oldest C library that a host may have; QEMU itself brings a newer one."""


def program_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in SOURCES.glob("*.c")))


class ProgramRecipe(Struct, frozen=True):
    """Sources of a program, compiler and flags."""

    source: Path
    product: str
    flags: tuple[str, ...]

    @property
    def entry(self) -> str:
        """The program's name with a key that changes with its sources, the compiler or the flags."""
        digest = hashlib.sha256("\0".join((f"ziglang {ZIG}", self.product, *self.flags)).encode())
        for part in (self.source, *sorted(self.source.parent.glob("*.h"))):
            digest.update(part.name.encode() + b"\0" + part.read_bytes() + b"\0")
        return f"{self.product}-{digest.hexdigest()[:24]}"


def recipe(name: str, architecture: str = "x86_64") -> ProgramRecipe:
    """Recipe of a static program. Raises InputError for a name or an architecture that there is not."""
    source = SOURCES / f"{name}.c"
    if not source.is_file():
        raise unknown_name(f"KDuel has no program {name!r}", name, program_names())
    if architecture not in TARGETS:
        raise InputError(
            f"KDuel cannot build {name} for {architecture!r}", f"There are: {', '.join(sorted(TARGETS))}."
        )
    target, processor = TARGETS[architecture]
    return ProgramRecipe(source, name, ("-target", target, processor, *_FLAGS))


def plugin_recipe(name: str, *, api: int, host: str) -> ProgramRecipe:
    """Recipe of a shared object for a host's QEMU. Raises InputError for a name that there is not."""
    source = SOURCES / "plugin" / f"{name}.c"
    if not source.is_file():
        raise InputError(f"KDuel has no QEMU plug-in {name!r}")
    target = f"{host}-linux-gnu.{_PLUGIN_GLIBC}"
    return ProgramRecipe(source, f"{name}.so", ("-target", target, f"-DKDUEL_API={api}", *_PLUGIN_FLAGS))


def ready_made() -> list[ProgramRecipe]:
    """All that `built` holds."""
    programs = [recipe(name, architecture) for architecture in READY_MADE for name in program_names()]
    plugins = [
        plugin_recipe(name, api=api, host=READY_MADE[0])
        for name in ("counter", "sharing", "turns", "guard")
        for api in APIS
    ]
    return [*programs, *plugins]


def build(name: str, architecture: str = "x86_64", *, cache: Cache) -> Path:
    """The static program NAME for an architecture (`uname -m`), cached. Raises InputError, HostError."""
    return _make_program(recipe(name, architecture), cache)


def build_plugin(name: str = "counter", *, api: int, cache: Cache) -> Path:
    """The shared object NAME for this host's QEMU: the plug-in `counter`, `sharing` or `turns`, for a version of the
    plug-in interface (1 or 3), or `guard`, which is preloaded. Raises InputError, HostError where it cannot be
    compiled."""
    return _make_program(plugin_recipe(name, api=api, host=platform.machine()), cache)


def _make_program(wanted: ProgramRecipe, cache: Cache) -> Path:
    """The program of a recipe: unpacked where it comes ready-made, else compiled."""

    def make_into(directory: Path) -> None:
        packed = BUILT / f"{wanted.entry}.xz"
        if packed.is_file():
            (directory / wanted.product).write_bytes(lzma.decompress(packed.read_bytes()))
        else:
            with TemporaryDirectory(dir=directory) as zig_cache:
                compile_into(wanted, directory, zig_cache=Path(zig_cache))
        (directory / wanted.product).chmod(0o755)

    return cache.entry("programs", wanted.entry, make_into) / wanted.product


def compile_into(wanted: ProgramRecipe, directory: Path, *, zig_cache: Path) -> None:
    """Compile a program into a directory. `zig_cache` must have been used for the same target only: Zig does not notice
    what else differed when it was filled. Raises HostError where the compiler is missing, or fails."""
    # The source's name is given relatively, or its place would be among the bytes.
    command = [str(compiler(wanted)), "cc", *wanted.flags, "-o", str(directory / wanted.product), wanted.source.name]
    # None of the caller's: CPATH and its kin change the programs, ZIG_LIB_DIR the compiler.
    environment = {
        "PATH": os.defpath,
        "LC_ALL": "C.UTF-8",
        "ZIG_GLOBAL_CACHE_DIR": str(zig_cache),
        "ZIG_LOCAL_CACHE_DIR": str(zig_cache / "local"),
        "SOURCE_DATE_EPOCH": "0",
    }
    done = run_text(command, cwd=wanted.source.parent, env=environment)
    if done.returncode != 0:
        raise HostError(
            f"compiling {wanted.source.name} failed:\n{done.stderr.strip()[-2000:]}",
            f"Is the Python package ziglang {ZIG} complete, and is there room in {zig_cache}?",
        )


def compiler(wanted: ProgramRecipe) -> Path:
    """Zig's binary. Raises HostError, naming the command that installs it, where that very version is missing."""
    try:
        found = version("ziglang")
    except PackageNotFoundError:
        found = ""
    if found != ZIG:
        raise HostError(
            f"{wanted.source.name} has to be compiled {' '.join(wanted.flags[:2])}, which takes the Zig compiler "
            f"{ZIG}; " + (f"ziglang {found} is installed" if found else "it is not installed"),
            f"Install it (340 MB): {pip_command(f'ziglang=={ZIG}')}",
        )
    return Path(str(files("ziglang"))) / "zig"
