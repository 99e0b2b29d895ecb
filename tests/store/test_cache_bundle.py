"""Bundles: whole entries or none, whatever became of the file on its way."""

from __future__ import annotations

import errno
import io
import os
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kduel.cli.output import open_output, write
from kduel.core.cache import Cache
from kduel.core.cache_bundle import CONTENTS, contents_of, digest_of, pack, unpack
from kduel.core.errors import HostError, InputError, KduelError
from kduel.core.manifest import Manifest

KERNEL, PROGRAM, SCRATCH = ("kernels", "debian-6.1-amd64"), ("programs", "kbench-1"), ("scratch", "8G")


def nothing(_: float) -> None:
    pass


def fill(into: Path) -> None:
    (into / "lib/modules").mkdir(parents=True)
    (into / "vmlinuz").write_bytes(bytes(range(256)) * 50)
    (into / "lib/modules/loop.ko").write_bytes(b"a module")
    (into / "lib/build").symlink_to("/usr/src/linux")
    (into / "empty").touch()


def program(into: Path) -> None:
    (into / "kbench").write_bytes(b"\x7fELF")
    (into / "kbench").chmod(0o755)


def filled(place: Path) -> Cache:
    cache = Cache(place)
    for (kind, key), build in ((KERNEL, fill), (PROGRAM, program), (SCRATCH, program)):
        cache.entry(kind, key, build)
    return cache


def packed(cache: Cache) -> bytes:
    target = io.BytesIO()
    pack(cache, contents_of(cache, cache.used_entries), target, nothing)
    return target.getvalue()


def unpacked(data: bytes, place: Path) -> Cache:
    place.mkdir(exist_ok=True)
    (place / "bundle.tar").write_bytes(data)
    cache = Cache(place / "cache")
    unpack(place / "bundle.tar", cache, nothing)
    return cache


def test_a_bundle_brings_the_same_entries_to_another_cache(tmp_path: Path) -> None:
    cache = filled(tmp_path / "one")
    other = unpacked(packed(cache), tmp_path)
    for kind, key in (KERNEL, PROGRAM):
        assert other.has(kind, key)
        assert Manifest.of_directory(cache.path(kind, key)).differs(other.path(kind, key)) == ""
    assert (other.path(*KERNEL) / "lib/build").readlink() == Path("/usr/src/linux")
    assert not other.has(*SCRATCH), "made without network"


def test_the_same_entries_give_the_same_bytes_on_any_machine(tmp_path: Path) -> None:
    one, two = filled(tmp_path / "one"), filled(tmp_path / "two")
    assert packed(one) == packed(two)
    assert digest_of(contents_of(one, one.used_entries)) == digest_of(contents_of(two, two.used_entries))
    (two.path(*PROGRAM) / "kbench").write_bytes(b"\x7fELG")
    assert digest_of(contents_of(one, one.used_entries)) != digest_of(contents_of(two, two.used_entries))


def test_entries_that_are_there_already_are_kept(tmp_path: Path) -> None:
    data = packed(filled(tmp_path / "one"))
    (tmp_path / "bundle.tar").write_bytes(data)
    other = Cache(tmp_path / "two")
    other.entry(*KERNEL, program)
    assert unpack(tmp_path / "bundle.tar", other, nothing) == [(*KERNEL, False), (*PROGRAM, True)]
    assert (other.path(*KERNEL) / "kbench").exists()


