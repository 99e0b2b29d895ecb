"""When a machine cannot be reached: before the reboot it is the machine's fault, after it perhaps the contender's."""

from __future__ import annotations

import time
from pathlib import Path
from typing import ClassVar

import pytest
from waiting import wait_for

from kduel.core.experiment import Contender
from kduel.core.void_codes import may_be_contenders
from kduel.kernels import Kernel
from kduel.machines import Arm, Outcome, Trial
from kduel.machines.remote.connection import Connection, ConnectionLost, TrialRefused
from kduel.machines.remote.grub import MenuEntry
from kduel.machines.remote.real import RealMachine
from kduel.machines.remote.settings import SshSettings
from kduel.machines.remote.ssh_trial import Journey, Observation


class Way:
    """A journey that ends in trouble, before the machine went down or after it."""

    log: ClassVar[list[str]] = []
    facts: ClassVar[dict[str, object]] = {}

    def __init__(self, trouble: Exception, left: bool) -> None:
        self.trouble = trouble
        self.timings = {"launched": 1.0} if left else {}

    def go(self) -> Outcome:
        raise self.trouble


@pytest.mark.parametrize(
    ("trouble", "left", "code", "contenders"),
    [
        (ConnectionLost("m cannot be reached: No route to host"), False, "unreachable", False),
        (ConnectionLost("m cannot be reached: No route to host"), True, "no-answer", True),
        (TrialRefused("not-admitted", "m cannot be used: Permission denied"), False, "not-admitted", False),
        (TrialRefused("not-admitted", "m cannot be used: Permission denied"), True, "no-answer", True),
        (TrialRefused("no-node", "Slurm ended job 7 on m: preempted"), True, "no-node", False),
        (TrialRefused("no-return", "Slurm did not bring m up within 5 s"), True, "no-return", True),
        (TrialRefused("disk-full", "/var/tmp has too little room"), True, "disk-full", True),
    ],
)
def test_silence_counts_against_a_contender_only_after_the_reboot_into_its_kernel(
    tmp_path: Path, trouble: Exception, left: bool, code: str, contenders: bool
):
    machine = RealMachine.__new__(RealMachine)
    machine.settings = machine.connection = machine.entries = None  # type: ignore[assignment]
    machine.facts, machine.programs = {"boot": "grub-reboot"}, {}
    machine.way = lambda *_, **__: Way(trouble, left)  # type: ignore[assignment,misc,return-value]
    outcome = machine.boot(Trial(id="1", arm=None, script="", deadline=1.0, into=tmp_path, block=1))  # type: ignore[arg-type]
    assert outcome.void == code and str(trouble) in outcome.message
    assert may_be_contenders(outcome.why) == contenders


class Here(Connection):
    """This machine's own shell in place of ssh's."""

    def __init__(self) -> None:
        super().__init__("here")
        self.argv = ["sh", "-c"]


@pytest.mark.parametrize(
    ("boot", "program"), [("grub-reboot", "grub-reboot"), ("bootctl", "bootctl"), ("kexec", "kexec")]
)
@pytest.mark.parametrize("status", [0, 1])
def test_a_kernel_that_cannot_be_chosen_is_not_rebooted_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boot: str, program: str, status: int
) -> None:
    programs = {
        program: f"echo no such entry >&2; exit {status}",
        "systemctl": f"touch {tmp_path}/gone",
        "sync": "exit 0",
    }
    for name, line in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    release = "6.1.0-50-amd64"
    arm = Arm(Contender(kernel=f"installed:{release}"), Kernel(spec="x", release=release, image=tmp_path, sha256=""))
    journey = Journey(
        SshSettings(place="here"), Here(), Trial(id="1", arm=arm, script="", deadline=1.0, into=tmp_path), boot=boot,
        entries={arm.contender.name: MenuEntry("menu>entry", "entry", "", "")}, cmdline="quiet", programs={},
    )  # fmt: skip
    before = Observation("boot", release, "x86_64", 1.0, 1.0, "quiet", 1.0)
    if status:
        with pytest.raises(
            TrialRefused, match=f"{release} cannot be chosen for the next boot: no such entry"
        ) as caught:
            journey.reboot(before)
        assert caught.value.void == "boot-refused"
        time.sleep(1.5)
        assert not (tmp_path / "gone").exists()
    else:
        journey.reboot(before)
        wait_for((tmp_path / "gone").exists, "reboot")
