from __future__ import annotations

import contextlib
import hashlib
import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kduel.guest import envelope, untar
from kduel.guest.envelope import BrokenEnvelope, bring_in, open_envelope, read_marks, unpack

names = st.text(st.sampled_from("abcXYZ019._-"), min_size=1, max_size=20).filter(lambda n: n.strip(".") != "")


def tar_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, data in members:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def seal(archive: bytes) -> bytes:
    """An archive in its envelope, as the guest's shell makes it."""
    digest = hashlib.sha256(archive).hexdigest().encode()
    return b"KDUEL BEGIN %d %s\n" % (len(archive), digest) + archive + b"\nKDUEL END\n"


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def unpack_bytes(archive: bytes, into: Path) -> None:
    unpack(io.BytesIO(archive), into)


def archive_in(stream: bytes) -> bytes:
    found = open_envelope(io.BytesIO(stream))
    return stream[found.start :][: found.size]


def come_home(stream: bytes, into: Path) -> None:
    raw = into.with_name(f"{into.name}.raw")
    raw.write_bytes(stream)
    bring_in(raw, into)
    assert not raw.exists()


def everything_below(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in directory.rglob("*") if p.is_file()}


@given(files=st.dictionaries(names, st.binary(max_size=3000), max_size=5), noise=st.binary(max_size=200))
@settings(max_examples=50, deadline=None)
def test_what_is_sealed_comes_home(files, noise, tmp_path_factory):
    into = tmp_path_factory.mktemp("home")
    archive = tar_of(*((member(f"d/{name}"), data) for name, data in files.items()))
    stream = noise + b"\nKDUEL READY 4.26\nKDUEL DONE 9.01 0\n" + seal(archive)
    come_home(stream, into)
    assert everything_below(into) == {f"d/{name}": data for name, data in files.items()}
    assert read_marks(stream)["READY"] == (4.26, None)
    assert read_marks(stream)["DONE"] == (9.01, 0)


@given(data=st.data(), content=st.binary(min_size=1, max_size=2000))
@settings(max_examples=150, deadline=None)
def test_a_damaged_envelope_is_told_never_opened(data, content):
    stream = seal(tar_of((member("file"), content)))
    cut = data.draw(st.integers(0, len(stream) - 11))
    flip = data.draw(st.integers(0, len(stream) - 12))
    changed = bytearray(stream)
    changed[flip] ^= data.draw(st.integers(1, 255))
    with pytest.raises(BrokenEnvelope):
        archive_in(stream[:cut])
    try:
        opened = archive_in(bytes(changed))
    except BrokenEnvelope:
        return
    assert opened == archive_in(stream)


