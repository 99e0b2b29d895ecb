"""A kernel from RPM packages that lie around as files, as `make binrpm-pkg` and distributors make them."""

from kduel.kernels.packages.package_files import PackageFiles
from kduel.kernels.packages.rpm import LEAD_MAGIC, unpack_rpms


class Rpm(PackageFiles):
    """One .rpm, or several. Who signed them is not checked."""

    name = "rpm"
    summary = "A.rpm[,B.rpm...] or rpm:A.rpm: packages of one kernel"
    ending = ".rpm"
    kind = "RPM package"
    magic = LEAD_MAGIC
    unpack = staticmethod(unpack_rpms)


PLUGIN = Rpm()
