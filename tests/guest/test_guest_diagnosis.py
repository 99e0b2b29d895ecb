"""Consoles that real guests left (tests/guest/consoles) are told apart by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kduel.guest.console import read_console
from kduel.guest.diagnosis import LINES, WIDTH, diagnose, findings
from kduel.guest.emulator import explain_fault
from kduel.guest.launch import Run
from kduel.machines import Trial
from kduel.machines.guests.judged import GuestMachine
from kduel.machines.qemu import QemuMachine

CONSOLES = Path(__file__).parent / "consoles"
WENT_ON = {"warn", "oom-tail", "oom-tmpfs"}
"""Those whose results came home all the same."""


@pytest.mark.parametrize(
    ("name", "ended", "ready", "void", "shown"),
    [
        ("panic-no-init", "off", False, "panic", "VFS: Unable to mount root fs"),
        ("panic-sysrq-5.10", "off", True, "panic", "sysrq triggered crash"),
        ("panic-sysrq-7.3", "off", True, "panic", "sysrq triggered crash"),
        ("panic-rt", "off", True, "panic", "sysrq triggered crash"),
        ("oops", "off", True, "oops", "BUG: kernel NULL pointer dereference"),
        ("gpf", "off", True, "oops", "general protection fault"),
        ("bug", "off", True, "oops", "kernel BUG at"),
        ("soft-lockup", "deadline", True, "soft-lockup", "kdcrash"),
        ("rcu-stall", "deadline", True, "soft-lockup", "stall"),
        ("oom-boot", "off", False, "out-of-memory", "System is deadlocked on memory"),
        ("silent-exit", "off", True, "silent-exit", "step 01-t"),
        ("silent-reboot", "off", True, "silent-exit", "Restarting system"),
        ("deadline", "deadline", True, "deadline", "step 01-t"),
        ("boot-hang", "boot-deadline", False, "hang", "clocksource: hpet"),
        ("boot-hang", "deadline", False, "hang", "clocksource: hpet"),
        ("setup-failed", "off", True, "setup-failed", "setup failed"),
    ],
)
def test_what_became_of_a_guest_is_named_and_shown(name, ended, ready, void, shown):
    found = diagnose(read_console(CONSOLES / f"{name}.log"), ended=ended, ready=ready, seconds=12.3)
    assert found.void == void
    assert shown in found.message
    assert len(found.message.splitlines()) <= LINES + 2


def test_a_frozen_guest_is_told_from_a_slow_one():
    console = read_console(CONSOLES / "frozen.log")
    slow = diagnose(console, ended="deadline", ready=True, seconds=50)
    frozen = diagnose(console, ended="deadline", ready=True, seconds=50, stuck=["CPU 0 had its interrupts off"])
    assert (slow.void, frozen.void) == ("deadline", "hang")
    assert "CPU 0" in frozen.message
    booting = diagnose(
        console, ended="boot-deadline", ready=False, seconds=50, stuck=["CPU 3 had its interrupts off"]
    )
    assert booting.void == "hang" and "It was frozen: CPU 3" in booting.message


def test_every_capture_is_used():
    names = {path.stem for path in CONSOLES.glob("*.log")}
    marks = test_what_became_of_a_guest_is_named_and_shown.pytestmark[0].args[1]
    assert names == {row[0] for row in marks} | WENT_ON | {"frozen"}


def test_a_guest_that_said_nothing_is_named(tmp_path):
    found = diagnose(read_console(tmp_path / "none"), ended="deadline", ready=False, seconds=60, stderr="kvm: oh")
    assert found.void == "no-console"
    assert "CONFIG_SERIAL_8250_CONSOLE" in found.message and "QEMU said: kvm: oh" in found.message


def test_trouble_in_a_trial_that_came_home_is_found():
    assert findings(read_console(CONSOLES / "warn.log"))["warning"].startswith("[")
    assert "Killed process" in findings(read_console(CONSOLES / "oom-tail.log"))["out-of-memory"]


@pytest.mark.parametrize("name", ["silent-exit", "silent-reboot", "deadline", "boot-hang", "frozen"])
def test_an_ordinary_boot_shows_no_trouble(name):
    assert findings(read_console(CONSOLES / f"{name}.log")) == {}


@given(
    lines=st.lists(st.text(max_size=300), max_size=30),
    ended=st.sampled_from(["off", "boot-deadline", "deadline", "flood", "lingered"]),
    ready=st.booleans(),
)
@settings(deadline=None)
def test_any_console_gets_a_name_and_a_bounded_message(lines, ended, ready):
    found = diagnose(lines, ended=ended, ready=ready, seconds=1, stderr="x" * 10_000)
    assert found.void
    assert len(found.message) < (LINES + 1) * (WIDTH + 6) + 1500


def test_a_panic_after_an_oops_is_the_oops():
    console = ["BUG: unable to handle page fault for address: 8", "Kernel panic - not syncing: Fatal exception"]
    assert diagnose(console, ended="off", ready=True, seconds=1).void == "oops"


INT3 = [
    "[   12.1] kduel: step 01-pipe",
    "[   12.4] int3: 0000 [#1] PREEMPT SMP NOPTI",
    "[   12.4] CPU: 1 PID: 77 Comm: sysbench Not tainted 6.1.0-30-cloud-amd64 #1",
    "[   12.4] RIP: 0010:__fget_light+0x1c/0xb0",
    "[   12.5] Kernel panic - not syncing: Fatal exception in interrupt",
]


FLAGS = [
    "[    0.890891] traps: PANIC: double fault, error_code: 0x0",
    "[    0.890891] Oops: double fault: 0000 [#1] PREEMPT SMP NOPTI",
    "[    0.890891] CPU: 0 UID: 0 PID: 0 Comm: swapper/0 Not tainted 6.12.117+deb13-cloud-amd64 #1  Debian 6.12.117-1",
    "[    0.890891] RIP: 0010:kmem_cache_alloc_noprof+0xc1/0x2f0",
    "[    0.890891] RSP: 0000:ffffffff82c03e30 EFLAGS: 001e4b42",
]
"""As QEMU 7.2 gave it, once."""
RESERVED = [
    "[    1.749108] Oops: general protection fault, maybe for address 0x10: 0000 [#1] PREEMPT SMP NOPTI",
    "[    1.749108] CPU: 0 UID: 0 PID: 9 Comm: kworker/0:0 Tainted: G        W          6.12.118+deb13-cloud-amd64 #1",
    "[    1.749108] RIP: 0010:do_sync_core+0x28/0x30",
    "[    1.749108] RSP: 0018:ffffc90000053d38 EFLAGS: 04047096",
]
"""As QEMU 7.2 gave it another time."""

STALE = [
    "[   50.242585] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    "[   50.255750] NMI backtrace for cpu 3",
    "[   50.368756]  kprobe_int3_handler+0x42/0x1b0",
    "[   50.369522]  exc_int3+0x44/0x120",
    "[   50.369567]  asm_exc_int3+0x35/0x40",
    "[   50.369784] RIP: 0010:load_balance+0x375/0xe50",
    "[   57.353804] watchdog: BUG: soft lockup - CPU#0 stuck for 30s! [swapper/0:0]",
]
"""As a guest of 6.1 locked up on QEMU 7.2 when the scheduler's counters were switched on."""


