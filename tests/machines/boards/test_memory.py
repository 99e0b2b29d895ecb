"""What kernels say about memory, and a program that finds it out."""

from __future__ import annotations

import json
import platform
import subprocess
from pathlib import Path

import pytest

from kduel.benchmarks import ParseError, Raw, benchmark
from kduel.benchmarks.support.memorylog import memory_when_killed, read_boot_message, read_meminfo
from kduel.core.cache import Cache
from kduel.guest import programs

MEMORY = benchmark("memory")
LOGS = sorted((Path(__file__).parent / "logs").glob("*.log"))

FORMS = {
    # 2.2, i386
    "Memory: 63008k/65536k available (1084k kernel code, 412k reserved, 968k data, 64k init, 0k bigmem)": {
        "available": 63008, "physical": 65536, "code": 1084, "reserved": 412, "data": 968, "init": 64, "highmem": 0,
    },
    # 2.4, PowerPC: the two of the published study
    "Memory: 13396k available (892k kernel code, 252k data, 52k init, 0k highmem)": {
        "available": 13396, "code": 892, "data": 252, "init": 52, "highmem": 0,
    },
    "Memory: 12980k available (1240k kernel code, 288k data, 88k init, 0k highmem)": {
        "available": 12980, "code": 1240, "data": 288, "init": 88, "highmem": 0,
    },
    # 2.6, ARM, whose other line of the sort tells nothing
    "Memory: 64MB = 64MB total\nMemory: 61952KB available (2276K code, 241K data, 88K init)": {
        "available": 61952, "code": 2276, "data": 241, "init": 88,
    },
    # 3.x, ARM
    "Memory: 1017284k/1017284k available, 31292k reserved, 0K highmem": {
        "available": 1017284, "physical": 1017284, "reserved": 31292, "highmem": 0,
    },
    # 2.6.30, x86-64
    "Memory: 8159520k/9437184k available (4823k kernel code, 1057544k absent, 220120k reserved, 4915k data, 668k init)": {
        "available": 8159520, "physical": 9437184, "code": 4823, "absent": 1057544, "reserved": 220120, "data": 4915,
        "init": 668,
    },
    # 2.6.30, PowerPC
    "Memory: 251904k/262144k available (3776k kernel code, 10240k reserved, 164k data, 138k bss, 180k init)": {
        "available": 251904, "physical": 262144, "code": 3776, "reserved": 10240, "data": 164, "bss": 138, "init": 180,
    },
    # 3.11 to 7.x
    "[    0.038582] Memory: 219836K/1048056K available (14343K kernel code, 2327K rwdata, 8348K rodata, 2612K init, "
    "5436K bss, 62544K reserved, 0K cma-reserved)": {
        "available": 219836, "physical": 1048056, "code": 14343, "rwdata": 2327, "rodata": 8348, "data": 10675,
        "init": 2612, "bss": 5436, "reserved": 62544, "cma-reserved": 0,
    },
}  # fmt: skip


@pytest.mark.parametrize("line", FORMS, ids=lambda line: line[:30])
def test_every_form_of_the_boot_message(line: str) -> None:
    assert read_boot_message(f"before\n{line}\nafter") == FORMS[line]


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_real_boot_messages(path: Path) -> None:
    found = read_boot_message(path.read_text())
    assert {"code", "data", "init", "bss", "reserved"} <= found.keys()
    assert found["data"] == found["rwdata"] + found["rodata"]


def test_meminfo_of_old_and_new_kernels() -> None:
    old = "        total:    used:    free:\nMem:  15392768  7282688  8110080\nMemTotal:        15032 kB\nMemFree:          7920 kB\n"
    assert read_meminfo(old) == {"MemTotal": 15032, "MemFree": 7920}
    assert read_meminfo("MemTotal:  4028476 kB\nActive(anon):  12 kB\nHugePages_Total:  0\n")["Active(anon)"] == 12


