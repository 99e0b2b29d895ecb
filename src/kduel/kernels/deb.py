"""A kernel from Debian packages that lie around as files, as `make bindeb-pkg` and distributors make them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from msgspec.structs import replace

from kduel.core.cache import Cache
from kduel.core.errors import InputError
from kduel.core.progress import Progress
from kduel.kernels import Kernel, KernelSource
from kduel.kernels.apt.unpack import unpack
from kduel.kernels.files import store as stored
from kduel.kernels.files.image import identify
from kduel.kernels.files.modules import modules_directory


class Deb(KernelSource):
    """One .deb, or several separated by commas where a kernel is split."""

    name = "deb"
    summary = "A.deb[,B.deb...]: packages of one kernel"

    def accepts(self, spec: str) -> bool:
        return all(part.endswith(".deb") for part in spec.split(","))

    def resolve(
        self, spec: str, *, cache: Cache, progress: Progress, offline: bool = False, modules: str = ""
    ) -> Kernel:
        packages = [Path(part) for part in ([spec] if Path(spec).exists() else spec.split(","))]
        for package in packages:
            if not package.is_file():
                raise InputError(f"there is no file {package}", "Check the path; several are separated by commas.")
        try:
            digests = [stored.sha256(package) for package in packages]
        except OSError as error:
            raise InputError(
                f"{error.filename} cannot be read: {error.strerror}", "Check its permissions."
            ) from error
        key = hashlib.sha256("".join(sorted(digests)).encode()).hexdigest()[:12]

        def build(into: Path) -> None:
            with progress.task(f"unpacking {packages[0].name}"):
                files = unpack(packages, into)
            image = identify(files.image)
            named = [{"name": p.name, "sha256": d} for p, d in zip(packages, digests, strict=True)]
            kernel = Kernel(
                spec=spec,
                release=files.release,
                architecture=image.architecture,
                image=files.image,
                sha256=stored.sha256(files.image),
                config=files.config,
                modules=files.modules,
                provenance={"source": "deb", "packages": named},
            )
            stored.write(into, kernel)

        kernel = stored.read(cache.entry(stored.KIND, f"deb-{packages[0].stem}-{key}", build), spec)
        if not modules:
            return kernel
        if kernel.modules:
            raise InputError(f"{spec} brings its own modules", "Leave out modules=.")
        return replace(kernel, modules=modules_directory(modules, kernel.release))


PLUGIN = Deb()
