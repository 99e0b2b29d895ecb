"""The cache: directories that are built once, appear whole, and never change. Several KDuels may use one: the first
builds, others wait. An entry that differs from its manifest (kduel.core.manifest) is built again."""

import errno
import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from kduel.core.errors import InputError, os_errors
from kduel.core.manifest import Manifest, digest
from kduel.core.progress import Progress
from kduel.core.temporary import temporary_directory, try_to_make

GO_ONLINE = (
    "Run once without --offline, or bring a bundle from a machine with network: kduel bundle, kduel bundle --unpack."
)
"""The remedy where the cache lacks what only the network has."""
KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+~^:-]{0,199}")
"""A kind, or a name of an entry: parts of it come from lists of packages, which need not be signed, and from bundles."""
MOST_PART = 100


def cache_root() -> Path:
    """$KDUEL_CACHE, else kduel/ in $XDG_CACHE_HOME or ~/.cache."""
    given = os.environ.get("KDUEL_CACHE")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "kduel"


def as_cache_error(where: Path) -> AbstractContextManager[None]:
    """Turn an OSError about the cache into a HostError with a remedy."""
    return os_errors(
        f"the cache at {where} is not usable",
        "Make it readable and writable, free some space, or name another place in KDUEL_CACHE. What is missing there "
        "is made again by the next run.",
    )


DISK_FULL, DISK_FAULTS = (errno.ENOSPC, errno.EDQUOT), (errno.EIO, errno.EROFS)
DISK_FAILS = re.compile("|".join(map(os.strerror, DISK_FAULTS)))
DISK_REFUSES = re.compile("|".join(map(os.strerror, DISK_FULL + DISK_FAULTS)))
SCARCE = 1 << 20
"""Bytes with which nothing can be done."""


def disk_remedy(said: str, *places: Path) -> str:
    """Instruction where a program says that a disk refused, or there is no room in one of the `places` that it fills; else empty."""
    full = [place for place in places if shutil.disk_usage(place).free < SCARCE]
    if not (full or DISK_REFUSES.search(said)):
        return ""
    if DISK_FAILS.search(said):
        what = f"Check the disk of {' and '.join(map(str, places))} (dmesg)"
    else:
        what = f"Free some space in {' and '.join(map(str, full or places))}"
    return f"{what}, or name other places in KDUEL_CACHE and TMPDIR; then start again."


def check_root(root: Path) -> None:
    """Raises HostError where a cache cannot be in `root`; leaves nothing there."""
    with as_cache_error(root):
        if os.path.lexists(root):
            next(root.iterdir(), None)
            return
        try_to_make(root)


class Cache:
    """A directory of complete entries `<kind>/<key>/`, checked by their manifests when first used; `progress` hears
    of damaged ones. Raises HostError, when made, where it is unusable. Without `make` it may be missing, for
    readers."""

    def __init__(self, root: Path | None = None, progress: Progress | None = None, *, make: bool = True) -> None:
        self.root = root or cache_root()
        self.progress = progress or Progress()
        self._checked: set[tuple[str, str]] = set()
        self._told: set[tuple[str, str]] = set()
        check_root(self.root)
        if make:
            with as_cache_error(self.root):
                self.root.mkdir(parents=True, exist_ok=True)

    @property
    def used_entries(self) -> frozenset[tuple[str, str]]:
        return frozenset(self._checked)

    def path(self, kind: str, key: str) -> Path:
        """Directory of the entry, there or not. Raises InputError for a kind or a key that is no name of a file."""
        return self.root / checked_key(kind) / checked_key(key)

    def has(self, kind: str, key: str) -> bool:
        """True if the entry is there, complete and unchanged. Raises HostError where the cache cannot be read."""
        with as_cache_error(self.root):
            path = self.path(kind, key)
            try:
                next(path.iterdir(), None)
            except FileNotFoundError:
                return False
            if (kind, key) not in self._checked:
                if why := self._why_not_usable(kind, key):
                    if (kind, key) not in self._told:
                        self._told.add((kind, key))
                        self.progress.warn(f"the cache entry {path} is damaged ({why}) and not used")
                    return False
                self._checked.add((kind, key))
            return True

    def holds(self, kind: str, key: str, name: str) -> bool:
        """True if one file of an entry is as its manifest has it: who lists entries reads it before they are checked whole."""
        with as_cache_error(self.root):
            manifest, file = Manifest.read(self._manifest(kind, key)), self.path(kind, key) / name
            known = manifest.files.get(name) if manifest else None
            return known is not None and file.is_file() and digest(file) == known.digest

    def entry(self, kind: str, key: str, build: Callable[[Path], None]) -> Path:
        """The entry's directory; `build(DIR)` fills a missing one or a damaged one, whole. Raises HostError."""
        if self.has(kind, key):
            return self.path(kind, key)
        path = self.path(kind, key)
        with self.lock(f"{kind}-{key}"):
            if self.has(kind, key):
                return path
            with as_cache_error(self.root):
                path.parent.mkdir(parents=True, exist_ok=True)
            with temporary_directory(path.parent, ".making-", as_cache_error(self.root)) as fresh:
                with self._errors_of(fresh):
                    build(fresh)
                with as_cache_error(self.root):
                    fresh.chmod(0o755)
                    Manifest.of_directory(fresh).write(self._manifest(kind, key))
                    if path.exists():
                        path.rename(fresh.with_name(f"{fresh.name}-old"))
                    fresh.rename(path)
                    shutil.rmtree(fresh.with_name(f"{fresh.name}-old"), ignore_errors=True)
            self._checked.add((kind, key))
        return path

    @contextmanager
    def _errors_of(self, fresh: Path) -> Iterator[None]:
        """The cache's errors in what fills `fresh`: those of its files, and those that name none, as when a disk is full."""
        try:
            yield
        except OSError as error:
            unnamed = error.filename is None and error.errno in (*DISK_FULL, *DISK_FAULTS, errno.EFBIG)
            if unnamed or str(error.filename).startswith(str(fresh)):
                with as_cache_error(self.root):
                    raise
            raise

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold the cache's lock of that name; wait for whoever has it."""
        with as_cache_error(self.root):
            locks = self.root / "locks"
            locks.mkdir(parents=True, exist_ok=True)
            handle = os.open(locks / name.replace("/", "_"), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            with as_cache_error(self.root):
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            with suppress(OSError):  # Nothing was written.
                os.close(handle)

    def _manifest(self, kind: str, key: str) -> Path:
        return self.root / "manifests" / checked_key(kind) / f"{checked_key(key)}.json"

    def _why_not_usable(self, kind: str, key: str) -> str:
        """Empty where the entry matches its manifest. An entry without a manifest does not match."""
        directory, file = self.path(kind, key), self._manifest(kind, key)
        manifest = Manifest.read(file)
        if manifest is None:
            return "its manifest is damaged" if file.exists() else "it has no manifest"
        if why := manifest.differs(directory):
            return why
        manifest.keep(file)
        return ""


def key_part(text: str) -> str:
    """The part of a key that stands for the name of a user's file, which may be any: its digest makes the key unique."""
    return re.sub(r"[^A-Za-z0-9._+~^:-]", "_", text).lstrip("._+~^:-")[:MOST_PART]


def checked_key(key: str) -> str:
    """The key of an entry, which names one file in a directory. Raises InputError where it could lead elsewhere."""
    if KEY.fullmatch(key) is None:
        raise InputError(
            f"{key[:80]!r} cannot be the name of an entry of the cache",
            "A list of packages has a name or a version that no package has: use another mirror.",
        )
    return key
