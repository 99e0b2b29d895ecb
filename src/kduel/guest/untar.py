"""Reading a tar that a guest made: checked as a whole before a file is written; plain files and directories only."""

import os
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from kduel.core.tar_stream import PIECE, Part, RefusedArchive, TarBounds, read_members, safe_text

MOST_MEMBERS = 20_000
MOST_DIRECTORIES = 2_000
"""Those that only stand in other members' names count, too."""
DEEPEST = 16
LONGEST_NAME = 512
LONGEST_PART = 255
"""Bytes, as file systems have it."""
MOST_EXTENDED = 8 << 10
"""Bytes of one extended header."""


class GuestFile(Struct, frozen=True):
    """A file or a directory; `offset` and `size` are the file's bytes in the stream."""

    parts: tuple[str, ...]
    directory: bool
    offset: int = 0
    size: int = 0

    @property
    def name(self) -> str:
        return "/".join(self.parts)


def members(stream: BinaryIO, start: int, end: int) -> list[GuestFile]:
    """Members of the tar from `start` to `end`, in its order. Raises RefusedArchive."""
    found: list[GuestFile] = []
    seen: dict[tuple[str, ...], bool] = {}
    directories = 0
    stream.seek(start)
    bounds = TarBounds(MOST_MEMBERS, MOST_EXTENDED)
    for member, _ in read_members(Part(stream, end - start), bounds):
        parts = safe(member.name)
        directories += add(seen, parts, member.directory)
        if directories > MOST_DIRECTORIES:
            raise RefusedArchive(f"it makes more than {MOST_DIRECTORIES} directories")
        if parts:
            found.append(GuestFile(parts, member.directory, start + member.offset, member.size))
    return found


def write(stream: BinaryIO, found: list[GuestFile], into: Path) -> None:
    """The members below `into`, where nothing of these names is. Raises RefusedArchive for what is there, and OSError."""
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
        with target.open("xb") as sink:
            content = Part(stream, member.size)
            while piece := content.read(PIECE):
                sink.write(piece)


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


def add(seen: dict[tuple[str, ...], bool], parts: tuple[str, ...], directory: bool) -> int:
    """Note a member; how many directories it makes. Raises RefusedArchive for what is there twice or is both file and directory."""
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
