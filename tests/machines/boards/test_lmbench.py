"""lmbench's summary: what lmbench 3.0-a9 (Debian 3.0-a9+debian.1-6) and our own programs print, read strictly."""

from __future__ import annotations

import platform
import subprocess

import pytest

from kduel.benchmarks import ParseError, Raw, benchmark
from kduel.benchmarks.lmbench import chosen_tests
from kduel.core.cache import Cache
from kduel.core.errors import InputError
from kduel.guest import programs

LMBENCH = benchmark("lmbench")
CATEGORIES = ("processes", "switches", "latency", "files", "bandwidth")

PRINTED = {
    "processes": """\
# lat_syscall null
Simple syscall: 0.3622 microseconds
# lat_syscall read
Simple read: 0.3056 microseconds
# lat_syscall write
Simple write: 0.1856 microseconds
# lat_syscall stat file
Simple stat: 0.3828 microseconds
# lat_syscall open file
Simple open/close: 1.0445 microseconds
# lat_sig install
Signal handler installation: 0.2244 microseconds
# lat_sig catch
Signal handler overhead: 2.5011 microseconds
# lat_proc fork
Process fork+exit: 329.9412 microseconds
# lat_proc exec
Process fork+execve: 515.8378 microseconds
# lat_proc shell
Process fork+/bin/sh -c: 1203.5000 microseconds
""",
    "latency": """\
# lat_pipe
Pipe latency: 3.5088 microseconds
# lat_unix
AF_UNIX sock stream latency: 9.6198 microseconds
# lat_udp localhost
UDP latency using localhost: 6.4609 microseconds
# lat_tcp localhost
TCP latency using localhost: 7.4517 microseconds
# lat_connect localhost
TCP/IP connection cost to localhost: 2042.8327 microseconds
""",
    "files": """\
# lat_fs -s 0k .
0k\t385\t45948\t152622
1k\t609\t39576\t180808
# lat_mmap 8m file
8.388608 28
# lat_pagefault file
Pagefaults on file: 0.1192 microseconds
# lat_select -n 100 file
Select on 100 fd's: 0.8150 microseconds
""",
    "bandwidth": """\
# bw_pipe
Pipe bandwidth: 4635.47 MB/sec
# bw_unix
AF_UNIX sock stream bandwidth: 5342.55 MB/sec
# bw_tcp localhost
0.065536 727.14 MB/sec
# bw_file_rd 8m io_only file
8.39 13549.13
# bw_mmap_rd 8m mmap_only file
8.39 26906.86
# bw_mem 8m bcopy
8.39 12167.48
# bw_mem 8m rd
8.39 18579.42
# bw_mem 8m wr
8.39 17825.35
""",
}


def parse(text: str, category: str, program: str) -> dict[str, float]:
    parameters = LMBENCH.read_parameters({"category": category, "program": program})
    return LMBENCH.parse(Raw(stdout=text, stderr="", exit_status=0), parameters)


@pytest.mark.parametrize("category", PRINTED)
def test_what_lmbench_prints(category: str) -> None:
    found = parse(PRINTED[category], category, "lmbench")
    parameters = LMBENCH.read_parameters({"category": category, "program": "lmbench"})
    assert list(found) == [metric.name for metric in LMBENCH.metrics(parameters)]
    some = {
        "processes": {"null-call": 0.3622, "null-io": (0.3056 + 0.1856) / 2, "exec": 515.8378},
        "latency": {"pipe": 3.5088, "tcp-connect": 2042.8327},
        "files": {"create-0k": 1e6 / 45948, "delete-0k": 1e6 / 152622, "mmap": 28, "page-fault": 0.1192},
        "bandwidth": {"tcp-bandwidth": 727.14, "mem-read": 18579.42},
    }[category]
    assert {name: found[name] for name in some} == pytest.approx(some, rel=1e-9)


def test_switches_are_told_apart() -> None:
    parameters = LMBENCH.read_parameters({"category": "switches", "program": "lmbench"})
    text = ""
    for number, test in enumerate(chosen_tests(parameters), 1):
        processes = test.name.partition("p")[0]
        text += f'# {test.lmbench[0]}\n\n"size=16k ovr=18.88\n{processes} {number}.25\n'
    found = parse(text, "switches", "lmbench")
    assert found["2p-0k"] == 1.25 and found["16p-64k"] == 8.25


@pytest.mark.parametrize("category", PRINTED)
def test_every_line_of_lmbench_is_needed(category: str) -> None:
    lines = PRINTED[category].splitlines(keepends=True)
    for number, line in enumerate(lines):
        if line.startswith(("#", "1k")):
            continue
        with pytest.raises(ParseError):
            parse("".join(lines[:number] + lines[number + 1 :]), category, "lmbench")
        with pytest.raises(ParseError):
            parse(
                "".join([*lines[:number], line.replace(".", "?").replace("\t", "?"), *lines[number + 1 :]]),
                category,
                "lmbench",
            )


@pytest.mark.slow
@pytest.mark.parametrize("category", CATEGORIES)
def test_our_own_programs_give_every_figure(category: str, tmp_path) -> None:
    parameters = LMBENCH.read_parameters({"category": category, "time": 0.01})
    for name in LMBENCH.programs:
        (tmp_path / name).symlink_to(programs.build(name, platform.machine(), cache=Cache()))
    done = subprocess.run(
        ["sh", "-e", "-c", LMBENCH.script(parameters)],
        env={"KDUEL_PROGRAMS": str(tmp_path), "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    found = LMBENCH.parse(Raw(stdout=done.stdout, stderr="", exit_status=0), parameters)
    assert list(found) == [metric.name for metric in LMBENCH.metrics(parameters)]
    assert all(value > 0 for value in found.values())
    if category == "processes":
        # Microseconds: no system call takes less than ten ns, nor a fork more than a second.
        assert 0.01 < found["null-call"] < found["fork"] < 1e6
    cut = done.stdout[: len(done.stdout) - 3]
    with pytest.raises(ParseError):
        LMBENCH.parse(Raw(stdout=cut, stderr="", exit_status=0), parameters)


def test_both_programs_share_the_names_of_what_both_have() -> None:
    for category in CATEGORIES:
        ours, theirs = (
            [m.name for m in LMBENCH.metrics(LMBENCH.read_parameters({"category": category, "program": program}))]
            for program in ("kduel", "lmbench")
        )
        assert set(ours) - set(theirs) <= {"create-delete-0k", "protection-fault"}
        assert len(ours) >= 4
    with pytest.raises(InputError, match="category"):
        LMBENCH.read_parameters({})


@pytest.mark.parametrize("category", ["rpc", "arithmetic"])
def test_what_ours_has_not_takes_lmbench_itself(category: str) -> None:
    with pytest.raises(InputError, match=f"category {category} is of lmbench itself"):
        LMBENCH.read_parameters({"category": category})
