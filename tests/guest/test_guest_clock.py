"""A guest whose clock runs wrong is void: its times are not seconds."""

from __future__ import annotations

import pytest

from kduel.guest import envelope
from kduel.guest.gates import clock_trouble
from kduel.machines.guests.judged import why_clock_wrong


@pytest.mark.parametrize(
    ("guest", "host"),
    [
        (60.0, 60.1),
        (2.0, 6.5),  # the host was late in reading the first mark, or the last
        (300.0, 250.0),
        (292.1, 292.1),
    ],
)
def test_a_clock_that_runs_like_the_hosts_is_right(guest: float, host: float) -> None:
    assert clock_trouble(guest, host) == ""


@pytest.mark.parametrize(("guest", "host"), [(8600.0, 173.9), (3.0, 60.0), (60.0, 3.0)])
def test_a_clock_that_runs_otherwise_is_wrong(guest: float, host: float) -> None:
    assert "measured the clock's frequency wrongly" in clock_trouble(guest, host)


def test_the_marks_of_a_run_tell() -> None:
    """As seen on 22 November 2026: "tsc: Detected 49.752 MHz", on a host of 2,600 MHz."""
    stream = b"KDUEL READY 4605.95\nKDUEL DONE 13230.10 0\nKDUEL BEGIN "
    timings = {"ready": 147.667, "done": 321.61}
    assert why_clock_wrong(envelope.read_marks(stream), timings).startswith("its clock advanced by 8,624 s in 174 s")
    assert why_clock_wrong(envelope.read_marks(stream), {"ready": 147.667}) == ""
    assert why_clock_wrong({}, timings) == ""
    assert why_clock_wrong(envelope.read_marks(b"KDUEL READY 4.1\nKDUEL DONE 178.2 0\n"), timings) == ""
