"""Files and directories that appear whole or not at all, even after a power cut; a disk's errors with remedies."""

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from kduel.core.errors import HostError, InputError, os_errors, unusable_path
from kduel.core.temporary import ordinary_mode
from kduel.core.text import list_few

SYNCS = 16
"""How many files are synced at a time."""
MOST_NAMED = 3
"""Of what is in a run's way."""
GO_ON = "Free some space or correct the permissions; then `kduel resume RUN` continues where it stopped."
CHOOSE = "Free some space, correct the permissions, or name another place with --out."


@contextmanager
def as_disk_error(where: Path, remedy: str = GO_ON) -> Iterator[None]:
    """Turn an OSError while writing into an error with a remedy, about `where`, another file or a program."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.EEXIST) and is_below_file(where):
            raise unusable_path(where, os.strerror(errno.ENOTDIR)) from error
        if error.filename == "":
            raise HostError(
                f"a program without a name cannot be run: {error.strerror}",
                "Name a program in the settings of the machine, then start again.",
            ) from error
        elsewhere = is_elsewhere(error.filename, where)
        place = f"cannot use {error.filename}" if elsewhere else f"cannot write to {where}"
        with os_errors(place, remedy):
            raise


def is_below_file(path: Path) -> bool:
    """True if a part of the way to `path` is a file."""
    return not next(above for above in path.absolute().parents if above.exists()).is_dir()


def is_elsewhere(name: object, where: Path) -> bool:
    """True if an error's file is neither in `where`, nor on the way to it, nor in a new run that is written next to it."""
    if not isinstance(name, str):
        return False
    path, run = Path(name).absolute(), where.absolute()
    beside = str(run.parent / before_its_name(run))
    return not (path.is_relative_to(run) or run.is_relative_to(path) or str(path).startswith(beside))


def before_its_name(path: Path) -> str:
    """Prefix of the name under which `path` is written before it is whole and renamed."""
    return f".{path.name[:40]}-"


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A stream into a file that is either absent, old, or whole, even after a power cut. Raises OSError."""
    # A part of the name: with all of it, a name of 250 characters would be too long.
    handle, name = tempfile.mkstemp(prefix=before_its_name(path), dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        fresh, new = Path(name), not os.path.lexists(path)
        fresh.chmod(ordinary_mode(0o666))
        fresh.replace(path)
        with undone(path.unlink if new else lambda: None):
            sync_tree_top(path.parent)
    finally:
        Path(name).unlink(missing_ok=True)


@contextmanager
def undone(undo: Callable[[], object]) -> Iterator[None]:
    """Undo what was renamed where its directory cannot be synced: the error says that it failed, and the same command makes
    it again."""
    try:
        yield
    except OSError:
        undo()
        raise


def write_whole(path: Path, data: bytes) -> None:
    """Write such a file. Raises OSError."""
    with whole_file(path) as stream:
        stream.write(data)


@contextmanager
def whole_directory(path: Path) -> Iterator[Path]:
    """A directory beside `path` that gets its name when whole and synced. Raises HostError, InputError if taken."""
    with as_disk_error(path, CHOOSE):
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=before_its_name(path), dir=path.parent))
        try:
            yield fresh
            fresh.chmod(ordinary_mode(0o777))
            sync_tree(fresh)
            fresh.replace(path)
            with undone(lambda: path.replace(fresh)):
                sync_tree_top(path.parent)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise occupied_error(path) from None
            raise
        finally:
            shutil.rmtree(fresh, ignore_errors=True)


def sync_tree(directory: Path) -> None:
    """fsync every file and directory below, several at a time: four times as fast. Raises the first OSError."""
    from concurrent.futures import ThreadPoolExecutor

    paths = [os.path.join(root, name) for root, _, files in os.walk(directory) for name in [*files, "."]]  # noqa: PTH118
    with ThreadPoolExecutor(SYNCS) as pool:
        for _ in pool.map(_sync, paths):
            pass


def _sync(path: str | Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def occupied_error(path: Path, names: Sequence[str] = ()) -> InputError:
    """The error for a run's name that something else has; `names` of what is in the way."""
    told = f": {list_few(names, MOST_NAMED)}" if names else ""
    return InputError(
        f"{path} is there already and holds something else{told}",
        "Give another --out, or `kduel resume` it if it is a run.",
    )


def sync_tree_top(directory: Path) -> None:
    """fsync the directory itself, so that a rename in it lasts."""
    _sync(directory)
