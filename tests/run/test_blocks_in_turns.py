"""Blocks whose trials are alive at once: made, repeated and gone on with as a whole, and never mixed with other runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from cut_runs import cut_run
from msgspec import structs
from test_repeats import records

from kduel.core.experiment import Step
from kduel.guest.size import why_no_memory
from kduel.guest.turns import BlockTurns
from kduel.machines import Outcome, qemu
from kduel.run.script import turn_lengths
from kduel.store.collect import PreparedSteps
from kduel.store.documents import read_turns
from kduel.store.rundir import RunDir
from kduel.study.file import Blocks
from kduel.study.plan import PlannedTrial

IN_TURNS = "fixed = 2\nturns = 50\n[host]\nquiet_seconds = 0\n"


@pytest.fixture
def run_in_turns(kduel: Callable, write_study: Callable, tmp_path: Path) -> Callable[..., Path]:
    """run_in_turns(MACHINE, STATUS): a run's directory; its machine has these settings, and the command ends with that status."""

    def call(machine: str = "", status: int = 0, *more: str) -> Path:
        study = write_study(machine=f"turns = true\n{machine}", blocks=IN_TURNS)
        done = kduel("run", study, "--out", tmp_path / "run", *more)
        assert done.returncode == status, done.stderr
        return tmp_path / "run"

    return call


@pytest.mark.slow
def test_each_trial_has_the_record_of_its_turns(run_in_turns, kduel):
    run = run_in_turns()
    lock = RunDir.open(run).lock()
    assert (lock.blocks.turns, lock.blocks.reduce) == (50, "mean")
    for block in (1, 2):
        mine = [one for one in RunDir.open(run).records() if one.block == block]
        found = [read_turns(run / "trials" / one.id) for one in mine]
        assert [one.place for one in found if one] == [1, 2]
        assert [one.partners for one in found if one] == [[mine[1].position + 1], [mine[0].position + 1]]
        for one in found:
            assert one is not None and one.turns_ms == 50
            assert list(one.steps) == ["01-letters-hello", "02-letters-longer"]
            # As the guest script measured it.
            assert all(step.guest_seconds is not None and step.guest_seconds >= 0 for step in one.steps.values())
    assert kduel("verify", run).returncode == 0
    assert json.loads(kduel("report", "--format", "json", run).stdout)["study"]["turns"] == 50


@pytest.mark.slow
def test_a_block_is_made_again_as_a_whole(kduel, write_study, tmp_path):
    """The trial that is named is the one that it is for: the first of the block was, whose guest was well."""
    run = tmp_path / "run"
    done = kduel("run", write_study(machine="turns = true\nfaults = {new = 1}", blocks=IN_TURNS), "--out", run)
    assert done.returncode == 0, done.stderr
    told = re.findall(r"made again with its partners: \S+-(outside-\w+): emulator-fault", done.stdout + done.stderr)
    assert told == ["outside-new"] * 2, done.stderr
    again = records(run, "repeated")
    assert sorted((one["contender"], one["block"]) for one in again) == [
        (name, block) for name in ("outside-new", "outside-old") for block in (1, 2)
    ]
    assert len(again) == 4
    assert [one["void"] and one["void"]["code"] for one in again if one["contender"] == "outside-old"] == [None] * 2
    assert [one["repeats"] for one in records(run)] == [1] * 4


@pytest.mark.slow
def test_a_fault_in_every_boot_is_held_against_that_contender_alone(run_in_turns):
    run = run_in_turns("faults = {new = 99}", 1)
    kept = records(run)
    assert {(one["contender"], one["status"]) for one in kept} == {("outside-old", "ok"), ("outside-new", "void")}
    assert "4 boots in a row" in next(one["void"]["message"] for one in kept if one["void"])


@pytest.mark.slow
def test_a_guest_that_panics_is_void_alone(run_in_turns):
    kept = records(run_in_turns('panics = ["new"]', 1))
    assert [one["void"] and one["void"]["code"] for one in kept if one["contender"] == "outside-new"] == ["panic"] * 2
    assert [one["status"] for one in kept if one["contender"] == "outside-old"] == ["ok"] * 2


@pytest.mark.slow
def test_the_host_is_judged_for_the_block(run_in_turns):
    """Guests that took turns met the same host."""
    run = run_in_turns("max_wait = 40.0\ndisturbed = {old = 1, new = 0}")
    # Of 2 + 1 seconds runnable one was waited: a third. Judged by the guest that waited for a half, the block would be repeated.
    assert [one["repeats"] for one in records(run)] == [0] * 4