@pytest.mark.slow
@given(garbage=st.binary(max_size=4000))
@settings(max_examples=200, deadline=None)
def test_garbage_is_never_unpacked_and_never_a_traceback(garbage, tmp_path_factory):
    into = tmp_path_factory.mktemp("garbage")
    with pytest.raises(BrokenEnvelope):
        archive_in(garbage)
    try:
        unpack_bytes(garbage, into)
    except BrokenEnvelope:
        return
    assert not everything_below(into)


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_a_tar_with_damaged_headers_stays_inside(data, tmp_path_factory):
    top = tmp_path_factory.mktemp("damaged")
    (top / "inside").mkdir()
    archive = bytearray(tar_of((member("a/b"), b"x" * 700), (member("c"), b"y")))
    for _ in range(data.draw(st.integers(1, 6))):
        archive[data.draw(st.integers(0, len(archive) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(BrokenEnvelope):
        unpack_bytes(bytes(archive), top / "inside")
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
        unpack_bytes(tar_of((bad, b"")), inside)
    assert [p.name for p in tmp_path.iterdir()] == ["inside"]
    assert not list(inside.rglob("*link*"))


def test_a_link_to_write_through_is_refused_before_it_is_used(tmp_path):
    archive = tar_of((member("d", tarfile.SYMTYPE, str(tmp_path)), b""), (member("d/outside"), b"x"))
    (tmp_path / "inside").mkdir()
    with pytest.raises(BrokenEnvelope):
        unpack_bytes(archive, tmp_path / "inside")
    assert not (tmp_path / "outside").exists()


def test_a_file_is_not_written_twice_nor_over_what_is_there(tmp_path):
    (tmp_path / "console.log").write_text("ours")
    with pytest.raises(BrokenEnvelope):
        unpack_bytes(tar_of((member("console.log"), b"theirs")), tmp_path)
    assert (tmp_path / "console.log").read_text() == "ours"


def test_sizes_are_bounded(monkeypatch, tmp_path):
    archive = tar_of((member("a"), b"x" * 5000), (member("b"), b"x" * 5000))
    monkeypatch.setattr(envelope, "LIMIT", 9000)
    with pytest.raises(BrokenEnvelope, match="more than"):
        archive_in(seal(archive))
    with pytest.raises(BrokenEnvelope, match="more than"):
        unpack_bytes(archive, tmp_path)
    monkeypatch.setattr(untar, "MOST_MEMBERS", 1)
    monkeypatch.setattr(envelope, "LIMIT", 1 << 20)
    with pytest.raises(BrokenEnvelope, match="more than"):
        unpack_bytes(archive, tmp_path / "again")


def test_a_sparse_bomb_is_refused(tmp_path):
    big = tmp_path / "big"
    with big.open("wb") as stream:
        os.truncate(stream.fileno(), 1 << 40)
    archive = subprocess.run(
        ["tar", "-C", tmp_path, "--sparse", "--format=gnu", "-cf", "-", "big"], capture_output=True, check=True
    ).stdout
    with pytest.raises(BrokenEnvelope):
        unpack_bytes(archive, tmp_path / "inside")


def test_what_the_guests_own_tar_makes_is_unpacked(tmp_path):
    source = tmp_path / "out"
    (source / "01-a").mkdir(parents=True)
    (source / "01-a" / "stdout").write_text("hello\n")
    (source / ("long" * 40)).write_text("x")
    archive = subprocess.run(
        ["busybox", "tar", "-C", source, "-cf", "-", "."], capture_output=True, check=True
    ).stdout
    unpack_bytes(archive, tmp_path / "home")
    assert everything_below(tmp_path / "home") == everything_below(source)


def test_directories_are_bounded_as_a_whole_and_in_depth(tmp_path):
    many = tar_of(*((member("/".join([f"d{number}", *"abcdefghijklmn", "f"])), b"") for number in range(300)))
    with pytest.raises(BrokenEnvelope, match="2000 directories"):
        unpack_bytes(many, tmp_path)
    deep = tar_of((member("/".join("d" * 250)), b""))
    with pytest.raises(BrokenEnvelope, match="not a path"):
        unpack_bytes(deep, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name", ["trial.json", "environment.json/x", "console.log", "load-1/trial.json", "load-12/console.log/y"]
)
def test_names_of_our_own_files_are_refused_where_these_are(name, tmp_path):
    with pytest.raises(BrokenEnvelope, match="own"):
        unpack_bytes(tar_of((member("01-a/stdout"), b"1"), (member(name), b"2")), tmp_path)
    assert not list(tmp_path.iterdir())
    unpack_bytes(tar_of((member("01-a/trial.json"), b"2")), tmp_path)


@pytest.mark.parametrize(
    "second", [member("a/b"), member("a"), member("a/b/c")], ids=["twice", "file and directory", "below a file"]
)
def test_nothing_is_written_of_an_archive_that_contradicts_itself(second, tmp_path):
    with pytest.raises(BrokenEnvelope):
        unpack_bytes(tar_of((member("a/b"), b"x"), (second, b"y")), tmp_path)
    assert not list(tmp_path.iterdir())


def extended(content: bytes, kind: bytes = tarfile.XHDTYPE) -> bytes:
    info = tarfile.TarInfo("header")
    info.type, info.size = kind, len(content)
    padded = content + bytes(-len(content) % 512)
    return info.tobuf(tarfile.USTAR_FORMAT) + padded + tar_of((member("a"), b"x"))


@pytest.mark.parametrize(
    "archive",
    [
        # Python 3.11.7's tarfile looks for a number in this for hours.
        extended(b"0" * 5_000_000),
        extended(b"0" * 500),
        extended(b"99999 path=x\n"),
        extended(b"0 path=x\n"),
        extended(b"22 GNU.sparse.major=1\n"),
        extended(b"29 size=99999999999999999999\n"),
        extended(b"19 path=../outside\n"),
        extended(b"x" * 9000, tarfile.GNUTYPE_LONGNAME),
        extended(b"20 comment=whatever\n", tarfile.XGLTYPE),
    ],
    ids=["long", "digits", "length", "zero", "sparse", "size", "path", "name", "global"],
)
def test_an_extended_header_is_bounded_before_it_is_read(archive, tmp_path):
    with pytest.raises(BrokenEnvelope):
        unpack_bytes(archive, tmp_path / "inside")
    assert not list(tmp_path.rglob("*"))


def test_long_names_come_home_in_both_forms(tmp_path):
    names = [f"{'d' * 90}/{'f' * 200}", f"{'long-' * 30}/é"]
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w", format=form) as tar:
            for name in names:
                tar.addfile(member(name))
        unpack_bytes(stream.getvalue(), tmp_path / str(form))
        assert set(everything_below(tmp_path / str(form))) == set(names)


def test_of_a_broken_envelope_the_raw_bytes_stay_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(envelope, "KEPT", 1000)
    raw = tmp_path / "results.raw"
    raw.write_bytes(b"KDUEL READY 1.0\n" + b"x" * 5000)
    with pytest.raises(BrokenEnvelope):
        bring_in(raw, tmp_path)
    assert raw.read_bytes() == b"KDUEL READY 1.0\n" + b"x" * 984


def test_an_inbox_holds_no_more_than_a_trial_may_send(tmp_path, monkeypatch):
    monkeypatch.setattr(envelope, "LIMIT", 1 << 20)
    inbox = envelope.Inbox(tmp_path / "results.raw")
    for _ in range(64):
        inbox.feed(bytes(1 << 18))
    inbox.close()
    assert inbox.full and inbox.path.stat().st_size <= (2 << 20) + (1 << 18)
    assert not inbox.home


@given(pieces=st.lists(st.binary(max_size=40), max_size=30))
@settings(max_examples=50, deadline=None)
def test_the_end_is_known_however_it_is_cut(pieces, tmp_path_factory):
    inbox = envelope.Inbox(tmp_path_factory.mktemp("in") / "results.raw")
    for piece in (*pieces, b"\nKDU", b"EL E", b"ND\n"):
        inbox.feed(piece)
    inbox.close()
    assert inbox.home
    assert inbox.path.read_bytes() == b"".join(pieces) + b"\nKDUEL END\n"
