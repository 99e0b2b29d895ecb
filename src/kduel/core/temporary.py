"""Temporary directories that do not stay behind, even where KDuel is killed: the next one made removes them."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from kduel.core.errors import os_errors


def as_temporary_error(where: Path | None = None) -> AbstractContextManager[None]:
    """Turn an OSError about temporary files into a HostError with a remedy."""
    return os_errors(
        f"cannot write temporary files to {where or tempfile.gettempdir()}",
        "Free some space there, or name another directory in TMPDIR.",
    )


PREFIX = "kduel-held-"
"""Of our directories in TMPDIR. None of earlier versions' names begins so: theirs were not locked."""


def memory_file() -> BinaryIO:
    """A new file in memory, to be closed; it has no name, and no disk need have room for it."""
    return open(os.memfd_create("kduel", os.MFD_CLOEXEC), "w+b")  # noqa: PTH123 - the caller closes it


def ordinary_mode(mode: int) -> int:
    """A mode less the umask, which temporary files ignore; it is read, as setting it affects all threads."""
    status = Path("/proc/self/status").read_text("ascii", errors="replace")
    umask = next((line.split()[1] for line in status.splitlines() if line.startswith("Umask:")), "0022")
    return mode & ~int(umask, 8)


def try_to_make(path: Path) -> None:
    """Raise OSError where the directory `path`, which is not there, could not be made. Nothing is left behind."""
    above = next(above for above in path.absolute().parents if os.path.lexists(above))
    try:
        with tempfile.TemporaryDirectory(prefix=".kduel-", dir=above):
            pass
    except OSError as error:
        error.filename = str(above)  # In place of a random name below it.
        raise


@contextmanager
def temporary_directory(
    parent: Path | None = None, prefix: str = PREFIX, told: AbstractContextManager[None] | None = None
) -> Iterator[Path]:
    """A new directory `PREFIX...` in `parent` (by default TMPDIR), gone at the end, which may be renamed meanwhile;
    those next to it whose makers' lock has ended are removed. Raises HostError, worded by `told`."""
    with told or as_temporary_error(parent):
        place = parent or Path(tempfile.gettempdir())
        _sweep(place, prefix)
        path, held = _make_directory(place, prefix)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(held)


def _make_directory(place: Path, prefix: str) -> tuple[Path, int]:
    """A new directory and the descriptor that holds its lock."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
        try:
            held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:  # another process or thread swept it before it was locked
            continue
        fcntl.flock(held, fcntl.LOCK_EX)
        # It may have been swept while this waited for the sweeper's lock.
        with suppress(FileNotFoundError):
            if os.path.samestat(path.stat(), os.fstat(held)):
                return path, held
        os.close(held)


def _sweep(place: Path, prefix: str) -> None:
    """Remove the directories of our own user that nobody holds."""
    for path in place.glob(f"{prefix}*"):
        try:
            found = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            if os.fstat(found).st_uid == os.geteuid():
                fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
        except OSError:  # EWOULDBLOCK: it is in use
            pass
        finally:
            os.close(found)