@pytest.mark.parametrize(
    ("qemu", "accelerator", "cpus", "console", "is_fault"),
    [
        ("7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)", "tcg", 2, INT3, True),
        ("8.0.5", "tcg", 4, [INT3[1].replace("int3", "Oops: int3")], True),
        ("8.1.0", "tcg", 2, INT3, False),
        ("10.0.2 (Debian 1:10.0.2+ds-2)", "tcg", 2, INT3, False),
        ("7.2.22", "kvm", 2, INT3, False),
        ("7.2.22", "tcg", 1, INT3, False),
        ("unknown", "tcg", 2, INT3, False),
        ("7.2.22", "tcg", 2, ["Oops: 0002 [#1] SMP", *INT3], False),
        ("7.2.22", "tcg", 2, [INT3[0]], False),
        ("7.2.22", "tcg", 4, STALE, True),
        ("8.1.0", "tcg", 4, STALE, False),
        ("7.2.22", "tcg", 4, [line for line in STALE if "exc_int3" not in line], False),
        ("7.2.22", "tcg", 4, ["Oops: 0002 [#1] SMP", *STALE], False),
        ("7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)", "tcg", 1, FLAGS, True),
        ("7.2.22", "kvm", 2, FLAGS, False),
        ("7.2.22", "tcg", 2, [line.replace("001e4b42", "00010046") for line in FLAGS], False),
        ("7.2.22", "tcg", 1, RESERVED, True),
        *(
            ("7.2.22", "tcg", 1, [line.replace("04047096", flags) for line in RESERVED], is_fault)
            for flags, is_fault in (("00010246", False), ("003f7fd7", True), ("003d7fd7", False), ("00010244", True))
        ),
    ],
)
def test_an_int3_is_the_emulators_fault_only_where_it_is_known_to_be(qemu, accelerator, cpus, console, is_fault):
    assert bool(explain_fault(console, qemu=qemu, accelerator=accelerator, cpus=cpus)) is is_fault


@pytest.mark.parametrize(("ended", "ready"), [("boot-deadline", False), ("deadline", True)])
@pytest.mark.parametrize("lines", [[], ["Linux version 6.1"]])
def test_time_that_did_not_count_towards_a_deadline_is_told(ended, ready, lines):
    counted = diagnose(lines, ended=ended, ready=ready, seconds=600, waited=4210)
    assert "in 600 s (4210 s in which it waited for a CPU of this host do not count)" in counted.message.replace(
        "after 600", "in 600"
    )
    assert "do not count" not in diagnose(lines, ended=ended, ready=ready, seconds=600).message


@pytest.mark.parametrize(("timings", "void"), [({}, "silent-exit"), ({"done": 9.0}, "broken-envelope")])
def test_results_are_broken_only_where_the_script_ended(tmp_path, timings, void):
    (tmp_path / "console.log").write_text("[0.1] Linux version 6.1\n")
    (tmp_path / "results").write_bytes(b"KDUEL READY 1.0\n")
    run = Run(results=tmp_path / "results", ended="off", exit_status=0, stderr="", timings={"off": 10.0} | timings)
    trial = Trial(id="1", arm=None, script="", deadline=9.0, into=tmp_path)
    assert GuestMachine.judge(object.__new__(QemuMachine), trial, run).void == void
