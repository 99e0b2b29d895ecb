"""Unpacks from Debian packages what a kernel needs: image, config and modules; nothing else is written."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from msgspec import Struct

from kduel.core.cache import as_cache_error
from kduel.core.errors import HostError, InputError

NAME = r"[A-Za-z0-9][\w.+~-]*"
PLACES = (
    re.compile(rf"^boot/(?P<what>vmlinuz|vmlinux|config)-(?P<release>{NAME})$"),
    re.compile(rf"^(?:usr/)?lib/modules/(?P<release>{NAME})/(?P<what>vmlinuz|vmlinux|config)$"),
    re.compile(
        rf"^(?:usr/)?lib/modules/(?P<release>{NAME})/(?P<module>modules\.(?:builtin|builtin\.modinfo|order)"
        rf"|(?:kernel|updates|extra)/(?:{NAME}/)*{NAME}\.ko(?:\.(?:xz|zst|gz))?)$"
    ),
)
"""Paths of these files in packages; `module` is the path below the modules' directory."""


class UnpackedKernel(Struct, frozen=True, kw_only=True):
    """Files of one kernel, as they lie in the directory that was unpacked into."""

    release: str
    image: Path
    config: Path | None
    modules: Path | None


def unpack(packages: Sequence[Path], into: Path) -> UnpackedKernel:
    """Unpack one kernel's packages as `vmlinuz`, `config` and `lib/modules/RELEASE` below `into`.

    Raises InputError for a damaged package, or packages that are not exactly one kernel; HostError without dpkg.
    """
    if not shutil.which("dpkg-deb"):
        raise HostError("this host has no dpkg-deb, which unpacks Debian packages", "Install the package dpkg.")
    releases: set[str] = set()
    for package in packages:
        releases |= _unpack_one(package, into)
    told = ", ".join(package.name for package in packages)
    if len(releases) > 1:
        raise InputError(
            f"{told}: these packages are of several kernels ({', '.join(sorted(releases))})",
            "Give the packages of one kernel, separated by commas.",
        )
    image, config = into / "vmlinuz", into / "config"
    if not image.exists():
        raise InputError(
            f"{told}: no kernel image is in there",
            "Give linux-image-*.deb; for a kernel that is split, linux-binary-*.deb and linux-modules-*.deb too.",
        )
    (release,) = releases
    modules = into / "lib/modules" / release
    return UnpackedKernel(
        release=release,
        image=image,
        config=config if config.exists() else None,
        modules=modules if (modules / "kernel").exists() else None,
    )


def _unpack_one(package: Path, into: Path) -> set[str]:
    """Returns the kernel releases that the package has files of."""
    releases = set()
    with subprocess.Popen(
        ["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        reason = ""
        try:
            with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
                for member in archive:
                    place = locate_member(member)
                    if place is None:
                        continue
                    release, path = place
                    releases.add(release)
                    content = archive.extractfile(member)
                    assert content is not None
                    with as_cache_error(into):
                        write_member(content, into / path)
            # What follows the archive's end must be read too, or dpkg-deb ends by SIGPIPE.
            while process.stdout.read(1 << 16):
                pass
        except tarfile.TarError as error:
            reason = str(error)
        process.stdout.close()
        said = process.stderr.read().decode("utf-8", errors="replace").strip()
    if process.returncode or reason:
        raise InputError(
            f"{package} is not a complete Debian package: {said or reason}", "Copy or download it again."
        )
    return releases


def write_member(content: IO[bytes], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as stream:
        shutil.copyfileobj(content, stream, 1 << 20)


def locate_member(member: tarfile.TarInfo) -> tuple[str, Path] | None:
    """The release that a file is of, and where it goes; None for what a guest does not need."""
    if not member.isfile():
        return None
    name = member.name.removeprefix("./")
    for pattern in PLACES:
        if match := pattern.match(name):
            found = match.groupdict()
            if "module" in found:
                return found["release"], Path("lib/modules", found["release"], found["module"])
            return found["release"], Path("vmlinuz" if found["what"] == "vmlinux" else found["what"])
    return None