@pytest.mark.slow
@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_damaged_bundle_leaves_whole_entries_or_none(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    place = tmp_path_factory.mktemp("bundle")
    cache = filled(place / "one")
    whole = packed(cache)
    cut = data.draw(st.integers(0, len(whole) - 1))
    flipped = data.draw(st.integers(0, 255))
    damaged = whole[:cut] if data.draw(st.booleans()) else whole[:cut] + bytes([flipped]) + whole[cut + 1 :]
    other = Cache(place / "two")
    (place / "bundle.tar").write_bytes(damaged)
    try:
        unpack(place / "bundle.tar", other, nothing)
    except KduelError as error:
        assert str(place / "bundle.tar") in error.message and error.remedy
    for kind, key in (KERNEL, PROGRAM):
        if other.path(kind, key).exists():
            now, was = Manifest.of_directory(other.path(kind, key)), Manifest.of_directory(cache.path(kind, key))
            assert {path: file.digest for path, file in now.files.items()} == {
                path: file.digest for path, file in was.files.items()
            }
    assert not list((place / "two").glob("**/.making-*"))


@pytest.mark.parametrize("key", [b'"files":', b'"links":'])
def test_a_bundle_with_a_damaged_key_is_refused(tmp_path: Path, key: bytes) -> None:
    whole = packed(filled(tmp_path / "one"))
    assert key in whole
    (tmp_path / "bundle.tar").write_bytes(whole.replace(key, key.replace(b"e", b" ").replace(b"k", b" "), 1))
    with pytest.raises(InputError, match="unknown field"):
        unpack(tmp_path / "bundle.tar", Cache(tmp_path / "two"), nothing)


def changed(data: bytes, change: Callable[[dict[str, object]], None], names: Callable[[str], str] = str) -> bytes:
    """A bundle with other contents or names of its members, each well-formed."""
    target = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(data)) as source, tarfile.open(fileobj=target, mode="w") as out:
        for member in source:
            stream = source.extractfile(member)
            assert stream is not None
            text = stream.read()
            if member.name == CONTENTS:
                table = msgspec.json.decode(text)
                change(table)
                text = msgspec.json.encode(table)
            member.name, member.size = names(member.name), len(text)
            out.addfile(member, io.BytesIO(text))
    return target.getvalue()


def outside(table: dict[str, object], path: str) -> None:
    manifest = table["entries"][0]["manifest"]  # type: ignore[index]
    manifest["files"][path] = manifest["files"].pop("vmlinuz")


@pytest.mark.parametrize("path", ["../../outside", "/etc/outside", "lib/../../x", ".", "", "a//b"])
def test_a_bundle_writes_nothing_outside_its_entries(tmp_path: Path, path: str) -> None:
    data = changed(
        packed(filled(tmp_path / "one")),
        lambda table: outside(table, path),
        lambda name: name.replace("vmlinuz", path),
    )
    with pytest.raises(InputError, match="is not a path inside an entry"):
        unpacked(data, tmp_path)
    assert {found.name for found in tmp_path.iterdir()} == {"one", "bundle.tar", "cache"}


def test_a_file_is_not_written_through_a_link_of_the_bundle(tmp_path: Path) -> None:
    def through(table: dict[str, object]) -> None:
        manifest = table["entries"][0]["manifest"]  # type: ignore[index]
        manifest["links"]["lib"] = str(tmp_path)

    with pytest.raises(KduelError):
        unpacked(changed(packed(filled(tmp_path / "one")), through), tmp_path)
    assert not (tmp_path / "modules").exists()


@pytest.mark.parametrize(
    "links",
    [
        {"a": "OUTSIDE", "a/planted": "/etc/passwd"},
        {"a": "OUTSIDE", "a/new/planted": "/etc/passwd"},
        {"vmlinuz": "/etc/passwd"},
        {"vmlinuz/x": "/etc/passwd"},
        {"a": ""},
        {"a": "b\0c"},
        {"a": "b" * 5000},
        {"/".join("d" * 1500): "b"},
    ],
)
def test_no_link_of_a_bundle_is_made_outside_its_entry(tmp_path: Path, links: dict[str, str]) -> None:
    """Links come after the files, and one was made through another: {a: /home/user, a/.config/...}."""
    (tmp_path / "outside").mkdir()

    def plant(table: dict[str, object]) -> None:
        given = {path: target.replace("OUTSIDE", str(tmp_path / "outside")) for path, target in links.items()}
        table["entries"][0]["manifest"]["links"] = given  # type: ignore[index]

    with pytest.raises(InputError, match="is not a whole bundle"):
        unpacked(changed(packed(filled(tmp_path / "one")), plant), tmp_path)
    assert not list((tmp_path / "outside").iterdir())


def header(kind: bytes, text: bytes = b"", size: int | None = None) -> bytes:
    member = tarfile.TarInfo("header")
    member.type, member.size = kind, len(text) if size is None else size
    return member.tobuf(tarfile.GNU_FORMAT) + text + b"\0" * (-len(text) % 512)


def record(text: bytes) -> bytes:
    """One line of a header of POSIX.1-2001, after its own length."""
    length = next(total for total in range(len(text), len(text) + 20) if len(b"%d %b\n" % (total, text)) == total)
    return header(tarfile.XHDTYPE, b"%d %b\n" % (length, text))


