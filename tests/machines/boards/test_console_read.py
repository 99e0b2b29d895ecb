"""What is read of a board's console, and when, on a fake driver that waits as drivers of serial lines do."""

from __future__ import annotations

from pexpect import TIMEOUT

from kduel.machines.labgrid.board import READ_SECONDS, present_output


class SerialLine:
    """A fake driver: `read` waits until `size` bytes are there or the time is out, by a clock of its own."""

    def __init__(self, there: bytes) -> None:
        self.there, self.waited = there, 0.0

    def read(self, size: int, timeout: float) -> bytes:
        if len(self.there) < size:
            self.waited += timeout
        data, self.there = self.there[:size], self.there[size:]
        if not data:
            raise TIMEOUT("nothing came")
        return data


def test_a_line_has_the_time_that_it_comes() -> None:
    console = SerialLine(b"[    0.000000] Linux version 6.1.0\r\n")
    assert present_output(console) == b"[    0.000000] Linux version 6.1.0\r\n"
    assert console.waited == 0


def test_one_byte_is_not_lost() -> None:
    console = SerialLine(b"#")
    assert present_output(console) == b"#"
    assert console.waited == 0


def test_silence_is_nothing() -> None:
    console = SerialLine(b"")
    assert present_output(console) == b""
    assert console.waited == READ_SECONDS
