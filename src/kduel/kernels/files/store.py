"""Kernels as cache entries: a directory with the image, what belongs to it, and a kernel.json that says what it is."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from kduel.core.cache import KEY, Cache, as_cache_error
from kduel.core.errors import HostError
from kduel.core.manifest import sha256_of
from kduel.core.untrusted import NOT_JSON
from kduel.kernels import Kernel
from kduel.kernels.files.image import identify
from kduel.kernels.files.layout import UnpackedKernel

KIND = "kernels"
FILE = "kernel.json"


class Record(Struct, frozen=True, kw_only=True):
    """kernel.json: a Kernel whose paths are relative to the entry."""

    release: str
    architecture: str
    image: str
    sha256: str
    config: str | None
    modules: str | None
    provenance: dict[str, Any]
    vmlinux: str | None = None


def write(entry: Path, kernel: Kernel) -> None:
    """Leave kernel.json in an entry under construction; the kernel's files lie in it."""

    def relative(path: Path | None) -> str | None:
        return str(path.relative_to(entry)) if path else None

    record = Record(
        release=kernel.release, architecture=kernel.architecture, image=str(kernel.image.relative_to(entry)),
        sha256=kernel.sha256, config=relative(kernel.config), modules=relative(kernel.modules),
        provenance=kernel.provenance, vmlinux=relative(kernel.vmlinux),
    )  # fmt: skip
    (entry / FILE).write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=2))


def describe(files: UnpackedKernel, spec: str, provenance: dict[str, Any]) -> Kernel:
    """The kernel that was unpacked. Raises InputError where its image is no kernel's."""
    return Kernel(
        spec=spec, release=files.release, architecture=identify(files.image).architecture, image=files.image,
        sha256=sha256_of(files.image), config=files.config, modules=files.modules, provenance=provenance,
    )  # fmt: skip


def read(entry: Path, spec: str) -> Kernel:
    """The kernel of an entry. Raises HostError where the entry is damaged: its image is not what it was."""
    record = _record(entry)
    image = entry / record.image
    with as_cache_error(entry):
        intact = image.is_file() and sha256_of(image) == record.sha256
    if not intact:
        raise damage_error(entry, "the kernel image is not the one that was stored")
    return Kernel(
        spec=spec, release=record.release, architecture=record.architecture, image=image, sha256=record.sha256,
        config=entry / record.config if record.config else None,
        modules=entry / record.modules if record.modules else None,
        vmlinux=entry / record.vmlinux if record.vmlinux else None, provenance=record.provenance,
    )  # fmt: skip


def entries(cache: Cache, prefix: str) -> Iterator[tuple[Path, Record]]:
    """Entries of the cache under keys that begin with `prefix`; of a damaged one the cache's `progress` hears."""
    with as_cache_error(cache.root):
        paths = sorted((cache.root / KIND).glob(f"{prefix}*/{FILE}"))
    for path in paths:
        entry = path.parent
        if KEY.fullmatch(entry.name) and (cache.holds(KIND, entry.name, FILE) or cache.has(KIND, entry.name)):
            yield entry, _record(entry)


def copy_image(image: Path, entry: Path) -> tuple[Path, str]:
    """Put a kernel image into an entry; returns its path there and its SHA-256."""
    with as_cache_error(entry):
        copied = Path(shutil.copyfile(image, entry / "vmlinuz"))
        return copied, sha256_of(copied)


def _record(entry: Path) -> Record:
    with as_cache_error(entry):
        try:
            text = (entry / FILE).read_bytes()
        except FileNotFoundError:
            text = b""
    try:
        return msgspec.json.decode(text, type=Record)
    except NOT_JSON as error:
        raise damage_error(entry, f"kernel.json: {error}") from error


def damage_error(entry: Path, what: str) -> HostError:
    return HostError(f"the cached kernel in {entry} is damaged: {what}", f"Remove it: rm -r {entry}")
