"""Fedora's kernels: `fedora:RELEASE[-VERSION]`. Its packages are signed, its lists are not."""

import re
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from kduel.core.progress import Progress
from kduel.kernels.packages.distribution import Distribution, RemotePackage, check_same
from kduel.kernels.packages.fetch import AbsentError
from kduel.kernels.packages.repomd import read_repository
from kduel.kernels.packages.rpm import check_rpm, unpack_rpms


class Fedora(Distribution):
    """A mirror has `releases/`, `updates/` and `development/rawhide/`."""

    name = "fedora"
    title = "Fedora"
    summary = "fedora:RELEASE[-VERSION]: Fedora's kernels, such as fedora:42 or fedora:rawhide"
    release = re.compile(r"(?P<release>\d+|rawhide)(?:-(?P<version>\d[\w.~^+-]*))?")
    example = "fedora:42, fedora:42-6.14 or fedora:rawhide"
    keys: ClassVar[tuple[str, ...]] = (
        "/etc/pki/rpm-gpg/RPM-GPG-KEY-fedora-*",
        "/usr/share/distribution-gpg-keys/fedora/RPM-GPG-KEY-fedora-*",
    )
    keys_package = "fedora-gpg-keys or distribution-gpg-keys"
    unpack = staticmethod(unpack_rpms)
    parts = ("kernel-core", "kernel-modules-core", "kernel-modules")

    def list_packages(self, release: str, mirror: str, place: Path, progress: Progress) -> list[RemotePackage]:
        """From the release and its updates, of which a new one has none."""
        if release == "rawhide":
            return self._read(f"{mirror}/development/rawhide/Everything/x86_64/os", place, progress)
        found = self._read(f"{mirror}/releases/{release}/Everything/x86_64/os", place, progress)
        with suppress(AbsentError):
            found += self._read(f"{mirror}/updates/{release}/Everything/x86_64", place, progress)
        return found

    def check(self, package: Path, offered: RemotePackage, progress: Progress) -> None:
        check_same(package.name, offered, *check_rpm(package, self.keyrings()))

    def _read(self, base: str, place: Path, progress: Progress) -> list[RemotePackage]:
        return read_repository(base, self.parts, place, progress)


PLUGIN = Fedora()
