"""Unpacks from Debian packages what a kernel needs: image, config and modules; nothing else is written."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kduel.core.errors import HostError, InputError
from kduel.core.host_packages import install_command
from kduel.kernels.files.layout import UnpackedKernel, Unpacking


def unpack(packages: Sequence[Path], into: Path) -> UnpackedKernel:
    """Unpack one kernel's packages as `vmlinuz`, `config` and `lib/modules/RELEASE` below `into`.

    Raises InputError for a damaged package, or packages that are not exactly one kernel; HostError without dpkg.
    """
    if not shutil.which("dpkg-deb"):
        raise HostError(
            "this host has no dpkg-deb, which unpacks Debian packages", f"Install it: {install_command('dpkg-deb')}."
        )
    unpacking = Unpacking(into, ", ".join(package.name for package in packages))
    for package in packages:
        command = ["dpkg-deb", "--fsys-tarfile", str(package)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stderr is not None
            reason = unpacking.take_tar(process.stdout)
            process.stdout.close()
            said = process.stderr.read().decode("utf-8", errors="replace").strip()
        if process.returncode or reason:
            raise InputError(
                f"{package} is not a complete Debian package: {said or reason}", "Copy or download it again."
            )
    return unpacking.finish()
