"""openSUSE's kernels: `opensuse:RELEASE[-VERSION]`. Its lists are signed, and its packages, too."""

import re
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from kduel.core.progress import Progress
from kduel.kernels.packages.distribution import Distribution, RemotePackage
from kduel.kernels.packages.fetch import AbsentError
from kduel.kernels.packages.repomd import read_repository
from kduel.kernels.packages.rpm import check_rpm, unpack_rpms


class OpenSuse(Distribution):
    """A mirror has `tumbleweed/`, `distribution/leap/` and `update/leap/`."""

    name = "opensuse"
    title = "openSUSE"
    summary = "opensuse:RELEASE[-VERSION]: openSUSE's kernels, such as opensuse:tumbleweed or opensuse:15.6"
    release = re.compile(r"(?P<release>\d+\.\d+|tumbleweed)(?:-(?P<version>\d[\w.~^+-]*))?")
    example = "opensuse:tumbleweed, opensuse:tumbleweed-6.14 or opensuse:15.6"
    keys: ClassVar[tuple[str, ...]] = (
        "/usr/lib/rpm/gnupg/keys/*.asc",
        "/usr/share/distribution-gpg-keys/opensuse/RPM-GPG-KEY-openSUSE*",
    )
    keys_package = "openSUSE-build-key or distribution-gpg-keys"
    unpack = staticmethod(unpack_rpms)
    parts = ("kernel-default",)

    def list_packages(self, release: str, mirror: str, place: Path, progress: Progress) -> list[RemotePackage]:
        """From the release; for Leap also from its updates, which it shares with SLE."""
        if release == "tumbleweed":
            return self._read(f"{mirror}/tumbleweed/repo/oss", place, progress)
        found = self._read(f"{mirror}/distribution/leap/{release}/repo/oss", place, progress)
        for updates in ("oss", "sle"):
            with suppress(AbsentError):
                found += self._read(f"{mirror}/update/leap/{release}/{updates}", place, progress)
        return found

    def check(self, package: Path, offered: RemotePackage, progress: Progress) -> None:
        check_rpm(package, self.keyrings())

    def _read(self, base: str, place: Path, progress: Progress) -> list[RemotePackage]:
        return read_repository(base, self.parts, place, progress, keyrings=self.keyrings())


PLUGIN = OpenSuse()
