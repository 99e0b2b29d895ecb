"""What a real machine records of itself during each step: the script as it runs here, and texts of other hardware."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kduel.core.experiment import Settle, Step
from kduel.core.host import HostStep
from kduel.guest import own_file
from kduel.guest.hostinside import step_inside
from kduel.guest.script import ScriptStep, compose
from kduel.machines import Machine
from kduel.machines.icount import IcountMachine
from kduel.machines.local import LocalMachine
from kduel.machines.qemu import InQemu
from kduel.machines.remote.real import RealMachine
from kduel.machines.slurm_node import NodeMachine
from kduel.run.script import read_inside_records
from kduel.store.collect import PreparedSteps
from kduel.study.plan import PlannedTrial

NOW = Settle(mode="fixed", seconds=0)
# What record.sh left on a virtual machine with two CPUs, Linux 6.18. It has no cpufreq and no thermal_throttle.
VIRTUAL = """\
/proc/uptime:{uptime} 7656.78
/proc/stat:cpu  1417015 505787 352776 765678 10889 0 5625 {steal} 0 0
/proc/stat:intr {interrupts}
/proc/pressure/cpu:some avg10=81.78 avg60=82.50 avg300=83.96 total={cpu}
/proc/pressure/io:some avg10=0.10 avg60=0.29 avg300=0.24 total={disk}
/proc/pressure/memory:some avg10=0.00 avg60=0.00 avg300=0.00 total={memory}
"""
BEGIN = VIRTUAL.format(
    uptime="15366.89", steal=4927, interrupts=24746261, cpu=7121845844, disk=291829050, memory=1000000
)
END = VIRTUAL.format(
    uptime="15376.89", steal=5027, interrupts=24756261, cpu=7126845844, disk=293829050, memory=2000000
)
# Lines that a machine with both has besides, made up after the kernel's documentation: the tests' machine has neither.
FIXTURE = """\
/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq:{first}
/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq:{second}
/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count:{throttled}
/sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count:17
"""


def left(trial: Path, begin: str | bytes, end: str | bytes, name: str = "01-a") -> Path:
    """A trial's directory with these two files."""
    (trial / "host").mkdir(parents=True, exist_ok=True)
    for moment, text in (("begin", begin), ("end", end)):
        data = text.encode() if isinstance(text, str) else text
        (trial / "host" / f"{name}.{moment}").write_bytes(data)
    return trial


def test_a_step_has_what_passed_between_its_start_and_its_end(tmp_path: Path) -> None:
    assert step_inside(left(tmp_path, BEGIN, END), "01-a") == HostStep(
        seconds=10.0, psi_cpu_some=0.5, psi_io_some=0.2, psi_memory_some=0.1, steal_s=1.0, interrupts=10000
    )


def test_clock_and_throttling_are_read_where_a_machine_has_them(tmp_path: Path) -> None:
    begin = BEGIN + FIXTURE.format(first=800000, second=1200000, throttled=3)
    end = END + FIXTURE.format(first=3000000, second=3000000, throttled=8)
    record = step_inside(left(tmp_path, begin, end), "01-a")
    assert record is not None and (record.clock_mhz, record.throttled) == (2000.0, 5)


@pytest.mark.parametrize("line", ["/proc/pressure/cpu", "/proc/pressure/io", "/proc/stat:cpu", "/proc/stat:intr"])
def test_what_a_machine_does_not_report_is_unknown(tmp_path: Path, line: str) -> None:
    end = "".join(one for one in END.splitlines(keepends=True) if not one.startswith(line))
    field = {"cpu": "psi_cpu_some", "io": "psi_io_some", "stat:cpu": "steal_s", "stat:intr": "interrupts"}
    record, whole = (
        step_inside(left(tmp_path, BEGIN, end), "01-a"),
        step_inside(left(tmp_path / "b", BEGIN, END), "01-a"),
    )
    assert record is not None and whole is not None
    unknown = [name for name in HostStep.__struct_fields__ if getattr(record, name) != getattr(whole, name)]
    assert unknown == [field[line.rpartition("/")[2]]] and getattr(record, unknown[0]) is None


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("", END),
        (BEGIN, ""),
        (END, BEGIN),
        (BEGIN, END.replace("15376.89", "9" * 5000)),
        (BEGIN, END.replace("15376.89", "-1")),
        (BEGIN, END.replace("15376.89", "nan")),
        (b"\xff\0" * 500, b"\xff" * 500),
    ],
)
def test_a_record_that_is_cut_or_made_up_is_none(tmp_path: Path, begin: str | bytes, end: str | bytes) -> None:
    assert step_inside(left(tmp_path, begin, end), "01-a") is None


