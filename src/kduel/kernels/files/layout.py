"""The files of a distribution's packages that a kernel consists of, and where they go: image, config and modules."""

import re
import shutil
from pathlib import Path

from msgspec import Struct

from kduel.core.cache import as_cache_error
from kduel.core.errors import InputError
from kduel.core.tar_stream import PIECE, Part, Readable, TarBounds, read_members

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


class Unpacking:
    """One kernel's files, written as `vmlinuz`, `config` and `lib/modules/RELEASE` below `into`; all others are left out."""

    def __init__(self, into: Path, told: str) -> None:
        """`told` names the packages in messages."""
        self.into, self.told = into, told
        self.releases: set[str] = set()

    def take(self, name: str, content: Part) -> None:
        """Write a regular file of a package, if the kernel needs it. Raises HostError where the cache is not usable."""
        place = locate(name)
        if place is None:
            return
        release, path = place
        self.releases.add(release)
        target = self.into / path
        with as_cache_error(self.into):
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as stream:
                shutil.copyfileobj(content, stream, PIECE)

    def take_tar(self, stream: Readable, bounds: TarBounds) -> None:
        """Take what a tar archive has of it, and read the archive to its end. Raises RefusedArchive."""
        for member, content in read_members(stream, bounds):
            if not member.directory:
                self.take(member.name.decode("utf-8", errors="replace"), content)
        # What follows the archive's end must be read too, or the program that writes it ends by SIGPIPE.
        while stream.read(PIECE):
            pass

    def finish(self) -> UnpackedKernel:
        """The kernel. Raises InputError for packages that are not exactly one."""
        if len(self.releases) > 1:
            raise InputError(
                f"{self.told}: these packages are of several kernels ({', '.join(sorted(self.releases))})",
                "Give the packages of one kernel, separated by commas.",
            )
        image, config = self.into / "vmlinuz", self.into / "config"
        if not image.exists():
            raise InputError(
                f"{self.told}: no kernel image is in there",
                "Give the package with the image, and those with the modules: linux-image-*.deb; where a kernel is "
                "split, linux-binary-*.deb and linux-modules-*.deb, or kernel-core and kernel-modules*.rpm.",
            )
        (release,) = self.releases
        modules = self.into / "lib/modules" / release
        return UnpackedKernel(
            release=release,
            image=image,
            config=config if config.exists() else None,
            modules=modules if (modules / "kernel").exists() else None,
        )


def locate(name: str) -> tuple[str, Path] | None:
    """The release that a file is of, and where it goes; None for what a guest does not need."""
    for pattern in PLACES:
        if match := pattern.match(name.removeprefix("./").removeprefix("/")):
            found = match.groupdict()
            if "module" in found:
                return found["release"], Path("lib/modules", found["release"], found["module"])
            return found["release"], Path("vmlinuz" if found["what"] == "vmlinux" else found["what"])
    return None
