"""A board in a lab as its machine sees it, without labgrid, which need not be installed: whose the place is, its files, deadlines."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kduel.core.errors import HostError
from kduel.machines.labgrid import board
from kduel.machines.labgrid.board import LabgridMachine
from kduel.machines.labgrid.loaders import INITRD, KERNEL, ROOT


@pytest.fixture
def machine(tmp_path: Path) -> Any:
    made: Any = LabgridMachine.__new__(LabgridMachine)
    (tmp_path / "image").write_bytes(b"new")
    made.real = SimpleNamespace(environment="e", place="p", files=str(tmp_path))
    made.images, made.board = {"sha": tmp_path / "image"}, SimpleNamespace(root="ram")
    made.settings = SimpleNamespace(boot_deadline=0.2)
    nothing = SimpleNamespace(driver=None, start=lambda *_: "", cycle=lambda: None, read=lambda **_: b"")
    made.target = SimpleNamespace(activate=lambda _: None)
    made.power = made.console = made.loader = nothing
    made.cmdline = str
    return made


@pytest.mark.parametrize(
    ("status", "said", "expected"),
    [(0, "", True), (1, "You have already acquired place p", False), (1, "Place is already acquired by bob", None)],
)
def test_a_place_that_was_ours_before_is_not_given_back(
    machine: Any, status: int, said: str, expected: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its user, or a controller that was killed, has acquired it."""
    done = subprocess.CompletedProcess([], status, "", f"labgrid-client: error: {said}")
    monkeypatch.setattr(board, "run_client", lambda *_: done)
    if expected is None:
        with pytest.raises(HostError, match=r"cannot be had: .*bob"):
            machine._client("acquire", board.OURS)
    else:
        assert machine._client("acquire", board.OURS) is expected


def trial(into: Path, deadline: float = 30.0) -> Any:
    into.mkdir(exist_ok=True)
    return SimpleNamespace(into=into, deadline=deadline, arm=SimpleNamespace(kernel=SimpleNamespace(sha256="sha")))


@pytest.mark.parametrize(("ready", "expected"), [(False, "boot-deadline"), (True, "deadline")])
def test_a_board_that_does_not_come_up_has_the_time_of_a_boot(
    machine: Any, ready: bool, expected: str, tmp_path: Path
) -> None:
    inbox = SimpleNamespace(has=lambda mark: ready and mark == "READY")
    results = SimpleNamespace(home=False, inbox=inbox, feed=lambda _: time.sleep(0.01))
    began = time.monotonic()
    ended, _ = machine._carry_out(trial(tmp_path / "t", 0.6), results, {}, began)
    assert ended == expected and (time.monotonic() - began < 0.5) is not ready


def test_files_of_the_trial_before_are_not_booted(machine: Any, tmp_path: Path) -> None:
    for name in (KERNEL, INITRD, ROOT):
        (tmp_path / name).write_bytes(b"old")
    machine.boot_files = lambda _: b""
    seen: dict[str, bytes] = {}

    def look(*_: object) -> tuple[str, str]:
        seen.update(
            {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name in (KERNEL, INITRD, ROOT)}
        )
        return "off", ""

    machine._carry_out, machine._off, machine.judge = look, lambda: None, lambda *_: None
    machine.boot(trial(tmp_path / "t"))
    assert seen == {KERNEL: b"new"}
