"""Packages of pacman: compressed tar archives."""

from __future__ import annotations

import re
import subprocess
import tarfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from kduel.core.errors import HostError, InputError
from kduel.core.host_packages import install_command
from kduel.kernels.files.layout import DAMAGED, UnpackedKernel, Unpacking

FIRST_FILES, MOST_FACTS = 20, 1 << 20


def unpack_pacman(packages: Sequence[Path], into: Path) -> UnpackedKernel:
    """Unpack one kernel's packages (`.pkg.tar.zst`). Raises InputError for damage, HostError without zstd."""
    unpacking = Unpacking(into, ", ".join(package.name for package in packages))
    for package in packages:
        with start_zstd(package) as process:
            assert process.stdout is not None and process.stderr is not None
            reason = unpacking.take_tar(process.stdout)
            process.stdout.close()
            said = process.stderr.read().decode("utf-8", errors="replace").strip()
        if process.returncode or reason:
            raise InputError(f"{package} is not a complete package: {said or reason}", "Copy or download it again.")
    return unpacking.finish()


def start_zstd(package: Path) -> subprocess.Popen[bytes]:
    """A process that decompresses a package to its standard output. Raises HostError without zstd."""
    try:
        return subprocess.Popen(["zstd", "-dcq", str(package)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except FileNotFoundError as error:
        raise HostError(f"{package.name} needs zstd", f"Install it: {install_command('zstd')}.") from error


def read_identity(package: Path) -> tuple[str, str]:
    """Name and version that a package states itself, in its .PKGINFO, which is among its first files.

    Raises InputError where it states none, or is of another architecture; HostError without zstd.
    """
    facts: dict[str, str] = {}
    with start_zstd(package) as process:
        assert process.stdout is not None
        try:
            with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
                for member in islice(archive, FIRST_FILES):
                    if member.name == ".PKGINFO" and (content := archive.extractfile(member)):
                        text = content.read(MOST_FACTS).decode("utf-8", errors="replace")
                        facts = dict(re.findall(r"^(\w+) = ([^\n]*)$", text, re.MULTILINE))
                        break
        except DAMAGED as error:
            raise InputError(f"{package} is not a complete package: {error}", "Download it again.") from error
        finally:
            process.kill()
    if facts.get("arch") != "x86_64" or not {"pkgname", "pkgver"} <= facts.keys():
        raise InputError(
            f"{package.name} does not state that it is a package of x86_64", "Do not use it: name another mirror."
        )
    return facts["pkgname"], facts["pkgver"]