@pytest.mark.parametrize(
    "first",
    [
        record(b"a=b") * 5000,
        header(tarfile.GNUTYPE_LONGNAME, b"a\0") * 5000,
        record(b"GNU.sparse.size=many"),
        record(b"GNU.sparse.map=a,b"),
        record(b"GNU.sparse.size=" + b"9" * 5000),
        record(b"GNU.sparse.size=99\n24 GNU.sparse.map=0,9\n"),
        header(tarfile.XHDTYPE, b"9" * 5000 + b" a=b\n"),
        header(tarfile.XHDTYPE, size=1 << 40),
        header(tarfile.XGLTYPE, size=1 << 40),
        header(tarfile.GNUTYPE_SPARSE, size=1 << 40),
    ],
)
@pytest.mark.parametrize("later", [False, True])
def test_hostile_headers_are_refused(tmp_path: Path, first: bytes, later: bool) -> None:
    """A row of 5,000 headers, or a number that is none, was a traceback; a header's size was memory."""
    whole = packed(filled(tmp_path / "one"))
    with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
        place = tar.getmembers()[1].offset if later else 0
    with pytest.raises(InputError, match=rf"bundle\.tar is not a {'whole bundle' if later else 'bundle of KDuel'}"):
        unpacked(whole[:place] + first + whole[place:], tmp_path)


@pytest.mark.parametrize(
    ("kind", "key"), [("scratch", "8G"), ("locks", "x"), ("..", "x"), ("kernels", ".."), ("kernels", "a/b")]
)
def test_a_bundle_holds_nothing_but_entries(tmp_path: Path, kind: str, key: str) -> None:
    def rename(table: dict[str, object]) -> None:
        table["entries"][0] |= {"kind": kind, "key": key}  # type: ignore[index]

    with pytest.raises(InputError, match="no entry of a bundle"):
        unpacked(changed(packed(filled(tmp_path / "one")), rename), tmp_path)


def test_what_is_no_bundle_is_refused_by_name(tmp_path: Path) -> None:
    for data in (b"", b"no tar", b"\0" * 10240):
        with pytest.raises(InputError, match=r"bundle\.tar is not a bundle of KDuel") as raised:
            unpacked(data, tmp_path)
        assert (raised.value.remedy or "").startswith("Name a file that `kduel bundle` wrote")
    later = changed(packed(filled(tmp_path / "one")), lambda table: table.update(schema=2))
    with pytest.raises(InputError, match="form 2; this version of KDuel reads form 1"):
        unpacked(later, tmp_path)
    with pytest.raises(InputError, match="not a file"):
        unpack(tmp_path / "nowhere.tar", Cache(tmp_path / "cache"), nothing)


@pytest.mark.skipif(os.geteuid() != 0, reason="making a device takes root")
def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    """`kduel bundle --output /dev/full`, as root, put a file in the place of the machine's device."""
    null, full = tmp_path / "null", tmp_path / "full"
    os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    os.mknod(full, 0o666 | stat.S_IFCHR, os.makedev(1, 7))
    write(null, b"text")
    with pytest.raises(HostError, match=r"cannot write .*full: No space left"):
        write(full, b"text")
    assert null.is_char_device() and full.is_char_device()


def test_a_file_that_could_not_be_written_to_its_end_is_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "bundle.tar"
    path.write_bytes(b"old")
    with pytest.raises(HostError, match="Input/output error"), open_output(path) as stream:
        stream.write(b"new")
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_other_content_than_the_expected_is_not_taken(tmp_path: Path) -> None:
    cache = filled(tmp_path / "one")
    (tmp_path / "bundle.tar").write_bytes(packed(cache))
    other = Cache(tmp_path / "other")
    digest = digest_of(contents_of(cache, cache.used_entries))
    with pytest.raises(InputError, match=f"holds something else: .*{digest}"):
        unpack(tmp_path / "bundle.tar", other, nothing, sha256=digest_of(contents_of(cache, [KERNEL])))
    assert not any(path.is_dir() for path in other.root.glob("*/*"))
    assert len(unpack(tmp_path / "bundle.tar", other, nothing, sha256=digest.upper())) == 2
