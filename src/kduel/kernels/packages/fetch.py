"""Files of a mirror, by HTTP or from a directory, kept only with the digest that they should have."""

from __future__ import annotations

import hashlib
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any

from kduel.core.cache import as_cache_error
from kduel.core.errors import HostError
from kduel.core.progress import Progress
from kduel.core.text import visible

SILENT_SECONDS = 30.0
SLOWEST, PATIENCE = 4096, 60.0
"""Bytes a second of a whole download, and the seconds that it may take besides."""
MOST = 8 << 30
"""Bytes of a file whose size is not known before."""


class AbsentError(HostError):
    """The mirror has no such file."""


def download(address: str, to: Path, progress: Progress, *, sha256: str = "", size: int | None = None) -> Path:
    """Fetch a file. Raises HostError where the mirror does not answer, or the content is not the expected one."""
    name = address.rpartition("/")[2]
    digest = hashlib.sha256()
    done = 0
    label = f"downloading {name}" + (f" ({size / 1e6:.0f} MB)" if size else "")
    begun = time.monotonic()
    # What is still to be written when the file is closed may fail, too.
    with (
        as_cache_error(to.parent),
        to.open("wb") as target,
        progress.task(label, size) as task,
        _reachable(address),
        _open(address) as source,
    ):
        while block := source.read1(1 << 18):
            done += len(block)
            if done > (MOST if size is None else size):
                raise HostError(f"{address} is larger than it may be", "Name another mirror.")
            if done < SLOWEST * (time.monotonic() - begun - PATIENCE):
                raise HostError(
                    f"{address} comes at less than {SLOWEST} bytes a second",
                    "Try again later, or name another mirror.",
                )
            digest.update(block)
            with as_cache_error(to.parent):
                target.write(block)
            task.advance(len(block))
    if sha256 and digest.hexdigest() != sha256:
        raise HostError(
            f"{address} is not the file that the list of packages names: its SHA-256 is {digest.hexdigest()}",
            "Try again later, or name another mirror: this one is being updated, or was changed.",
        )
    return to


def _open(address: str) -> AbstractContextManager[Any]:
    try:
        opened: AbstractContextManager[Any] = urllib.request.urlopen(address, timeout=SILENT_SECONDS)
        return opened
    except urllib.error.HTTPError as error:
        kind = AbsentError if error.code in (404, 410) else HostError
        raise kind(
            f"{show_safely(address)}: {error.code} {show_safely(error.reason)}",
            "Name another release, version or mirror.",
        ) from error


@contextmanager
def _reachable(address: str) -> Iterator[None]:
    """Turn what the network, a server or an odd address does wrong into a HostError."""
    try:
        yield
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise HostError(
            f"{show_safely(address)} could not be downloaded: {show_safely(reason) or type(error).__name__}",
            "Check the network, the proxy and the mirror's address.",
        ) from error


def show_safely(what: object) -> str:
    """Text that a server or a user wrote, without what a terminal would obey."""
    return visible(str(what), 300)
