"""The envelope in which a guest's results come home over a byte stream: marks, a tar, its length and checksum.

The stream is text lines up to the archive:

    KDUEL READY 3.21            the script begins; seconds of guest uptime
    KDUEL DONE 17.90 0          the script ended; uptime, its exit status
    KDUEL BEGIN 20480 <sha256>
    <20480 bytes of tar>
    KDUEL END

Nothing in it is trusted: sizes are bounded, and only plain files and directories below the target are unpacked.
"""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from pathlib import Path, PurePosixPath

LIMIT = 256 << 20
"""Bytes of results that one trial may send home."""
MOST_MEMBERS = 20_000
_HEAD = re.compile(rb"^KDUEL BEGIN (\d{1,12}) ([0-9a-f]{64})\r?\n", re.MULTILINE)
_MARK = re.compile(rb"^KDUEL (READY|DONE) (\d{1,9}\.\d{1,6})(?: (\d{1,3}))?\r?$", re.MULTILINE)


class BrokenEnvelope(Exception):
    """What came is not a whole envelope. The message says what is wrong with it."""


def seal(archive: bytes) -> bytes:
    """An archive in its envelope, as the guest's shell does it too."""
    digest = hashlib.sha256(archive).hexdigest().encode()
    return b"KDUEL BEGIN %d %s\n" % (len(archive), digest) + archive + b"\nKDUEL END\n"


def marks(stream: bytes) -> dict[str, tuple[float, int | None]]:
    """The marks before the archive: name to (guest uptime in seconds, exit status or None)."""
    head = _HEAD.search(stream)
    before = stream[: head.start()] if head else stream[: 64 << 10]
    return {
        match[1].decode(): (float(match[2]), int(match[3]) if match[3] else None) for match in _MARK.finditer(before)
    }


def open_envelope(stream: bytes) -> bytes:
    """The archive inside. Raises BrokenEnvelope."""
    head = _HEAD.search(stream)
    if head is None:
        raise BrokenEnvelope(f"no envelope begins in the {len(stream)} bytes that came")
    size, digest = int(head[1]), head[2].decode()
    if size > LIMIT:
        raise BrokenEnvelope(f"it announces {size} bytes, more than the {LIMIT} that are allowed")
    archive = stream[head.end() : head.end() + size]
    if len(archive) < size:
        raise BrokenEnvelope(f"{len(archive)} of {size} bytes came")
    if hashlib.sha256(archive).hexdigest() != digest:
        raise BrokenEnvelope("its checksum does not match")
    if not stream[head.end() + size :].lstrip(b"\r\n").startswith(b"KDUEL END"):
        raise BrokenEnvelope("its end is missing")
    return archive


def unpack(archive: bytes, into: Path) -> None:
    """Plain files and directories of a tar into `into`; whatever else it holds is refused.

    Raises BrokenEnvelope for links, devices, names that leave `into`, too many or too large members, or no tar.
    """
    try:
        _unpack(archive, into)
    except (tarfile.TarError, EOFError, UnicodeError, ValueError, OverflowError, RecursionError) as error:
        raise BrokenEnvelope(f"it holds no tar: {error}") from error
    except OSError as error:
        if error.errno is None or isinstance(error, FileExistsError | NotADirectoryError | IsADirectoryError):
            raise BrokenEnvelope(f"it holds names that cannot be: {error}") from error
        raise


def _unpack(archive: bytes, into: Path) -> None:
    total = 0
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
        for count, member in enumerate(tar):
            total += max(member.size, 0)
            if count >= MOST_MEMBERS or total > LIMIT:
                raise BrokenEnvelope("it holds more than is allowed")
            target = into / _safe(member.name)
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
            elif member.isreg() and not member.issparse():
                target.parent.mkdir(parents=True, exist_ok=True)
                source = tar.extractfile(member)
                with target.open("xb") as sink:
                    sink.write(source.read() if source else b"")
            else:
                raise BrokenEnvelope(f"{member.name!r} is neither a plain file nor a directory")


def _safe(name: str) -> PurePosixPath:
    """A member's path, known to stay below the directory that it is unpacked in."""
    path = PurePosixPath(name)
    bad = path.is_absolute() or ".." in path.parts or any(not part.isprintable() for part in path.parts)
    if bad or len(name) > 512 or any(len(part.encode()) > 255 for part in path.parts):
        raise BrokenEnvelope(f"{name[:100]!r} is not a path that results may have")
    return path
