"""Kernel images: what a file is, which release, and the plain ELF inside it.

Sources: Documentation/arch/x86/boot.rst, arm64/booting.rst, riscv/boot-image-header.rst of the kernel, and
drivers/firmware/efi/libstub/zboot-header.S.
"""

import bz2
import lzma
import mmap
import re
import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

from kduel.core.cache import Cache
from kduel.core.errors import HostError, InputError
from kduel.core.temporary import memory_file
from kduel.kernels import Kernel

BANNER = re.compile(rb"Linux version ([0-9]\S*) \(")
IKCONFIG = (b"IKCFG_ST", b"IKCFG_ED")
ELF_MACHINES = {3: "i686", 20: "ppc", 21: "ppc64", 22: "s390x", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
OLD_BANNER = re.compile(rb"Linux version [1-4]\.\d")
"""The beginning of what a kernel before 5.0 says of itself."""
PVH_NOTE = (b"Xen\0", 18)
"""Name and type of the ELF note that holds a PVH entry point (XEN_ELFNOTE_PHYS32_ENTRY)."""
LARGEST = 1 << 29
"""An image that unpacks to more than this is no kernel, bytes."""
CHUNK = 1 << 14

DECODERS: tuple[tuple[bytes, Callable[[], Any]], ...] = (
    (b"\x1f\x8b", lambda: zlib.decompressobj(31)),
    (b"\xfd7zXZ\x00", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ)),
    (b"]\x00\x00", lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE)),
    (b"BZh", bz2.BZ2Decompressor),
)
PROGRAMS = ((b"\x28\xb5\x2f\xfd", "zstd"), (b"\x02\x21\x4c\x18", "lz4"), (b"\x89LZO", "lzop"))
"""For what Python has no decoder of its own."""

Bytes = bytes | mmap.mmap


class Image(Struct, frozen=True, kw_only=True):
    """The version and type that a kernel image contains."""

    format: str
    """bzImage, Image, vmlinux."""
    architecture: str
    """Output of `uname -m`."""
    release: str
    """Output of `uname -r`."""


