"""RPM files, as far as a kernel's files and a signature need it.

The format: rpm's documentation, docs/manual/format_v4.md: a lead of 96 bytes, the signature's header, padded to 8 bytes, the
header, which is what is signed and holds the payload's SHA-256, and the payload, a compressed cpio archive.
"""

import hashlib
import re
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from msgspec import Struct

from kduel.core.errors import InputError
from kduel.core.tar_stream import PIECE, Part, Readable, RefusedArchive
from kduel.core.temporary import temporary_directory
from kduel.core.text import visible
from kduel.kernels.files.decompress import BOUNDS, output_of
from kduel.kernels.files.layout import UnpackedKernel, Unpacking
from kduel.kernels.packages.openpgp import check_signature

LEAD, LEAD_MAGIC, HEADER_MAGIC = 96, b"\xed\xab\xee\xdb", b"\x8e\xad\xe8\x01"
SIGNATURES = (268, 267)
"""Tags of the header's signature: RSAHEADER, and DSAHEADER, which is also for EdDSA."""
COMPRESSOR, DIGESTS, DIGEST_ALGORITHM, SHA256 = 1125, 5092, 5093, 8
NAME, VERSION, RELEASE, EPOCH, ARCHITECTURE = 1000, 1001, 1002, 1003, 1022
MOST_HEADER, MOST_ENTRIES = 256 << 20, 0xFFFF
"""Bytes, and values, as rpm itself has it."""
PROGRAMS = {"zstd": "zstd", "xz": "xz", "lzma": "xz", "gzip": "gzip", "bzip2": "bzip2"}
CPIO_HEAD, LONGEST_NAME = 110, 4096
CPIO = re.compile(rb"07070[12][0-9a-fA-F]{104}")
REGULAR, FORMAT = 0o100000, 0o170000


class _Header(Struct, frozen=True):
    """A header as it is stored, and where its values are: tag to type, offset and count."""

    raw: bytes
    index: dict[int, tuple[int, int, int]]
    store: bytes

    def text(self, tag: int) -> str:
        """A string, or the first of an array; empty where the tag is not there."""
        if tag not in self.index:
            return ""
        return self.store[self.index[tag][1] :].partition(b"\0")[0].decode("utf-8", errors="replace")

    def binary(self, tag: int) -> bytes:
        """Bytes; none where the tag is not there."""
        _, offset, count = self.index.get(tag, (7, 0, 0))
        return self.store[offset : offset + count]

    def number(self, tag: int) -> int | None:
        """A 32-bit number."""
        return struct.unpack_from(">I", self.store, self.index[tag][1])[0] if tag in self.index else None


def unpack_rpms(packages: Sequence[Path], into: Path) -> UnpackedKernel:
    """Unpack one kernel's packages. Raises InputError for a damaged one, HostError without the program that decompresses it."""
    unpacking = Unpacking(into, ", ".join(package.name for package in packages))
    for package in packages:
        with package.open("rb", buffering=0) as stream:
            try:
                _, header = _read_headers(stream)
                start = stream.tell()
                if header.number(DIGEST_ALGORITHM) != SHA256:
                    raise ValueError("it names no SHA-256 of its content")
                if hashlib.file_digest(stream, "sha256").hexdigest() != header.text(DIGESTS):
                    raise ValueError("its content is not what its header says")
                stream.seek(start)
                compressor = header.text(COMPRESSOR) or "gzip"
                program = PROGRAMS.get(compressor)
                if program is None:
                    raise ValueError(f"its compression {compressor!r} is not known")
                with output_of([program, "-dcq"], package, stream) as unpacked:
                    take_cpio(unpacked, unpacking)
                    while unpacked.read(PIECE):
                        pass
            except (ValueError, struct.error) as error:
                raise InputError(
                    f"{package} is not a complete RPM package: {error}", "Copy or download it again."
                ) from error
    return unpacking.finish()


def check_rpm(package: Path, keyrings: Sequence[Path]) -> tuple[str, str]:
    """Check who signed a package; its name and version as a list has them. Raises InputError, HostError."""
    with package.open("rb") as stream, temporary_directory() as place:
        try:
            signatures, header = _read_headers(stream)
        except (ValueError, struct.error) as error:
            raise InputError(f"{package} is not an RPM package: {error}", "Copy or download it again.") from error
        signature = next(filter(None, map(signatures.binary, SIGNATURES)), b"")
        if not signature:
            raise InputError(f"{package.name} is not signed", "Do not use it: name another mirror.")
        (place / "header").write_bytes(header.raw)
        (place / "signature").write_bytes(signature)
        check_signature(package.name, place / "header", place / "signature", keyrings)
    if (architecture := header.text(ARCHITECTURE)) != "x86_64":
        raise InputError(
            f"{package.name} is of the architecture {visible(architecture, 40)!r}",
            "Do not use it: name another mirror.",
        )
    epoch = header.number(EPOCH)
    version = f"{header.text(VERSION)}-{header.text(RELEASE)}"
    return header.text(NAME), f"{epoch}:{version}" if epoch else version


def _read_headers(stream: IO[bytes]) -> tuple[_Header, _Header]:
    """The signature's and the package's own; the stream is at the payload then."""
    if stream.read(LEAD)[:4] != LEAD_MAGIC:
        raise ValueError("it does not begin as one")
    signatures = _read_header(stream)
    stream.read(-len(signatures.raw) % 8)
    return signatures, _read_header(stream)


def _read_header(stream: IO[bytes]) -> _Header:
    head = stream.read(16)
    entries, size = struct.unpack_from(">II", head, 8)
    if head[:4] != HEADER_MAGIC or entries > MOST_ENTRIES or entries * 16 + size > MOST_HEADER:
        raise ValueError("a header is damaged")
    body = stream.read(entries * 16 + size)
    if len(body) != entries * 16 + size:
        raise ValueError("it ends early")
    index = {}
    for number in range(entries):
        tag, kind, offset, count = struct.unpack_from(">IIII", body, number * 16)
        index[tag] = (kind, offset, count)
    return _Header(head + body, index, body[entries * 16 :])


def take_cpio(stream: Readable, unpacking: Unpacking) -> None:
    """Take a kernel's files of a cpio archive in the `newc` format. Raises RefusedArchive."""
    for _ in range(BOUNDS.members):
        head = Part(stream, CPIO_HEAD).read()
        if CPIO.fullmatch(head) is None:
            raise RefusedArchive("its archive is damaged")
        mode, size, length = (int(head[at : at + 8], 16) for at in (14, 54, 94))
        if length > LONGEST_NAME:
            raise RefusedArchive("its archive has a name that is too long")
        name = Part(stream, length + -(CPIO_HEAD + length) % 4).read()[: length - 1].decode("utf-8", "replace")
        if name == "TRAILER!!!":
            return
        content = Part(stream, size)
        if mode & FORMAT == REGULAR:
            unpacking.take(name, content)
        content.skip()
        Part(stream, -size % 4).skip()
    raise RefusedArchive(f"it holds more than {BOUNDS.members} members")
