"""A kernel from packages that lie around as files: what .deb and .rpm have in common."""

import hashlib
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from msgspec.structs import replace

from kduel.core.cache import Cache, key_part
from kduel.core.errors import InputError
from kduel.core.manifest import sha256_of
from kduel.core.progress import Progress
from kduel.kernels import Kernel, KernelSource
from kduel.kernels.files import store as stored
from kduel.kernels.files.layout import UnpackedKernel
from kduel.kernels.files.modules import modules_directory


class PackageFiles(KernelSource):
    """One package, or several separated by commas where a kernel is split."""

    ending: ClassVar[str]
    kind: ClassVar[str]
    magic: ClassVar[bytes]
    """Its first bytes."""

    @staticmethod
    @abstractmethod
    def unpack(packages: Sequence[Path], into: Path) -> UnpackedKernel:
        """Unpack one kernel's packages into a directory. Raises InputError, HostError."""

    def accepts(self, spec: str) -> bool:
        return all(part.endswith(self.ending) for part in spec.split(","))

    def check_spec(self, spec: str) -> None:
        for package in self.packages(spec):
            if not package.is_file():
                raise InputError(f"there is no file {package}", "Check the path; several are separated by commas.")
            try:
                with package.open("rb") as stream:
                    beginning = stream.read(len(self.magic))
            except OSError as error:
                raise InputError(f"{package} cannot be read: {error.strerror}", "Check its permissions.") from error
            if beginning != self.magic:
                raise InputError(
                    f"{package} is not a complete {self.kind}: it does not begin as one", "Copy or download it again."
                )

    def packages(self, spec: str) -> list[Path]:
        """The files that a specification names."""
        given = spec.removeprefix(f"{self.name}:")
        return [Path(part) for part in ([given] if Path(given).exists() else given.split(","))]

    def resolve(
        self, spec: str, *, cache: Cache, progress: Progress, offline: bool = False, modules: str = ""
    ) -> Kernel:
        packages = self.packages(spec)
        digests = [sha256_of(package) for package in packages]
        key = hashlib.sha256("".join(sorted(digests)).encode()).hexdigest()[:12]

        def build(into: Path) -> None:
            with progress.task(f"unpacking {packages[0].name}"):
                files = self.unpack(packages, into)
            named = [{"name": p.name, "sha256": d} for p, d in zip(packages, digests, strict=True)]
            stored.write(into, stored.describe(files, spec, {"source": self.name, "packages": named}))

        kernel = stored.read(cache.entry(stored.KIND, f"{self.name}-{key_part(packages[0].stem)}-{key}", build), spec)
        if not modules:
            return kernel
        if kernel.modules:
            raise InputError(f"{spec} brings its own modules", "Leave out modules=.")
        return replace(kernel, modules=modules_directory(modules, kernel.release))
