"""A bundle: entries of the cache in one file, for a machine without network. Its name follows from its content.

A tar (POSIX.1-2001) of regular files. The first one, CONTENTS, lists the entries with their manifests; then come the files of
each entry, in that order, as KIND/KEY/PATH. Symbolic links stand in the manifests only."""

import hashlib
import io
import shutil
import tarfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

import msgspec
from msgspec import Struct

from kduel.core.cache import KEY, Cache, as_cache_error
from kduel.core.errors import InputError, os_errors
from kduel.core.manifest import Manifest
from kduel.core.tar_stream import PIECE, Part, RefusedArchive, TarBounds, TarMember, read_members
from kduel.core.text import visible
from kduel.core.untrusted import NOT_JSON

SCHEMA = 1
CONTENTS = "kduel-bundle.json"
MOST_CONTENTS = 64 << 20
"""Bytes of CONTENTS: a kernel's modules take about 1 MB."""
CARRIED = frozenset({"busybox", "deb", "kernels", "programs", "root", "schedulers", "source"})
"""Kinds of entries that need the network or a compiler. All others are made from these."""
LONGEST_PATH = 1000
"""Characters of a path inside an entry."""
BOUNDS = TarBounds(members=1_000_000, extended=8 << 10)
"""All that CONTENTS can list, with the longest path."""
Members = Iterator[tuple[TarMember, Part]]


class BundleForm(Struct):
    """Part of CONTENTS, in any version, that names the version."""

    schema: int


class BundledEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of the cache with what it holds; inodes and times in its manifest are those of the packing machine."""

    kind: str
    key: str
    manifest: Manifest

    @property
    def files(self) -> dict[str, int]:
        """Name in the tar, in order, to size in bytes."""
        return {f"{self.kind}/{self.key}/{path}": file.size for path, file in sorted(self.manifest.files.items())}


class BundleContents(Struct, frozen=True, forbid_unknown_fields=True):
    schema: int
    entries: list[BundledEntry]

    @property
    def size(self) -> int:
        return sum(size for entry in self.entries for size in entry.files.values())


def contents_of(cache: Cache, entries: Collection[tuple[str, str]]) -> BundleContents:
    """Content of a bundle of these entries; what needs no network is left out. Raises HostError."""
    found = []
    with as_cache_error(cache.root):
        for kind, key in sorted(set(entries)):
            if kind in CARRIED:
                manifest = Manifest.of_directory(cache.path(kind, key))
                for file in manifest.files.values():
                    file.inode = file.changed = 0
                found.append(BundledEntry(kind, key, manifest))
    return BundleContents(SCHEMA, found)


def digest_of(contents: BundleContents) -> str:
    """SHA-256, hexadecimal, of all that the bundle holds."""
    return hashlib.sha256(msgspec.json.encode(contents)).hexdigest()


def pack(cache: Cache, contents: BundleContents, target: IO[bytes], advance: Callable[[float], object]) -> None:
    """Write a bundle; the same entries always give the same bytes. `advance` hears of each file's bytes. Raises
    HostError where the cache cannot be read, OSError where `target` cannot be written."""
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as tar:
        _add(tar, CONTENTS, io.BytesIO(text := msgspec.json.encode(contents)), len(text), executable=False)
        for entry in contents.entries:
            for path, file in sorted(entry.manifest.files.items()):
                with as_cache_error(cache.root):
                    source = (cache.path(entry.kind, entry.key) / path).open("rb")
                with source:
                    _add(tar, f"{entry.kind}/{entry.key}/{path}", source, file.size, executable=file.executable)
                advance(file.size)


def _add(tar: tarfile.TarFile, name: str, source: IO[bytes], size: int, *, executable: bool) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o755 if executable else 0o644
    tar.addfile(member, source)


def unpack(
    file: Path, cache: Cache, advance: Callable[[float], object], *, sha256: str = ""
) -> list[tuple[str, str, bool]]:
    """Put a bundle's entries, with `sha256` only of that digest, into the cache: (kind, key, whether it was new);
    nothing of an entry that differs from its manifest is kept. Raises InputError naming what is wrong, HostError."""
    with _open_bundle(file) as tar:
        contents = _read_contents(tar, file)
        if sha256 and digest_of(contents) != sha256.lower():
            raise InputError(
                f"{file} holds something else: the SHA-256 of its content is {digest_of(contents)}",
                "Get the bundle again, or its digest.",
            )
        done = []
        for entry in contents.entries:
            fresh = not cache.has(entry.kind, entry.key)
            if fresh:
                cache.entry(entry.kind, entry.key, partial(_extract, tar, entry, file, advance))
            else:
                for name, size in entry.files.items():
                    _next_member(tar, name, size, file)
                    advance(size)
            done.append((entry.kind, entry.key, fresh))
        return done


@contextmanager
def _open_bundle(file: Path) -> Iterator[Members]:
    """The bundle, read once from its beginning to its end."""
    if not file.is_file():
        raise InputError(f"{file} is not a file", "Name a file that `kduel bundle` wrote.")
    with os_errors(f"cannot read {file}", "Check its permissions, or copy it again."), file.open("rb") as stream:
        if stream.read(len(CONTENTS)) != CONTENTS.encode():
            raise InputError(
                f"{file} is not a bundle of KDuel: it does not begin with {CONTENTS}",
                "Name a file that `kduel bundle` wrote. If it is one, its beginning is damaged: copy it again.",
            )
        stream.seek(0)
        try:
            yield read_members(stream, BOUNDS)
        except RefusedArchive as error:
            raise _damage_error(file, visible(str(error), 200)) from error


def _damage_error(file: Path, what: str) -> InputError:
    return InputError(f"{file} is not a whole bundle: {what}", "Copy it again, or make it again with `kduel bundle`.")


def _read_contents(tar: Members, file: Path) -> BundleContents:
    first, source = next(tar, (None, None))
    if first is None or source is None or first.name != CONTENTS.encode() or first.size > MOST_CONTENTS:
        raise _damage_error(file, f"it does not begin with {CONTENTS}")
    try:
        text = source.read()
        if (schema := msgspec.json.decode(text, type=BundleForm).schema) != SCHEMA:
            raise InputError(
                f"{file} is a bundle of form {schema}; this version of KDuel reads form {SCHEMA}",
                "Make it with this version.",
            )
        contents = msgspec.json.decode(text, type=BundleContents)
    except NOT_JSON as error:
        raise _damage_error(file, f"{CONTENTS}: {visible(str(error), 200)}") from error
    for entry in contents.entries:
        if entry.kind not in CARRIED or not KEY.fullmatch(entry.key):
            raise _damage_error(
                file, f"it holds {visible(f'{entry.kind}/{entry.key}', 200)}, which is no entry of a bundle"
            )
        if wrong := _wrong_path(entry.manifest):
            raise _damage_error(file, wrong)
    return contents


def _wrong_path(manifest: Manifest) -> str:
    """Error in the paths of an entry, or empty. Each must lie inside the entry, also behind its own links."""
    paths = (*manifest.files, *manifest.links)
    for path in filter(_leads_outside, paths):
        return f"{visible(path, 200)} is not a path inside an entry"
    for path in paths:
        above = {str(parent) for parent in PurePosixPath(path).parents}
        if not above.isdisjoint(manifest.links) or not above.isdisjoint(manifest.files):
            return f"{visible(path, 200)} lies below a link or a file"
    for path, target in manifest.links.items():
        if path in manifest.files or not target or "\0" in target or len(target) > LONGEST_PATH:
            return f"{visible(path, 200)} is not a link that an entry can have"
    return ""


def _leads_outside(path: str) -> bool:
    if len(path) > LONGEST_PATH:
        return True
    parts = PurePosixPath(path).parts
    return not parts or path.startswith("/") or ".." in parts or "\0" in path or str(PurePosixPath(path)) != path


def _next_member(tar: Members, name: str, size: int, file: Path) -> Part:
    """The next member, which must be this one."""
    member, content = next(tar, (None, None))
    if member is None or content is None:
        raise _damage_error(file, f"it ends before {visible(name, 200)}")
    if member != TarMember(name.encode("utf-8", "surrogateescape"), False, member.offset, size):
        told = visible(member.name.decode("utf-8", errors="replace"), 200)
        raise _damage_error(file, f"{told} comes where {visible(name, 200)} must")
    return content


def _extract(tar: Members, entry: BundledEntry, file: Path, advance: Callable[[float], object], into: Path) -> None:
    for path, facts in sorted(entry.manifest.files.items()):
        source = _next_member(tar, f"{entry.kind}/{entry.key}/{path}", facts.size, file)
        with as_cache_error(into):
            target = into / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as stream:
                shutil.copyfileobj(source, stream, PIECE)
            target.chmod(0o755 if facts.executable else 0o644)
        advance(facts.size)
    with as_cache_error(into):
        # Links come last, so that no file is written through one.
        for path, target_of_link in entry.manifest.links.items():
            (into / path).parent.mkdir(parents=True, exist_ok=True)
            (into / path).symlink_to(target_of_link)
        now = Manifest.of_directory(into)
    for path, facts in entry.manifest.files.items():
        if now.files[path].digest != facts.digest:
            raise _damage_error(file, f"the checksum of {visible(path, 200)} does not match")
