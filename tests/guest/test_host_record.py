"""What the host did during a step, from a tree that looks like /proc, and from this host's own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kduel.core.experiment import Step
from kduel.core.host import BOOT, HostStep, other_work, wait_share
from kduel.guest import hostrecord
from kduel.guest.hostrecord import HostRecorder, Scheduling
from kduel.guest.hosttotals import (
    HostSnapshot,
    all_interrupts,
    compare_snapshots,
    cpu_times,
    interrupts_on,
    sum_of_files,
)
from kduel.run.script import split_host_record
from kduel.store.collect import PreparedSteps
from kduel.study.plan import PlannedTrial

# Of a virtual machine with two CPUs, Linux 6.18; `some` and the first line are cut from its files.
STAT = (
    "cpu  {user} 3843 328671 448695 11190 0 8830 {steal} 0 0\ncpu0 1044719 1921 164335 224347 5595 0 4415 32198 0 0\n"
)
INTERRUPTS = """\
           CPU0       CPU1
 24:          1          0  IO-APIC   5-edge      ACPI:Ged
 36:          0    4542474 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
NMI:          0          0   Non-maskable interrupts
LOC:    5095443    {timer}   Local timer interrupts
RES:    3291790    2533802   Rescheduling interrupts
ERR:          7
MIS:          0
"""
PRESSURE = "some avg10=88.19 avg60=61.47 avg300=25.30 total={total}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"


class Host:
    """A tree with one QEMU of three threads, 11 and 12 being the guest's CPUs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("pressure", "10/task/10", "10/task/11", "10/task/12"):
            (root / "proc" / name).mkdir(parents=True)
        self.set()

    def set(
        self,
        vcpu: tuple[int, int] = (0, 0),
        other: int = 0,
        user: int = 0,
        steal: int = 0,
        total: int = 0,
        disk: int = 0,
        memory: int = 0,
        timer: int = 0,
    ) -> None:
        """Seconds of run and wait of each vCPU, wait of the other thread, and the host's totals; `timer` interrupts of CPU 1."""
        proc = self.root / "proc"
        for thread in (11, 12):
            (proc / f"10/task/{thread}/schedstat").write_text(f"{vcpu[0]}000000000 {vcpu[1]}000000000 77\n")
        (proc / "10/task/10/schedstat").write_text(f"1 {other}000000000 5\n")
        (proc / "stat").write_text(STAT.format(user=2089438 + 100 * user, steal=64396 + 100 * steal))
        for name, stalled in (("cpu", total), ("io", disk), ("memory", memory)):
            (proc / "pressure" / name).write_text(PRESSURE.format(total=9999178648 + 1_000_000 * stalled))
        (proc / "interrupts").write_text(INTERRUPTS.format(timer=4813586 + timer))

    def recorder(self) -> HostRecorder:
        return HostRecorder(10, [11, 12], [0, 1], root=self.root)

    def cpu_file(self, cpu: int, name: str, text: str) -> None:
        """A file of a CPU in /sys, made up after the kernel's documentation: the machine that the tests were written on has none."""
        path = self.root / f"sys/devices/system/cpu/cpu{cpu}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("kduel.guest.hostrecord.time.monotonic", lambda: now[0])
    monkeypatch.setattr("kduel.guest.hostrecord.time.process_time", lambda: 0.0)
    monkeypatch.setattr("kduel.guest.hosttotals.os.cpu_count", lambda: 4)
    return now


def test_a_step_has_what_passed_between_its_marks(host: Host, clock: list[float]) -> None:
    recorder = host.recorder()
    recorder.feed(b"kduel: script\nkduel: step 01-cpu")
    recorder.feed(b"\r\n[    3.1] random: crng init done\n")
    clock[0] += 10
    host.set(vcpu=(6, 2), other=1, user=20, steal=3, total=5, disk=2, memory=1, timer=2500)
    recorder.feed(b"kduel: step 01-cpu ended\nkduel: step 02-next\n")
    assert recorder.steps == [
        (
            "01-cpu",
            HostStep(
                seconds=10.0,
                vcpu_run_s=12.0,
                vcpu_wait_s=4.0,
                other_wait_s=1.0,
                psi_cpu_some=0.5,
                psi_io_some=0.2,
                psi_memory_some=0.1,
                steal_s=3.0,
                interrupts=2500,
                clock_mhz=None,
                other_work=0.2,  # 20 s less the guest's 12, of 40
            ),
        )
    ]
    assert wait_share([recorder.steps[0][1]]) == 0.25


