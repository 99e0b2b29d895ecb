"""Reading a tar that others made: header by header, from a stream, within bounds that the caller gives.

Known is what honest programs write: ustar headers as busybox, GNU tar, bsdtar, dpkg and Python write them, with long names in
either of the two customary forms. A library's reader is made for leniency: Python's follows headers of any size, and spends
minutes on some."""

import re
from collections.abc import Iterator
from typing import IO, Protocol

from msgspec import Struct

BLOCK = 512
PIECE = 1 << 20
MOST_RECORDS = 100
"""In one extended header."""
FILE, DIRECTORY, OTHERS = b"0\0", b"5", b"12346"
"""Others are links, devices and FIFOs."""
LONG_NAME, LONG_LINK, EXTENDED, FOR_ALL = b"L", b"K", b"x", b"g"
RECORD = re.compile(rb"([0-9]{1,7}) ([^=\n]{1,300})=")


class RefusedArchive(ValueError):
    """It is no archive, or contains something that it may not, which the message names."""


class Readable(Protocol):
    """A stream of bytes, as far as reading an archive needs it."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes; fewer only at the end."""
        ...


class BoundedStream:
    """A stream that may not have more than `most` bytes."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self.stream, self.most, self.left = stream, most, most

    def read(self, size: int = -1) -> bytes:
        """Some bytes, or all that follow. Raises RefusedArchive where there are too many."""
        block = self.stream.read(self.left + 1 if size < 0 else min(size, self.left + 1))
        self.left -= len(block)
        if self.left < 0:
            raise RefusedArchive(f"it unpacks to more than {self.most} bytes")
        return block


class Part:
    """A part of a stream: the content of one member of an archive."""

    def __init__(self, stream: Readable, size: int) -> None:
        self.stream, self.left = stream, size

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes. Raises RefusedArchive where the stream ends before the part."""
        wanted = self.left if size < 0 else min(size, self.left)
        block = self.stream.read(wanted)
        if len(block) < wanted:
            raise RefusedArchive("it ends in the middle of a member")
        self.left -= len(block)
        return block

    def skip(self) -> None:
        """Read what is left of it."""
        while self.read(PIECE):
            pass


class TarBounds(Struct, frozen=True):
    """Limits of what a tar holds."""

    members: int
    extended: int
    """Bytes of one extended header."""
    others: bool = False
    """Whether links and devices are passed over, and headers for all members; else they are refused."""


class TarMember(Struct, frozen=True):
    """A file or a directory; `size` bytes of content begin at `offset` in the stream."""

    name: bytes
    directory: bool
    offset: int
    size: int


def read_members(stream: Readable, bounds: TarBounds) -> Iterator[tuple[TarMember, Part]]:
    """Files and directories of a tar, in its order, each readable until the next. Raises RefusedArchive."""
    at = found = 0
    name, before = b"", b""
    while head := stream.read(BLOCK):
        if head == bytes(BLOCK):
            return
        if len(head) < BLOCK:
            raise RefusedArchive("it ends in the middle of a header")
        if octal(head[148:156]) != sum(head[:148]) + 8 * 0x20 + sum(head[156:]):
            raise RefusedArchive("it has a header with a wrong checksum: it is no tar, or damaged")
        size, kind = octal(head[124:136]), head[156:157] or b"\0"
        at += BLOCK
        content = Part(stream, size)
        if kind in (LONG_NAME, LONG_LINK, EXTENDED) or (kind == FOR_ALL and bounds.others):
            if size > bounds.extended:
                raise RefusedArchive(f"it has an extended header of {size} bytes; {bounds.extended} are allowed")
            if kind in before:
                raise RefusedArchive("it has two headers of one kind before a member")
            before += kind
            name = name_in(kind, content.read()) or name
        elif kind in FILE + DIRECTORY or (kind in OTHERS and bounds.others):
            found += 1
            if found > bounds.members:
                raise RefusedArchive(f"it holds more than {bounds.members} members")
            name = name or short_name(head)
            directory = kind == DIRECTORY or (kind in FILE and name.endswith(b"/"))
            if size and (directory or kind in OTHERS):
                raise RefusedArchive("it has a directory or a link with bytes in it")
            if kind not in OTHERS:
                yield TarMember(name, directory, at, size), content
            name, before = b"", b""
        else:
            raise RefusedArchive(f"{safe_text(name or short_name(head))} is neither a plain file nor a directory")
        content.skip()
        Part(stream, -size % BLOCK).skip()
        at += size + -size % BLOCK
    raise RefusedArchive("it has no end")


def octal(field: bytes) -> int:
    """A number of a header. Raises RefusedArchive; also for the binary form, which is for sizes that are not allowed."""
    digits = field.strip(b" \0")
    if not re.fullmatch(rb"[0-7]{1,12}", digits):
        raise RefusedArchive("it has a header with a number that is none")
    return int(digits, 8)


def short_name(head: bytes) -> bytes:
    name = head[:100].split(b"\0", 1)[0]
    # Old GNU headers have times where others have a prefix.
    prefix = head[345:500].split(b"\0", 1)[0] if head[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def name_in(kind: bytes, content: bytes) -> bytes:
    """The next member's name in an extended header; empty where it has none. Raises RefusedArchive."""
    if kind == LONG_NAME:
        return content.split(b"\0", 1)[0]
    if kind == LONG_LINK:
        return b""
    path = path_of(content)
    if path and kind == FOR_ALL:
        raise RefusedArchive("it has one path for all members")
    return path


def path_of(content: bytes) -> bytes:
    """The path in an extended header, which is lines of LENGTH KEY=VALUE; empty where it has none. Raises RefusedArchive."""
    path, at, records = b"", 0, 0
    while at < len(content):
        match = RECORD.match(content, at)
        end = at + int(match[1]) if match else 0
        if match is None or not match.end() < end <= len(content) or content[end - 1 : end] != b"\n":
            raise RefusedArchive("it has an extended header that cannot be read")
        records += 1
        if match[2].startswith(b"GNU.sparse") or match[2] == b"size" or records > MOST_RECORDS:
            raise RefusedArchive("it has a sparse or oversized file")
        if match[2] == b"path":
            path = content[match.end() : end - 1]
        at = end
    return path


def safe_text(name: bytes) -> str:
    return repr(name[:100].decode("utf-8", errors="replace"))