def test_numbers_of_any_length_are_read_or_unknown(tmp_path: Path) -> None:
    for number in ("9" * 18, "9" * 19, "9" * 5000, "x", "1e9", "-5"):
        end = VIRTUAL.format(
            uptime="15376.89", steal=number, interrupts=number, cpu=number, disk=number, memory=number
        ) + FIXTURE.format(first=number, second=number, throttled=number)
        record = step_inside(left(tmp_path, BEGIN, end), "01-a")
        assert record is not None and 0 <= (record.psi_cpu_some or 0) <= 1


def test_what_is_no_file_is_no_record(tmp_path: Path) -> None:
    left(tmp_path, BEGIN, END)
    (tmp_path / "host/01-a.end").unlink()
    (tmp_path / "host/01-a.end").mkdir()
    assert step_inside(tmp_path, "01-a") is step_inside(tmp_path / "none", "01-a") is None
    os.mkfifo(tmp_path / "host/02-b.begin")
    assert step_inside(tmp_path, "02-b") is None


def run(place: Path, *parts: ScriptStep, recorded: bool, shell: str = "sh") -> Path:
    """What the script leaves when it runs here."""
    script = place / "guest.sh"
    script.write_text(compose(parts, settle=NOW, recorded=recorded))
    subprocess.run([*shell.split(), script, place / "out"], check=True, timeout=600)
    return place / "out"


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["dash", "bash", "busybox sh"])
def test_the_script_records_this_machine(tmp_path: Path, shell: str, need) -> None:
    need(shell.split()[0])
    slept = ScriptStep(label="slept", script="cat /proc/uptime; sleep 0.3; cat /proc/uptime", timeout=300)
    bad = ScriptStep(label="bad", script="exit 3", timeout=300)
    out = run(tmp_path, slept, bad, recorded=True, shell=shell)
    record = step_inside(out, "01-slept")
    assert record is not None and record.seconds >= 0.29
    assert record.interrupts is not None and record.interrupts > 0
    if Path("/proc/pressure/cpu").exists():
        assert record.psi_cpu_some is not None and 0 <= record.psi_cpu_some <= 1
    known = (record.vcpu_run_s, record.vcpu_wait_s, record.other_wait_s, record.other_work)
    assert known == (None, None, None, None)
    within = [float(line.split()[0]) for line in (out / "01-slept/stdout").read_text().splitlines()]
    begin, end = ((out / f"host/01-slept.{moment}").read_text() for moment in ("begin", "end"))
    moments = [float(text.split()[0].partition(":")[2]) for text in (begin, end)]
    assert moments[0] <= within[0] < within[1] <= moments[1]
    assert step_inside(out, "02-bad") is not None
    # One short file: no list of all interrupts, and no line for each CPU.
    assert "cpu0" not in begin.replace("/cpu0/", "/") and max(map(len, begin.splitlines())) < 200


def test_a_step_that_a_gate_kept_from_running_has_no_record(tmp_path: Path) -> None:
    refused = ScriptStep(label="refused", script="true", timeout=300, before="exit 1")
    out = run(tmp_path, refused, ScriptStep(label="next", script="true", timeout=300), recorded=True)
    assert step_inside(out, "01-refused") is None and step_inside(out, "02-next") is not None


def test_a_guest_is_not_disturbed_by_a_single_byte() -> None:
    part = ScriptStep(label="a", script="true", timeout=300)
    plain, recorded = (compose([part], settle=NOW, recorded=recorded) for recorded in (False, True))
    assert plain == compose([part], settle=NOW) and "totals" not in plain
    assert recorded.replace(own_file("record.sh").decode() + "\n", "") == plain
    for machine in (Machine, InQemu, IcountMachine):
        assert machine.records_inside is False
    for machine in (RealMachine, LocalMachine, NodeMachine):
        assert machine.records_inside is True


def test_trials_that_share_a_boot_have_each_their_own(tmp_path: Path) -> None:
    prepared = PreparedSteps([Step(benchmark="sysbench-cpu", label=label) for label in ("a", "b")])
    boot = [
        PlannedTrial(id=f"000{n}-b01-{name}", block=1, position=n, contender=name, boot=1, steps=[1, 0])
        for n, name in enumerate(("one", "two"), 1)
    ]
    one = left(tmp_path / "one", BEGIN, END, "02-b")
    two = left(left(tmp_path / "two", BEGIN, END.replace("15376", "15386"), "01-a"), BEGIN, END, "02-b")
    first, second = read_inside_records(boot, prepared, [one, two])
    assert list(first) == ["b"] and first["b"].seconds == 10.0
    assert {label: record.seconds for label, record in second.items()} == {"a": 20.0, "b": 10.0}