def test_a_guest_that_is_cut_off_has_the_record_of_what_it_was_doing(host: Host, clock: list[float]) -> None:
    """Else nobody would know that a guest that hangs in its boot got no CPU."""
    booting, running, over = host.recorder(), host.recorder(), host.recorder()
    clock[0] += 10
    host.set(vcpu=(1, 9))
    running.feed(b"kduel: step 01-cpu\nkduel: step 01-cpu ended\nkduel: step 02-next\n")
    over.feed(b"kduel: step 01-cpu\nkduel: step 01-cpu ended\n")
    clock[0] += 10
    host.set(vcpu=(4, 10))
    for recorder in (booting, running, over):
        recorder.stop()
    [(label, boot)] = booting.steps
    assert (label, boot.seconds, boot.vcpu_run_s, boot.vcpu_wait_s) == (BOOT, 20.0, 8.0, 20.0)
    assert [name for name, _ in running.steps] == ["01-cpu", "02-next"]
    assert wait_share([running.steps[1][1]]) == 0.25
    assert [name for name, _ in over.steps] == ["01-cpu"]


def test_the_record_of_a_boot_is_that_of_each_of_its_trials() -> None:
    prepared = PreparedSteps([Step(label="cpu", benchmark="sysbench-cpu")])
    trials = [PlannedTrial(id=str(n), block=1, position=n, contender="a", boot=1, steps=[0]) for n in range(2)]
    record = HostStep(seconds=9.0, vcpu_run_s=1.0, vcpu_wait_s=3.0)
    for boot in (trials[:1], trials):
        assert split_host_record(boot, prepared, [(BOOT, record)]) == [{BOOT: record}] * len(boot)
    assert split_host_record(trials[:1], prepared, [("01-cpu", record)]) == [{"cpu": record}]


def test_what_a_host_does_not_tell_is_unknown_and_not_zero(host: Host) -> None:
    for name in (
        "pressure/cpu",
        "pressure/io",
        "pressure/memory",
        "stat",
        "interrupts",
        "10/task/10/schedstat",
        "10/task/11/schedstat",
        "10/task/12/schedstat",
    ):
        (host.root / "proc" / name).unlink()
    recorder = host.recorder()
    recorder.feed(b"kduel: step 01-cpu\nkduel: step 01-cpu ended\n")
    [(_, record)] = recorder.steps
    assert record == HostStep(seconds=record.seconds)
    assert wait_share([record]) is None and other_work([record]) is None and wait_share([]) is None


def test_a_thread_that_ended_takes_nothing_away(host: Host) -> None:
    recorder = host.recorder()
    host.set(other=5)
    recorder.feed(b"kduel: step 01-cpu\n")
    (host.root / "proc/10/task/10/schedstat").unlink()
    recorder.feed(b"kduel: step 01-cpu ended\n")
    assert recorder.steps[0][1].other_wait_s == 0.0


def test_the_clock_is_the_mean_of_the_pinned_cpus(host: Host) -> None:
    for cpu, khz in ((0, 1000000), (1, 2000000), (2, 3000000)):
        host.cpu_file(cpu, "cpufreq/scaling_cur_freq", f"{khz}\n")
    recorder = HostRecorder(10, [11, 12], [1, 2], root=host.root)
    assert recorder.tick() is None
    recorder.feed(b"kduel: step 01-cpu\n")
    assert (recorder.tick() or 0) > 0
    recorder.feed(b"kduel: step 01-cpu ended\n")
    assert recorder.steps[0][1].clock_mhz == 2500.0


def test_interrupts_are_those_of_the_pinned_cpus(host: Host) -> None:
    for cpus, expected in (([0], 0), ([1], 40), ([0, 1], 40), ([2], None), ([1, 2], None)):
        host.set()
        recorder = HostRecorder(10, [11, 12], cpus, root=host.root)
        recorder.feed(b"kduel: step 01-cpu\n")
        host.set(timer=40)
        recorder.feed(b"kduel: step 01-cpu ended\n")
        assert recorder.steps[0][1].interrupts == expected, cpus


