"""A kernel that is installed on the machine that is measured: nothing of it comes here."""

import re
from pathlib import Path

from kduel.core.cache import Cache
from kduel.core.errors import InputError
from kduel.core.progress import Progress
from kduel.kernels import InstalledKernel, Kernel, KernelSource

NOWHERE = Path("/nonexistent/installed-elsewhere")


class InstalledSource(KernelSource):
    name = "installed"
    summary = "installed:RELEASE: a kernel installed on the machine that is measured (ssh, local), by its `uname -r`"
    installed = True

    def accepts(self, spec: str) -> bool:
        return spec.startswith("installed:")

    def check_spec(self, spec: str) -> None:
        if not re.fullmatch(r"[0-9A-Za-z][0-9A-Za-z.+~_-]{0,127}", spec.partition(":")[2]):
            raise InputError(
                f"{spec!r} names no release",
                "Give the output of `uname -r` on that machine: installed:6.1.0-50-amd64.",
            )

    def resolve(
        self, spec: str, *, cache: Cache, progress: Progress, offline: bool = False, modules: str = ""
    ) -> Kernel:
        release = spec.partition(":")[2]
        # What its image is, the machine finds out: see its facts in lock.json.
        return InstalledKernel(
            spec=spec,
            release=release,
            image=NOWHERE,
            sha256="",
            provenance={"source": "installed", "release": release},
        )


PLUGIN = InstalledSource()
