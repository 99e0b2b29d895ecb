"""Reading a tar that a guest made. All of it is listed and checked before the first file is written.

Only what honest guests send is known: plain files and directories, by ustar headers as busybox, GNU tar and Python
write them, with long names in either of the two customary forms. A library's reader is made for leniency: Python's
follows headers of any size, and spends minutes on some.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

BLOCK = 512
MOST_MEMBERS = 20_000
MOST_DIRECTORIES = 2_000
"""Those that only stand in other members' names count, too."""
DEEPEST = 16
LONGEST_NAME = 512
LONGEST_PART = 255
"""Bytes, as file systems have it."""
MOST_EXTENDED = 8 << 10
"""Bytes of one extended header."""
PIECE = 1 << 20
FILE, DIRECTORY, LONG_NAME, EXTENDED = b"0\0", b"5", b"L", b"x"


class RefusedArchive(Exception):
    """It is no tar, or contains something that results do not have, which the message names."""


class TarMember(Struct, frozen=True):
    """A file or a directory; `offset` and `size` are the file's bytes in the stream."""

    parts: tuple[str, ...]
    directory: bool
    offset: int = 0
    size: int = 0

    @property
    def name(self) -> str:
        """Its path."""
        return "/".join(self.parts)


def members(stream: BinaryIO, start: int, end: int) -> list[TarMember]:
    """Members of the tar from `start` to `end`, in its order. Raises Refused."""
    found: list[TarMember] = []
    seen: dict[tuple[str, ...], bool] = {}
    at, name = start, b""
    headers = directories = 0
    while at < end:
        stream.seek(at)
        head = stream.read(BLOCK)
        if head == bytes(BLOCK):
            return found
        headers += 1
        if headers > 2 * MOST_MEMBERS or len(found) >= MOST_MEMBERS:
            raise RefusedArchive(f"it holds more than {MOST_MEMBERS} members")
        size = check(head)
        at += BLOCK
        if at + size > end:
            raise RefusedArchive("it ends in the middle of a member")
        kind = head[156:157]
        if kind in (LONG_NAME, EXTENDED):
            if size > MOST_EXTENDED:
                raise RefusedArchive(f"it has an extended header of {size} bytes; {MOST_EXTENDED} are allowed")
            content = stream.read(size)
            name = content.split(b"\0", 1)[0] if kind == LONG_NAME else path_of(content) or name
        elif kind and kind in FILE + DIRECTORY:
            parts = safe(name or short_name(head))
            directory = kind == DIRECTORY or (name or short_name(head)).endswith(b"/")
            if directory and size:
                raise RefusedArchive("it has a directory with bytes in it")
            directories += add(seen, parts, directory)
            if directories > MOST_DIRECTORIES:
                raise RefusedArchive(f"it makes more than {MOST_DIRECTORIES} directories")
            if parts:
                found.append(TarMember(parts, directory, at, size))
            name = b""
        else:
            raise RefusedArchive(f"{safe_text(name or short_name(head))} is neither a plain file nor a directory")
        at += -(-size // BLOCK) * BLOCK
    raise RefusedArchive("it has no end")


def write(stream: BinaryIO, found: list[TarMember], into: Path) -> None:
    """The members below `into`, where nothing of these names is. Raises Refused for what is there, and OSError."""
    for top in {member.parts[0] for member in found}:
        if os.path.lexists(into / top):
            raise RefusedArchive(f"{top!r} is a name that is taken")
    for member in found:
        target = into.joinpath(*member.parts)
        if member.directory:
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        stream.seek(member.offset)
        left = member.size
        with target.open("xb") as sink:
            while left:
                piece = stream.read(min(left, PIECE))
                if not piece:
                    raise RefusedArchive("it ended while it was read")
                sink.write(piece)
                left -= len(piece)


def check(head: bytes) -> int:
    """A header's size field. Raises Refused unless its checksum is right."""
    if len(head) < BLOCK:
        raise RefusedArchive("it ends in the middle of a header")
    if octal(head[148:156]) != sum(head[:148]) + 8 * 0x20 + sum(head[156:]):
        raise RefusedArchive("it has a header with a wrong checksum: it is no tar, or damaged")
    return octal(head[124:136])


def octal(field: bytes) -> int:
    """A number of a header. Raises Refused; also for the binary form, which is for sizes that are not allowed."""
    digits = field.strip(b" \0")
    if not re.fullmatch(rb"[0-7]{1,12}", digits):
        raise RefusedArchive("it has a header with a number that is none")
    return int(digits, 8)


def short_name(head: bytes) -> bytes:
    """The name in a header itself."""
    name = head[:100].split(b"\0", 1)[0]
    # Old GNU headers have times where others have a prefix.
    prefix = head[345:500].split(b"\0", 1)[0] if head[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def path_of(content: bytes) -> bytes:
    """The path in an extended header, which is lines of LENGTH KEY=VALUE; empty where it has none. Raises Refused."""
    path, at = b"", 0
    while at < len(content):
        match = re.compile(rb"([0-9]{1,5}) ([^=\n]{1,100})=").match(content, at)
        end = at + int(match[1]) if match else 0
        if match is None or not match.end() < end <= len(content) or content[end - 1 : end] != b"\n":
            raise RefusedArchive("it has an extended header that cannot be read")
        if match[2].startswith(b"GNU.sparse") or match[2] == b"size":
            raise RefusedArchive("it has a sparse or oversized file")
        if match[2] == b"path":
            path = content[match.end() : end - 1]
        at = end
    return path


def safe(name: bytes) -> tuple[str, ...]:
    """The parts of a member's path, known to stay below the directory that it is unpacked in; () for that directory."""
    try:
        text = name.decode("utf-8")
    except UnicodeDecodeError:
        raise RefusedArchive(f"{safe_text(name)} is not a path that results may have") from None
    parts = tuple(part for part in text.split("/") if part not in ("", "."))
    bad = text.startswith("/") or ".." in parts or not all(part.isprintable() for part in parts)
    long = len(name) > LONGEST_NAME or any(len(part.encode()) > LONGEST_PART for part in parts)
    if not name or bad or long or len(parts) > DEEPEST:
        raise RefusedArchive(f"{safe_text(name)} is not a path that results may have")
    return parts


def safe_text(name: bytes) -> str:
    """A name for an error."""
    return repr(name[:100].decode("utf-8", errors="replace"))


def add(seen: dict[tuple[str, ...], bool], parts: tuple[str, ...], directory: bool) -> int:
    """Note a member; how many directories it makes. Raises Refused for what is there twice or is both file and directory."""
    made = 0
    for depth in range(1, len(parts)):
        if parts[:depth] not in seen:
            made += 1
        elif not seen[parts[:depth]]:
            raise RefusedArchive(f"{'/'.join(parts)!r} lies below a file")
        seen[parts[:depth]] = True
    if parts and not (directory and seen.get(parts)):
        if parts in seen:
            raise RefusedArchive(f"{'/'.join(parts)!r} is there twice")
        seen[parts] = directory
        made += directory
    return made
