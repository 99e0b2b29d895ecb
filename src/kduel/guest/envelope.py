"""The envelope in which a guest's results are sent over a byte stream: marks, a tar, its length and checksum.

The stream is text lines up to the archive:

    KDUEL READY 3.21            the script begins; seconds of guest uptime
    KDUEL DONE 17.90 0          the script ended; uptime, its exit status
    KDUEL BEGIN 20480 <sha256>
    <20480 bytes of tar>
    KDUEL END

Nothing in it is trusted. It goes into a file as it comes, bounded, and is never in memory as a whole; what it holds is
checked before any of it is unpacked, and only plain files and directories below the target are.
"""

import hashlib
import io
import re
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from kduel.core.tar_stream import PIECE, RefusedArchive
from kduel.core.turns import TURNS_FILE
from kduel.guest import untar

LIMIT = 256 << 20
"""Bytes of results that one trial may send home."""
BEFORE = 64 << 10
"""Bytes that may come before the archive."""
KEPT = 16 << 20
"""Bytes that are kept of a stream which is no complete envelope."""
RAW = "results.raw"
"""The file that takes the stream, in the trial's directory. It stays there where the envelope is broken."""
LATER = ("trial.json", "environment.json", "manifest.sha256", TURNS_FILE)
"""Files that KDuel writes when a trial's own are there."""
PEER = "peer"
"""The directory of the guest at the other end of the trial's link, where it has one."""
OWN = frozenset({*LATER, "console.log", "guest.sh", "rerun.sh", RAW, PEER})
"""Files of KDuel's own in a trial's directory: no guest's file has such a name there."""
_END = b"\nKDUEL END\n"
_HEAD = re.compile(rb"^KDUEL BEGIN (\d{1,12}) ([0-9a-f]{64})\r?\n", re.MULTILINE)
_MARK = re.compile(rb"^KDUEL (READY|DONE) (\d{1,9}\.\d{1,6})(?: (\d{1,3}))?\r?$", re.MULTILINE)


class BrokenEnvelope(Exception):
    """The received bytes are not a complete envelope. The message gives the defect."""


class Inbox:
    """Takes the stream as it comes into the file `path`, and keeps track of how far it has come."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("wb")
        self._start = b""
        self._last = b""
        self.received = 0

    def feed(self, data: bytes) -> None:
        """Some bytes that have just come. What goes beyond the bound is dropped."""
        if not self.full:
            self._file.write(data)
        self.received += len(data)
        self._start += data[: 4096 - len(self._start)]
        self._last = (self._last + data)[-len(_END) :]

    def has(self, mark: str) -> bool:
        """True if READY, DONE or BEGIN came."""
        return f"KDUEL {mark}".encode() in self._start

    @property
    def home(self) -> bool:
        """True if the end of an envelope came last."""
        return self._last == _END

    @property
    def full(self) -> bool:
        """True if more came than a trial may send."""
        return self.received > LIMIT + (1 << 20)

    def close(self) -> None:
        self._file.close()


class Envelope(Struct, frozen=True):
    """A complete envelope in a stream: where its archive lies, and the marks before it."""

    start: int
    size: int
    marks: dict[str, tuple[float, int | None]]
    """Marks as `read_marks` gives them."""


def read_marks(stream: bytes) -> dict[str, tuple[float, int | None]]:
    """The marks before the archive: name to (guest uptime in seconds, exit status or None)."""
    head = _HEAD.search(stream)
    before = stream[: head.start()] if head else stream[:BEFORE]
    return {
        match[1].decode(): (float(match[2]), int(match[3]) if match[3] else None) for match in _MARK.finditer(before)
    }


def open_envelope(stream: BinaryIO) -> Envelope:
    """Find the archive in a stream, and see that it is whole. Raises BrokenEnvelope."""
    stream.seek(0)
    before = stream.read(BEFORE)
    head = _HEAD.search(before)
    if head is None:
        raise BrokenEnvelope(f"no envelope begins in the {stream.seek(0, io.SEEK_END)} bytes received")
    size, digest = int(head[1]), head[2].decode()
    if size > LIMIT:
        raise BrokenEnvelope(f"it announces {size} bytes, more than the {LIMIT} that are allowed")
    stream.seek(head.end())
    summed, left = hashlib.sha256(), size
    while left and (piece := stream.read(min(left, PIECE))):
        summed.update(piece)
        left -= len(piece)
    if left:
        raise BrokenEnvelope(f"{size - left} of {size} bytes arrived")
    if summed.hexdigest() != digest:
        raise BrokenEnvelope("its checksum does not match")
    if not stream.read(64).lstrip(b"\r\n").startswith(b"KDUEL END"):
        raise BrokenEnvelope("its end is missing")
    return Envelope(start=head.end(), size=size, marks=read_marks(before))


def unpack(stream: BinaryIO, into: Path, start: int = 0, size: int | None = None) -> None:
    """Plain files and directories of the tar at `start` of a stream into `into`. Raises BrokenEnvelope, before
    anything is written, for links, devices, wrong names, too many, deep or large members, or no tar; OSError."""
    end = stream.seek(0, io.SEEK_END) if size is None else start + size
    if end - start > LIMIT:
        raise BrokenEnvelope(f"it holds more than the {LIMIT} bytes that are allowed")
    try:
        found = untar.members(stream, start, end)
        for member in found:
            if is_own_file(member.parts):
                raise RefusedArchive(f"{member.name!r} is the name of a file of KDuel's own")
        untar.write(stream, found, into)
    except RefusedArchive as error:
        raise BrokenEnvelope(f"its archive is refused: {error}") from error


def is_own_file(parts: tuple[str, ...]) -> bool:
    """True if a path is for KDuel's own files: at the top, or at the top of one of several loads of a shared boot."""
    inner = parts[1:] if re.fullmatch(r"load-[0-9]+", parts[0]) else parts
    return bool(inner) and inner[0] in OWN


def bring_in(path: Path, into: Path) -> Envelope:
    """Unpack the stream in the file `path` into `into`. The file is removed; where the envelope is broken its first
    KEPT bytes stay, for whoever wants to know what came. Raises BrokenEnvelope, and OSError as `unpack` does."""
    try:
        with path.open("rb") as stream:
            found = open_envelope(stream)
            unpack(stream, into, found.start, found.size)
    except BrokenEnvelope:
        if path.stat().st_size > KEPT:
            with path.open("r+b") as stream:
                stream.truncate(KEPT)
        elif not path.stat().st_size:
            path.unlink()
        raise
    path.unlink()
    return found
