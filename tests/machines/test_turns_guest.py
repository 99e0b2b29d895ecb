"""Blocks in turns with real kernels: the clocks of both stand while they are held, and a run that was killed goes on."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path

import pytest
from processes import command_lines
from waiting import wait_for

from kduel.core.errors import InputError
from kduel.core.progress import Progress
from kduel.machines.guests.judged import QemuSettings
from kduel.machines.icount import IcountMachine
from kduel.machines.qemu import Peer, QemuMachine
from kduel.run.prepare import choose_turns
from kduel.store.documents import read_turns
from kduel.study.file import parse_study
from kduel.study.load import assemble

SOURCE = Path(__file__).parents[2] / "src"
STUDY = """
[study]
name = "turns"
[[contender]]
name = "a"
kernel = "debian:6.12-cloud"
[[contender]]
name = "b"
kernel = "debian:6.12-cloud"
[machine]
kind = "qemu"
accel = "tcg"
cpus = 1
memory = "512M"
boot_deadline = 900
cmdline = "test={mark}"
[settle]
mode = "fixed"
seconds = 0
[host]
max_wait = 100
[blocks]
fixed = 1
turns = 50
slices = 2
[[benchmark]]
use = "kbench"
operation = "null-call"
label = "call"
cpu = 0
time = 2
primary = ["time"]
[[benchmark]]
use = "kbench"
operation = "pipe"
label = "whole"
time = 1
turns = 0
"""


COUNTED = """
[study]
name = "counted"
[[contender]]
name = "a"
kernel = "debian:6.12-cloud"
[[contender]]
name = "b"
kernel = "debian:6.12-cloud"
[machine]
kind = "icount"
[[benchmark]]
use = "lines"
operation = "null-call"
"""


def guests(mark: Path) -> list[int]:
    return [
        pid for pid, line in command_lines().items() if b"qemu-system" in line and f"test={mark}".encode() in line
    ]


@pytest.mark.guest
@pytest.mark.network
def test_a_run_in_turns_that_was_killed_leaves_no_guest_and_goes_on(tmp_path):
    study, run = tmp_path / "turns.toml", tmp_path / "run"
    study.write_text(STUDY.format(mark=tmp_path))
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}

    def start(*words: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "kduel", *map(str, words)]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def steps_begun() -> list[Path]:
        return [log for log in run.glob("trials/.new-*/console.log") if b"kduel: step" in log.read_bytes()]

    with start("run", study, "--out", run) as killed:
        wait_for(lambda: len(steps_begun()) == 2 or killed.poll() is not None, "step of both guests")
        assert killed.poll() is None, killed.communicate()[0]
        assert len(guests(tmp_path)) == 2
        killed.send_signal(signal.SIGKILL)
    wait_for(lambda: not guests(tmp_path), "end of the guests")
    with start("resume", run) as resumed:
        said, _ = resumed.communicate()
    assert resumed.returncode == 0, said
    trials = sorted(run.glob("trials/*/trial.json"))
    records = [json.loads(path.read_text()) for path in trials]
    assert [(one["status"], one["repeats"]) for one in records] == [("ok", 0)] * 2, records
    shares = [read_turns(path.parent) for path in trials]
    pieces = []
    for record, share in zip(records, shares, strict=True):
        assert share is not None and share.turns_ms == 50
        assert share.steps.keys() == {"01-call.s1", "01-call.s2", "02-whole.s1", "02-whole.s2"}
        for name, step in share.steps.items():
            assert (step.turns == 1) == ("whole" in name)
            # Its clock stood while it was held, for about half of the time. How long it ran is recorded too short where a
            # busy host answers late.
            assert step.guest_seconds is not None
            if step.turns > 1:
                assert step.guest_seconds < 0.85 * (step.running_seconds + step.held_seconds)
            pieces += [(begin, begin + length) for begin, length in step.windows]
        assert record["host"].keys() == {"call.s1", "call.s2", "whole.s1", "whole.s2"}
    assert all(end <= begin + 1e-6 for (_, end), (begin, _) in pairwise(sorted(pieces)))


@pytest.mark.parametrize(
    ("emulated", "clocks", "reason"),
    [
        (True, ["tsc", "tsc"], ""),
        (False, ["kvm-clock", "kvm-clock"], ""),
        (False, ["kvm-clock", "tsc"], "only kvm-clock stands while a guest is held, and its guests have tsc"),
    ],
)
@pytest.mark.parametrize("turns", [0, 50])
def test_under_kvm_contenders_take_turns_by_kvm_clock_where_asked_for(emulated, clocks, reason, turns):
    """The TSC goes on while a guest is held, so that all its trials would be void for a wrong clock."""
    machine = object.__new__(QemuMachine)
    machine.emulated, machine.each = emulated, [QemuSettings(clocksource=clock, memory="64M") for clock in clocks]
    assert reason in machine.why_no_turns() and bool(machine.why_no_turns()) == bool(reason)
    text = COUNTED.replace("icount", "qemu").replace("lines", "kbench")
    study = assemble(parse_study(text, "test"), text, "test")
    assert choose_turns(study, machine, 2, Progress()) == (50 if emulated else "off")
    text += f"[blocks]\nturns = {turns}\n"
    study = assemble(parse_study(text, "test"), text, "test")
    with pytest.raises(InputError, match=re.escape(reason)) if reason else nullcontext() as refused:
        assert choose_turns(study, machine, 2, Progress()) == turns
    assert not reason or 'clocksource = "kvm-clock" in [machine]' in refused.value.message
    machine.peer = Peer(machine=machine, arm=None)
    with pytest.raises(InputError) as refused:
        choose_turns(study, machine, 2, Progress())
    assert "peers" in refused.value.message and refused.value.remedy.startswith('Write turns = "off"')


def test_the_exact_machine_takes_no_turns_by_default():
    """Guests of one block, held within a step, would be timed in place of counted."""
    machine = object.__new__(IcountMachine)
    study = assemble(parse_study(COUNTED, "test"), COUNTED, "test")
    assert choose_turns(study, machine, 2, Progress()) == "off"
