"""The initial RAM disk: per kernel a cached archive with the modules that the guest needs, per trial its script."""

import gzip
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from kduel.core.cache import Cache
from kduel.guest import own_script
from kduel.guest.cpio import Cpio
from kduel.kernels import Kernel
from kduel.kernels.files.modules import NO_MODULES, module_bytes, modules_to_load, modules_with_dependencies

MODULES = ("virtio_pci", "virtio_blk", "virtio_console", "squashfs", "overlay")
"""Modules that a guest needs of a kernel; whatever of it is built in costs nothing."""
SCRATCH_MODULES = ("ext4",)
"""Modules that a guest with a scratch disk needs besides: six modules of Debian's 6.1, a fifteenth of an emulated boot."""


class Base(Struct, frozen=True):
    archive: Path
    """In the cache."""
    modules: str
    """SHA-256 of the modules that the guest loads or may load, with their names, in their order; NO_MODULES for none."""


def base_archive(
    kernel: Kernel,
    busybox: Path,
    *,
    cache: Cache,
    programs: Iterable[tuple[str, Path]] = (),
    modules: Sequence[str] = MODULES,
    carried: Sequence[str] = (),
    quick: bool = False,
) -> Base:
    """The part that all trials of a kernel share: busybox, our init, modules in their order, config.

    `programs` are files for $KDUEL_PROGRAMS: where below it, and which file; modes are kept.
    `carried` modules are not loaded by init but by the benchmark that needs them (kmodules.h): /kduel/carried/NAME lists
    what to load for one. One that the kernel has built in or lacks is not there.
    `quick`: with what saves time in a timed guest on Debian's busybox (`own_script`).
    A kernel without modules is taken to have everything built in. Raises InputError where its modules are broken or
    lack one.
    """
    contents: list[tuple[str, bytes, int]] = [
        ("bin/busybox", busybox.read_bytes(), 0o755),
        ("init", own_script("init.sh", quick=quick), 0o755),
        ("kduel/run", own_script("run.sh", quick=quick), 0o755),
    ]
    loaded = [
        _module_file("modules", module)
        for module in (modules_with_dependencies(kernel.modules, modules) if kernel.modules else [])
    ]
    contents += loaded
    place = "kduel/carried"
    needed = modules_to_load(kernel.modules, carried) if kernel.modules else {}
    distinct = dict.fromkeys(module for modules in needed.values() for module in modules)
    files = {module: _module_file(place, module) for module in distinct}
    lists = [
        (f"{place}/{name}", "".join(f"/{files[module][0]}\n" for module in modules).encode(), 0o644)
        for name, modules in needed.items()
    ]
    brought = [*files.values(), *lists]
    contents += brought
    contents.append(("kduel/modules", "".join(f"/{name}\n" for name, _, _ in loaded).encode(), 0o644))
    if kernel.config:
        # As a file for what looks there (loading BPF programs does), and packed to come home with every trial.
        config = kernel.config.read_bytes()
        contents.append((f"boot/config-{kernel.release}", config, 0o644))
        contents.append((f"boot/config-{kernel.release}.gz", gzip.compress(config, mtime=0), 0o644))
    for name, path in sorted(programs):
        contents.append((f"kduel/programs/{name}", path.read_bytes(), path.stat().st_mode & 0o777))

    def build(directory: Path) -> None:
        archive = Cpio()
        for path in ("proc", "sys", "dev", "bin", "boot", "kduel/programs"):
            archive.directory(path)
        archive.character_device("dev/console", 5, 1)
        archive.link("bin/sh", "busybox")
        for name, data, mode in contents:
            archive.file(name, data, mode)
        (directory / "initramfs.cpio").write_bytes(archive.finish())

    entry = cache.entry("initramfs", digest_of(contents)[:32], build)
    present = [*loaded, *brought]
    return Base(entry / "initramfs.cpio", digest_of(present) if present else NO_MODULES)


def _module_file(place: str, module: Path) -> tuple[str, bytes, int]:
    """A module as a file of the archive, decompressed: where, its bytes, its mode."""
    return f"{place}/{module.name.split('.')[0]}.ko", module_bytes(module), 0o644


def digest_of(contents: Iterable[tuple[str, bytes, int]]) -> str:
    """SHA-256 of files with their names and modes, hexadecimal."""
    digest = hashlib.sha256()
    for name, data, mode in contents:
        digest.update(f"{name} {mode} {len(data)}\n".encode() + data)
    return digest.hexdigest()


def trial_archive(script: str) -> bytes:
    """The part of one trial, to follow the base archive."""
    archive = Cpio()
    archive.file("kduel/guest.sh", script.encode(), 0o755)
    return archive.finish()
