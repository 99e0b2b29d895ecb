"""A QEMU that somebody ended while it counted: that is no property of the kernel, and is not kept as one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kduel.core.cache import Cache
from kduel.core.errors import HostError, NotMeasuredError
from kduel.guest.launch import Launch, Run
from kduel.machines import Outcome, icount
from kduel.machines.icount import IcountMachine
from kduel.run.exact.measure import count_arm
from kduel.run.script import Script

ARM: Any = SimpleNamespace(
    contender=SimpleNamespace(name="v1", cmdline=""),
    kernel=SimpleNamespace(sha256="0", parts="p", release="6.1", spec="tree:v1"),
)


def ended(ended: str, status: int) -> Run:
    return Run(results=Path("none"), ended=ended, exit_status=status, stderr="")


@pytest.mark.parametrize(
    ("how", "status", "signal"),
    [
        *(("killed", -9, "SIGKILL"), ("killed", -15, "SIGTERM"), ("killed", -11, ""), ("killed", -31, "")),
        *(("off", 0, ""), ("failed", 1, ""), ("boot-deadline", -9, ""), ("lingered", -9, "")),
    ],
)
def test_only_a_signal_of_somebody_else_is_one_that_killed_qemu(how: str, status: int, signal: str) -> None:
    """A crash (SIGSEGV, SIGSYS) may come of what the guest did, and at a deadline we ended it ourselves."""
    assert ended(how, status).killed_by == signal


@pytest.mark.parametrize(("facts", "kind"), [({"killed_by": "SIGKILL"}, HostError), ({}, NotMeasuredError)])
def test_a_commit_is_not_one_that_cannot_be_counted_because_the_host_ended_qemu(
    facts: dict[str, str], kind: type[Exception], tmp_path: Path
) -> None:
    outcome = Outcome(void="qemu-killed", message="The host ended QEMU.", facts=facts)
    machine: Any = SimpleNamespace(key=lambda _: "key", boot_once=lambda *_, **__: outcome)
    with pytest.raises(kind) as error:
        count_arm(machine, ARM, Script(text="true", deadline=60.0), cache=Cache(tmp_path))
    assert type(error.value) is kind
    assert not list((tmp_path / "counted").glob("[!.]*"))


def test_a_boot_whose_counting_was_ended_is_not_kept_as_one_without_a_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = object.__new__(IcountMachine)
    made.cache, made.plugin, made.guard, made.root_at = Cache(tmp_path), Path("p/p"), Path("g/g"), None
    made.settings = SimpleNamespace(boot_deadline=600, priority="normal")  # type: ignore[assignment]
    for name in ("fixed_options", "key", "describe"):
        monkeypatch.setattr(IcountMachine, name, lambda *_: [])
    monkeypatch.setattr(IcountMachine, "entry", lambda *_: 0x100)
    outcomes = iter([ended("killed", -9), ended("off", 0)])

    def run(_machine: Any, _console: Path, how: Launch) -> Run:
        done = next(outcomes)
        how.writes[icount.COUNTS].write_text("" if done.killed_by else "551181873\n")
        return done

    monkeypatch.setattr(icount, "run", run)
    trial: Any = SimpleNamespace(arm=ARM, block=1, script="")
    with pytest.raises(HostError, match="SIGKILL"):
        made.boot_instructions(trial, b"", {})
    assert made.boot_instructions(trial, b"", {}) == "000000551181873"
