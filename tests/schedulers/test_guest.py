"""Real sched_ext schedulers and knobs in a real guest: green where they stay, void with the kernel's reason where not.

The scheduler is scx_plain, which needs no building, so that nothing is left out anywhere; further ones are KDUEL_TEST_SCX's
(`./run-tests --all` builds scx_bpfland and names it there).
"""

from __future__ import annotations

import os
import platform
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from kduel.core.cache import Cache
from kduel.core.progress import Progress
from kduel.guest import programs
from kduel.run.prepare import make_lock, make_ready
from kduel.run.records import Records
from kduel.run.trials import Trials
from kduel.schedulers.build import find_scheduler
from kduel.schedulers.check import SchedulerSnapshot, read_snapshot
from kduel.store.rundir import RunDir, TrialRecord
from kduel.study.file import parse_study
from kduel.study.load import assemble
from kduel.study.plan import make_plan

# Beside other tests a guest may get too little CPU for schedulers that the kernel watches.
pytestmark = [pytest.mark.guest, pytest.mark.network, pytest.mark.alone]

KERNEL = "debian:7-cloud"
MISHAP = r"""
case $(cat /proc/sys/kernel/domainname) in
killed) kill -KILL "$(cat /run/kduel-sched/pid)"; sleep 3;;
ejected) echo S >/proc/sysrq-trigger; sleep 3;;
swapped) words=$(tr '\0' ' ' </proc/"$(cat /run/kduel-sched/pid)"/cmdline)
    kill -TERM "$(cat /run/kduel-sched/pid)"; sleep 3
    $words >/dev/null 2>&1 & sleep 6;;
turned) echo 4000000 >/sys/kernel/debug/sched/base_slice_ns;;
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
boot_deadline = 900
priority = "normal"
cpus = 1 # with two, QEMU 7.2 may crash a guest that patches its own code (docs/schedulers.md)
memory = "1G"
disk = "512M"
[host]
max_wait = 100 # other tests are no fault
[settle]
mode = "fixed"
seconds = 1
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


class Done(NamedTuple):
    """A trial: its directory, and what became of it."""

    directory: Path
    record: TrialRecord

    @property
    def told(self) -> tuple[str, str]:
        return self.record.status, str(self.record.void or "")


def carry_out(text: str, where: Path) -> dict[str, Done]:
    """One block of all contenders, judged as a run does it."""
    made = assemble(parse_study(text, "test"), text, "test")
    ready = make_ready(made, cache=Cache(), progress=Progress())
    run = RunDir.create(where, text, make_lock(ready, 1, "test"), make_plan(made, 1))
    records = Records(run, run.lock())
    trials = Trials.for_run(records, Progress())
    done = [
        Done(trial.staged, trial.record)
        for boot in records.missing_boots()
        for trial in trials.carry_out(ready, boot)
    ]
    return {trial.record.contender: trial for trial in done}


@pytest.mark.parametrize("scheduler", ["scx_plain", *os.environ.get("KDUEL_TEST_SCX", "").split()])
def test_gates_are_green_for_a_scheduler_that_stays_and_tell_what_befell_the_others(
    tmp_path: Path, scheduler: str
) -> None:
    name = scheduler.removeprefix("scx_")
    # A program that is called scx_lavd, and hands the kernel another one's operations.
    impostor = tmp_path / "scx_lavd"
    if scheduler == "scx_plain":
        shutil.copy(programs.build("scx_plain", platform.machine(), cache=Cache()), impostor)
    else:
        bundle, directory = find_scheduler(scheduler, cache=Cache())
        shutil.copy(directory / "bin" / bundle.name, impostor)
    trials = carry_out(
        study(
            contender("stays", scheduler)
            + contender("killed", scheduler, "killed")
            + contender("ejected", scheduler, "ejected")
            + contender("swapped", scheduler, "swapped")
            + contender("impostor", str(impostor))
            + contender("refused", f"{scheduler} --no-such-option")
        ),
        tmp_path / "run",
    )
    told = {name: trial.told for name, trial in trials.items()}
    assert told["stays"] == ("ok", "")
    assert {status for name, (status, _) in told.items() if name != "stays"} == {"void"}, told
    reasons = {name: reason for name, (_, reason) in told.items()}
    assert "scheduler-ejected" in reasons["killed"] and "killed by signal 9" in reasons["killed"]
    assert "unregistered from user space" in reasons["killed"]
    assert "scheduler-ejected" in reasons["ejected"] and "disabled by sysrq-S" in reasons["ejected"]
    assert "scheduler-ended" in reasons["swapped"] or "scheduler-changed" in reasons["swapped"]
    assert "wrong-scheduler" in reasons["impostor"] and f"the kernel runs {name}" in reasons["impostor"]
    assert "scheduler-not-started" in reasons["refused"] and "--no-such-option" in reasons["refused"]


KNOBS = {
    "lazy": (
        '{ "debug.sched.base_slice_ns" = 6_000_000, "debug.sched.preempt" = "lazy", '
        '"debug.sched.features" = "NO_RUN_TO_PARITY NEXT_BUDDY", "kernel.sched_autogroup_enabled" = 1 }',
        {
            "base_slice_ns": "6000000",
            "preempt": "lazy",
            "features RUN_TO_PARITY": "NO_RUN_TO_PARITY",
            "features NEXT_BUDDY": "NEXT_BUDDY",
            "/proc/sys/kernel/sched_autogroup_enabled": "1",
        },
    ),
    "full": (
        '{ "debug.sched.preempt" = "full", "kernel.sched_autogroup_enabled" = 0, '
        '"/sys/kernel/mm/lru_gen/enabled" = 0, "/sys/kernel/mm/transparent_hugepage/enabled" = "never" }',
        {
            "preempt": "full",
            "/proc/sys/kernel/sched_autogroup_enabled": "0",
            "/sys/kernel/mm/lru_gen/enabled": "0x0000",
            "/sys/kernel/mm/transparent_hugepage/enabled": "never",
        },
    ),
}
"""What a contender sets, and what the gates must have seen the kernel have, before and after each step."""


def test_knobs_are_in_force_around_each_step_and_gone_after_the_contender(tmp_path: Path) -> None:
    tables = "".join(
        f'[[contender]]\nkernel = "{KERNEL}"\nname = "{name}"\nsysctl = {table}\n'
        for name, (table, _) in KNOBS.items()
    )
    tables += (
        f'[[contender]]\nkernel = "{KERNEL}"\nname = "turned"\n'
        'sysctl = { "kernel.domainname" = "turned", "debug.sched.base_slice_ns" = 3_000_000 }\n'
        f'[[contender]]\nkernel = "{KERNEL}"\nname = "unknown"\nsysctl = {{ "debug.sched.features" = "NO_SUCH_THING" }}\n'
        f'[[contender]]\nkernel = "{KERNEL}"\nname = "nowhere"\nsysctl = {{ "debug.sched.latency_ns" = 6_000_000 }}\n'
        f'[[contender]]\nkernel = "{KERNEL}"\nname = "beyond"\nsysctl = {{ "debug.sched.preempt" = "none" }}\n'
        f'[[contender]]\nkernel = "{KERNEL}"\nname = "plain"\npolicy = "slice:3ms"\n'
        f'sysctl = {{ "kernel.domainname" = "none" }}\n'
    )
    trials = carry_out(study(tables), tmp_path / "run")
    told = {name: trial.told for name, trial in trials.items()}
    for name, (_, wanted) in KNOBS.items():
        assert told[name] == ("ok", ""), name
        for look in looks(trials[name].directory):
            seen = {path.removeprefix("/sys/kernel/debug/sched/"): value for path, value in look.knobs.items()}
            assert seen == wanted
    assert told["plain"] == ("ok", "")
    (step,) = trials["plain"].directory.glob("*-kload-*")
    assert '"runtime_ns":3000000' in (step / "stdout").read_text(), "the slice, as the kernel gives it back"
    assert "knob-changed: after 02" in told["turned"][1] and "was 3000000 and is 4000000" in told["turned"][1]
    assert "no-such-feature" in told["unknown"][1] and "PLACE_LAG" in told["unknown"][1]
    assert "no-such-knob" in told["nowhere"][1]
    assert "knob-refused" in told["beyond"][1]
    # That a kernel of 7.x has no preempt=none any more is known before the boot (schedulers/validate.py), from this:
    environment = (trials["plain"].directory / "environment" / "files").read_text()
    (modes,) = re.findall(r"^/sys/kernel/debug/sched/preempt:(.*)$", environment, re.MULTILINE)
    assert sorted(modes.replace("(", "").replace(")", "").split()) == ["full", "lazy"]


def looks(trial: Path) -> list[SchedulerSnapshot]:
    """What every gate of a trial saw."""
    found = [
        read_snapshot(path) for path in sorted((trial / "gates").iterdir()) if path.suffix in (".before", ".after")
    ]
    assert len(found) == 4
    return found


def test_the_preemption_mode_of_the_command_line_is_proven(tmp_path: Path) -> None:
    modes = ("none", "full")
    tables = "".join(
        f'[[contender]]\nkernel = "debian:6.12-cloud"\nname = "{mode}"\ncmdline = "preempt={mode}"\n'
        for mode in modes
    )
    trials = carry_out(study(tables), tmp_path / "run")
    for mode in modes:
        assert trials[mode].told == ("ok", "")
        for look in looks(trials[mode].directory):
            assert look.knobs == {"/sys/kernel/debug/sched/preempt": mode}
