"""The scratch disk: a fresh ext4 file system for each trial, the same bytes each time, formatted once."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from kduel.core.cache import Cache, as_cache_error
from kduel.core.errors import HostError
from kduel.core.host_packages import install_command

# Written in full, because hosts' defaults differ, and features that only newer kernels know would treat arms
# unequally.
_MKE2FS_CONF = """\
[defaults]
base_features = sparse_super,large_file,filetype,resize_inode,dir_index,ext_attr
blocksize = 4096
inode_size = 256
inode_ratio = 16384
[fs_types]
ext4 = {
    features = has_journal,extent,huge_file,flex_bg,metadata_csum,64bit,dir_nlink,extra_isize
}
"""
_UUID = "6b647565-6c00-4000-8000-736372617463"
_MADE = "1735689600"
"""Seconds since 1970."""


def template(mebibytes: int, *, cache: Cache) -> Path:
    """A sparse image of that size with an empty ext4 file system. Raises HostError where mke2fs is missing or fails."""

    def build(directory: Path) -> None:
        format_ext4(directory / "scratch.ext4", mebibytes, "scratch")

    key = f"{mebibytes}-{hashlib.sha256(_MKE2FS_CONF.encode()).hexdigest()[:8]}"
    return cache.entry("scratch", key, build) / "scratch.ext4"


def format_ext4(image: Path, mebibytes: int, label: str, tree: Path | None = None) -> None:
    """A sparse image with an ext4 file system, holding what `tree` holds. Raises HostError as `template`."""
    mke2fs = shutil.which("mke2fs", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if mke2fs is None:
        raise HostError("mke2fs is not installed", f"Install it: {install_command('mkfs.ext4')}.")
    settings = image.with_name("mke2fs.conf")
    settings.write_text(_MKE2FS_CONF)
    with image.open("wb") as stream:
        stream.truncate(mebibytes << 20)
    # Inode tables are made now, not lazily by a kernel thread in the middle of a measurement.
    options = f"lazy_itable_init=0,lazy_journal_init=1,discard,hash_seed={_UUID},root_owner=0:0"
    content = ["-d", str(tree)] if tree else []
    done = subprocess.run(
        [mke2fs, "-q", "-F", "-t", "ext4", "-m", "0", "-L", label, "-U", _UUID, "-E", options, *content, str(image)],
        # e2fsprogs before 1.47.1 do not know SOURCE_DATE_EPOCH.
        env={**os.environ, "MKE2FS_CONFIG": str(settings), "E2FSPROGS_FAKE_TIME": _MADE, "SOURCE_DATE_EPOCH": _MADE},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise HostError(
            f"a {label} disk of {mebibytes} MiB cannot be formatted: {done.stderr.strip()}",
            "Give the machine another `disk`, or free some space in the cache.",
        )


@contextmanager
def fresh_copy(image: Path, cache: Cache) -> Iterator[IO[bytes]]:
    """A nameless copy of the image, as sparse as it is, and gone afterwards. Raises HostError for trouble with space."""
    with ExitStack() as held:
        with as_cache_error(cache.root):
            directory = cache.root / "tmp"
            directory.mkdir(parents=True, exist_ok=True)
            copy = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115 - closed below
            held.callback(_forget, copy)
            with image.open("rb") as source:
                _copy_sparse(source.fileno(), copy.fileno())
        yield copy


def _forget(copy: IO[bytes]) -> None:
    """Close a file that nobody will read: whatever the disk says to that loses nothing."""
    with suppress(OSError):
        copy.close()


def _copy_sparse(source: int, target: int) -> None:
    size = os.fstat(source).st_size
    os.ftruncate(target, size)
    position = 0
    while position < size:
        try:
            start = os.lseek(source, position, os.SEEK_DATA)
        except OSError:  # ENXIO: only a hole is left
            return
        position = os.lseek(source, start, os.SEEK_HOLE)
        os.lseek(target, start, os.SEEK_SET)
        while start < position:
            start += os.sendfile(target, source, start, position - start)
