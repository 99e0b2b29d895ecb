"""Reading what a guest sent, who is not trusted: the one place where bytes become text, numbers or JSON, each with a
bound. Only MalformedError, OSError, and HostError (this host's fault) are raised."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from kduel.core.errors import os_errors
from kduel.core.regular_files import open_regular

T = TypeVar("T")
NOT_JSON = (ValueError, RecursionError)
"""What msgspec raises for bytes that are not JSON of a shape. Its own errors are among them; no UTF-8, nested too deep are not."""

MOST_TEXT = 16 << 20
"""Bytes of one file that are read."""
MOST_DIGITS = 32
"""In a row, in JSON: no counter has more, and Python's own conversions refuse or overflow far above."""
HOST_FAULTS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors of a read that are no property of the file: this host allows no more open files, or has no memory."""
_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % (MOST_DIGITS + 1))
_WHOLE = re.compile(r"-?[0-9]{1,18}")


class MalformedError(ValueError):
    """A guest sent malformed data. The message describes how."""


def decode(data: bytes | str, shape: type[T], most: int = MOST_TEXT) -> T:
    """JSON of a guest's as `shape`. Raises MalformedError where it is cut, too large, nested too deep, or of another shape."""
    raw = data.encode("utf-8", "replace") if isinstance(data, str) else data
    if len(raw) > most:
        raise MalformedError(f"it has {len(raw):,} bytes of JSON; {most:,} are read at most")
    if _LONG_NUMBER.search(raw):
        raise MalformedError(f"it has a number of more than {MOST_DIGITS} digits")
    try:
        return msgspec.json.decode(raw, type=shape)
    except RecursionError as error:
        raise MalformedError("its JSON is nested too deep") from error
    except ValueError as error:  # msgspec's own among them
        raise MalformedError(str(error)) from error


def whole_number(text: str) -> int:
    """A whole number of at most 18 ASCII digits. Raises MalformedError."""
    if not _WHOLE.fullmatch(text):
        raise MalformedError(f"{text[:60]!r} is not a whole number of at most 18 digits")
    return int(text)


@contextmanager
def host_faults(path: object) -> Iterator[None]:
    """Turn the OSErrors that are no property of a file, but of this host, into HostErrors."""
    try:
        yield
    except OSError as error:
        if error.errno in HOST_FAULTS:
            with os_errors(f"cannot read {path}", "Free some memory, then start again: nothing is lost."):
                raise
        raise


def entries(directory: Path) -> list[Path]:
    """Entries of a directory. Raises OSError, HostError."""
    with host_faults(directory):
        return list(directory.iterdir())


def read(path: Path, most: int = MOST_TEXT) -> str:
    """The first `most` bytes of a file, decoded leniently. Raises OSError, also for what is no plain file."""
    return read_bytes(path, most).decode("utf-8", errors="replace")


def read_bytes(path: Path, most: int = MOST_TEXT) -> bytes:
    """The first `most` bytes of a file. Raises OSError, also for what is no plain file."""
    with host_faults(path), open_regular(path) as stream:
        return stream.read(most)


def read_whole(path: Path) -> bytes:
    """A run's own file, whole. Raises OSError, also for what is no plain file, which may have no end."""
    with host_faults(path), open_regular(path) as stream:
        return stream.read()


class _Exit(Struct):
    status: int


def exit_status(step: Path) -> int:
    """Exit status of a step, from the exit.json in its directory. Raises MalformedError, also where there is none."""
    try:
        status = decode(read_bytes(step / "exit.json", 64 << 10), _Exit).status
    except OSError as error:
        raise MalformedError(f"it left no exit.json: {error.strerror}") from error
    if not 0 <= status <= 255:
        raise MalformedError(f"exit.json has the status {status}")
    return status


def read_end(path: Path, most: int) -> str:
    """The last `most` bytes of a file, decoded leniently and stripped; empty where there is no such plain file."""
    try:
        with host_faults(path), open_regular(path) as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - most))
            return stream.read(most).decode("utf-8", errors="replace").strip()
    except OSError:
        return ""
