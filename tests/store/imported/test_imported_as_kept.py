"""Files as people keep them: copied from a terminal, several of one name, the same one twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kduel.core.errors import InputError
from kduel.core.samples import Samples
from kduel.store.imported import Source, bring_in, read

FIXTURES = Path(__file__).parent / "fixtures"
HYPERFINE = '{"results": [{"command": "make", "times": [%s]}]}\n'
REDIS = (
    '"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"\n'
    '"SET","%d.5","0.2","0.1","0.2","0.3","0.4","1.0"\n'
)
COPIED: dict[str, Callable[[bytes], bytes]] = {
    "blanks at the end of lines": lambda data: data.replace(b"\n", b"  \n"),
    "colour of grep": lambda data: b"\x1b[1;31m\x1b[K" + data.replace(b"\n", b"\x1b[m\x1b[K\n"),
    "bracketed paste": lambda data: b"\x1b[?2004l\r" + data,
    "title of a window": lambda data: b"\x1b]0;root@host\x07" + data,
    "title that a string terminator ends": lambda data: b"\x1b]0;root@host\x1b\\" + data,
    "line ends of Windows": lambda data: data.replace(b"\n", b"\r\n"),
    "an empty line behind it": lambda data: data + b"\n",
}
PRINTED = (
    "sysbench-1.0.20-a.txt", "wrk-4.1.0-a.txt", "pgbench-15-a.txt", "netperf-2.7.1-a.txt", "hackbench-2.4-a.txt",
    "cyclictest-2.4-histogram.txt", "schbench-1.0-documented.txt", "stress-ng-0.15-a.txt", "lmbench-3.0-a.txt",
    "unixbench-5-a.txt", "go-1.26-a.txt", "perf-stat-6.1-a.txt", "redis-benchmark-7.0.15-a.csv", "fio-3.33-a.json",
    "iperf3-3.12-a.json", "mangohud-ms-a.csv", "will-it-scale-a.csv",
)  # fmt: skip


def tables(tmp_path: Path, *sources: Source) -> dict[str, Samples]:
    bring_in(sources, tmp_path / "run")
    return {table.key: table for table in read(tmp_path / "run")}


def pair(
    tmp_path: Path, old: str | bytes, new: str | bytes, names: tuple[str, str] = ("old", "new")
) -> dict[str, Samples]:
    tmp_path.mkdir(exist_ok=True)
    for name, text in zip(names, (old, new), strict=True):
        (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return tables(tmp_path, *(Source(tmp_path / name, arm) for name, arm in zip(names, ("old", "new"), strict=True)))


@pytest.mark.parametrize("way", COPIED)
@pytest.mark.parametrize("file", PRINTED)
def test_what_a_terminal_adds_changes_no_value(file: str, way: str, tmp_path: Path) -> None:
    plain = (FIXTURES / file).read_bytes()
    copied = pair(tmp_path / "copied", COPIED[way](plain), plain)
    assert copied and all(table.values["old"] == table.values["new"] for table in copied.values())


@pytest.mark.parametrize("file", ["redis-benchmark-7.0.15-a.csv", "perf-stat-6.1-a.txt", "perf-stat-6.1-json.txt"])
def test_a_prompt_before_lines_of_a_table(file: str, tmp_path: Path) -> None:
    plain = (FIXTURES / file).read_bytes()
    found = pair(tmp_path, b"[root@host ~]# ./measure\n" + plain, plain)
    assert found and all(table.values["old"] == table.values["new"] for table in found.values())


def test_several_files_with_a_call_each_are_trials(tmp_path: Path) -> None:
    sources = []
    for number, contender in enumerate(("old", "old", "new", "new")):
        file = tmp_path / f"{number}.csv"
        file.write_text(REDIS % (1000 + number))
        sources.append(Source(file, contender))
    found = tables(tmp_path, *sources)
    assert found["SET/requests-per-second"].values == {"old": [1000.5, 1001.5], "new": [1002.5, 1003.5]}


def test_two_unnamed_files_of_one_name_are_not_one_contender(tmp_path: Path) -> None:
    sources = []
    for place, name in (("6.1", "result.json"), ("6.12", "result.json"), ("6.18", "other.json")):
        (tmp_path / place).mkdir()
        file = tmp_path / place / name
        file.write_text(HYPERFINE % place)
        sources.append(Source(file))
    with pytest.raises(InputError, match="two files are called 'result'") as caught:
        tables(tmp_path, *sources)
    assert "NAME=FILE" in caught.value.remedy


def test_one_file_is_not_two_trials_of_a_contender(tmp_path: Path) -> None:
    old, copy, new = (tmp_path / name for name in ("old.json", "copy.json", "new.json"))
    for file, times in ((old, "1, 2"), (copy, "1, 2"), (new, "3, 4")):
        file.write_text(HYPERFINE % times)
    with pytest.raises(InputError, match=r"copy.json has the same bytes as old.json"):
        tables(tmp_path, Source(old, "old"), Source(copy, "old"), Source(new, "new"))


def test_a_log_of_frames_without_a_column_of_time(tmp_path: Path) -> None:
    log = "os,cpu,gpu,ram,kernel,driver,cpuscheduler\nA,B,C,1,6.1,D,E\nfps,frametime,cpu_load\n" + "100,10,5\n" * 200
    found = pair(tmp_path, log, log)
    assert found["frames/frame-time-p50"].values["old"] == [10.0]


def test_a_table_for_each_contender_has_no_benchmark_by_its_file(tmp_path: Path) -> None:
    text = "trial,latency [ms: lower]\n1,{}\n"
    (table,) = pair(tmp_path, text.format(10), text.format(11), ("old.csv", "new.csv")).values()
    assert table.values == {"old": [10.0], "new": [11.0]}


def test_files_of_several_benchmarks_are_told_apart(tmp_path: Path) -> None:
    sources = []
    for number, contender in enumerate(("old", "new")):
        for benchmark in ("pipe", "fork"):
            file = tmp_path / contender / f"{benchmark}.csv"
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"latency [ms: lower]\n{number}\n")
            sources.append(Source(file, contender))
    found = tables(tmp_path, *sources)
    assert {*found} == {"pipe/latency", "fork/latency"}
