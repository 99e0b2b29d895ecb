"""Files of a directory that may have come from elsewhere: only regular ones are opened, without links. It may hold a
link to a reader's file, a FIFO, or a sparse file of any size, which would be read for hours."""

import errno
import os
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from kduel.core.errors import InputError
from kduel.core.text import list_few, visible

MOST_NAMED = 3
MOST_BYTES = 256 << 20
"""Of a file: neither a trial's results nor an imported file have more."""
KINDS = {
    stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}  # fmt: skip


def open_regular(path: Path | bytes) -> BufferedReader:
    """A regular file, opened for reading. Raises OSError, also for a link and for more than MOST_BYTES."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a symbolic link", os.fsdecode(path)) from error
        raise
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
        os.close(handle)
        if stat.S_ISREG(found.st_mode):
            raise OSError(errno.EFBIG, f"it has more than {MOST_BYTES >> 20} MiB", os.fsdecode(path))
        raise OSError(errno.EINVAL, "it is no plain file", os.fsdecode(path))
    return os.fdopen(handle, "rb")


def special_files(top: Path) -> Iterator[tuple[Path, str]]:
    """Whatever beneath a directory is neither a directory nor a regular file, with its kind, by name."""
    waiting = [top]
    while waiting:
        directory = waiting.pop()
        try:
            listed = sorted(os.scandir(directory), key=lambda entry: entry.name)
        except OSError:
            continue  # Whoever reads it reports that.
        for entry in listed:
            if entry.is_dir(follow_symlinks=False):
                waiting.append(Path(entry.path))
            elif not entry.is_file(follow_symlinks=False):
                yield Path(entry.path), KINDS.get(stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode), "no file")


def check_no_special_files(top: Path) -> None:
    """Raises InputError where a directory holds a link, a FIFO, a socket or a device."""
    found = [f"{visible(str(path.relative_to(top)), 100)} is {kind}" for path, kind in special_files(top)]
    if found:
        raise InputError(
            f"{top} holds what no run of KDuel does: {list_few(found, MOST_NAMED)}",
            "A link could lead to files of your own: replace it by a copy of what it leads to, or remove it.",
        )


def remove_special_files(top: Path) -> None:
    """Remove links, FIFOs, sockets and devices beneath a directory, and directories without files. Raises OSError."""
    for path, _ in special_files(top):
        path.unlink()
    for folder, _, _ in os.walk(top, topdown=False):
        if folder != str(top) and not os.listdir(folder):  # noqa: PTH208
            Path(folder).rmdir()
