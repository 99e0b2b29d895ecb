"""With what a benchmark was called: named where contenders differ in it, and no trial beside trials that were called otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from kduel.core.errors import InputError
from kduel.judge.imported import results
from kduel.report import report_format
from kduel.store.imported import Source, bring_in, read

FIXTURES = Path(__file__).parent / "fixtures"
CASES = [
    ("pgbench-15-a.txt", "number of clients: 2", "number of clients: 8", "number of clients", "2", "8"),
    ("pgbench-15-a.txt", "query mode: prepared", "query mode: simple", "query mode", "prepared", "simple"),
    ("wrk-4.1.0-a.txt", "and 4 connections", "and 64 connections", "connections", "4", "64"),
    ("wrk-4.1.0-a.txt", "Running 1s test", "Running 9s test", "duration", "1s", "9s"),
    ("sysbench-1.0.20-a.txt", "limit: 10000", "limit: 20000", "Prime numbers limit", "10000", "20000"),
    ("sysbench-1.0.20-a.txt", "block size: 4KiB", "block size: 64KiB", "block size", "4KiB", "64KiB"),
    ("sysbench-1.0.20-a.txt", "Using synchronous", "Using asynchronous", "mode", "Using synchronous I/O mode", "Using asynchronous I/O mode"),
    ("netperf-2.7.1-a.txt", "131072 1        1 ", "131072 64       1 ", "message sizes in bytes", "1 1", "64 1"),
    ("netperf-2.7.1-a.txt", "16384  16384    ", "16384  64       ", "message sizes in bytes", "that of the socket", "64"),
    ("fio-3.33-a.json", '"iodepth" : "1"', '"iodepth" : "32"', "iodepth", "1", "32"),
    ("cyclictest-2.4-quiet.txt", " I:1000 ", " I:200 ", "interval", "1000", "200"),
    ("cyclictest-2.4-a.json", " -i1000 ", " -i 200 ", "interval", "1000", "200"),
    ("iperf3-3.12-a.json", '"blksize":\t131072', '"blksize":\t1024', "blksize", "131072", "1024"),
    ("jmh-1.37-a.json", '"threads" : 1', '"threads" : 4', "threads", "1", "4"),
]  # fmt: skip


def bring_both(tmp_path: Path, file: str, before: str, after: str, *names: str) -> Path:
    """An import of a file, and of one that was made by another call."""
    text = (FIXTURES / file).read_text()
    changed = text.replace(before, after)
    assert changed != text, f"{file} has no {before!r}"
    sources = []
    for name, content, place in zip(names, (text, changed), ("one", "two"), strict=True):
        (tmp_path / place).mkdir()
        path = tmp_path / place / file
        path.write_text(content)
        sources.append(Source(path, name))
    bring_in([*sources, *([Source(FIXTURES / file, "other")] if len({*names}) == 1 else [])], tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(("file", "before", "after", "name", "old", "new"), CASES)
def test_what_contenders_were_called_with_is_named_where_it_differs(
    tmp_path: Path, file: str, before: str, after: str, name: str, old: str, new: str
) -> None:
    found = results(bring_both(tmp_path, file, before, after, "old", "new"))
    settings = [one for one in found.differences if one.group == "called with"]
    assert settings and all(one.key.endswith(f": {name}") for one in settings), found.differences
    assert settings[0].values == {"old": old, "new": new} and not settings[0].declared
    for chosen in ("text", "markdown", "html", "mail"):
        assert f": {name}" in " ".join(report_format(chosen).render(found).split()), chosen


@pytest.mark.parametrize(("file", "before", "after", "name", "old", "new"), CASES)
def test_calls_with_other_settings_are_no_further_trials(
    tmp_path: Path, file: str, before: str, after: str, name: str, old: str, new: str
) -> None:
    with pytest.raises(InputError, match=f"of 'same' has {name} '{new}', but '{old}' before"):
        bring_both(tmp_path, file, before, after, "same", "same")


def test_equal_settings_are_no_difference(tmp_path: Path) -> None:
    for file in dict.fromkeys(case[0] for case in CASES):
        bring_in([Source(FIXTURES / file, "old"), Source(FIXTURES / file, "new")], tmp_path / file)
        assert not [one for one in results(tmp_path / file).differences if one.group == "called with"], file


@pytest.mark.parametrize(("before", "after"), [("131072", "87380"), ("16384", "46080"), ("212992", "425984")])
def test_sizes_of_netperfs_sockets_are_those_of_the_kernel(tmp_path: Path, before: str, after: str) -> None:
    """The default of tcp_rmem became 131072 bytes in Linux 4.20."""
    run = bring_both(tmp_path, "netperf-2.7.1-a.txt", before, after, "old", "new")
    assert not results(run).differences
    (tmp_path / "more").mkdir()
    bring_in(
        [
            Source(tmp_path / place / "netperf-2.7.1-a.txt", name)
            for place, name in (("one", "old"), ("two", "old"), ("one", "new"))
        ],
        tmp_path / "trials",
    )


def test_settings_among_the_conditions_stay_known(tmp_path: Path) -> None:
    bring_both(tmp_path, "fio-3.33-a.json", '"iodepth" : "1"', '"iodepth" : "32"', "old", "new")
    known = tmp_path / "known.toml"
    known.write_text(
        "".join(
            f'[contenders.{name}]\nsettings = {{ governor = "{governor}" }}\n'
            for name, governor in (("old", "performance"), ("new", "powersave"))
        )
    )
    sources = [Source(tmp_path / place / "fio-3.33-a.json", name) for place, name in (("one", "old"), ("two", "new"))]
    bring_in(sources, tmp_path / "stated", conditions=known)
    found = {(one.group, one.key): one.values for one in results(tmp_path / "stated").differences}
    assert found["settings", "governor"] == {"old": "performance", "new": "powersave"}
    assert any(group == "called with" for group, _ in found)


def test_a_parameter_in_a_column_is_named_where_files_differ_in_it(tmp_path: Path) -> None:
    for name, threads in (("old", 1), ("new", 4)):
        rows = "".join(f"{threads},{10 + number}\n" for number in range(4))
        (tmp_path / f"{name}.csv").write_text(f"threads,latency [ms: lower]\n{rows}")
    bring_in([Source(tmp_path / "old.csv", "old"), Source(tmp_path / "new.csv", "new")], tmp_path / "run")
    (found,) = results(tmp_path / "run").differences
    assert (found.group, found.key, found.values) == ("called with", "table: threads", {"old": "1", "new": "4"})


def test_nanoseconds_of_cyclictest_are_read_as_microseconds(tmp_path: Path) -> None:
    text = (FIXTURES / "cyclictest-2.4-a.json").read_text()
    (tmp_path / "ns.json").write_text(text.replace('"resolution_in_ns": 0', '"resolution_in_ns": 1'))
    bring_in([Source(FIXTURES / "cyclictest-2.4-a.json", "us"), Source(tmp_path / "ns.json", "ns")], tmp_path / "run")
    tables = read(tmp_path / "run")
    assert tables and all(
        [1000 * (value or 0) for value in table.values["ns"]] == pytest.approx(table.values["us"]) for table in tables
    )


def test_transactions_of_other_queries_are_no_further_trials(tmp_path: Path) -> None:
    def report(reads: int, writes: int) -> str:
        return (
            "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\nNumber of threads: 4\nSQL statistics:\n    queries performed:\n"
            f"        read:                            {reads}\n        write:                           {writes}\n"
            "        other:                           2000\n    transactions:                        1000   (100.00 per sec.)\n"
            "    execution time (avg/stddev):   9.9975/0.00\n\n"
        )

    for name, texts in (
        ("read", [(14000, 0)] * 2),
        ("write", [(0, 4000)] * 2),
        ("mixed", [(14000, 0), (14000, 4000)]),
    ):
        (tmp_path / f"{name}.txt").write_text("".join(report(*one) for one in texts))
    with pytest.raises(InputError, match="queries, write '4', but '0' before"):
        bring_in([Source(tmp_path / f"{name}.txt", name) for name in ("read", "mixed")], tmp_path / "refused")
    bring_in([Source(tmp_path / f"{name}.txt", name) for name in ("read", "write")], tmp_path / "run")
    (reads, writes) = [one for one in results(tmp_path / "run").differences if one.group == "called with"]
    assert reads.values == {"read": "14", "write": "0"} and writes.values == {"read": "0", "write": "4"}


def test_bandwidth_of_sockets_and_the_index_of_some_tests_are_read(tmp_path: Path) -> None:
    for name, factor in (("old", 1.0), ("new", 2.0)):
        (tmp_path / f"{name}.txt").write_text(
            f"[lmbench3.0 results for Linux {name}]\n\nSocket bandwidth using localhost\n0.000001 {1.5 * factor} MB/sec\n"
            f"0.010240 {2345.5 * factor} MB/sec\nAvg xfer: 3.2KB, 41.8KB in 9.1 millisecs, 4.59 MB/sec\n"
        )
        (tmp_path / f"{name}-ub.txt").write_text(
            "8 CPUs in system; running 1 parallel copy of tests\n\n"
            f"Execl Throughput                               {4000 * factor} lps   (29.9 s, 2 samples)\n"
            f"System Benchmarks Index Score (Partial Only)                         {1300 * factor}\n"
        )
    bring_in([Source(tmp_path / f"{name}.txt", name) for name in ("old", "new")], tmp_path / "lmbench")
    found = {table.metric.name: table.values for table in read(tmp_path / "lmbench")}
    assert found == {
        "Socket bandwidth using localhost 0.000001": {"old": [1.5], "new": [3.0]},
        "Socket bandwidth using localhost 0.010240": {"old": [2345.5], "new": [4691.0]},
    }
    bring_in([Source(tmp_path / f"{name}-ub.txt", name) for name in ("old", "new")], tmp_path / "unixbench")
    assert {table.metric.name: table.values["new"] for table in read(tmp_path / "unixbench")} == {
        "Execl Throughput": [8000.0],
        "index (partial only)": [2600.0],
    }


def test_columns_that_are_not_read_are_named(tmp_path: Path) -> None:
    record = bring_in(
        [Source(FIXTURES / "turbostat-table-b.txt", "old"), Source(FIXTURES / "turbostat-table-b.txt", "new")],
        tmp_path / "run",
    )
    assert [text.partition(": ")[2] for text in record.skipped] == ["the columns Avg_MHz"] * 2


def test_the_two_tests_of_sysbench_that_do_not_say_which_they_are(tmp_path: Path) -> None:
    def report(events: int) -> str:
        return (
            "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\nNumber of threads: 4\nGeneral statistics:\n"
            f"    total number of events:              {events}\nLatency (ms):\n         avg:                                    1.50\n"
            "    execution time (avg/stddev):   9.9975/0.00\n\n"
        )

    (tmp_path / "mixed.txt").write_text(report(12345) + report(4))
    with pytest.raises(InputError, match="has events 'one a thread', but 'many a thread' before"):
        bring_in([Source(tmp_path / "mixed.txt", "old"), Source(tmp_path / "mixed.txt", "new")], tmp_path / "run")


def test_old_reports_of_schbench_are_named_so(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text(
        "Latency percentiles (usec)\n\t50.0000th: 10\n\t*99.0000th: 100\n\tmin=0, max=500\n"
    )
    with pytest.raises(InputError, match="schbench before") as caught:
        bring_in([Source(tmp_path / "old.txt", name) for name in ("old", "new")], tmp_path / "run")
    assert "1.0 or later" in caught.value.remedy


def test_a_column_of_trials_and_one_metric_are_a_table(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / f"{name}.csv").write_text("run,time_s\n1,10.5\n2,10.6\n")
    bring_in([Source(tmp_path / f"{name}.csv", name) for name in ("old", "new")], tmp_path / "run")
    (table,) = read(tmp_path / "run")
    assert (table.metric.name, table.values["new"]) == ("time_s", [10.5, 10.6])
