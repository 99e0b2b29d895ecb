"""Unpacks from Debian packages what a kernel needs: image, config and modules; nothing else is written."""

from collections.abc import Sequence
from pathlib import Path

from kduel.core.errors import InputError
from kduel.core.tar_stream import RefusedArchive
from kduel.kernels.files.decompress import BOUNDS, output_of
from kduel.kernels.files.layout import UnpackedKernel, Unpacking


def unpack(packages: Sequence[Path], into: Path) -> UnpackedKernel:
    """Unpack one kernel's packages as `vmlinuz`, `config` and `lib/modules/RELEASE` below `into`. Raises InputError
    for damaged packages or not exactly one kernel; HostError without dpkg."""
    unpacking = Unpacking(into, ", ".join(package.name for package in packages))
    for package in packages:
        try:
            with output_of(["dpkg-deb", "--fsys-tarfile", str(package)], package) as stream:
                unpacking.take_tar(stream, BOUNDS)
        except RefusedArchive as error:
            raise InputError(
                f"{package} is not a complete Debian package: {error}", "Copy or download it again."
            ) from error
    return unpacking.finish()