def test_what_kernels_say_of_whom_they_killed() -> None:
    new = "[   12.3] Out of memory: Killed process 77 (kmem) total-vm:180000kB, anon-rss:173000kB, file-rss:0kB, shmem-rss:4kB"
    old = "Killed process 1234, UID 0, (kmem) total-vm:180000kB, anon-rss:173000kB, file-rss:0kB"
    other = "Killed process 78 (cat) total-vm:180000kB, anon-rss:5kB, file-rss:0kB"
    assert memory_when_killed(f"{new}\n{other}") == 173000
    assert memory_when_killed("Out of Memory: Killed process 77 (kmem).") is None
    assert memory_when_killed(old.replace(", UID 0,", "")) == 173000


def raw(kib: int, account: int, **changed: object) -> Raw:
    taken = {
        "page": 4096,
        "pages": kib // 4,
        "kib": kib,
        "end": "killed",
        "signal": 9,
        "errno": 0,
        "pid": 77,
    } | changed
    return Raw(
        stdout=json.dumps(taken),
        stderr="",
        exit_status=0,
        files={
            "meminfo": "MemTotal: 250000 kB\nMemFree: 200000 kB\nMemAvailable: 190000 kB\nSlab: 9000 kB\n",
            "boot-message": next(reversed(FORMS)),
            "killed": f"Killed process 77 (kmem) total-vm:1kB, anon-rss:{account}kB, file-rss:0kB",
        },
    )


def test_the_step_as_a_whole() -> None:
    found = MEMORY.parse(raw(180000, 180100), MEMORY.read_parameters({}))
    assert found == {
        "allocatable": 180000, "total": 250000, "free": 200000, "available": 190000, "slab": 9000, "code": 14343,
        "data": 10675, "init": 2612,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (raw(180000, 190000), "the kernel killed it with 190000 KiB"),
        (raw(180000, 180000, pages=1), "contradicts itself"),
        (raw(180000, 180000, end="ended", signal=0), "not because memory ran out"),
        (raw(180000, 180000, signal=11), "signal 11"),
    ],
)
def test_a_figure_that_cannot_be_right_is_refused(given: Raw, told: str) -> None:
    with pytest.raises(ParseError, match=told):
        MEMORY.parse(given, MEMORY.read_parameters({}))


def test_what_a_kernel_does_not_tell_is_named() -> None:
    old = Raw(
        stdout=raw(9024, 9024).stdout,
        stderr="",
        exit_status=0,
        files={"meminfo": "MemTotal: 15032 kB\nMemFree: 7920 kB\n", "boot-message": list(FORMS)[1], "killed": ""},
    )
    with pytest.raises(ParseError, match="does not report available, slab: leave it out"):
        MEMORY.parse(old, MEMORY.read_parameters({}))
    figures = ["allocatable", "total", "free", "code", "data"]
    found = MEMORY.parse(old, MEMORY.read_parameters({"figures": figures}))
    # As the study printed them: 892k + 252k are its 1144 kB of code and data.
    assert found == {"allocatable": 9024, "total": 15032, "free": 7920, "code": 892, "data": 252}


def test_kmem_on_this_host_takes_what_it_is_told_and_no_more() -> None:
    program = programs.build("kmem", platform.machine(), cache=Cache())
    said = subprocess.run([program, "--most", "24"], capture_output=True, text=True, check=True).stdout
    assert json.loads(said) | {"pid": 0} == {
        "page": 4096, "pages": 6144, "kib": 24576, "end": "most", "signal": 0, "errno": 0, "pid": 0,
    }  # fmt: skip
    limited = subprocess.run(
        ["sh", "-c", 'ulimit -v 200000; exec "$0"', str(program)], capture_output=True, text=True, check=True
    )
    found = json.loads(limited.stdout)
    assert (found["end"], found["errno"]) == ("refused", 12)
    assert 180_000 < found["kib"] <= 200_000
    assert subprocess.run([program, "--most"], capture_output=True, check=False).returncode == 2
