"""The machine `qemu` by KVM, in a virtual machine whose emulated processor has AMD's virtualisation. With `./run-tests --all`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kvm_machine import CONTENDERS, USER, Facts, Faulty, KvmMachine, Process

from kduel.guest import confine

pytestmark = [pytest.mark.guest, pytest.mark.network]
MACHINE = KvmMachine
INSIDE_SOURCE = Path(__file__).parents[2] / "support/kvm_inside.c"
STUDY = """
[study]
name = "short"
[[contender]]
kernel = "debian:6.1-cloud"
[[contender]]
kernel = "debian:6.12-cloud"
[machine]
kind = "qemu"
accel = "kvm"
memory = "512M"
boot_deadline = 900
{machine}
[host]
max_wait = 100
[settle]
mode = "fixed"
seconds = 0
[blocks]
fixed = {blocks}
[[benchmark]]
{benchmark}
"""
SHORT = STUDY.format(machine="cpus = 1", blocks=1, benchmark='use = "kbench"\noperation = "null-call"\ntime = 0.05')
BUSY = STUDY.format(
    machine="cpus = 1",
    blocks=2,
    benchmark='use = "command"\ntime = 1\ncommand = "timeout 30 sh -c \'while :; do :; done\' || echo 1"\n'
    'metrics = [{name = "one", unit = "1", better = "none", regex = "^(1)$"}]',
)
TURNS = STUDY.format(
    machine='cpus = 1\nclocksource = "kvm-clock"',
    blocks="1\nslices = 2",
    benchmark="""use = "kbench"
turns = 0
label = "whole"
operation = "null-call"
time = 4
[[benchmark]]
use = "kbench"
label = "cut"
operation = "null-call"
time = 4""",
)
INSIDE = STUDY.format(
    machine='cpus = 3\nclocksource = "kvm-clock"\npriority = "normal"',
    blocks=1,
    benchmark="""use = "command"
label = "inside"
time = 10
files = {{"/tmp/kvm-inside" = "{digest}"}}
command = "kvm-inside"
metrics = [
    {{name = "steal", unit = "s", better = "none", regex = "^stolen (.*)$"}},
    {{name = "cycles", unit = "1", better = "none", regex = "^counter-cycles-errno (.*)$"}},
]
[[benchmark]]
use = "perf-stat"
time = 1""",
)


@pytest.fixture(scope="module")
def faulty(real: KvmMachine) -> Iterator[Faulty]:
    """A run of root's: the first guest's QEMU is killed in its step, the second one's stopped, whose deadline passes while
    other tests run."""
    real.write("/tmp/faulty.toml", BUSY)
    process = real.start("run faulty.toml --offline --seed 1 --out /tmp/faulty", "root")
    killed = real.guest_in_step("/tmp/faulty", "root")
    seen = real.look_at(killed)
    real.must(f"kill -KILL {killed}; while [ ! -e /tmp/faulty/trials/0001*/trial.json ]; do sleep 1; done")
    hung = real.guest_in_step("/tmp/faulty", "root")
    real.must(f"kill -STOP {hung}")
    yield Faulty(process, seen, hung)
    process.kill()


def test_a_device_of_root_alone_is_told_with_what_opens_it(real: KvmMachine) -> None:
    """The advice is what `open_device` does."""
    real.write("/tmp/closed.toml", SHORT)
    real.close_device()
    try:
        status, said = real.kduel_as("root", "run closed.toml --offline --out /tmp/closed")
    finally:
        real.open_device()
    assert status == 3 and "only root may open /dev/kvm (mode 0600" in said, said
    assert "groupadd -f kvm; chgrp kvm /dev/kvm; chmod 660 /dev/kvm" in " ".join(said.split())


def test_kernels_that_end_or_hang_are_told_apart(real: KvmMachine) -> None:
    """Also where QEMU's registers come from the processor, and where the processor itself refuses to go on."""
    found = real.run_tiny_kernels()
    ended = {name: (one["void"], bool(one["stuck"])) for name, one in found.items()}
    assert ended == {
        "off": ("silent-exit", False),
        "triple fault": ("silent-exit", False),
        "spins, interrupts off": ("hang", True),
        "sleeps, interrupts off": ("hang", True),
        "spins, its other CPU never started": ("deadline", False),
        "runs where no memory is": ("qemu-failed", False),
    }, found
    assert "KVM internal error" in found["runs where no memory is"]["message"]


