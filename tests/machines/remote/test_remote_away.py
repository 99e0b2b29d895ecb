"""When a machine cannot be reached: before the reboot it is the machine's fault, after it perhaps the contender's."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from kduel.core.void_codes import may_be_contenders
from kduel.machines import Outcome, Trial
from kduel.machines.remote.connection import ConnectionLost, TrialRefused
from kduel.machines.remote.real import RealMachine


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
