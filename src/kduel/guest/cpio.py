"""Archives in the format that the kernel unpacks as an initramfs: cpio, newc."""

import stat
from pathlib import Path, PurePosixPath

BLOCK = 512


class Cpio:
    """An archive in the making. Times and owners are zero, so that the same content gives the same bytes."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._seen: set[str] = set()

    def directory(self, path: str) -> None:
        for parent in [*reversed(PurePosixPath(path).parents), PurePosixPath(path)]:
            name = str(parent)
            if name not in {".", "/"} and name not in self._seen:
                self._add(name, stat.S_IFDIR | 0o755)

    def file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """A regular file, with its parents."""
        self.directory(str(PurePosixPath(path).parent))
        self._add(path, stat.S_IFREG | mode, data)

    def link(self, path: str, target: str) -> None:
        self.directory(str(PurePosixPath(path).parent))
        self._add(path, stat.S_IFLNK | 0o777, target.encode())

    def character_device(self, path: str, major: int, minor: int) -> None:
        self.directory(str(PurePosixPath(path).parent))
        self._add(path, stat.S_IFCHR | 0o600, device=(major, minor))

    def finish(self) -> bytes:
        """The archive, padded so that another one may follow it."""
        self._add("TRAILER!!!", 0)
        archive = b"".join(self._parts)
        return archive + bytes(-len(archive) % BLOCK)

    def _add(self, path: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        self._seen.add(path)
        name = path.encode() + b"\0"
        inode = len(self._seen) if mode else 0
        fields = (inode, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name), 0)
        header = b"070701" + b"".join(b"%08X" % field for field in fields)
        head = header + name
        self._parts += [head, bytes(-len(head) % 4), data, bytes(-len(data) % 4)]


def unpack(archive: bytes, into: Path) -> None:
    """Unpack the archives of Cpio as files below `into` that everybody may read, but no devices."""
    at = 0
    while at < len(archive):
        mode, size, length = (int(archive[at + 6 + 8 * field :][:8], 16) for field in (1, 6, 11))
        name = archive[at + 110 : at + 109 + length].decode()
        start = at + 110 + length
        start += -start % 4
        data, end = archive[start : start + size], start + size
        at = end + -end % (4 if mode else BLOCK)
        path = into / name
        if stat.S_ISDIR(mode):
            path.mkdir(exist_ok=True)
        elif stat.S_ISLNK(mode):
            path.symlink_to(data.decode())
        elif stat.S_ISREG(mode):
            path.write_bytes(data)
        if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
            path.chmod(mode & 0o755 | (0o555 if mode & stat.S_IXUSR else 0o444))