def test_interrupts_of_too_many_cpus_are_not_read(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    size = len((host.root / "proc/interrupts").read_bytes())
    monkeypatch.setattr(hostrecord, "MOST_INTERRUPTS", size)
    assert host.recorder().look().interrupts is not None
    monkeypatch.setattr(hostrecord, "MOST_INTERRUPTS", size - 1)
    assert host.recorder().look().interrupts is None


def test_throttling_is_that_of_the_pinned_cpus(host: Host) -> None:
    for cpu, count in ((0, 3), (1, 17), (2, 900)):
        host.cpu_file(cpu, "thermal_throttle/core_throttle_count", f"{count}\n")
    recorder = host.recorder()
    recorder.feed(b"kduel: step 01-cpu\n")
    for cpu, count in ((0, 4), (1, 19), (2, 999)):
        host.cpu_file(cpu, "thermal_throttle/core_throttle_count", f"{count}\n")
    recorder.feed(b"kduel: step 01-cpu ended\nkduel: step 02-next\n")
    host.cpu_file(1, "thermal_throttle/core_throttle_count", "\n")
    recorder.feed(b"kduel: step 02-next ended\n")
    assert [record.throttled for _, record in recorder.steps] == [3, None]


def test_a_counter_that_went_back_is_unknown() -> None:
    first, last = HostSnapshot(at=1.0, interrupts=50, throttled=3), HostSnapshot(at=2.0, interrupts=49, throttled=3)
    assert (compare_snapshots(first, last, None).interrupts, compare_snapshots(first, last, None).throttled) == (
        None,
        0,
    )


def test_interrupts_are_read_or_nothing_is() -> None:
    text = INTERRUPTS.format(timer=4813586)
    assert interrupts_on(text, [0]) == 1 + 5095443 + 3291790
    assert interrupts_on(text, [1]) == 4542474 + 4813586 + 2533802
    # With one CPU, a total that is no CPU's looks like a column.
    assert interrupts_on("           CPU0\nLOC:         5   Local timer interrupts\nERR:         7\n", [0]) == 5
    assert interrupts_on("", [0]) is interrupts_on("garbage\n", [0]) is None
    assert interrupts_on(text.replace("5095443", "x" * 7), [0]) is None
    assert all_interrupts("cpu  1 2\nintr 24746261 0 0 0 1\nctxt 63904664\n") == 24746261
    assert all_interrupts("ctxt 5\n") is None
    assert sum_of_files(["3\n", "4\n"]) == 7
    assert sum_of_files([]) is sum_of_files(["3\n", ""]) is sum_of_files(["3", "-1"]) is None


@pytest.mark.parametrize(
    "said",
    [
        b"kduel: step 01-a\nkduel: step 02-b ended\n",
        b"kduel: step 01-a ended\n",
        b"kduel: step ../../x\nkduel: step ../../x ended\n",
        b"kduel: step 01-a" + b"x" * 300 + b"\nkduel: step 01-a" + b"x" * 300 + b" ended\n",
    ],
)
def test_marks_that_do_not_fit_record_nothing(host: Host, said: bytes) -> None:
    recorder = host.recorder()
    recorder.feed(said)
    assert recorder.steps == []


@pytest.mark.slow
def test_a_guest_that_floods_its_console_with_marks_is_bounded(host: Host) -> None:
    recorder = host.recorder()
    recorder.feed(b"kduel: step 01-a\nkduel: step 01-a ended\n" * 3000)
    assert len(recorder.steps) == 2000


def test_a_busy_thread_of_this_host_is_seen() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            recorder = HostRecorder(busy.pid, [busy.pid])
            recorder.feed(b"kduel: step 01-a\n")
            before = time.monotonic()
            while (recorder.look().vcpus or recorder.look().others) is None and time.monotonic() < before + 20:
                time.sleep(0.01)
            time.sleep(0.3)
            recorder.feed(b"kduel: step 01-a ended\n")
        finally:
            busy.kill()
    [(_, record)] = recorder.steps
    assert record.seconds >= 0.3
    if Path("/proc/self/schedstat").exists():
        assert record.vcpu_run_s is not None and record.vcpu_wait_s is not None
        assert 0 < record.vcpu_run_s + record.vcpu_wait_s <= record.seconds + 0.2


def test_the_first_line_of_stat_is_read_or_nothing_is() -> None:
    busy, steal = cpu_times(STAT.format(user=2089438, steal=64396))
    assert busy == pytest.approx((2089438 + 3843 + 328671 + 8830) / os.sysconf("SC_CLK_TCK"))
    assert steal == pytest.approx(64396 / os.sysconf("SC_CLK_TCK"))
    assert cpu_times("") == cpu_times("cpu 1 2 3") == cpu_times("cpu a b c d e f g h") == (None, None)


@pytest.mark.parametrize(
    ("run", "wait", "other", "passed", "waited"),
    [
        (5, 595, 0, 600, 595),  # starved
        (600, 0, 0, 600, 0),  # it spins, and has a CPU
        (600, 0, 500, 600, 0),  # it spins, while QEMU's main loop is starved: it could go on
        (10, 0, 0, 600, 0),  # it sleeps: nobody keeps it from going on
        (10, 100, 300, 600, 400),  # it waits for the main loop, which is starved
        (5, 700, 0, 600, 595),  # more threads waited than one at a time
        (605, 0, 0, 600, 0),  # the clocks are not read at the same moment
    ],
)
def test_a_guest_is_kept_waiting_only_where_the_host_gives_qemu_no_cpu(tmp_path, run, wait, other, passed, waited):
    host = Host(tmp_path)
    host.set(vcpu=(run, wait), other=other)
    (host.root / "proc/10/task/12/schedstat").unlink()
    assert Scheduling(10, [11], host.root / "proc").kept_waiting(passed) == waited


def test_a_host_that_does_not_report_scheduling_keeps_nobody_waiting(tmp_path):
    assert Scheduling(10, [11], tmp_path).kept_waiting(600) == 0
