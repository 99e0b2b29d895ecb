"""Archives in the format that the kernel unpacks as an initramfs: cpio, newc."""

from __future__ import annotations

import stat
from pathlib import PurePosixPath


class Cpio:
    """An archive in the making. Times and owners are zero, so that the same content gives the same bytes."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._seen: set[str] = set()

    def directory(self, path: str) -> None:
        """A directory, with its parents."""
        for parent in [*reversed(PurePosixPath(path).parents), PurePosixPath(path)]:
            name = str(parent)
            if name not in {".", "/"} and name not in self._seen:
                self._add(name, stat.S_IFDIR | 0o755)

    def file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """A regular file, with its parents."""
        self.directory(str(PurePosixPath(path).parent))
        self._add(path, stat.S_IFREG | mode, data)

    def link(self, path: str, target: str) -> None:
        """A symbolic link, with its parents."""
        self.directory(str(PurePosixPath(path).parent))
        self._add(path, stat.S_IFLNK | 0o777, target.encode())

    def character_device(self, path: str, major: int, minor: int) -> None:
        """A character device, with its parents."""
        self.directory(str(PurePosixPath(path).parent))
        self._add(path, stat.S_IFCHR | 0o600, device=(major, minor))

    def finish(self) -> bytes:
        """The archive, padded so that another one may follow it."""
        self._add("TRAILER!!!", 0)
        archive = b"".join(self._parts)
        return archive + bytes(-len(archive) % 512)

    def _add(self, path: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        self._seen.add(path)
        name = path.encode() + b"\0"
        inode = len(self._seen) if mode else 0
        fields = (inode, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name), 0)
        header = b"070701" + b"".join(b"%08X" % field for field in fields)
        head = header + name
        self._parts += [head, bytes(-len(head) % 4), data, bytes(-len(data) % 4)]
