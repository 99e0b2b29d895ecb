"""Our own static programs, one C file each, compiled once per architecture by the Zig compiler that is a dependency.

The same source with the same compiler gives the same bytes on every host, so a program's hash can stand in a lock
file. Nothing here depends on the guest's distribution: a program needs the kernel and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kduel.core.cache import Cache
from kduel.core.errors import HostError, InputError

SOURCES = Path(__file__).parent

TARGETS = {
    "x86_64": ("x86_64-linux-musl", "-mcpu=x86_64"),
    "i686": ("x86-linux-musl", "-mcpu=pentium4"),
    "aarch64": ("aarch64-linux-musl", "-mcpu=generic"),
    "armv7l": ("arm-linux-musleabihf", "-mcpu=generic+v7a"),
    "riscv64": ("riscv64-linux-musl", "-mcpu=baseline_rv64"),
    "ppc": ("powerpc-linux-musl", "-mcpu=ppc"),
    "ppc64": ("powerpc64-linux-musl", "-mcpu=ppc64"),
    "ppc64le": ("powerpc64le-linux-musl", "-mcpu=ppc64le"),
}
"""By `uname -m`: Zig's target and the oldest processor that must be able to run it."""

_FLAGS = ("-static", "-O2", "-s", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fno-ident", "-fwrapv")
_PLUGIN_FLAGS = ("-shared", "-fPIC", "-O2", "-s", "-std=gnu11", "-Wall", "-Wextra", "-Werror")
_PLUGIN_GLIBC = "2.28"
"""The oldest C library that a host may have; QEMU itself brings a newer one."""


def known() -> tuple[str, ...]:
    """The names that `build` takes."""
    return tuple(sorted(path.stem for path in SOURCES.glob("*.c")))


def build(name: str, architecture: str = "x86_64", *, cache: Cache) -> Path:
    """The static program NAME for an architecture (as `uname -m` says it), compiled where the cache lacks it.

    Raises InputError for a name or an architecture that there is not, HostError where the compiler fails.
    """
    source = SOURCES / f"{name}.c"
    if not source.is_file():
        raise InputError(f"KDuel has no program {name!r}", f"There are: {', '.join(known())}.")
    if architecture not in TARGETS:
        raise InputError(
            f"KDuel cannot build {name} for {architecture!r}", f"It knows: {', '.join(sorted(TARGETS))}."
        )
    target, processor = TARGETS[architecture]
    return _compiled(source, name, ("-target", target, processor, *_FLAGS), cache)


def build_plugin(name: str = "counter", *, api: int, cache: Cache) -> Path:
    """The shared object NAME for this host's QEMU: the plug-in `counter`, for a version of QEMU's plug-in interface (1 or 3),
    or `guard`, which is preloaded and does not depend on the interface.

    Raises InputError for a name that there is not, HostError where the compiler fails.
    """
    source = SOURCES / "plugin" / f"{name}.c"
    if not source.is_file():
        raise InputError(f"KDuel has no QEMU plug-in {name!r}")
    target = f"{platform.machine()}-linux-gnu.{_PLUGIN_GLIBC}"
    return _compiled(source, f"{name}.so", ("-target", target, f"-DKDUEL_API={api}", *_PLUGIN_FLAGS), cache)


def _compiled(source: Path, product: str, flags: tuple[str, ...], cache: Cache) -> Path:
    """The file `product` made of `source` (and the headers next to it) with `flags`."""
    compiler = _compiler_version()
    digest = hashlib.sha256("\0".join((compiler, product, *flags)).encode())
    for part in (source, *sorted(source.parent.glob("*.h"))):
        digest.update(part.name.encode() + b"\0" + part.read_bytes() + b"\0")

    def compile_into(directory: Path) -> None:
        # The file's name and its place are given relatively, or they would be among the bytes.
        command = [sys.executable, "-m", "ziglang", "cc", *flags, "-o", str(directory / product), source.name]
        environment = os.environ | {
            "ZIG_GLOBAL_CACHE_DIR": str(cache.root / "zig"),
            "ZIG_LOCAL_CACHE_DIR": str(cache.root / "zig" / "local"),
            "SOURCE_DATE_EPOCH": "0",
        }
        done = subprocess.run(
            command, cwd=source.parent, env=environment, capture_output=True, text=True, errors="replace", check=False
        )
        if done.returncode != 0:
            raise HostError(
                f"compiling {source.name} failed:\n{done.stderr.strip()[-2000:]}",
                f"Is the ziglang package whole ({compiler} is installed), and is there room in {cache.root}?",
            )
        (directory / product).chmod(0o755)

    return cache.entry("programs", f"{product}-{digest.hexdigest()[:24]}", compile_into) / product


def _compiler_version() -> str:
    try:
        return f"ziglang {version('ziglang')}"
    except PackageNotFoundError as error:
        raise HostError(
            "the Zig compiler (Python package ziglang) is not installed", "Install KDuel's requirements again."
        ) from error
