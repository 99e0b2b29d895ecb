"""The kernel that this host runs, where the host keeps its image."""

import os
from pathlib import Path

from msgspec.structs import replace

from kduel.core.cache import Cache
from kduel.core.errors import HostError
from kduel.core.progress import Progress
from kduel.kernels import Available, Kernel, KernelSource
from kduel.kernels.file import from_image
from kduel.kernels.files.modules import modules_directory


class HostKernel(KernelSource):
    name = "host"
    summary = "host: the kernel that this host runs"

    def accepts(self, spec: str) -> bool:
        return spec == "host"

    def check_spec(self, spec: str) -> None:
        readable_image()

    def resolve(
        self, spec: str, *, cache: Cache, progress: Progress, offline: bool = False, modules: str = ""
    ) -> Kernel:
        image = readable_image()
        provenance = {"source": "host", "path": str(image), "version": os.uname().version}
        kernel = from_image(spec, image, configs=[Path("/proc/config.gz")], provenance=provenance, cache=cache)
        own = Path("/lib/modules", os.uname().release)
        found = modules_directory(modules, kernel.release) if modules else own if (own / "kernel").is_dir() else None
        return replace(kernel, modules=found)

    def available(self, *, cache: Cache, progress: Progress, offline: bool = False) -> list[Available]:
        release = os.uname().release
        image = find_image(release)
        return [Available(spec="host", version=release, where=str(image), cached=True)] if image else []


def readable_image() -> Path:
    """The image of the running kernel. Raises HostError where there is none, or only root may read it."""
    release = os.uname().release
    image = find_image(release)
    if image is None:
        raise HostError(
            f"the image of the running kernel {release} is not on this host (no {image_paths(release)[0]})",
            f"To measure it where it runs, with --machine local, name it installed:{release}. To boot it in a guest, "
            "copy its vmlinuz here (of a container: from the host) and give the file.",
        )
    if not os.access(image, os.R_OK):
        raise HostError(
            f"{image} may be read by root only",
            f"Copy it: sudo install -m 644 {image} . and give ./{image.name} with modules=/lib/modules/{release}.",
        )
    return image


def image_paths(release: str) -> list[Path]:
    return [
        Path(f"/boot/vmlinuz-{release}"),
        Path(f"/usr/lib/modules/{release}/vmlinuz"),
        Path(f"/boot/vmlinux-{release}"),
    ]


def find_image(release: str) -> Path | None:
    return next((path for path in image_paths(release) if path.exists()), None)


PLUGIN = HostKernel()
