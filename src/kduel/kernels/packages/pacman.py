"""Packages of pacman: compressed tar archives."""

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from kduel.core.errors import InputError
from kduel.core.tar_stream import RefusedArchive, read_members
from kduel.kernels.files.decompress import BOUNDS, decompress
from kduel.kernels.files.layout import UnpackedKernel, Unpacking

FIRST_FILES, MOST_FACTS = 20, 1 << 20


def unpack_pacman(packages: Sequence[Path], into: Path) -> UnpackedKernel:
    """Unpack one kernel's packages (`.pkg.tar.zst`). Raises InputError for damage, HostError without zstd."""
    unpacking = Unpacking(into, ", ".join(package.name for package in packages))
    for package in packages:
        try:
            with decompress(package) as stream:
                unpacking.take_tar(stream, BOUNDS)
        except RefusedArchive as error:
            raise InputError(f"{package} is not a complete package: {error}", "Copy or download it again.") from error
    return unpacking.finish()


def read_identity(package: Path) -> tuple[str, str]:
    """Name and version of a package by its .PKGINFO. Raises InputError (none, architecture), HostError (no zstd)."""
    facts: dict[str, str] = {}
    try:
        with decompress(package) as stream:
            for member, content in islice(read_members(stream, BOUNDS), FIRST_FILES):
                if member.name == b".PKGINFO":
                    text = content.read(MOST_FACTS).decode("utf-8", errors="replace")
                    facts = dict(re.findall(r"^(\w+) = ([^\n]*)$", text, re.MULTILINE))
                    break
    except RefusedArchive as error:
        raise InputError(f"{package} is not a complete package: {error}", "Download it again.") from error
    if facts.get("arch") != "x86_64" or not {"pkgname", "pkgver"} <= facts.keys():
        raise InputError(
            f"{package.name} does not state that it is a package of x86_64", "Do not use it: name another mirror."
        )
    return facts["pkgname"], facts["pkgver"]
