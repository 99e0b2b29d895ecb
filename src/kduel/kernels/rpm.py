"""A kernel from RPM packages that lie around as files, as `make binrpm-pkg` and distributors make them."""

from collections.abc import Sequence
from pathlib import Path

from kduel.kernels.files.layout import UnpackedKernel
from kduel.kernels.packages.package_files import PackageFiles
from kduel.kernels.packages.rpm import LEAD_MAGIC, unpack_rpms


class Rpm(PackageFiles):
    """One .rpm, or several. Who signed them is not checked."""

    name = "rpm"
    summary = "A.rpm[,B.rpm...] or rpm:A.rpm: packages of one kernel"
    ending = ".rpm"
    kind = "RPM package"
    magic = LEAD_MAGIC

    def unpack(self, packages: Sequence[Path], into: Path) -> UnpackedKernel:
        return unpack_rpms(packages, into)


PLUGIN = Rpm()
