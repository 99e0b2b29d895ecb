"""Kernel trees, unpacked in the cache, where nothing changes them: builds go elsewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from kduel.core.cache import Cache, as_cache_error
from kduel.core.errors import HostError, InputError

KIND = "source"
NUMBERS = re.compile(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)[ \t]*=[ \t]*(\S*)", re.MULTILINE)


class SourceTree(Struct, frozen=True, kw_only=True):
    """A tree that can be built."""

    tree: Path
    identity: str
    """Digest that determines its content: a SHA-256 of the archive, a commit."""
    version: str
    """Version in its Makefile, such as 6.1.192."""
    exact: str
    """The specification that means this very tree, without a recipe."""
    facts: dict[str, Any]
    """For the kernel's provenance."""


def unpack_tree(key: str, extract: Callable[[Path], None], *, cache: Cache) -> Path:
    """The tree that `extract` leaves in the directory given to it, or in the one directory therein; kept in the cache.

    Raises InputError where it is no kernel's tree.
    """

    def build(into: Path) -> None:
        fresh = into / "unpacked"
        fresh.mkdir()
        extract(fresh)
        inner = [entry for entry in fresh.iterdir() if not entry.name.startswith(".")]
        top = inner[0] if len(inner) == 1 and inner[0].is_dir() else fresh
        read_version(top)
        with as_cache_error(into):
            top.rename(into / "linux")
            shutil.rmtree(fresh, ignore_errors=True)

    return cache.entry(KIND, key, build) / "linux"


def untar(archive: Path | None, into: Path, feed: subprocess.Popen[bytes] | None = None) -> None:
    """Unpack a tar file of any compression, or what a process gives. Raises InputError, HostError.

    tar itself refuses members that would leave the directory.
    """
    command = ["tar", "-x", "-C", str(into), "--no-same-owner", "--no-same-permissions", "-f", str(archive or "-")]
    try:
        done = subprocess.run(
            command, stdin=feed.stdout if feed else subprocess.DEVNULL, capture_output=True, check=False
        )
    except OSError as error:
        raise HostError(f"tar cannot be run: {error.strerror}", "Install tar and xz-utils.") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", errors="replace").strip().splitlines() or ["no reason given"]
        raise InputError(f"{archive or 'the archive'} does not unpack: {said[0][:300]}", "Copy or download it again.")


def read_version(tree: Path) -> str:
    """Version in the Makefile. Raises InputError for what is no kernel's tree."""
    try:
        head = (tree / "Makefile").read_text("utf-8", errors="replace")[:2000]
    except OSError:
        head = ""
    numbers = dict(NUMBERS.findall(head))
    if not {"VERSION", "PATCHLEVEL", "SUBLEVEL"} <= numbers.keys() or not (tree / "Kconfig").exists():
        raise InputError(
            "this is no source tree of the Linux kernel: its Makefile has no version", "Give a kernel's source."
        )
    return f"{numbers['VERSION']}.{numbers['PATCHLEVEL']}.{numbers['SUBLEVEL']}{numbers.get('EXTRAVERSION', '')}"


def provenance_of(source: SourceTree) -> dict[str, Any]:
    """Facts of the source that a kernel's provenance keeps."""
    facts: dict[str, Any] = msgspec.to_builtins(source.facts)
    return {**facts, "identity": source.identity, "version": source.version}
