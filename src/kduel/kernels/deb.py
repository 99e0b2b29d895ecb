"""A kernel from Debian packages that lie around as files, as `make bindeb-pkg` and distributors make them."""

from kduel.kernels.apt.unpack import unpack as unpack_debs
from kduel.kernels.packages.package_files import PackageFiles


class Deb(PackageFiles):
    name = "deb"
    summary = "A.deb[,B.deb...]: packages of one kernel"
    ending = ".deb"
    kind = "Debian package"
    magic = b"!<arch>\n"
    unpack = staticmethod(unpack_debs)


PLUGIN = Deb()
