"""Fedora's kernels: `fedora:RELEASE[-VERSION]`. Its packages are signed, its lists are not."""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from kduel.core.progress import Progress
from kduel.kernels.files.layout import UnpackedKernel
from kduel.kernels.packages.distribution import Distribution, RemotePackage, SplitKernel, check_same, whole_kernels
from kduel.kernels.packages.fetch import AbsentError
from kduel.kernels.packages.repomd import read_repository
from kduel.kernels.packages.rpm import check_rpm, unpack_rpms

PARTS = ("kernel-core", "kernel-modules-core", "kernel-modules")


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

    def unpack(self, packages: Sequence[Path], into: Path) -> UnpackedKernel:
        return unpack_rpms(packages, into)

    def list_packages(self, release: str, mirror: str, place: Path, progress: Progress) -> list[RemotePackage]:
        """From the release and its updates, of which a new one has none."""
        if release == "rawhide":
            return self._read(f"{mirror}/development/rawhide/Everything/x86_64/os", place, progress)
        found = self._read(f"{mirror}/releases/{release}/Everything/x86_64/os", place, progress)
        with suppress(AbsentError):
            found += self._read(f"{mirror}/updates/{release}/Everything/x86_64", place, progress)
        return found

    def kernels_of(self, release: str, offered: Sequence[RemotePackage]) -> list[SplitKernel]:
        return whole_kernels(offered, *PARTS)

    def check(self, package: Path, offered: RemotePackage, progress: Progress) -> None:
        check_same(package.name, offered, *check_rpm(package, self.keyrings()))

    @staticmethod
    def _read(base: str, place: Path, progress: Progress) -> list[RemotePackage]:
        return read_repository(base, PARTS, place, progress, architecture="x86_64")


PLUGIN = Fedora()
