"""Files of a mirror, by HTTP or from a directory, kept only with the digest that they should have."""

from __future__ import annotations

import hashlib
import urllib.error
import urllib.request
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

from kduel.core.cache import as_cache_error
from kduel.core.errors import HostError
from kduel.core.progress import Progress

SILENT_SECONDS = 30.0
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
    try:
        with (
            as_cache_error(to.parent),
            to.open("wb") as target,
            progress.task(label, size) as task,
            _open(address) as source,
        ):
            while block := source.read(1 << 18):
                done += len(block)
                if done > (MOST if size is None else size):
                    raise HostError(f"{address} is larger than it may be", "Name another mirror.")
                digest.update(block)
                target.write(block)
                task.advance(len(block))
    except urllib.error.URLError as error:
        raise HostError(
            f"{address} could not be downloaded: {error.reason}", "Check the network, the proxy and the mirror."
        ) from error
    if sha256 and digest.hexdigest() != sha256:
        raise HostError(
            f"{address} is not the file that the list of packages names: its SHA-256 is {digest.hexdigest()}",
            "Try again later, or name another mirror: this one is being updated, or was changed.",
        )
    return to


def _open(address: str) -> AbstractContextManager[IO[bytes]]:
    try:
        opened: AbstractContextManager[IO[bytes]] = urllib.request.urlopen(address, timeout=SILENT_SECONDS)
        return opened
    except urllib.error.HTTPError as error:
        kind = AbsentError if error.code in (404, 410) else HostError
        raise kind(f"{address}: {error.code} {error.reason}", "Name another release, version or mirror.") from error
