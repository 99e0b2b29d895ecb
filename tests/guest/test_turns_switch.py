"""The monitor by which a guest is let go and held, with a far end that says what QEMU would."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest

from kduel.guest.monitor import MonitorError
from kduel.guest.turns import Switch


def answer(far: socket.socket, *lines: object) -> None:
    """Greet, and answer the second command by these lines; then close."""
    with far, far.makefile("rwb") as stream:
        for said in ([{"QMP": {}}], [{"return": {}}], lines):
            if said[0] != {"QMP": {}}:
                stream.readline()
            stream.writelines(json.dumps(line).encode() + b"\n" for line in said)
            stream.flush()


def event(name: str, at: float) -> dict[str, object]:
    return {"event": name, "timestamp": {"seconds": int(at), "microseconds": int(at % 1 * 1e6)}}


def ask(*lines: object) -> float:
    """When QEMU did it, in seconds since it was asked."""
    own, far = socket.socketpair()
    thread = threading.Thread(target=answer, args=(far, *lines))
    thread.start()
    try:
        with own:
            switch = Switch(own)
            asked = time.monotonic()
            return switch("stop") - asked
    finally:
        thread.join()


@pytest.mark.parametrize("ahead", [-3600.0, 3600.0])
def test_a_calendar_that_is_set_meanwhile_moves_no_turn(ahead: float) -> None:
    """An hour earlier the guest's held time, and with it its deadline, would be off by an hour."""
    assert 0 <= ask(event("STOP", time.time() + ahead), {"return": {}}) < 60


def test_a_refusal_is_told() -> None:
    with pytest.raises(MonitorError, match="does not stop"):
        ask({"error": {"class": "GenericError", "desc": "no"}})


def test_other_events_are_no_answer() -> None:
    assert ask(event("RTC_CHANGE", 0.0), event("STOP", time.time()), {"return": {}}) >= 0
