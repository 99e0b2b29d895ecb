"""Boot messages of Linux 2.4 to 7.x: where stages begin and end, and what is refused."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kduel.benchmarks import ParseError, Raw, benchmark
from kduel.benchmarks.support.bootlog import MARKS, STAGES, console_lines, initcalls, timeline

LOGS = sorted((Path(__file__).parent / "logs").glob("*.log"))
BOOT = benchmark("boot-timeline")

# As kernels of their time word it, stamped as our console log does; the moments in seconds.
HISTORICAL = {
    "2.4 PowerPC with U-Boot": """\
     1.000 ## Booting image at 00100000 ...
     1.200    Image Name:   Linux-2.4.25
     2.900 Linux version 2.4.25 (builder@host) (gcc version 3.3.3) #1 Sat Apr 23 17:04:44 2005
     2.950 Memory: 13396k available (892k kernel code, 252k data, 52k init, 0k highmem)
     4.700 Freeing unused kernel memory: 52k init
     5.000 INIT: version 2.84 booting
    50.700 tqm860l login: """,
    "2.4 i386": """\
     0.500 Linux version 2.4.18 (root@host) (gcc version 2.95.4) #1 Thu Nov 14 00:10:29 EST 2002
     3.500 Freeing unused kernel memory: 172k freed
     4.000 INIT: version 2.84 booting
    20.000 host login:""",
    "2.6 ARM": """\
     0.250 TFTP from server 192.0.2.1; our IP address is 192.0.2.2
     2.250 Linux version 2.6.28 (builder@host) (gcc version 4.2.1) #3 PREEMPT
     4.250 Freeing init memory: 112K
     4.500 init started: BusyBox v1.13.2
     9.250 (none) login:""",
    "3.10 with printk times": """\
     0.500 [    0.000000] Linux version 3.10.0 (builder@host) (gcc version 4.8.2) #1 SMP
     2.500 [    1.900000] Freeing unused kernel memory: 452K (ffffffff81d0e000 - ffffffff81d7f000)
     3.000 [    2.400000] systemd[1]: systemd 208 running in system mode. (+PAM)
    12.000 host login: """,
    "4.18 with callers": """\
     0.500 [    0.000000][    T0] Linux version 4.18.0 (builder@host) (gcc version 8.2.0) #1 SMP
     2.500 [    1.900000][    T1] Freeing unused kernel image memory: 1396K
     3.000 [    2.400000][    T1] Run /sbin/init as init process
    12.000 host login: """,
}


def parse(log: str, **parameters: object) -> dict[str, float]:
    raw = Raw(stdout="", stderr="", exit_status=0, files={"console.log": log})
    return BOOT.parse(raw, BOOT.read_parameters(parameters))


def test_real_logs_of_several_kernels_are_here() -> None:
    assert len(LOGS) >= 3


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_real_logs_tell_every_stage_and_the_stages_add_up(path: Path) -> None:
    values = parse(path.read_text())
    assert set(values) == {"total", *STAGES}
    assert sum(values[stage] for stage in STAGES) == pytest.approx(values["total"], abs=1e-9)
    assert all(value >= 0 for value in values.values())
    # By hand: the host's times in front of the lines.
    stamps = {line.text: line.host for line in console_lines(path.read_text())}
    assert values["total"] == stamps["kduel: script"]


def test_by_hand() -> None:
    values = parse((Path(__file__).parent / "logs" / "x86_64-6.1.log").read_text())
    assert values == pytest.approx(
        {"total": 11.574, "load": 0.952, "kernel": 4.481 - 0.952, "start": 4.747 - 4.481, "userspace": 11.574 - 4.747}
    )


@pytest.mark.parametrize("name", HISTORICAL)
def test_old_wordings(name: str) -> None:
    moments = timeline(console_lines(HISTORICAL[name])).moments
    expected = {
        "2.4 PowerPC with U-Boot": [1.0, 2.9, 4.7, 5.0, 50.7],
        "2.4 i386": [0.0, 0.5, 3.5, 4.0, 20.0],
        "2.6 ARM": [0.25, 2.25, 4.25, 4.5, 9.25],
        "3.10 with printk times": [0.0, 0.5, 2.5, 3.0, 12.0],
        "4.18 with callers": [0.0, 0.5, 2.5, 3.0, 12.0],
    }[name]
    assert list(moments) == ["begin", "version", "freed", "init", "ready"]
    assert list(moments.values()) == expected


def test_lines_that_only_resemble_marks_are_none() -> None:
    log = """\
     0.100 [    0.000000] Linux version 6.1.0 (builder@host)
     0.200 [    0.100000] Freeing SMP alternatives memory: 36K
     0.300 [    0.200000] Freeing initrd memory: 5560K
     0.400 [    0.300000] Freeing unused decrypted memory: 2036K
     0.500 [    0.400000] Freeing unused kernel image (initmem) memory: 2824K
     0.600 [    0.500000] Freeing unused kernel image (text/rodata gap) memory: 2040K
     0.700 [    0.600000] Run /init as init process
     0.750 Last login: Mon Jan 1
     0.800 host login: """
    moments = timeline(console_lines(log)).moments
    assert (moments["freed"], moments["ready"]) == (0.5, 0.8)


def test_a_missing_mark_is_told_with_the_last_lines() -> None:
    log = "\n".join(
        [
            "     0.500 [    0.000000] Linux version 6.1.0 (builder@host)",
            "     0.900 [    0.400000] Kernel panic - not syncing: VFS: Unable to mount root fs",
        ]
    )
    with pytest.raises(ParseError, match=r"no line 'Freeing unused kernel memory.*Unable to mount root"):
        parse(log)
    with pytest.raises(ParseError, match="no line 'Linux version"):
        parse("     0.500 SeaBIOS")
    with pytest.raises(ParseError, match="keeps no console log"):
        BOOT.parse(Raw(stdout="", stderr="", exit_status=0), BOOT.read_parameters({}))


def test_a_stage_that_is_left_out_belongs_to_the_one_before() -> None:
    log = (LOGS[0]).read_text()
    whole = parse(log)
    less = parse(log, stages=["load", "kernel", "userspace"])
    assert less["kernel"] == pytest.approx(whole["kernel"] + whole["start"])
    assert less["total"] == whole["total"]


def test_a_console_that_spoke_late_is_noticed() -> None:
    log = """\
     0.900 [    0.000000] Linux version 6.1.0 (builder@host)
     0.901 [    0.310000] Serial: AMBA PL011 UART driver
     0.905 [    0.450000] printk: console [ttyAMA0] enabled
     1.200 [    0.750000] Freeing unused kernel memory: 2824K"""
    assert timeline(console_lines(log)).late == 0.45
    assert timeline(console_lines(log.replace("0.901", "0.931").replace("0.905", "0.999"))).late == 0


def test_initcalls_of_several_times() -> None:
    found = initcalls(
        [
            "[    0.5] initcall pci_init+0x0/0x20 returned 0 after 1234 usecs",
            "[    0.5] initcall virtio_init+0x0/0x20 [virtio] returned 0 after 11 usecs",
            "[    0.5] initcall slow+0x0/0x20 returned -19 with preemption imbalance after 5 usecs",
            "initcall 0xc0123456: early_init+0x0/0x10() returned 0 after 3 msecs",
            "[    0.5] calling  pci_init+0x0/0x20 @ 1",
            "[    0.6] initcall pci_init+0x0/0x30 returned 0 after 6 usecs",
        ]
    )
    assert found == {"pci_init": 1240.0, "virtio:virtio_init": 11.0, "slow": 5.0, "early_init": 3000.0}


@given(st.lists(st.text(max_size=80), max_size=30), st.randoms())
def test_nothing_that_a_guest_prints_breaks_the_reading(texts: list[str], order) -> None:
    words = [*texts, *(["Linux version 6", "Freeing init memory: 1K", "Run /x as init process", "a login:"])]
    order.shuffle(words)
    log = "\n".join(f"{number:10.3f} {text}" for number, text in enumerate(words))
    found = timeline(console_lines(log))
    times = list(found.moments.values())
    assert times == sorted(times)
    assert [name for name in found.moments if name != "begin"] == [
        name for name, _, _ in MARKS if name in found.moments
    ]
    msgspec.json.encode(found)


def test_two_lines_that_ran_together_mark_nothing() -> None:
    log = HISTORICAL["3.10 with printk times"]
    lines = log.splitlines(keepends=True)
    (freed,) = (number for number, line in enumerate(lines) if "Freeing" in line)
    assert "freed" in timeline(console_lines(log)).moments
    lines[freed - 1] = lines[freed - 1].rstrip("\n") + "w"
    assert "freed" not in timeline(console_lines("".join(lines))).moments
