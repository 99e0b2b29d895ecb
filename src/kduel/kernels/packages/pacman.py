"""Packages of pacman: compressed tar archives."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from kduel.core.errors import HostError, InputError
from kduel.core.host_packages import install_command
from kduel.kernels.files.layout import UnpackedKernel, Unpacking


def unpack_pacman(packages: Sequence[Path], into: Path) -> UnpackedKernel:
    """Unpack one kernel's packages (`.pkg.tar.zst`). Raises InputError for damage, HostError without zstd."""
    unpacking = Unpacking(into, ", ".join(package.name for package in packages))
    for package in packages:
        try:
            process = subprocess.Popen(["zstd", "-dcq", str(package)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        except FileNotFoundError as error:
            raise HostError(f"{package.name} needs zstd", f"Install it: {install_command('zstd')}.") from error
        with process:
            assert process.stdout is not None and process.stderr is not None
            reason = unpacking.take_tar(process.stdout)
            process.stdout.close()
            said = process.stderr.read().decode("utf-8", errors="replace").strip()
        if process.returncode or reason:
            raise InputError(f"{package} is not a complete package: {said or reason}", "Copy or download it again.")
    return unpacking.finish()