@pytest.mark.slow
@pytest.mark.parametrize("command", ["resume", "run"])
def test_half_a_block_is_made_again_as_a_whole_after_an_interruption(
    run_in_turns, kduel, write_study, tmp_path, command
):
    run = run_in_turns()
    before = records(run)
    lock = (run / "lock.json").read_text()
    last = [one["id"] for one in before if one["block"] == 2]
    cut_run(run, last[1:])
    study = tmp_path / "letters.toml"
    done = kduel("resume", run) if command == "resume" else kduel("run", study, "--out", run)
    assert done.returncode == 0, done.stderr
    kept = records(run)
    assert [one["id"] for one in kept] == [one["id"] for one in before]
    assert (run / "lock.json").read_text() == lock
    (aside,) = records(run, "repeated")
    assert (aside["id"], aside["void"]["code"]) == (last[0], "block-interrupted")
    assert [one["repeats"] for one in kept] == [0, 0, 1, 1]
    assert [one["started"] for one in kept][:2] == [one["started"] for one in before][:2]
    assert all(later["started"] > one["started"] for later, one in zip(kept[2:], before[2:], strict=True))
    assert kduel("verify", run).returncode == 0


@pytest.mark.slow
def test_a_run_goes_on_in_its_own_mode_and_in_no_other(run_in_turns, kduel, write_study, tmp_path):
    run = run_in_turns()
    cut_run(run, [one["id"] for one in records(run) if one["block"] == 2])
    silent = write_study(machine="turns = true", blocks=IN_TURNS.replace("turns = 50\n", ""))
    refused = kduel("run", silent, "--out", run, "--turns", "off")
    assert refused.returncode == 2 and "study.turns: 50 in the run, off now" in refused.stderr
    # A study that does not say takes the run's own.
    assert kduel("run", silent, "--out", run).returncode == 0
    assert [read_turns(run / "trials" / one["id"]) is not None for one in records(run)] == [True] * 4


@pytest.mark.slow
def test_without_room_a_run_is_made_one_boot_after_the_other_and_says_so(kduel, write_study, tmp_path):
    study = write_study(machine="turns = true\nroom = 1", blocks=IN_TURNS)
    done = kduel("run", study, "--out", tmp_path / "run")
    assert done.returncode == 0
    assert "No turns, one boot after the other: 2 guests are too many." in done.stderr
    assert json.loads((tmp_path / "run/lock.json").read_text())["blocks"]["turns"] == "off"
    assert read_turns(tmp_path / "run/trials" / records(tmp_path / "run")[0]["id"]) is None


@pytest.mark.slow
def test_a_run_from_before_turns_goes_on_without(kduel, write_study, tmp_path):
    """Its lock has no word on turns, and its machine could take them now."""
    study, run = write_study("turns = true", "fixed = 2\n[host]\nquiet_seconds = 0\n"), tmp_path / "run"
    assert kduel("run", study, "--out", run, "--turns", "off").returncode == 0
    lock = json.loads((run / "lock.json").read_text())
    assert lock["blocks"].pop("turns") == "off"
    (run / "lock.json").write_text(json.dumps(lock))
    for command in (["resume", run], ["run", study, "--out", run]):
        cut_run(run, [one["id"] for one in records(run) if one["block"] == 2])
        done = kduel(*command)
        assert done.returncode == 0, done.stderr
        assert [read_turns(run / "trials" / one["id"]) for one in records(run)] == [None] * 4
    refused = kduel("run", study, "--out", run, "--turns", "50")
    assert refused.returncode == 2 and "study.turns: off in the run, 50 now" in refused.stderr


@pytest.mark.slow
def test_runs_of_two_modes_are_not_merged(kduel, write_study, tmp_path):
    study = write_study("turns = true", "fixed = 2\n[host]\nquiet_seconds = 0\n")
    for name, turns in (("in-turns", "50"), ("whole", "0"), ("apart", "off")):
        assert kduel("run", study, "--out", tmp_path / name, "--turns", turns).returncode == 0
    for name in ("whole", "apart"):
        refused = kduel("merge", tmp_path / "in-turns", tmp_path / name, "--out", tmp_path / "both")
        assert refused.returncode == 2 and "study.turns: " in refused.stderr, refused.stderr
        assert not (tmp_path / "both").exists()