def identify(path: Path) -> Image:
    """Read what `path` is from its header. Raises InputError for what is no kernel, or not a whole one."""
    try:
        with path.open("rb") as stream:
            if not stream.seek(0, 2):
                raise InputError(f"{path} is empty, not a kernel", _WHAT_TO_GIVE)
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _identify(data, path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not a regular file"
        raise InputError(f"{path} cannot be read as a kernel: {reason or error}", _WHAT_TO_GIVE) from error


def embedded_config(path: Path) -> str | None:
    """The .config inside an image built with CONFIG_IKCONFIG; None where there is none."""
    data = kernel_contents(path)
    start = data.find(IKCONFIG[0])
    end = data.find(IKCONFIG[1], start)
    if start < 0 or end < 0:
        return None
    try:
        return zlib.decompress(data[start + 8 : end], 31).decode("utf-8", errors="replace")
    except zlib.error:
        return None


def kernel_contents(path: Path) -> bytes:
    """The kernel inside an image, uncompressed. Raises InputError (damaged), HostError (unknown compression)."""
    with memory_file() as stream:
        _write_contents(path, stream)
        stream.seek(0)
        return stream.read()


def _write_contents(path: Path, stream: IO[bytes]) -> None:
    data = path.read_bytes()
    if _is_bzimage(data):
        data = _bzimage_payload(data, path)
        _write_decompressed(data, stream, path)
    else:
        stream.write(unwrap(data, path))


SILENT = "silent-entries"
"""Kind of the cache's entries of kernels that print nothing where QEMU enters them directly."""


def note_silent_entry(kernel: Kernel, cache: Cache) -> None:
    """Let every process that uses the cache boot the kernel by its image: workers, and a run that is resumed."""

    def build(into: Path) -> None:
        (into / "release").write_text(f"{kernel.release}\n")

    cache.entry(SILENT, kernel.sha256, build)


def uncompressed_kernel(kernel: Kernel, cache: Cache) -> Path | None:
    """The kernel as an ELF that QEMU boots by its PVH entry without decompression, in the cache; None where it has
    none, or was silent there. Raises InputError, HostError as `kernel_contents`."""
    if kernel.architecture != "x86_64" or cache.has(SILENT, kernel.sha256):
        return None

    def build(into: Path) -> None:
        made = into / "vmlinux"
        with made.open("w+b") as stream:
            _write_contents(kernel.image, stream)
            stream.flush()
            if not stream.tell():
                raise InputError(f"{kernel.image} is empty, not a kernel", _WHAT_TO_GIVE)
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as elf:
                bootable = has_pvh_entry(elf)
        if not bootable:
            made.unlink()

    found = cache.entry("vmlinux", kernel.sha256, build) / "vmlinux"
    return found if found.exists() else None


def images_entered_alike(kernels: Mapping[str, Kernel], cache: Cache) -> dict[str, Path]:
    """Files to boot, by the same keys: all by PVH entries, or none, for equal time. Raises as `kernel_contents`."""
    plain = {key: uncompressed_kernel(kernel, cache) for key, kernel in kernels.items()}
    same = all(plain.values())
    return {key: (same and plain[key]) or kernel.image for key, kernel in kernels.items()}


def has_pvh_entry(elf: Bytes) -> bool:
    """True if this is a 64-bit little-endian ELF that QEMU boots by its PVH note."""
    return pvh_entry(elf) is not None


def pvh_entry(elf: Bytes) -> int | None:
    """The address at which QEMU enters a 64-bit little-endian ELF by PVH; None where it cannot, as before Linux 5.0."""
    if elf[:6] != b"\x7fELF\x02\x01" or len(elf) < 64:
        return None
    if OLD_BANNER.search(elf) is not None:
        return None
    table, size, count = struct.unpack_from("<Q", elf, 32)[0], *struct.unpack_from("<HH", elf, 54)
    for number in range(count):
        start = table + number * size
        if start + 56 > len(elf):
            return None
        kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", elf, start)
        if kind == 4:
            for name, note, text in _notes(elf[offset : offset + length]):
                if (name, note) == PVH_NOTE and len(text) in (4, 8):
                    return int.from_bytes(text, "little")
    return None


def decompress(data: bytes, path: Path) -> bytes:
    """Undo a kernel's compression; plain data stays. Raises InputError (damaged), HostError (no program)."""
    with memory_file() as stream:
        _write_decompressed(data, stream, path)
        stream.seek(0)
        return stream.read()


def _write_decompressed(data: bytes, stream: IO[bytes], path: Path) -> None:
    for magic, decoder in DECODERS:
        if data.startswith(magic):
            return _decode(decoder(), data, stream, path)
    for magic, program in PROGRAMS:
        if data.startswith(magic):
            return _run(program, data, stream, path)
    stream.write(data)
    return None


def _decode(decoder: Any, data: bytes, stream: IO[bytes], path: Path) -> None:
    reason = ""
    try:
        for start in range(0, len(data), CHUNK):
            stream.write(decoder.decompress(data[start : start + CHUNK]))
            if decoder.eof or stream.tell() > LARGEST:
                break
        if not decoder.eof:
            reason = "it ends too early" if stream.tell() <= LARGEST else "it is too large"
    except (zlib.error, lzma.LZMAError, EOFError) as error:
        reason = str(error)
    except OSError as error:
        if error.errno is not None:  # the disk's trouble, not bzip2's
            raise
        reason = str(error)
    if reason:
        raise InputError(f"the kernel in {path} is damaged: it does not decompress ({reason})", _GET_AGAIN)


def _run(program: str, data: bytes, stream: IO[bytes], path: Path) -> None:
    if not shutil.which(program):
        raise HostError(
            f"the kernel in {path} is compressed by {program}, which is not on this host",
            f"Install the package {program}.",
        )
    # The kernel's build appends the length, which is no part of the format: it makes the program complain at the end.
    done = subprocess.run([program, "-d", "-c", "-q"], input=data, stdout=stream, stderr=subprocess.PIPE, check=False)
    size = int.from_bytes(data[-4:], "little")
    if done.returncode and not 0 < stream.seek(0, 2) == size:
        said = done.stderr.decode("utf-8", errors="replace").strip().splitlines() or ["no reason given"]
        raise InputError(f"the kernel in {path} is damaged: {program} says {said[-1]}", _GET_AGAIN)


def _identify(data: Bytes, path: Path) -> Image:
    if _is_bzimage(data):
        _bzimage_payload(data, path)
        flags = struct.unpack_from("<H", data, 0x236)[0]
        start = 0x200 + struct.unpack_from("<H", data, 0x20E)[0]
        words = data[start : start + 256].partition(b"\0")[0].decode("utf-8", errors="replace").split()
        if not words:
            raise InputError(f"{path} looks like a bzImage but names no release", _WHAT_TO_GIVE)
        return Image(format="bzImage", architecture="x86_64" if flags & 1 else "i686", release=words[0])
    plain = unwrap(data, path)
    banner = BANNER.search(plain)
    if banner:
        release = banner[1].decode("utf-8", errors="replace")
        if plain[56:60] == b"ARM\x64":
            return Image(format="Image", architecture="aarch64", release=release)
        if plain[56:60] == b"RSC\x05":
            return Image(format="Image", architecture="riscv64", release=release)
        if plain[:4] == b"\x7fELF":
            return _identify_elf(plain, release, path)
    raise InputError(f"{path} is not a Linux kernel: {_looks_like(data)}", _WHAT_TO_GIVE)


def _identify_elf(elf: Bytes, release: str, path: Path) -> Image:
    machine = struct.unpack_from("<H" if elf[5] == 1 else ">H", elf, 18)[0]
    architecture = ELF_MACHINES.get(machine, f"elf-{machine}")
    if architecture == "ppc64" and elf[5] == 1:
        architecture = "ppc64le"
    if architecture == "x86_64" and not has_pvh_entry(elf):
        raise InputError(
            f"{path} is a vmlinux without a PVH entry, which cannot be booted directly",
            "Give arch/x86/boot/bzImage of the same build, or build with CONFIG_PVH=y.",
        )
    return Image(format="vmlinux", architecture=architecture, release=release)


def _is_bzimage(data: Bytes) -> bool:
    return len(data) > 0x250 and data[0x1FE:0x200] == b"\x55\xaa" and data[0x202:0x206] == b"HdrS"


def _bzimage_payload(data: Bytes, path: Path) -> bytes:
    protocol = struct.unpack_from("<H", data, 0x206)[0]
    if protocol < 0x208:
        raise InputError(f"{path} is a kernel from before 2.6.24, too old for KDuel to boot", _WHAT_TO_GIVE)
    setup = (data[0x1F1] or 4) + 1
    offset, length = struct.unpack_from("<II", data, 0x248)
    start = setup * 512 + offset
    if start + length > len(data):
        missing = start + length - len(data)
        raise InputError(f"{path} is cut short: at least {missing} bytes of the kernel are missing", _GET_AGAIN)
    return data[start : start + length]


def unwrap(data: Bytes, path: Path) -> Bytes:
    """Content of an EFI zboot image or a gzip file; other data as it is."""
    if data[:2] == b"MZ" and data[4:8] == b"zimg" and len(data) >= 64:
        offset, size = struct.unpack_from("<II", data, 8)
        if offset + size > len(data):
            raise InputError(f"{path} is cut short: {offset + size - len(data)} bytes are missing", _GET_AGAIN)
        return decompress(data[offset : offset + size], path)
    if data[:2] == b"\x1f\x8b":
        return decompress(data[:], path)
    return data


def _notes(section: bytes) -> list[tuple[bytes, int, bytes]]:
    found, at = [], 0
    while at + 12 <= len(section):
        name_size, text_size, kind = struct.unpack_from("<III", section, at)
        text = at + 12 + -(-name_size // 4) * 4
        found.append((section[at + 12 : at + 12 + name_size], kind, section[text : text + text_size]))
        at = text + -(-text_size // 4) * 4
    return found


def _looks_like(data: Bytes) -> str:
    start = data[:8]
    known = {
        b"\x7fELF": "it is an ELF file without a Linux version",
        b"!<arch>\n": "it is an archive; a Debian package must be named *.deb",
        b"\x1f\x8b": "it is compressed and holds no kernel",
        b"PK": "it is a zip file",
        b"#!": "it is a script",
    }
    return next((text for magic, text in known.items() if start.startswith(magic)), "it has no kernel's header")


_WHAT_TO_GIVE = (
    "Give a bzImage or vmlinuz (x86), an Image (arm64, riscv), or debian:VERSION; see `kduel list kernels --help`."
)
_GET_AGAIN = "Copy or build it again."
