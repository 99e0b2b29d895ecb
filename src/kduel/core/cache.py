"""The cache: directories that are built once, appear whole, and are never changed afterwards.

Several KDuels may use one cache at the same time: whoever comes first builds, the others wait.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kduel.core.errors import HostError


def cache_root() -> Path:
    """$KDUEL_CACHE, else kduel/ in $XDG_CACHE_HOME or ~/.cache."""
    given = os.environ.get("KDUEL_CACHE")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "kduel"


@contextmanager
def told_as_cache_trouble(where: Path) -> Iterator[None]:
    """Turn an OSError about the cache into a HostError that says what to do."""
    try:
        yield
    except OSError as error:
        raise HostError(
            f"the cache at {where} is not usable: {error.strerror or error}",
            "Make it readable and writable, free some space, or name another place in KDUEL_CACHE.",
        ) from error


class Cache:
    """A directory of entries `<kind>/<key>/`; an entry that is there is complete.

    Raises HostError, when made, where the directory cannot be made or read.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or cache_root()
        with told_as_cache_trouble(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            next(self.root.iterdir(), None)

    def path(self, kind: str, key: str) -> Path:
        """Where the entry is, or would be."""
        return self.root / kind / key

    def has(self, kind: str, key: str) -> bool:
        """Whether the entry is there, complete. Raises HostError where the cache cannot be read."""
        with told_as_cache_trouble(self.root):
            path = self.path(kind, key)
            try:
                next(path.iterdir(), None)
            except FileNotFoundError:
                return False
            return True

    def entry(self, kind: str, key: str, build: Callable[[Path], None]) -> Path:
        """The entry's directory; where it is missing, `build(DIR)` fills a new one, which then appears whole.

        What `build` raises goes through, and leaves nothing behind. Raises HostError for trouble with the cache.
        """
        if self.has(kind, key):
            return self.path(kind, key)
        path = self.path(kind, key)
        with self.lock(f"{kind}-{key}"):
            if self.has(kind, key):
                return path
            with told_as_cache_trouble(self.root):
                path.parent.mkdir(parents=True, exist_ok=True)
                fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=path.parent))
            try:
                build(fresh)
                with told_as_cache_trouble(self.root):
                    fresh.chmod(0o755)
                    fresh.rename(path)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
        return path

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold the cache's lock of that name; wait for whoever has it."""
        with told_as_cache_trouble(self.root):
            locks = self.root / "locks"
            locks.mkdir(parents=True, exist_ok=True)
            handle = open(locks / name.replace("/", "_"), "a")  # noqa: SIM115, PTH123 - closed below
        with handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
