"""The files that a shell command names: their content determines what it does, too."""

import os
import re
import shlex
from contextlib import suppress
from pathlib import Path

from kduel.core.manifest import sha256_of

READ_AT_MOST = 64 << 20
"""Bytes of a file whose content is read; a larger one is known by its size and when it was changed."""
_APART = re.compile(r"[\s;|&<>()'\"`=:,]+")


def named_files(command: str, place: Path) -> list[str]:
    """For each regular file outside `place`, a checkout, that a word of the command names: its path and a digest of
    its content. Programs in $PATH, and what the files read in turn, are not known."""
    words = {*_APART.split(command)}
    with suppress(ValueError):  # Of quotes that are not closed, which the shell refuses itself.
        words |= {*shlex.split(command)}
    found = set()
    for word in words:
        path = Path(os.path.abspath(place / os.path.expanduser(os.path.expandvars(word))))  # noqa: PTH100, PTH111
        with suppress(OSError, ValueError):
            if path.is_file() and not path.is_relative_to(place.absolute()):
                found.add(f"{path} {content_digest(path)}")
    return sorted(found)


def content_digest(path: Path) -> str:
    """A digest of a file's content, or size and time of a large file. Raises OSError."""
    about = path.stat()
    if about.st_size > READ_AT_MOST:
        return f"{about.st_size} {about.st_mtime_ns}"
    return sha256_of(path)