def test_a_block_reaches_its_verdict_with_the_tsc(real: KvmMachine) -> None:
    """The main job: both kernels through /dev/kvm, no trial void, values and a verdict."""
    words = "--offline --machine qemu:accel=kvm,boot_deadline=900 --blocks 1 --no-exact-first --out /tmp/main"
    status, said = real.kduel_as(USER, f"run {' '.join(CONTENDERS)} {words}")
    while real.drop_if_reset("/tmp/main"):
        status, said = real.kduel_as(USER, f"run {' '.join(CONTENDERS)} {words}")
    assert status == 0, said
    trials = real.records("/tmp/main")
    assert [trial["status"] for trial in trials] == ["ok", "ok"], trials
    assert all(trial["failed_steps"] == {} for trial in trials), trials
    assert "1 block · 2 trials · qemu kvm" in said and "sysbench-cpu" in said, said
    assert "hypervisors" in real.must("cat /tmp/main/report/index.html"), "times by nested KVM carry a warning"


def test_kvm_clock_stands_while_a_guest_is_held_and_the_tsc_goes_on(real: KvmMachine) -> None:
    """Turns of two seconds within a step: the longest time at once by each of a guest's clocks."""
    found = real.run_held_guests()
    assert all(one["ended"] == "off" and len(one["longest"]) == 5 for one in found.values()), found
    by_tsc = found.pop("tsc")
    assert all(seconds > 1.5 for seconds in by_tsc["longest"].values()), by_tsc
    for by_kvm in found.values():
        assert by_kvm["steps"]["01-a"]["turns"] > 1, found
        assert by_kvm["longest"].pop("tsc") > 1.5, by_kvm
        assert all(seconds < 0.7 for seconds in by_kvm["longest"].values()), by_kvm


@pytest.mark.parametrize(("length", "said_of_it"), [(0, "turns of whole slices"), (500, "turns of 500 ms")])
def test_contenders_take_turns_by_kvm_clock(length: int, said_of_it: str, real: KvmMachine) -> None:
    """By the TSC, the default, they are refused."""
    run = f"/tmp/turns-{length}"
    real.write("/tmp/turns.toml", TURNS)
    words = f"run turns.toml --turns {length} --offline --out {run}"
    status, said = real.kduel_as(USER, words)
    while real.drop_if_reset(run):
        status, said = real.kduel_as(USER, words)
    assert status == 0 and f"are alive at once and take {said_of_it}" in " ".join(said.split()), said
    for trial in real.records(run):
        assert trial["status"] == "ok" and trial["failed_steps"] == {}, trial
        record = json.loads(real.must(f"cat {run}/trials/{trial['id']}/turns.json"))
        assert record["turns_ms"] == length and len(record["partners"]) == 1
        assert record["steps"].keys() == {"01-whole.s1", "01-whole.s2", "02-cut.s1", "02-cut.s2"}
        for name, step in record["steps"].items():
            assert (step["turns"] == 1) == (length == 0 or "whole" in name), (name, record)
            # By its clock a slice takes what it ran, though it was held for as long.
            assert abs(step["guest_seconds"] - step["running_seconds"]) < 0.3 * step["running_seconds"], record
    results = json.loads(real.must(f"kduel report --format json {run}"))
    assert results["study"]["turns"] == length
    real.write("/tmp/tsc.toml", TURNS.replace('clocksource = "kvm-clock"', ""))
    status, said = real.kduel_as(USER, f"run tsc.toml --turns {length} --offline --out /tmp/tsc")
    assert status == 2 and "only kvm-clock stands while a guest is held" in " ".join(said.split()), said


def test_where_kvm_works_nothing_is_counted_first(real: KvmMachine) -> None:
    """By default; and each of the guest's CPUs stays on its own."""
    process, guest = real.start_until_step(f"run {' '.join(CONTENDERS)} --offline --blocks 1", "/tmp/timed")
    before = real.look_at(guest)
    after = real.look_at(guest)
    real.signal("INT")
    process.communicate(timeout=600)
    assert process.returncode == 130
    assert real.run("ls /tmp/timed/exact")[0] != 0, "counted though KVM works"
    check_confined(before)
    assert before.whole["Uid"].split() == [real.must(f"id -u {USER}").strip()] * 4
    assert sorted(thread["Cpus_allowed_list"] for thread in before.cpus) == ["0", "1"]
    assert moves(before) == moves(after), "a pinned CPU of the guest moved"


def test_a_killed_guest_costs_its_trial_and_roots_qemu_has_only_the_device(real: KvmMachine, faulty: Faulty) -> None:
    killed = real.records("/tmp/faulty")[0]
    assert killed["void"]["code"] == "qemu-killed" and killed["facts"]["killed_by"] == "SIGKILL", killed
    whole = faulty.killed.whole
    users = {int(word) for word in whole["Uid"].split() + whole["Gid"].split()}
    group = real.must("stat -c %g /dev/kvm").strip()
    assert len(users) == 1 and users <= set(confine.USERS) and whole["Groups"] == group != "0"
    check_confined(faulty.killed)
    # One CPU for the guest's, the other one for all else of QEMU's.
    assert [thread["Cpus_allowed_list"] for thread in faulty.killed.cpus] == ["1"]
    assert {thread["Cpus_allowed_list"] for thread in faulty.killed.threads} == {"0", "1"}


