from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from kduel.guest.console import ConsoleLog, read_console


def test_lines_are_stamped_once_however_they_come(tmp_path):
    log = ConsoleLog(tmp_path / "console.log", time.monotonic() - 5)
    for piece in (b"[    0.0", b"00000] Linux version\r\nlog", b"in: ", b"\n"):
        log.feed(piece)
    log.close()
    assert log.first is not None and 5 <= log.first < 6
    lines = (tmp_path / "console.log").read_text().splitlines()
    assert [line[11:] for line in lines] == ["[    0.000000] Linux version", "login: "]
    assert all(5 <= float(line[:10]) < 6 for line in lines)


@given(pieces=st.lists(st.binary(max_size=300), max_size=20))
@settings(deadline=None)
def test_any_bytes_are_kept_and_can_be_read(pieces, tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "console.log"
    log = ConsoleLog(path, time.monotonic())
    for piece in pieces:
        log.feed(piece)
    log.close()
    whole = b"".join(pieces).replace(b"\r", b"").replace(b"\0", b"").decode(errors="replace")
    assert "\n".join(read_console(path)) == whole
    assert log.received == sum(map(len, pieces))


def test_a_flood_is_cut_and_said_to_be(tmp_path):
    log = ConsoleLog(tmp_path / "console.log", time.monotonic(), limit=1000)
    for _ in range(100):
        log.feed(b"spam " * 100 + b"\n")
    log.close()
    text = (tmp_path / "console.log").read_bytes()
    assert len(text) < 1200
    assert b"printed too much" in text
    assert log.received == 100 * 501


def test_no_console_is_no_lines(tmp_path):
    assert read_console(tmp_path / "console.log") == []
