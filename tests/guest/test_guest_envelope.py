from __future__ import annotations

import contextlib
import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kduel.guest import envelope
from kduel.guest.envelope import BrokenEnvelope, marks, open_envelope, seal, unpack

names = st.text(st.sampled_from("abcXYZ019._-"), min_size=1, max_size=20).filter(lambda n: n.strip(".") != "")


def tar_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, data in members:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def everything_below(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in directory.rglob("*") if p.is_file()}


@given(files=st.dictionaries(names, st.binary(max_size=3000), max_size=5), noise=st.binary(max_size=200))
@settings(max_examples=50, deadline=None)
def test_what_is_sealed_comes_home(files, noise, tmp_path_factory):
    into = tmp_path_factory.mktemp("home")
    archive = tar_of(*((member(f"d/{name}"), data) for name, data in files.items()))
    stream = noise + b"\nKDUEL READY 4.26\nKDUEL DONE 9.01 0\n" + seal(archive)
    unpack(open_envelope(stream), into)
    assert everything_below(into) == {f"d/{name}": data for name, data in files.items()}
    assert marks(stream)["READY"] == (4.26, None)
    assert marks(stream)["DONE"] == (9.01, 0)


@given(data=st.data(), content=st.binary(min_size=1, max_size=2000))
@settings(max_examples=150, deadline=None)
def test_a_damaged_envelope_is_told_never_opened(data, content):
    stream = seal(tar_of((member("file"), content)))
    cut = data.draw(st.integers(0, len(stream) - 11))
    flip = data.draw(st.integers(0, len(stream) - 12))
    changed = bytearray(stream)
    changed[flip] ^= data.draw(st.integers(1, 255))
    with pytest.raises(BrokenEnvelope):
        open_envelope(stream[:cut])
    try:
        opened = open_envelope(bytes(changed))
    except BrokenEnvelope:
        return
    assert opened == open_envelope(stream)


@given(garbage=st.binary(max_size=4000))
@settings(max_examples=200, deadline=None)
def test_garbage_is_never_unpacked_and_never_a_traceback(garbage, tmp_path_factory):
    into = tmp_path_factory.mktemp("garbage")
    with pytest.raises(BrokenEnvelope):
        open_envelope(garbage)
    try:
        unpack(garbage, into)
    except BrokenEnvelope:
        return
    assert not everything_below(into)


@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_a_tar_with_damaged_headers_stays_inside(data, tmp_path_factory):
    top = tmp_path_factory.mktemp("damaged")
    (top / "inside").mkdir()
    archive = bytearray(tar_of((member("a/b"), b"x" * 700), (member("c"), b"y")))
    for _ in range(data.draw(st.integers(1, 6))):
        archive[data.draw(st.integers(0, len(archive) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(BrokenEnvelope):
        unpack(bytes(archive), top / "inside")
    assert [p.name for p in top.iterdir()] == ["inside"]


@pytest.mark.parametrize(
    "bad",
    [
        member("../outside"),
        member("/etc/outside"),
        member("a/../../outside"),
        member("a/\n/b"),
        member("x" * 300),
        member("link", tarfile.SYMTYPE, "/etc/passwd"),
        member("link", tarfile.LNKTYPE, "../outside"),
        member("device", tarfile.CHRTYPE),
        member("fifo", tarfile.FIFOTYPE),
    ],
    ids=lambda info: f"{info.name[:12]!r}-{info.type.decode()}",
)
def test_members_that_would_leave_or_are_no_files_are_refused(bad, tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    with pytest.raises(BrokenEnvelope):
        unpack(tar_of((bad, b"")), inside)
    assert [p.name for p in tmp_path.iterdir()] == ["inside"]
    assert not list(inside.rglob("*link*"))


def test_a_link_to_write_through_is_refused_before_it_is_used(tmp_path):
    archive = tar_of((member("d", tarfile.SYMTYPE, str(tmp_path)), b""), (member("d/outside"), b"x"))
    (tmp_path / "inside").mkdir()
    with pytest.raises(BrokenEnvelope):
        unpack(archive, tmp_path / "inside")
    assert not (tmp_path / "outside").exists()


def test_a_file_is_not_written_twice_nor_over_what_is_there(tmp_path):
    (tmp_path / "console.log").write_text("ours")
    with pytest.raises(BrokenEnvelope):
        unpack(tar_of((member("console.log"), b"theirs")), tmp_path)
    assert (tmp_path / "console.log").read_text() == "ours"


def test_sizes_are_bounded(monkeypatch, tmp_path):
    archive = tar_of((member("a"), b"x" * 5000), (member("b"), b"x" * 5000))
    monkeypatch.setattr(envelope, "LIMIT", 9000)
    with pytest.raises(BrokenEnvelope, match="more than"):
        open_envelope(seal(archive))
    with pytest.raises(BrokenEnvelope, match="more than"):
        unpack(archive, tmp_path)
    monkeypatch.setattr(envelope, "MOST_MEMBERS", 1)
    monkeypatch.setattr(envelope, "LIMIT", 1 << 20)
    with pytest.raises(BrokenEnvelope, match="more than"):
        unpack(archive, tmp_path / "again")


def test_a_sparse_bomb_is_refused(tmp_path):
    big = tmp_path / "big"
    with big.open("wb") as stream:
        os.truncate(stream.fileno(), 1 << 40)
    archive = subprocess.run(
        ["tar", "-C", tmp_path, "--sparse", "--format=gnu", "-cf", "-", "big"], capture_output=True, check=True
    ).stdout
    with pytest.raises(BrokenEnvelope):
        unpack(archive, tmp_path / "inside")


def test_what_the_guests_own_tar_makes_is_unpacked(tmp_path):
    source = tmp_path / "out"
    (source / "01-a").mkdir(parents=True)
    (source / "01-a" / "stdout").write_text("hello\n")
    (source / ("long" * 40)).write_text("x")
    archive = subprocess.run(
        ["busybox", "tar", "-C", source, "-cf", "-", "."], capture_output=True, check=True
    ).stdout
    unpack(archive, tmp_path / "home")
    assert everything_below(tmp_path / "home") == everything_below(source)
