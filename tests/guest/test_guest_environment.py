from __future__ import annotations

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kduel.guest.environment import parse_config, preemption, read_environment

FILES = b"""\
/proc/cmdline:console=ttyS0 panic=-1
/proc/cpuinfo:processor\t: 0
/proc/cpuinfo:model name\t: QEMU TCG CPU version 2.5+
/proc/cpuinfo:flags\t\t: fpu de pse
/proc/cpuinfo:processor\t: 1
/proc/meminfo:MemTotal:        4016552 kB
/proc/sys/kernel/printk:4\t4\t1\t7
/proc/sys/kernel/random/boot_id:53f52a4b
/proc/sys/vm/swappiness:60
/kduel.packages:sysbench 1.0.20+ds-5
/sys/devices/system/clocksource/clocksource0/current_clocksource:tsc
/sys/devices/system/clocksource/clocksource0/available_clocksource:tsc hpet acpi_pm
/sys/devices/system/cpu/vulnerabilities/meltdown:Mitigation: PTI
/sys/kernel/debug/sched/preempt:none (voluntary) full
/sys/kernel/mm/transparent_hugepage/enabled:[always] madvise never
"""
UNAME = b"Linux kduel 6.1.0-56-cloud-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-11-16) x86_64 GNU/Linux\n"


@pytest.fixture
def captured(tmp_path):
    (tmp_path / "files").write_bytes(FILES)
    (tmp_path / "uname").write_bytes(UNAME)
    (tmp_path / "config.gz").write_bytes(gzip.compress(b"CONFIG_HZ=250\n# CONFIG_PREEMPT is not set\n"))
    return tmp_path


def test_what_a_guest_captured_is_read(captured):
    found = read_environment(captured)
    assert found["release"] == "6.1.0-56-cloud-amd64"
    assert found["architecture"] == "x86_64"
    assert found["cmdline"] == "console=ttyS0 panic=-1"
    assert (found["cpus"], found["cpu_model"], found["cpu_flags"]) == (
        2,
        "QEMU TCG CPU version 2.5+",
        ["fpu", "de", "pse"],
    )
    assert found["memory_kib"] == 4016552
    assert found["sysctl"] == {"kernel.printk": "4 4 1 7", "vm.swappiness": "60"}
    assert found["packages"] == {"sysbench": "1.0.20+ds-5"}
    assert (found["clocksource"], found["clocksources"]) == ("tsc", ["tsc", "hpet", "acpi_pm"])
    assert found["mitigations"] == {"meltdown": "Mitigation: PTI"}
    assert found["preempt"] == "voluntary"
    assert found["config"] == {"HZ": "250", "PREEMPT": "n"}


def test_what_was_not_captured_is_missing_not_invented(captured, tmp_path):
    assert read_environment(tmp_path / "nothing") == {}
    (captured / "config.gz").write_bytes((captured / "config.gz").read_bytes()[:20])
    found = read_environment(captured)
    assert "config" not in found and "clocksource_end" not in found


@given(files=st.binary(max_size=3000), uname=st.binary(max_size=200), config=st.binary(max_size=300))
@settings(deadline=None)
def test_garbage_never_raises(files, uname, config, tmp_path_factory):
    directory = tmp_path_factory.mktemp("environment")
    (directory / "files").write_bytes(FILES[:100] + files)
    (directory / "uname").write_bytes(uname)
    (directory / "config.gz").write_bytes(config)
    assert isinstance(read_environment(directory), dict)


@pytest.mark.parametrize(
    ("debugfs", "uname", "config", "expected"),
    [
        ("none voluntary full (lazy)", "SMP PREEMPT_DYNAMIC", {}, "lazy"),
        ("", "SMP PREEMPT_RT Debian", {}, "rt"),
        ("", "SMP PREEMPT_DYNAMIC", {"PREEMPT_VOLUNTARY": "y"}, ""),
        ("", "SMP Debian 5.10", {"PREEMPT_VOLUNTARY": "y"}, "voluntary"),
        ("", "SMP PREEMPT", {"PREEMPT": "y"}, "full"),
        ("", "SMP", {}, ""),
    ],
)
def test_preemption(debugfs, uname, config, expected):
    assert preemption(debugfs, uname, config) == expected


def test_config_lines():
    text = 'CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C="x=y"\n# a comment\nCONFIG_D=\n'
    assert parse_config(text) == {"A": "y", "B": "n", "C": '"x=y"', "D": ""}
