"""Arch Linux's kernels: `arch:PACKAGE[-VERSION]`. Its packages are signed, its lists are not."""

import re
from pathlib import Path
from typing import ClassVar

from kduel.core.errors import HostError
from kduel.core.progress import Progress
from kduel.core.tar_stream import RefusedArchive, read_members
from kduel.kernels.files.decompress import BOUNDS, decompress
from kduel.kernels.packages.distribution import Distribution, RemotePackage, check_same
from kduel.kernels.packages.fetch import download
from kduel.kernels.packages.openpgp import check_signature
from kduel.kernels.packages.pacman import read_identity, unpack_pacman

REPOSITORIES = {
    "linux": "core", "linux-lts": "core", "linux-zen": "extra", "linux-hardened": "extra", "linux-rt": "extra",
}  # fmt: skip
"""By package."""
MOST_DESCRIPTION = 1 << 20
MIRRORS = Path("/etc/pacman.d/mirrorlist")


class ArchLinux(Distribution):
    """A mirror has `core/os/x86_64/` and `extra/os/x86_64/`, with the newest version of each package."""

    name = "arch"
    title = "Arch Linux"
    summary = "arch:PACKAGE[-VERSION]: Arch Linux's kernels: arch:linux, arch:linux-lts, arch:linux-zen"
    release = re.compile(rf"(?P<release>{'|'.join(REPOSITORIES)})(?:-(?P<version>\d[\w.+-]*))?")
    example = "arch:linux, arch:linux-lts, arch:linux-zen, arch:linux-hardened or arch:linux-rt"
    keys: ClassVar[tuple[str, ...]] = (
        "/usr/share/pacman/keyrings/archlinux.gpg",
        "/usr/share/keyrings/archlinux-archive-keyring.gpg",
    )
    keys_package = "archlinux-keyring"
    unpack = staticmethod(unpack_pacman)

    def host_mirror(self) -> str:
        """The first that pacman uses."""
        text = MIRRORS.read_text("utf-8", errors="replace") if MIRRORS.is_file() else ""
        match = re.search(r"^\s*Server\s*=\s*(\S+?)/\$repo/os/\$arch", text, re.MULTILINE)
        return match[1] if match else ""

    def list_packages(self, release: str, mirror: str, place: Path, progress: Progress) -> list[RemotePackage]:
        """From the repository's database: a tar archive with a file `desc` for each package."""
        repository = REPOSITORIES[release]
        base = f"{mirror}/{repository}/os/x86_64"
        database = download(f"{base}/{repository}.db", place / "db", progress)
        try:
            with decompress(database) as stream:
                texts = [
                    content.read(MOST_DESCRIPTION).decode("utf-8", errors="replace")
                    for member, content in read_members(stream, BOUNDS)
                    if member.name.startswith(f"{release}-".encode()) and member.name.endswith(b"/desc")
                ]
        except (RefusedArchive, OSError) as error:
            raise HostError(
                f"the list {base}/{repository}.db cannot be read: {error}", "Name another mirror."
            ) from error
        fields = [dict(re.findall(r"^%(\w+)%\n([^\n]+)$", text, re.MULTILINE)) for text in texts]
        return [
            RemotePackage(
                name=one["NAME"],
                version=one["VERSION"],
                address=f"{base}/{one['FILENAME']}",
                sha256=one["SHA256SUM"],
                size=one["CSIZE"],
            )
            for one in fields
            if one.get("NAME") == release and {"VERSION", "FILENAME", "SHA256SUM", "CSIZE"} <= one.keys()
        ]

    def check(self, package: Path, offered: RemotePackage, progress: Progress) -> None:
        signature = download(f"{offered.address}.sig", package.with_suffix(".sig"), progress)
        check_signature(package.name, package, signature, self.keyrings())
        signature.unlink()
        check_same(package.name, offered, *read_identity(package))


PLUGIN = ArchLinux()
