"""Files of a build that are kept for its sizes: vmlinux with its symbols, and which object each symbol came from."""

import gzip
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from kduel.core.errors import InputError
from kduel.core.supervised_process import run_text
from kduel.kernels.compile.toolchain import Target
from kduel.kernels.sizes.elf import read_elf
from kduel.kernels.sizes.options import OptionSizes

NAME = "objects.gz"
"""Lines of PATH, OPTION, SIZE and SYMBOL, separated by tabs; in the order of the archives that are linked."""
BESIDE = ("init/version-timestamp.o", ".vmlinux.export.o")
"""Linked without being in any archive."""


def keep_objects_list(build: Path, into: Path, target: Target, tree: Path) -> None:
    """Leave `vmlinux` (without debugging information) and `objects.gz` of a build. Raises InputError."""
    vmlinux = into / "vmlinux"
    done = run_text([target.tool("objcopy"), "--strip-debug", str(build / "vmlinux"), str(vmlinux)])
    if done.returncode:
        shutil.copyfile(build / "vmlinux", vmlinux)
    options = OptionSizes(tree)
    with gzip.open(into / NAME, "wt", encoding="utf-8", compresslevel=6) as stream:
        for path in linked_objects(build):
            try:
                symbols = read_elf(build / path).symbols
            except InputError:
                continue
            for symbol in symbols:
                stream.write(f"{path}\t{options.option_of(path)}\t{symbol.size}\t{symbol.name}\n")


def linked_objects(build: Path) -> list[str]:
    """The objects that vmlinux was linked from, as far as the archives name them; paths below the build directory."""
    found: dict[str, None] = dict.fromkeys(
        str(path.relative_to(build)) for path in sorted(build.glob("arch/*/kernel/head*.o"))
    )
    for archive in linked_archives(build):
        done = run_text(["ar", "t", archive], cwd=build)
        for line in done.stdout.splitlines():
            # Thin archives name members by their path: from where make ran, or from where the archive is.
            for path in (line, os.path.normpath(os.path.join(os.path.dirname(archive), line))):  # noqa: PTH118, PTH120
                if (build / path).is_file():
                    found[path] = None
                    break
    found |= dict.fromkeys(path for path in BESIDE if (build / path).is_file())
    return list(found)


def linked_archives(build: Path) -> Iterator[str]:
    """The outermost built-in.a of each directory, then what is linked as libraries."""
    whole = [name for name in ("vmlinux.a", "built-in.a") if (build / name).is_file()]
    if whole:
        yield whole[0]
    else:
        tops = (
            "init", "usr", "arch", "kernel", "certs", "mm", "fs", "ipc", "security", "crypto", "block", "io_uring",
        )  # fmt: skip
        rest = sorted(entry.name for entry in build.iterdir() if entry.is_dir() and entry.name not in tops)
        for top in (*tops, *rest):
            if (build / top / "built-in.a").is_file():
                yield f"{top}/built-in.a"
            elif top in ("arch",):
                yield from (str(p.relative_to(build)) for p in sorted(build.glob("arch/**/built-in.a")))
    for library in ("lib/lib.a", *sorted(str(p.relative_to(build)) for p in build.glob("arch/*/lib/lib.a"))):
        if (build / library).is_file():
            yield library
