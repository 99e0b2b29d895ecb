"""Real sched_ext schedulers in a real guest: green where they stay, void with the kernel's reason where they do not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kduel.cache import Cache
from kduel.errors import InputError
from kduel.plan import make_plan
from kduel.rundir import RunDir, TrialRecord
from kduel.runner import Runner, lock_of, make_ready
from kduel.schedulers.build import find
from kduel.study import assemble, parse_study
from kduel.talk import Talk

KERNEL = "debian:7-cloud"
MISHAP = r"""
case $(cat /proc/sys/kernel/domainname) in
killed) kill -KILL "$(cat /tmp/kduel-sched/pid)"; sleep 3;;
ejected) echo S >/proc/sysrq-trigger; sleep 3;;
swapped) kill -TERM "$(cat /tmp/kduel-sched/pid)"; sleep 3
    "$KDUEL_PROGRAMS"/sched/scx_bpfland/scx_bpfland >/dev/null 2>&1 & sleep 15;;
esac
echo value 1
"""
"""What befalls a scheduler in mid-trial, by a word that each contender carries."""


def study(contenders: str) -> str:
    return f"""
[study]
name = "gates"
{contenders}
[machine]
kind = "qemu"
memory = "1G"
disk = "512M"
[settle]
seconds = 2
[blocks]
fixed = 1
unit = "load"
[[benchmark]]
use = "kload"
processes = 20
iterations = 2000
[[benchmark]]
use = "command"
command = '''{MISHAP}'''
metrics = [{{ name = "value", unit = "1", better = "none", regex = 'value (\\d+)' }}]
"""


def contender(name: str, scheduler: str, mishap: str = "none") -> str:
    return f"""
[[contender]]
kernel = "{KERNEL}"
name = "{name}"
scheduler = "{scheduler}"
sysctl = {{ "kernel.domainname" = "{mishap}" }}
"""


def carry_out(text: str, where: Path) -> dict[str, TrialRecord]:
    """One boot of all contenders, judged as a run does it."""
    made = assemble(parse_study(text, "test"), text, "test")
    ready = make_ready(made, cache=Cache(), talk=Talk())
    run = RunDir.create(where, text, lock_of(ready, 1, "test"), make_plan(made, 1))
    runner = Runner(ready, run, Talk(), lambda _: None)
    (boot,) = runner.boots_left()
    return {record.contender: record for _, record in runner.carry_out(boot)}


def built(name: str) -> None:
    try:
        find(name, cache=Cache())
    except InputError:
        pytest.skip(f"{name} is not built: kduel schedulers build {name}")


@pytest.mark.guest
@pytest.mark.network
def test_gates_are_green_for_a_scheduler_that_stays_and_tell_what_befell_the_others(tmp_path: Path) -> None:
    built("scx_bpfland")
    bundle, directory = find("scx_bpfland", cache=Cache())
    impostor = tmp_path / "scx_lavd"
    shutil.copy(directory / "bin" / bundle.name, impostor)
    records = carry_out(
        study(
            contender("own", "")
            + contender("bpfland", "scx_bpfland")
            + contender("killed", "scx_bpfland", "killed")
            + contender("ejected", "scx_bpfland", "ejected")
            + contender("swapped", "scx_bpfland", "swapped")
            + contender("impostor", str(impostor))
            + contender("refused", "scx_bpfland --no-such-option")
        ),
        tmp_path / "run",
    )
    told = {name: (record.status, record.reason) for name, record in records.items()}
    assert told["own"] == ("ok", "")
    assert told["bpfland"] == ("ok", "")
    assert {status for name, (status, _) in told.items() if name not in ("own", "bpfland")} == {"void"}, told
    reasons = {name: reason for name, (_, reason) in told.items()}
    assert "scheduler-ejected" in reasons["killed"] and "killed by signal 9" in reasons["killed"]
    assert "unregistered from user space" in reasons["killed"]
    assert "scheduler-ejected" in reasons["ejected"] and "disabled by sysrq-S" in reasons["ejected"]
    assert "scheduler-ended" in reasons["swapped"] or "scheduler-changed" in reasons["swapped"]
    assert "wrong-scheduler" in reasons["impostor"] and "bpfland_" in reasons["impostor"]
    assert "scheduler-not-started" in reasons["refused"] and "--no-such-option" in reasons["refused"]