@pytest.mark.slow
def test_a_run_in_turns_waits_for_memory_and_one_without_goes_on_without(
    run_in_turns, kduel, environment, write_study, tmp_path
):
    """A run goes on in its own mode, whatever memory there is now."""
    run = run_in_turns()
    cut_run(run, [one["id"] for one in records(run) if one["block"] == 2])
    environment["OUTSIDE_ROOM"] = "1"
    refused = kduel("resume", run)
    assert refused.returncode == 3 and "2 guests are too many" in refused.stderr
    assert "Free memory" in refused.stderr and "No turns" not in refused.stderr
    other = tmp_path / "other"
    assert kduel("run", write_study("turns = true", IN_TURNS), "--out", other).returncode == 0
    cut_run(other, [one["id"] for one in records(other) if one["block"] == 2])
    environment["OUTSIDE_ROOM"] = "9"
    assert kduel("resume", run).returncode == 0
    assert kduel("resume", other).returncode == 0
    for path, mode in ((run, True), (other, False)):
        assert [read_turns(path / "trials" / one["id"]) is not None for one in records(path)] == [mode] * 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("machine", "more", "mode"),
    [
        ("turns = true", [], 50),
        ("turns = true", ["--turns", "off"], "off"),
        ("turns = true\nroom = 1", [], "off"),
        ("", [], "off"),
    ],
)
def test_guests_take_turns_by_default_where_they_can(kduel, write_study, tmp_path, machine, more, mode):
    study = write_study(machine=machine, blocks="fixed = 1\n[host]\nquiet_seconds = 0\n")
    done = kduel("run", study, "--out", tmp_path / "run", *more)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "run/lock.json").read_text())["blocks"]["turns"] == mode
    kept = [read_turns(tmp_path / "run/trials" / one["id"]) is not None for one in records(tmp_path / "run")]
    assert kept == [mode == 50] * 2


@pytest.mark.parametrize("unit", ["boot", "load"])
def test_what_cannot_take_turns_is_refused_with_the_reason(kduel, write_study, tmp_path, unit):
    study = write_study(machine="" if unit == "boot" else "turns = true", blocks=f'fixed = 1\nunit = "{unit}"')
    done = kduel("run", study, "--out", tmp_path / "run", "--turns", "50")
    assert done.returncode == 2
    said = " ".join(done.stderr.split())
    assert ("it carries out one boot after the other" if unit == "boot" else 'unit = "load"') in said
    assert f"give --turns {'off' if unit == 'boot' else '0 or off'}" in said and not (tmp_path / "run").exists()


@pytest.mark.parametrize("value", ["10001", "-1", "1", "on", "", "1e2", "50 ms", "9" * 5000])
def test_the_option_says_what_it_takes(kduel, write_study, tmp_path, value):
    done = kduel("run", write_study(), "--out", tmp_path / "run", "--dry-run", "--turns", value)
    assert done.returncode == 2, done.stderr
    said = " ".join(done.stderr.split())
    assert "--turns is" in said and "Give milliseconds from 10 to 10000, such as 50; 0" in said and '"off"' in said


@pytest.mark.parametrize("value", ["off", "0", "50"])
def test_the_option_takes_milliseconds_or_off(kduel, write_study, tmp_path, value):
    study = write_study(machine="turns = true")
    done = kduel("run", study, "--out", tmp_path / "run", "--dry-run", "--turns", value)
    assert done.returncode == 0, done.stderr


def test_steps_that_measure_latency_or_a_disk_are_run_whole():
    def step(use: str, turns: int | None = None, **parameters: object) -> Step:
        return Step(label=use, benchmark=use, parameters=parameters, turns=turns)

    steps = [
        step("sysbench-cpu", time=2),
        step("stress-ng", stressor="switch"),
        step("cyclictest"),
        step("sysbench-fileio", mode="seqwr"),
        step("hackbench"),
        step("kbench", operation="pipe", turns=0),
        structs.replace(step("kbench", operation="pipe"), load="disk"),
        structs.replace(step("kbench", operation="pipe"), load="hackbench"),
    ]
    planned = PlannedTrial(id="0001-b01-a", block=1, position=0, contender="a", boot=0, steps=list(range(8)))
    assert turn_lengths(planned, PreparedSteps(steps), 50) == {
        "01-sysbench-cpu": 0.05,
        "02-stress-ng": 0.05,
        "03-cyclictest": 0,
        "04-sysbench-fileio": 0,
        "05-hackbench": 0,
        "06-kbench": 0,
        "07-kbench": 0,
        "08-kbench": 0.05,
    }
    sliced = turn_lengths(planned, PreparedSteps(steps, Blocks(slices=2)), 20)
    assert sliced["01-sysbench-cpu.s2"] == 0.02 and "01-sysbench-cpu" not in sliced