def test_counting_first_is_by_emulator_where_asked(real: KvmMachine) -> None:
    process = real.start(f"run {' '.join(CONTENDERS)} --offline --exact-first --blocks 1 --out /tmp/counted")
    seen = real.look_at(real.guest_when("grep -qs . /tmp/counted/exact/trials/.new-*/console.log"))
    real.signal("INT")
    process.communicate(timeout=600)
    assert process.returncode == 130
    assert "-icount" in seen.whole["argv"] and "/dev/kvm" not in seen.whole.every("file")
    assert real.run("ls /tmp/counted/trials/*")[0] != 0, "timed though counting was interrupted"


def test_an_interrupted_run_is_resumed_where_the_host_is_the_same(real: KvmMachine) -> None:
    """How long the host polls for a guest that went idle belongs to the experiment."""
    real.write("/tmp/stopped.toml", SHORT)
    process = real.start("run stopped.toml --offline --out /tmp/stopped")
    real.until("ls /tmp/stopped/trials/*/trial.json")
    real.signal("INT")
    said, _ = process.communicate()
    assert process.returncode == 130 and "kduel resume" in said, said
    assert real.run(f"pgrep -u {USER} -x qemu-system-x86")[0] == 1, "a guest outlived its run"
    polled = real.must("cat /sys/module/kvm/parameters/halt_poll_ns").strip()
    real.must("echo 0 >/sys/module/kvm/parameters/halt_poll_ns")
    try:
        status, said = real.kduel_as(USER, "resume /tmp/stopped")
    finally:
        real.must(f"echo {polled} >/sys/module/kvm/parameters/halt_poll_ns")
    assert status == 2 and f"halt_poll_ns: {polled} in the run, 0 now" in said, said
    status, said = real.kduel_as(USER, "resume /tmp/stopped")
    assert status == 0, said
    assert [trial["status"] for trial in real.records("/tmp/stopped")] == ["ok", "ok"], said


def test_more_cpus_than_the_host_has_are_told_and_steal(real: KvmMachine) -> None:
    """What the guest finds of its processor: by KVM's clock, without counters, with three CPUs on two."""
    real.write("/tmp/inside.toml", INSIDE.format(digest=real.add_program(INSIDE_SOURCE, "/tmp/kvm-inside")))
    process, guest = real.start_until_step("run inside.toml --offline", "/tmp/inside")
    seen = real.look_at(guest)
    said, _ = process.communicate(timeout=1800)
    assert process.returncode == 0, said
    for trial in real.records("/tmp/inside"):
        assert trial["status"] == "ok" and trial["failed_steps"] == {}, trial
        found = Facts(real.must(f"cat /tmp/inside/trials/{trial['id']}/01-inside/stdout").replace(" ", ":"))
        assert found["is-kvm"] == "1", found.lines
        [host] = [step for label, step in trial["host"].items() if label == "inside"]
        # Three CPUs were busy on two for four seconds; what the guest is told of it is what the host saw.
        assert 1 < float(found["stolen"]) < 1.3 * host["vcpu_wait_s"] + 0.5, (found.lines, host)
        assert found["steal-told"] == "1" and found["cpuid-faulting"] == "0", found.lines
        assert found["counter-cycles-errno"] != "0" and found["counter-task-clock-errno"] == "0", found.lines
    assert {thread["Cpus_allowed_list"] for thread in seen.threads} == {"0-1"} and len(seen.cpus) == 3
    assert sum(map(int, moves(seen))) > 3, "no CPU of the guest moved"
    assert "The guest has 3 CPUs, and KDuel may use 2 of this host" in real.must("cat /tmp/inside/report/index.html")


def test_a_guest_that_hangs_is_ended_and_nothing_is_left(real: KvmMachine, faulty: Faulty) -> None:
    said, _ = faulty.process.communicate(timeout=1800)
    assert faulty.process.returncode == 0, said
    voids = [trial["void"] and trial["void"]["code"] for trial in real.records("/tmp/faulty")]
    assert voids == ["qemu-killed", "qemu-hung", None, None], said
    assert real.run(f"kill -0 {faulty.hung}")[0] == 1, "the stopped QEMU is still there"
    assert real.run("pgrep -x qemu-system-x86")[0] == 1


def check_confined(qemu: Process) -> None:
    """It has the device, and can gain nothing; the filter of system calls is on each of its threads."""
    assert "/dev/kvm" in qemu.whole.every("file"), qemu.whole.lines
    assert qemu.whole["NoNewPrivs"] == "1" and {thread["Seccomp"] for thread in qemu.threads} == {"2"}
    assert int(qemu.whole["CapEff"], 16) == int(qemu.whole["CapPrm"], 16) == 0


def moves(qemu: Process) -> list[str]:
    """How often each thread of the guest's CPUs was moved."""
    return [thread["se.nr_migrations"] for thread in qemu.cpus]
