"""Files of a mirror, by HTTP or from a directory, kept only with the digest that they should have."""

import hashlib
import io
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import Any

from kduel.core.cache import as_cache_error
from kduel.core.errors import HostError
from kduel.core.progress import Progress
from kduel.core.text import visible

SILENT_SECONDS = 30.0
SLOWEST, PATIENCE = 4096, 60.0
"""Bytes a second of a whole download with its headers, and the seconds that it may take besides."""
MOST_LIST = 256 << 20
"""Bytes of a list of packages or a signature, of which nothing says how large they are."""
MOST_BEFORE = 1 << 20
"""Bytes of headers and redirects."""
HANDLERS = (
    urllib.request.ProxyHandler, urllib.request.UnknownHandler, urllib.request.HTTPDefaultErrorHandler,
    urllib.request.HTTPRedirectHandler, urllib.request.HTTPErrorProcessor, urllib.request.FileHandler,
)  # fmt: skip
"""Of urllib, without FTP, to which a redirect may lead."""


class AbsentError(HostError):
    """The mirror has no such file."""


class ServerError(OSError):
    """A server's answer might go on for ever."""


class Pace:
    """The bytes of one download since its beginning, redirects and headers included."""

    def __init__(self) -> None:
        self.begun, self.received = time.monotonic(), 0
        self.opened = False
        """True when the answer has begun that is not another redirect, whose text urllib reads whole."""

    def check(self, received: int) -> None:
        """Count some bytes more. Raises ServerError."""
        self.received += received
        if self.received < SLOWEST * (time.monotonic() - self.begun - PATIENCE):
            raise ServerError(f"it comes at less than {SLOWEST} bytes a second")
        if not self.opened and self.received > MOST_BEFORE:
            raise ServerError(f"more than {MOST_BEFORE} bytes come before the file")


class PacedStream(io.RawIOBase):
    """A server's answer as it comes: the modules of HTTP read lines and chunks of it that may drip."""

    def __init__(self, raw: io.RawIOBase, pace: Pace) -> None:
        self.raw, self.pace = raw, pace

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        found: int | None = self.raw.readinto(buffer)
        self.pace.check(found or 0)
        return found

    def close(self) -> None:
        self.raw.close()
        super().close()


class PacedResponse(HTTPResponse):
    """An answer of which every byte is counted, the status line included."""

    def __init__(self, sock: Any, *words: Any, pace: Pace, **more: Any) -> None:
        super().__init__(sock, *words, **more)
        self.fp = io.BufferedReader(PacedStream(self.fp.detach(), pace))


class PacedHandler(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """A handler of HTTP and HTTPS for one download."""

    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self.pace = pace

    def do_open(self, http_class: Any, req: Any, **http_conn_args: Any) -> HTTPResponse:
        def connect(*given: Any, **more: Any) -> HTTPConnection:
            connection: HTTPConnection = http_class(*given, **more)
            connection.response_class = partial(PacedResponse, pace=self.pace)  # type: ignore[assignment]
            return connection

        return super().do_open(connect, req, **http_conn_args)


def download(
    address: str, to: Path, progress: Progress, *, sha256: str = "", size: int | None = None, most: int = MOST_LIST
) -> Path:
    """Fetch a file of a known `size`, or of `most` bytes. Raises HostError where the mirror does not answer, or the content is not the expected one."""
    name = address.rpartition("/")[2]
    digest = hashlib.sha256()
    done = 0
    label = f"downloading {name}" + (f" ({size / 1e6:.0f} MB)" if size else "")
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
            if done > (most if size is None else size):
                raise HostError(f"{address} is larger than it may be", "Name another mirror.")
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
        pace = Pace()
        opener = urllib.request.OpenerDirector()
        opener.add_handler(PacedHandler(pace))
        for handler in HANDLERS:
            opener.add_handler(handler())
        opened: AbstractContextManager[Any] = opener.open(address, timeout=SILENT_SECONDS)
        pace.opened = True
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
