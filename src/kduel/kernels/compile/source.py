"""Kernel trees, unpacked in the cache, where nothing changes them: builds go elsewhere."""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from kduel.core.background_task import repeat_beside
from kduel.core.cache import Cache, as_cache_error
from kduel.core.errors import HostError, InputError, os_errors
from kduel.core.progress import Task
from kduel.core.supervised_process import run_text
from kduel.core.this_host import text_of

KIND = "source"
LOOK_SECONDS = 3.0
"""Between two counts of the files of a tree that is being unpacked."""
NUMBERS = re.compile(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)[ \t]*=[ \t]*(\S*)", re.MULTILINE)


class SourceTree(Struct, frozen=True, kw_only=True):
    """A tree that can be built."""

    tree: Path
    identity: str
    """Digest that determines its content: a SHA-256 of the archive, a commit."""
    version: str
    """Version in its Makefile, such as 6.1.192."""
    exact: str
    """The specification that means this very tree, without a recipe."""
    facts: dict[str, Any]
    """For the kernel's provenance."""


def unpack_tree(key: str, extract: Callable[[Path], None], *, cache: Cache) -> Path:
    """The tree that `extract` leaves in its directory, or one below, in the cache. Raises InputError for none."""

    def build(into: Path) -> None:
        fresh = into / "unpacked"
        fresh.mkdir()
        extract(fresh)
        inner = [entry for entry in fresh.iterdir() if not entry.name.startswith(".")]
        top = inner[0] if len(inner) == 1 and inner[0].is_dir() else fresh
        read_version(top)
        with as_cache_error(into):
            top.rename(into / "linux")
            shutil.rmtree(fresh, ignore_errors=True)

    return cache.entry(KIND, key, build) / "linux"


def patch_tree(source: SourceTree, patch: Path, *, cache: Cache) -> SourceTree:
    """The tree with a patch (-p1) applied, of links to the files that it leaves. Raises InputError where it does not fit, HostError."""
    with os_errors(f"{patch} cannot be read", "Check its permissions."):
        digest = hashlib.sha256(source.identity.encode() + patch.read_bytes()).hexdigest()

    def build(into: Path) -> None:
        # patch(1) renames what it has written, so that no file of the original changes.
        with os_errors("cp and patch cannot be run", "Install patch."):
            copied = run_text(["cp", "-al", source.tree, into / "linux"])
            if copied.returncode:
                raise HostError(f"{source.tree} cannot be linked: {copied.stderr.strip()[:300]}", "Free some space.")
            words = ["patch", "-p1", "--batch", "--forward", "--fuzz=0", "--reject-file=-", "--no-backup-if-mismatch"]
            with patch.open("rb") as stream:
                done = run_text(words, stdin=stream, cwd=into / "linux")
        if done.returncode:
            said = [
                line
                for line in done.stdout.splitlines()
                if any(words in line for words in ("FAILED", "can't find", "previously applied"))
            ]
            raise InputError(
                f"{patch} does not fit {source.version}: {(said or [done.stderr.strip() or 'no reason given'])[0][:300]}",
                "Paths are those of git diff (a/mm/mmap.c). For the other direction, reverse it: interdiff, or patch -R.",
            )

    return structs.replace(
        source,
        tree=cache.entry(KIND, f"patched-{digest[:32]}", build) / "linux",
        identity=digest,
        facts=source.facts | {"patch": patch.name, "patch_sha256": hashlib.sha256(patch.read_bytes()).hexdigest()},
    )


def untar(archive: Path | None, into: Path, feed: subprocess.Popen[bytes] | None = None) -> None:
    """Unpack a tar of any compression; tar refuses members that would leave `into`. Raises InputError, HostError."""
    command = ["tar", "-x", "-C", str(into), "--no-same-owner", "--no-same-permissions", "-f", str(archive or "-")]
    with as_tar_error():
        done = subprocess.run(
            command, stdin=feed.stdout if feed else subprocess.DEVNULL, capture_output=True, check=False
        )
    if done.returncode:
        raise damaged_archive(archive, done.stderr)


@contextmanager
def count_files(into: Path, task: Task) -> Iterator[None]:
    """Advance a task by the files that appear below `into`, looked at every few seconds."""
    seen = 0

    def count() -> None:
        nonlocal seen
        now = sum(len(files) for _, _, files in os.walk(into))
        task.advance(now - seen)
        seen = now

    with repeat_beside(count, LOOK_SECONDS):
        yield


def check_archive(archive: Path) -> None:
    """Raises InputError for what is no tar file, as far as its first member tells; HostError without tar."""
    with as_tar_error(), subprocess.Popen(
        ["tar", "-t", "-f", str(archive)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as listing:  # fmt: skip
        assert listing.stdout is not None and listing.stderr is not None
        if listing.stdout.readline():
            listing.kill()
            return
        said = listing.stderr.read()
    if listing.returncode:
        raise damaged_archive(archive, said)


def as_tar_error() -> AbstractContextManager[None]:
    """Turn an OSError of starting tar into a HostError."""
    return os_errors("tar cannot be run", "Install tar and xz-utils.")


def damaged_archive(archive: Path | None, stderr: bytes) -> InputError:
    """The error for what tar cannot read; `stderr` is what it said."""
    said = stderr.decode("utf-8", errors="replace").strip().splitlines() or ["no reason given"]
    return InputError(f"{archive or 'the archive'} does not unpack: {said[0][:300]}", "Copy or download it again.")


def read_version(tree: Path) -> str:
    """Version in the Makefile. Raises InputError for what is no kernel's tree."""
    return version_in(text_of(tree / "Makefile"), complete=(tree / "Kconfig").exists())


def version_in(makefile: str, *, complete: bool) -> str:
    """Version in a Makefile's text. Raises InputError for what is no kernel's; `complete` is whether a Kconfig is next to it."""
    numbers = dict(NUMBERS.findall(makefile[:2000]))
    if not {"VERSION", "PATCHLEVEL", "SUBLEVEL"} <= numbers.keys() or not complete:
        raise InputError(
            "this is no source tree of the Linux kernel: its Makefile has no version", "Give a kernel's source."
        )
    return f"{numbers['VERSION']}.{numbers['PATCHLEVEL']}.{numbers['SUBLEVEL']}{numbers.get('EXTRAVERSION', '')}"
