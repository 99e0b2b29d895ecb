"""Results that come home over a console: in letters, among messages, in pieces."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import itertools
import tarfile
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kduel.guest import envelope
from kduel.guest.console import ConsoleLog, read_console
from kduel.machines.labgrid.board import ConsoleResults


def archive(text: str) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        member = tarfile.TarInfo("./01-step/stdout")
        member.size = len(text.encode())
        tar.addfile(member, io.BytesIO(text.encode()))
    return data.getvalue()


def said(tar: bytes, *, damage: bool = False) -> bytes:
    """What run.sh writes to a console, as a terminal line sends it."""
    letters = base64.b64encode(gzip.compress(tar)).decode()
    if damage:
        letters = letters[:40] + ("A" if letters[40] != "A" else "B") + letters[41:]
    lines = [
        "[    0.000000] Linux version 6.1.0 (builder@host)",
        "kduel: script",
        "KDUEL READY 3.21",
        "kduel: step 01-step",
        "KDUEL DONE 9.70 0",
        f"KDUEL BEGIN {len(tar)} {hashlib.sha256(tar).hexdigest()}",
        *textwrap.wrap(letters, 76),
        "",
        "KDUEL END",
        "[   20.000000] reboot: Power down",
    ]
    return "\r\n".join(lines).encode() + b"\r\n"


def feed(data: bytes, cuts: list[int], into: Path) -> ConsoleResults:
    log = ConsoleLog(into, 0.0)
    inbox = envelope.Inbox(into.with_name(envelope.RAW))
    results = ConsoleResults(log, inbox)
    edges = [0, *sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]
    for start, end in itertools.pairwise(edges):
        results.feed(data[start:end])
    results.finish()
    log.close()
    inbox.close()
    return results


def home(results: ConsoleResults) -> tuple[bytes, dict[str, tuple[float, int | None]]]:
    """The archive that came, and the marks before it."""
    with results.inbox.path.open("rb") as stream:
        found = envelope.open_envelope(stream)
        stream.seek(found.start)
        return stream.read(found.size), found.marks


@pytest.mark.slow
@given(st.text(max_size=3000), st.lists(st.integers(min_value=0), max_size=20))
def test_whole_however_it_is_cut(tmp_path_factory: pytest.TempPathFactory, text: str, cuts: list[int]) -> None:
    into = tmp_path_factory.mktemp("console") / "console.log"
    tar = archive(text)
    results = feed(said(tar), cuts, into)
    assert results.home
    assert home(results) == (tar, {"READY": (3.21, None), "DONE": (9.7, 0)})
    lines = read_console(into)
    assert "reboot: Power down" in "".join(lines) and "kduel: script" in lines
    # The letters themselves are in no log.
    assert not any(len(line) == 76 and " " not in line for line in lines)


def test_damage_is_found(tmp_path: Path) -> None:
    results = feed(said(archive("text"), damage=True), [], tmp_path / "console.log")
    with pytest.raises(envelope.BrokenEnvelope):
        home(results)


def test_a_kernel_message_among_the_letters_is_passed_over(tmp_path: Path) -> None:
    tar = archive("text" * 500)
    lines = said(tar).split(b"\r\n")
    lines.insert(7, b"[   10.000000] random: crng init done")
    results = feed(b"\r\n".join(lines), [], tmp_path / "console.log")
    assert home(results)[0] == tar


def test_no_end_is_no_result(tmp_path: Path) -> None:
    results = feed(said(archive("text")).partition(b"KDUEL END")[0], [], tmp_path / "console.log")
    assert not results.home
    with pytest.raises(envelope.BrokenEnvelope):
        home(results)


def test_a_gzip_is_unpacked_no_further_than_announced(tmp_path: Path) -> None:
    bomb = base64.b64encode(gzip.compress(bytes(64 << 20))).decode()
    lines = [f"KDUEL BEGIN 20480 {'0' * 64}", *textwrap.wrap(bomb, 76), "KDUEL END", ""]
    results = feed("\n".join(lines).encode(), [], tmp_path / "console.log")
    assert results.home
    assert results.inbox.path.stat().st_size < 30_000
    with pytest.raises(envelope.BrokenEnvelope):
        home(results)


def test_marks_without_end_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(envelope, "LIMIT", 1 << 20)
    lines = [b"KDUEL READY 1.0 " + b"x" * 10_000] + [b"KDUEL READY 1.0 " + b"x" * 90] * 30_000
    results = feed(b"\n".join(lines), [], tmp_path / "console.log")
    assert results.inbox.path.stat().st_size < 3 << 20
