"""Files of a build that are kept for its sizes: vmlinux with its symbols, and which object each symbol came from."""

import gzip
import os
import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

from kduel.core.errors import InputError
from kduel.core.supervised_process import run_text
from kduel.core.this_host import text_of
from kduel.kernels.compile.toolchain import Target
from kduel.kernels.sizes.elf import read_elf

ASSIGNMENT = re.compile(r"^\s*([\w-]+)-(?:(y|objs)|\$\(CONFIG_(\w+)\))\s*[:+]?=\s*(.*)$")


class OptionSizes:
    """Configuration options that bring the objects of one tree, by its Makefiles as far as these assign lists."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self.lists = cache(self._read_lists)
        self.option_of = cache(self._option_of)

    def _option_of(self, path: str) -> str:
        """The option, without CONFIG_, of an object or a directory (`fs/ext4/`); empty for what is always built."""
        place = PurePosixPath(path)
        parent = "" if str(place.parent) == "." else f"{place.parent}/"
        name = place.name + ("/" if path.endswith("/") else "")
        own = self._option_in(parent, name)
        return own if own is not None else self.option_of(parent) if parent else ""

    def _option_in(self, directory: str, name: str, depth: int = 0) -> str | None:
        """Option in the directory's own Makefile; None where it has none, or obj-y."""
        for target, option, members in self.lists(directory):
            if name not in members:
                continue
            if option:
                return option
            if target not in ("obj", "lib", "core", "drivers", "libs") and depth < 5:
                # Part of an object that is put together from several.
                return self._option_in(directory, f"{target}.o", depth + 1)
        return None

    def _read_lists(self, directory: str) -> list[tuple[str, str, frozenset[str]]]:
        """The lists of a directory's Makefile: what they belong to, their option or nothing, their members."""
        return list(self._assignments(directory))

    def _assignments(self, directory: str) -> Iterator[tuple[str, str, frozenset[str]]]:
        for name in ("Kbuild", "Makefile"):
            for line in text_of(self.tree / directory / name).replace("\\\n", " ").splitlines():
                if match := ASSIGNMENT.match(line.partition("#")[0]):
                    yield match[1], match[3] or "", frozenset(match[4].split())


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
