"""Contenders that share a boot and take turns of a step or slice each: the boot's script is run here by a POSIX shell."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from kduel.core.cache import Cache
from kduel.core.errors import InputError
from kduel.core.host import HostStep
from kduel.core.progress import Progress
from kduel.machines import machine_kind
from kduel.machines.qemu import QemuMachine
from kduel.run.check import check_turns
from kduel.run.prepare import choose_turns
from kduel.run.records import Records
from kduel.run.repeat import Repeats
from kduel.run.script import TrialSetup, boot_script, in_order_of_turns, split_boot, split_host_record
from kduel.schedulers.check import check_gates
from kduel.store.collect import PreparedSteps
from kduel.store.documents import TrialRecord
from kduel.study.file import parse_study
from kduel.study.load import assemble
from kduel.study.plan import make_plan

STUDY = """
[study]
name = "shared"
[[contender]]
name = "a"
kernel = "host"
[[contender]]
name = "b"
kernel = "host"
policy = "batch"
[[contender]]
name = "c"
kernel = "host"
policy = "idle"
[machine]
kind = "qemu"
[settle]
mode = "fixed"
seconds = 0
[blocks]
unit = "load"
turns = {turns}
fixed = 1
slices = 4
[[benchmark]]
use = "command"
command = "echo begin >>$LOG; cat $STATE >>$LOG; cat $STATE; echo end >>$LOG"
label = "first"
time = 9.0
metrics = [{ name = "value", unit = "1", better = "none", regex = "([0-9]+)" }]
[[benchmark]]
use = "kbench"
operation = "null-call"
time = 0.4
"""


class Shared:
    """The boot of a block, its script and what it leaves."""

    def __init__(self, path: Path, turns: str = "0") -> None:
        text = STUDY.replace("{turns}", turns)
        self.study = assemble(parse_study(text, "test"), text, "test")
        self.prepared = PreparedSteps(self.study.steps, self.study.blocks)
        self.setup = TrialSetup(self.study, (), self.prepared, cache=Cache(path / "cache"))
        self.boot = make_plan(self.study, 7)
        self.path, self.log, self.state = path, path / "log", path / "state"
        for name, own in self.setup.setups.items():
            before = f"[ ! -e {self.state} ] || echo left >>{self.log}\necho {name} >{self.state}\n"
            self.setup.setups[name] = structs.replace(own, before_all=before, after_all=f"rm {self.state}\n")

    def run(self) -> list[Path]:
        script = self.path / "guest.sh"
        script.write_text(boot_script(self.study, self.setup, self.boot).text)
        (self.path / "programs").mkdir()
        for name in ("kbench", "kpolicy"):
            program = self.path / "programs" / name
            program.write_text(
                f"#!/bin/sh\necho begin >>{self.log}\ncat {self.state} >>{self.log}\necho end >>{self.log}\n"
            )
            program.chmod(0o755)
        environment = {
            **os.environ,
            "LOG": str(self.log),
            "STATE": str(self.state),
            "KDUEL_PROGRAMS": str(self.path / "programs"),
        }
        subprocess.run(["sh", script, self.path / "out"], env=environment, check=True, timeout=120)
        new = (self.path / f"part-{number}" for number in range(9))

        def stage() -> Path:
            (part := next(new)).mkdir()
            return part

        return split_boot(self.path / "out", self.boot, stage)


def test_each_has_its_own_settings_in_its_turns_and_nobody_works_in_anothers(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    parts = shared.run()
    names = [planned.contender for planned in shared.boot]
    turns = [names[place] for place, _ in in_order_of_turns(shared.boot, shared.prepared)]
    assert shared.log.read_text().split() == [word for name in turns for word in ("begin", name, "end")]
    assert Counter(turns) == dict.fromkeys("abc", 5) and not shared.state.exists()
    for part in parts:
        assert json.loads((part / "01-first/exit.json").read_text())["status"] == 0
        assert len(list(part.glob("02-*.s[1-4]/exit.json"))) == 4


def test_nobody_ends_while_another_measures(tmp_path: Path) -> None:
    parts = Shared(tmp_path).run()
    measured = max(path.stat().st_mtime_ns for part in parts for path in part.glob("0*/exit.json"))
    assert all((part / "environment/files-end").stat().st_mtime_ns >= measured for part in parts)


def test_shellcheck_finds_nothing(tmp_path: Path, need: Callable[[str], str]) -> None:
    shared = Shared(tmp_path)
    script = tmp_path / "guest.sh"
    script.write_text(boot_script(shared.study, shared.setup, shared.boot).text)
    subprocess.run([need("shellcheck"), "-s", "sh", script], check=True)


def test_one_whose_setup_fails_takes_no_further_turn_and_leaves_nothing_set(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    own = shared.setup.setups["b"]
    shared.setup.setups["b"] = structs.replace(own, before_all=own.before_all + "false\n")
    parts = shared.run()
    names = [planned.contender for planned in shared.boot]
    turns = [names[place] for place, _ in in_order_of_turns(shared.boot, shared.prepared)]
    assert shared.log.read_text().split() == [
        word for name in turns if name != "b" for word in ("begin", name, "end")
    ]
    failed = parts[names.index("b")]
    assert json.loads((failed / "setup/exit.json").read_text())["status"] == 1
    assert not (failed / "01-first/exit.json").exists()


def test_all_take_a_slice_before_the_next_one_and_each_comes_first_as_often(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    order = in_order_of_turns(shared.boot, shared.prepared)
    rounds = [order[start : start + 3] for start in range(0, len(order), 3)]
    assert all({place for place, _ in one} == {0, 1, 2} and len({name for _, name in one}) == 1 for one in rounds)
    for seed in range(9):
        boots = [structs.replace(planned, seed=seed) for planned in shared.boot if planned.contender != "c"]
        order = in_order_of_turns(boots, shared.prepared)
        first = Counter(place for place, name in order[::2] if name != "first")
        assert first == {0: 2, 1: 2}, "of the four slices of a step"


def test_what_the_host_did_belongs_to_the_contender_whose_turn_it_was(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    order = in_order_of_turns(shared.boot, shared.prepared)
    directories = {"first": "01-first"}
    found = [
        (directories.get(name) or f"02-{name}", HostStep(seconds=float(number)))
        for number, (_, name) in enumerate(order)
    ]
    records = split_host_record(shared.boot, shared.prepared, found, shared=True)
    for number, (place, name) in enumerate(order):
        assert records[place][name].seconds == number
    assert split_host_record(shared.boot, shared.prepared, found[1:], shared=True) == [{}, {}, {}]


def test_a_scheduler_that_is_started_for_each_step_is_the_same_within_a_step(tmp_path: Path) -> None:
    (tmp_path / "gates").mkdir()
    for step, sequence in (("01-first", 1), ("02-other", 2)):
        for when in ("before", "after"):
            said = f"state enabled\nroot/ops plain_1\nenable_seq {sequence}\nnr_rejected 0\nswitch_all 1\nprocess 9 alive\n"
            (tmp_path / f"gates/{step}.{when}").write_text(said)
    own = SimpleNamespace(scheduler="scx_plain")
    void = check_gates(tmp_path, own)
    assert void is not None and void.code == "scheduler-changed"
    assert check_gates(tmp_path, own, anew=True) is None
    (tmp_path / "gates/02-other.after").write_text(said.replace("enable_seq 2", "enable_seq 3"))
    void = check_gates(tmp_path, own, anew=True)
    assert void is not None and void.code == "scheduler-changed"


@pytest.mark.parametrize(
    ("turns", "machine", "reason"),
    [
        ("0", "icount", "counts exactly"),
        ("50", "qemu", "take whole slices in turn"),
    ],
)
def test_turns_that_a_shared_boot_cannot_take_are_refused(turns, machine, reason, tmp_path: Path) -> None:
    shared, kind = Shared(tmp_path, turns), machine_kind(machine)
    with pytest.raises(InputError, match=reason):
        check_turns(shared.study, kind, kind.read_settings({}), shared.prepared)


def test_contenders_that_need_several_boots_share_none(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    first, *others = shared.study.contenders
    study = structs.replace(shared.study, contenders=[structs.replace(first, cmdline="quiet"), *others])
    kind = machine_kind("qemu")
    with pytest.raises(InputError, match="several boots"):
        check_turns(study, kind, kind.read_settings({}), shared.prepared)


def test_a_shared_boot_takes_turns_where_the_study_asks_for_them(tmp_path: Path) -> None:
    machine = object.__new__(QemuMachine)
    for turns, chosen in (("0", 0), ('"off"', "off")):
        shared = Shared(tmp_path, turns)
        assert choose_turns(shared.study, machine, 3, Progress()) == chosen


def test_the_time_of_a_shared_boot_counts_once() -> None:
    """By it the time left is estimated."""
    records = object.__new__(Records)
    records.by_id = {
        f"{number}": TrialRecord(
            id=f"{number}", block=1, position=number, contender="a", status="ok", boot=boot, seconds=9.0
        )
        for number, boot in enumerate((0, 0, 0, 1))
    }
    assert records.seconds == 18
    aside = [
        structs.replace(record, repeats=repeats) for repeats in (0, 1) for record in list(records.by_id.values())[:3]
    ]
    run: Any = SimpleNamespace(put_asides=lambda: [(Path(), record) for record in aside])
    assert Repeats(run, None, 4).seconds == 18
