"""A kernel image as a file (vmlinuz, bzImage, Image), with the config and modules next to it, as in /boot."""

import gzip
import hashlib
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from kduel.core.cache import Cache, key_part
from kduel.core.errors import InputError
from kduel.core.manifest import sha256_of
from kduel.core.progress import Progress
from kduel.kernels import Kernel, KernelSource
from kduel.kernels.files import store as stored
from kduel.kernels.files.image import embedded_config, identify
from kduel.kernels.files.modules import modules_directory


class ImageFile(KernelSource):
    name = "file"
    summary = "PATH: a vmlinuz, bzImage or Image, with modules=DIR where it needs any"

    def accepts(self, spec: str) -> bool:
        if spec == "host" or spec.endswith(".rpm") or re.match(r"[a-z][a-z0-9-]*:", spec):
            return False
        return "/" in spec or (spec != "" and Path(spec).exists())

    def check_spec(self, spec: str) -> None:
        path = Path(spec)
        if path.is_dir():
            raise InputError(f"{spec} is a directory, not a kernel", f"For a built kernel tree give tree:{spec}.")
        if not path.exists():
            raise InputError(f"there is no file {spec}", "Check the path.")
        if not path.is_file():
            raise InputError(f"{spec} is no regular file, so no kernel", "Give a vmlinuz, bzImage or Image.")
        identify(path)

    def architecture(self, spec: str) -> str:
        return identify(Path(spec)).architecture

    def resolve(
        self, spec: str, *, cache: Cache, progress: Progress, offline: bool = False, modules: str = ""
    ) -> Kernel:
        path = Path(spec).resolve()
        kernel = from_image(spec, path, configs=[], provenance={"source": "file", "path": str(path)}, cache=cache)
        found = modules_directory(modules, kernel.release) if modules else find_modules_near(path, kernel.release)
        return replace(kernel, modules=found)


def from_image(spec: str, path: Path, *, configs: Sequence[Path], provenance: dict[str, Any], cache: Cache) -> Kernel:
    """A kernel from its image, both kept in the cache. The config is the one inside the image, or next to it, or
    the first of `configs` that is there. Raises InputError for what is no kernel."""
    image = identify(path)
    release = image.release
    beside = [path.parent / f"config-{release}", *([path.parent / "config"] if path.parent.name == release else [])]
    config = next((file for file in (*configs, *beside) if file.is_file()), None)
    content = read_config(config) if config else b""
    key = hashlib.sha256(sha256_of(path).encode() + content).hexdigest()[:12]

    def build(into: Path) -> None:
        copied, digest = stored.copy_image(path, into)
        text = content or (embedded_config(copied) or "").encode()
        if text:
            (into / "config").write_bytes(text)
        kernel = Kernel(
            spec=spec, release=release, architecture=image.architecture, image=copied, sha256=digest,
            config=into / "config" if text else None, provenance=provenance,
        )  # fmt: skip
        stored.write(into, kernel)

    entry = cache.entry(stored.KIND, f"file-{key_part(release)}-{key}", build)
    return replace(stored.read(entry, spec), provenance=provenance)


def read_config(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if path.suffix == ".gz" else data
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"the kernel configuration {path} cannot be read: {error}", "Repair or remove it."
        ) from error


def find_modules_near(image: Path, release: str) -> Path | None:
    """lib/modules/RELEASE of the system whose boot/ this is, if it is there."""
    if image.parent.name == release:
        places = [image.parent]
    else:
        places = [image.parent.parent / "lib/modules" / release, image.parent.parent / "usr/lib/modules" / release]
    return next((place for place in places if (place / "kernel").is_dir()), None)


PLUGIN = ImageFile()