def test_boots_that_a_step_measures_are_made_one_after_the_other():
    def measured(*names: str) -> bool:
        return PreparedSteps([Step(label=name, benchmark=name) for name in names]).measure_boots()

    assert measured("sysbench-cpu", "boot-timeline") and measured("systemd-analyze")
    assert not measured("sysbench-cpu", "stress-ng", "memory")


@pytest.mark.parametrize("pinned", [[0, 1], [0]])
def test_the_cpus_of_guests_are_those_that_they_are_pinned_to(tmp_path, monkeypatch, pinned):
    given = []
    monkeypatch.setattr(qemu, "run_in_turns", lambda *_, cpus, **__: given.append(cpus) or [Outcome()] * 2)
    machine = SimpleNamespace(
        pin_of=lambda _: pinned, by_hand=lambda _: "", launch=print, judge=lambda _, one: one, raised=False
    )
    trials = [SimpleNamespace(arm=None, into=tmp_path)] * 2
    turns = BlockTurns(2, {"01-a": 0.05}, "1", boot_together=True)
    qemu.InQemu.boot_block(machine, trials, turns)
    assert given == [len(pinned)] and turns.boot_together


@pytest.mark.parametrize(("wanted", "cpus", "come"), [(True, 2, [2, 1, 1]), (True, 1, [1, 1]), (False, 2, [1, 1])])
def test_guests_boot_together_only_with_a_cpu_for_each(monkeypatch, wanted, cpus, come):
    """What measures its boot has one at a time, whatever the CPUs."""
    turns, seen = BlockTurns(2, {"01-a": 0.05}, "1", boot_together=wanted), []
    turns.seats = [SimpleNamespace(known=True, gone=False) for _ in range(2)]

    def run_to_steps(seats):
        seen.append(len(seats))
        if len(seats) == 1:
            seats[0].gone = True

    monkeypatch.setattr(turns, "_run_to_steps", run_to_steps)
    monkeypatch.setattr(turns, "_boot_together", lambda: run_to_steps(turns.seats))
    assert turns.run(cpus) and seen == come


def test_memory_for_all_guests_must_be_there(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text(
        "MemTotal:       24684032 kB\nMemFree: 1 kB\nMemAvailable:    4194304 kB\n"
    )
    assert why_no_memory(2, 2048, tmp_path) == ""
    assert why_no_memory(3, 2048, tmp_path) == (
        "3 guests of 2048 MiB are more than the 4096 MiB of memory that are available"
    )


CACHE_AND_TMPFS = "anon 1\nfile 1073741824\nshmem 536870912\ninactive_file 402653184\nactive_file 134217728\n"
"""Half of what is called `file` is on a tmpfs, and cannot be freed."""

CACHE_OF_V1 = "inactive_file 1\ntotal_cache 1073741824\ntotal_inactive_file 536870912\ntotal_active_file 0\n"


@pytest.mark.parametrize(
    ("line", "group", "files"),
    [
        ("0::/ci/job", "ci", {"memory.max": "3221225472", "memory.current": "1610612736", "memory.stat": CACHE_AND_TMPFS}),
        ("0::/", "", {"memory.max": "2147483648", "memory.current": "0"}),
        ("4:memory:/ci", "memory/ci", {"memory.limit_in_bytes": "2147483648", "memory.usage_in_bytes": "536870912", "memory.stat": CACHE_OF_V1}),
        # A container sees its own group at the top, and the host's name of it.
        ("4:memory:/docker/0a", "memory", {"memory.limit_in_bytes": "2147483648", "memory.usage_in_bytes": "0"}),
    ],
)  # fmt: skip
def test_a_control_group_may_leave_less_memory(tmp_path, line, group, files):
    """A container of a CI runner: the kernel would end a guest in the middle of its block."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemAvailable:    16777216 kB\n")
    (tmp_path / "proc/self/cgroup").write_text(f"9:name=systemd:/\n{line}\n")
    place = tmp_path / "sys/fs/cgroup" / group
    place.mkdir(parents=True)
    for name, text in files.items():
        (place / name).write_text(f"{text}\n")
    assert why_no_memory(2, 1024, tmp_path) == ""
    assert "the 2048 MiB of memory" in why_no_memory(3, 1024, tmp_path)
    limit = next(iter(files))
    (place / limit).write_text("max\n" if limit == "memory.max" else "9223372036854771712\n")
    assert why_no_memory(3, 1024, tmp_path) == ""
