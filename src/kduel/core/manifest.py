"""Manifest of a directory of the cache: its files with their sizes and hashes, as they were when it was made."""

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct, field

from kduel.core.untrusted import NOT_JSON

SCHEMA = 1
MANY = 200
"""With more files than this (a kernel's modules, a source tree), a file is hashed again only where its size, inode or
time of change differ from what they were when it was last hashed: no write can leave the time of change as it was."""
PIECE = 1 << 20
ZEROS = bytes(PIECE)


class File(Struct, array_like=True):
    size: int
    """Bytes."""
    executable: bool
    digest: str
    """As `digest` gives it."""
    inode: int
    changed: int
    """The inode's time of change, in nanoseconds since 1970."""

    def stamp(self) -> tuple[int, bool, int, int]:
        """Facts about the file that need no reading."""
        return self.size, self.executable, self.inode, self.changed


class Manifest(Struct, forbid_unknown_fields=True):
    """All files and symbolic links below a directory, by their relative paths."""

    schema: int
    files: dict[str, File] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    fresh: bool = False
    """Whether it has more than what is stored of it."""

    @classmethod
    def of_directory(cls, directory: Path, known: "Manifest | None" = None) -> "Manifest":
        """Manifest of a directory as it is now. Files of which `known` has the stamp are not read. Raises OSError."""
        found = cls(schema=SCHEMA, fresh=True)
        waiting = [""]
        while waiting:
            inside = waiting.pop()
            with os.scandir(directory / inside) as listed:
                for entry in listed:
                    relative = f"{inside}{entry.name}"
                    facts = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(facts.st_mode):
                        waiting.append(f"{relative}/")
                    elif stat.S_ISLNK(facts.st_mode):
                        found.links[relative] = str(Path(entry.path).readlink())
                    elif stat.S_ISREG(facts.st_mode):
                        file = File(facts.st_size, bool(facts.st_mode & 0o100), "", facts.st_ino, facts.st_ctime_ns)
                        before = known.files.get(relative) if known else None
                        same = before is not None and before.stamp() == file.stamp()
                        file.digest = before.digest if before and same else digest(Path(entry.path))
                        found.files[relative] = file
        return found

    @classmethod
    def read(cls, path: Path) -> "Manifest | None":
        """The manifest in a file; None where there is none, or not a whole one of this form. Raises OSError."""
        if path.exists() and not path.is_file():
            return None
        try:
            found = msgspec.json.decode(path.read_bytes(), type=cls)
        except (FileNotFoundError, *NOT_JSON):
            return None
        return found if found.schema == SCHEMA else None

    def write(self, path: Path) -> None:
        """Replace the file whole. Raises OSError."""
        self.fresh = False
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                # As the entry: a cache may be shared.
                os.fchmod(handle, 0o644)
                stream.write(msgspec.json.encode(self))
            Path(name).replace(path)
        finally:
            Path(name).unlink(missing_ok=True)

    def keep(self, path: Path) -> None:
        """Write it if there is something new and the cache can be written to: one may be shared, and read-only."""
        if self.fresh:
            with suppress(OSError):
                self.write(path)

    def differs(self, directory: Path) -> str:
        """Difference between a directory and the manifest, or empty; new stamps are taken over. Raises OSError."""
        now = Manifest.of_directory(directory, self if len(self.files) > MANY else None)
        if (now.files, now.links) == (self.files, self.links):
            return ""
        for relative in sorted({*self.files, *self.links, *now.files, *now.links}):
            if relative not in now.files and relative not in now.links:
                return f"{relative} is missing"
            before, after = self.files.get(relative), now.files.get(relative)
            if before is None or after is None:
                if self.links.get(relative) != now.links.get(relative) or before is not after:
                    return f"{relative} is not what it was"
            elif before.size != after.size:
                return f"{relative} has {after.size} bytes in place of {before.size}"
            elif (before.digest, before.executable) != (after.digest, after.executable):
                return f"{relative} has changed"
        if now.files != self.files:
            self.files, self.fresh = now.files, True
        return ""


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, hexadecimal, as sha256sum prints it. Raises OSError."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest(path: Path) -> str:
    """SHA-256, hexadecimal, over the pieces of a file that are not zero, each after its offset: a sparse file of many
    gigabytes takes no longer than its content, however a file system stores it. Raises OSError."""
    total = hashlib.sha256()
    with path.open("rb", buffering=0) as stream:
        size, position = os.fstat(stream.fileno()).st_size, 0
        while position < size:
            try:
                start = os.lseek(stream.fileno(), position, os.SEEK_DATA)
            except OSError:  # ENXIO: only a hole is left
                break
            position = start - start % PIECE
            piece = os.pread(stream.fileno(), min(PIECE, size - position), position)
            if not piece:
                break
            if piece != ZEROS[: len(piece)]:
                total.update(b"%d " % position)
                total.update(piece)
            position += PIECE
    return total.hexdigest()
