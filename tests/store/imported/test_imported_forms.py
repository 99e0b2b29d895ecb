"""Forms of programs' outputs beside the one that is read: other versions, failed tests, displays for people."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kduel.core.errors import InputError
from kduel.core.samples import Samples
from kduel.store.imported import Source, bring_in, read
from kduel.store.imported.support.store import Import

FIXTURES = Path(__file__).parent / "fixtures"


def pair(tmp_path: Path, old: str, new: str) -> tuple[Import, dict[str, Samples]]:
    sources = []
    for name, text in (("old", old), ("new", new)):
        (tmp_path / name).write_text(text)
        sources.append(Source(tmp_path / name, name))
    return bring_in(sources, tmp_path / "run"), {table.key: table for table in read(tmp_path / "run")}


FRENCH = (
    "1234,56,msec,task-clock,1234560000,100,00,0,999,CPUs utilized\n4123456789,,cycles,1234560000,100,00,3,340,GHz\n"
)


def test_no_line_of_a_french_perf_is_taken_for_a_prompt(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 1: '1234,56,msec") as caught:
        pair(tmp_path, FRENCH, FRENCH)
    assert "LC_ALL=C" in caught.value.remedy


WRK2 = """Running 30s test @ http://127.0.0.1:8080/
  2 threads and 100 connections
  Thread calibration: mean lat.: 1.604ms, rate sampling interval: 10ms
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.59ms  799.39us  34.66ms   75.78%
    Req/Sec    14.75k     1.21k   52.30k    84.76%
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    1.48ms
 75.000%    2.08ms
 99.000%    {}
 99.900%    7.16ms
100.000%   34.69ms
  4196552 requests in 5.00m, 832.45MB read
Requests/sec:  13988.51
Transfer/sec:      2.77MB
"""


def test_percentiles_of_wrk2_are_read(tmp_path: Path) -> None:
    _, found = pair(tmp_path, WRK2.format("3.18ms"), WRK2.format("1.18s "))
    values = {table.metric.name: table.values for table in found.values()}
    assert values["latency-p99"] == {"old": [3.18], "new": [1180.0]}
    assert values["latency-p50"] == {"old": [1.48], "new": [1.48]}


SYSBENCH = """sysbench 1.1.0-2ca9e3f (using bundled LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 4
{0}
Throughput:
{1}
Latency (ms):
         min:                                    0.01
         avg:                                    3.01
         max:                                   95.01
         95th percentile:                        9.01
         sum:                                10000.01

Threads fairness:
    events (avg/stddev):           100.0000/0.00
    execution time (avg/stddev):   10.0000/0.00
"""
FILES = """         read:  IOPS=8.37 0.13 MiB/s (0.14 MB/s)
         write: IOPS=5.58 0.09 MiB/s (0.09 MB/s)
         fsync: IOPS=18.42
"""
EVENTS = "    events/s (eps):                      1892.7281\n    time elapsed:                        10.0005s\n"


def test_rates_of_a_newer_sysbench_are_read(tmp_path: Path) -> None:
    text = SYSBENCH.format("\nDoing random r/w test\n", FILES) + SYSBENCH.format("", EVENTS)
    _, found = pair(tmp_path, text, text)
    assert {key: table.values["old"] for key, table in found.items() if table.metric.better == "higher"} == {
        "sysbench-fileio-random-r/w-4t/reads-per-second": [8.37],
        "sysbench-fileio-random-r/w-4t/writes-per-second": [5.58],
        "sysbench-fileio-random-r/w-4t/fsyncs-per-second": [18.42],
        "sysbench-other-4t/events-per-second": [1892.7281],
    }


def test_one_rate_of_sysbench_is_one_metric(tmp_path: Path) -> None:
    text = SYSBENCH.format("Prime numbers limit: 10000\n\nCPU speed:\n    events per second:  1892.73\n", EVENTS)
    _, found = pair(tmp_path, text, text)
    (rate,) = [table for table in found.values() if table.metric.better == "higher"]
    assert rate.values["old"] == [1892.73]


def test_reports_within_a_call_of_fio_are_no_trials(tmp_path: Path) -> None:
    report = json.loads((FIXTURES / "fio-3.33-a.json").read_text().split("\n}\n{\n")[0].removesuffix("\n}") + "\n}")
    for job in report["jobs"]:
        job["job_start"] = 1_700_000_000_000
    text = json.dumps(report, indent=1) + "\n"
    with pytest.raises(InputError, match=r"call 2: the job .* began when that of call 1 did") as caught:
        pair(tmp_path, text * 2, text)
    assert "--status-interval" in caught.value.remedy


def google(value: str) -> str:
    return (
        '{"context": {}, "benchmarks": [{"name": "BM", "run_name": "BM", "run_type": "iteration", "iterations": 10, '
        f'"real_time": 15, "cpu_time": 14, "time_unit": "ns", "ratio": {value}}}]}}'
    )


@pytest.mark.parametrize("value", ["NaN", "-NaN", "Infinity", "-Infinity"])
def test_a_counter_that_is_no_number_is_left_out_and_told(value: str, tmp_path: Path) -> None:
    record, found = pair(tmp_path, google(value), google("1"))
    assert {*found} == {"BM/real_time", "BM/cpu_time"}
    assert any("ratio is no number" in reason for reason in record.skipped)


def test_a_benchmark_of_go_that_failed_is_left_out_and_told(tmp_path: Path) -> None:
    text = "BenchmarkX-8 \t100\t12.3 ns/op\t NaN x/y\n"
    failed = f"{text}BenchmarkY-8\t--- FAIL: BenchmarkY-8\nBenchmarkZ\n--- SKIP: BenchmarkZ\n"
    record, found = pair(tmp_path, failed, text.replace("NaN", "1"))
    assert {*found} == {"X-8/time"}
    assert any("line 2: BenchmarkY-8 failed" in reason for reason in record.skipped)
    assert any("x/y is no number" in reason for reason in record.skipped)


def test_a_test_of_phoronix_without_a_number_is_left_out_and_told(tmp_path: Path) -> None:
    entry = "<Entry><Identifier>{}</Identifier><Value>{}</Value><RawString>{}</RawString></Entry>"
    result = (
        "<Result><Identifier>pts/x-1.0.0</Identifier><Title>x</Title><Description>{}</Description><Scale>s</Scale>"
        "<Proportion>LIB</Proportion><DisplayFormat>BAR_GRAPH</DisplayFormat><Data>{}</Data></Result>"
    )
    rows = (
        result.format("good", entry.format("6.1", 2, "1:3") + entry.format("6.12", 2, "2:2")),
        result.format("bad", entry.format("6.1", 2, "1:3") + entry.format("6.12", "FAIL", "FAIL")),
    )
    file = tmp_path / "composite.xml"
    file.write_text(f"<PhoronixTestSuite>{''.join(rows)}</PhoronixTestSuite>")
    record = bring_in([Source(file)], tmp_path / "run")
    assert [table.metric.name for table in read(tmp_path / "run")] == ["good"]
    assert any("6.12 has the value 'FAIL'" in reason for reason in record.skipped)


def test_a_command_that_is_there_twice_is_named(tmp_path: Path) -> None:
    text = '{"results": [{"command": "make", "times": [1]}, {"command": "make", "times": [2]}]}\n'
    with pytest.raises(InputError, match="the command 'make' is there twice") as caught:
        pair(tmp_path, text, text)
    assert "--command-name" in caught.value.remedy


UNREAD = {
    "perf-stat": (" Performance counter stats for './x' (5 runs):\n\n     4 123 456 789      cycles\n", "-x ';'"),
    "hyperfine": ("Benchmark 1: sleep 0.1\n  Time (mean ± σ):     101.2 ms ±   0.3 ms\n", "--export-json"),
    "hyperfine table": ("| Command | Mean [ms] | Min [ms] | Max [ms] | Relative |\n|:---|---:|", "--export-json"),
    "jmh": ('"Benchmark","Mode","Threads","Samples","Score","Score Error (99.9%)","Unit"\n"d.j","avgt",1,5,1,1,"s"\n', "-rf json"),
    "jmh text": ("Benchmark  Mode  Cnt  Score   Error  Units\nd.W.j      avgt    5  12.3 ± 0.1  ns/op\n", "-rf json"),
    "google-benchmark": (
        "name,iterations,real_time,cpu_time,time_unit,bytes_per_second\nBM,1,2,3,ns,\n", "--benchmark_format=json",
    ),
    "google console": (
        "2026-01-01T00:00:00+00:00\nRunning ./bm\n---\nBenchmark     Time       CPU   Iterations\nBM   1 ns  1 ns 5\n",
        "--benchmark_format=json",
    ),
    "benchstat": ("goos: linux\n,old.txt,,new.txt,,,\n,sec/op,CI,sec/op,CI,vs base,P\nFoo-8,1,1%,1,1%,,\n", "benchstat read"),
    "old benchstat": ("name        old time/op    new time/op    delta\nEncode-8    1.72µs ± 1%    1.42µs ± 1%\n", "benchstat read"),
    "go -json": ('{"Time":"2026-01-01T00:00:00Z","Action":"output","Package":"x","Output":"Benchmark"}\n', "without -json"),
    "redis-benchmark": ('"SET","100000.1"\n"GET","100"\n', "redis-benchmark 6.2"),
    "fio": ("fio-3.33\nrand: (g=0): rw=randread, bs=(R) 4096B-4096B, ioengine=psync, iodepth=1\n", "--output-format=json"),
    "iperf3": ("Connecting to host 10.0.0.1, port 5201\n[  5] local 10.0.0.2 port 1 connected\n", "--json"),
    "ab": ("This is ApacheBench, Version 2.3 <$Revision: 1903618 $>\n", "a table"),
    "sysbench": ("sysbench 0.4.12:  multi-threaded system evaluation benchmark\n", "sysbench 1.0"),
    "stress-ng": ("stress-ng: info:  [1234] dispatching hogs: 4 cpu\n", "--yaml"),
    "systemd-analyze": ("Startup finished in 2.5s (kernel) + 3.1s (userspace) = 5.6s \n", "a table"),
    "redis-benchmark -q": ("PING_INLINE: 123456.78 requests per second, p50=0.255 msec\nSET: 1.00 requests per second\n", "--csv"),
    "redis-benchmark's report": ("====== SET ======\n  100000 requests completed in 0.90 seconds\n", "--csv"),
    "sar": ("Linux 6.1.0 (h) \t11/29/2026 \t_x86_64_\t(2 CPU)\n\n12:00:01 AM     CPU     %user\n", "a line for each call"),
    "sadf": ("# hostname;interval;timestamp;CPU;%user\nh;1;2026-11-29 12:00:02 UTC;-1;1.00\n", "a line for each call"),
    "vmstat": ("procs -----------memory----------\n r  b   swpd   free\n 1  0      0 100000\n", "a line for each call"),
    "mpstat": ("12:00:01 AM  CPU    %usr   %nice\n12:00:02 AM  all    1.00    0.00\n", "a line for each call"),
    "ministat": ("x old\n+ new\n    N           Min           Max        Median           Avg        Stddev\nx   5  10.5  11.0  10.8  10.77  0.2\n", "files that ministat read"),
    "hackbench's times": ("Time: 0.123\nTime: 0.125\n", "all that hackbench prints"),
    "lmbench's programs": ("Simple syscall: 0.0521 microseconds\nSimple syscall: 0.0522 microseconds\n", "before those of each trial"),
    "lmbench's summary": ("\n                 L M B E N C H  3 . 0   S U M M A R Y\n", "results files"),
    "will-it-scale": ("testcase:Context switch via pipes\nwarmup\nmin:1 max:1 total:1\n", "runtest.py"),
    "systemd-analyze blame": ("5.678s dev-sda1.device\n1.234s NetworkManager.service\n", "a table"),
    "hey": ("\nSummary:\n  Total:\t10.0 secs\n", "a table"),
    "criterion": (
        "group,function,value,throughput_num,throughput_type,sample_measured_value,unit,iteration_count\ng,f,,,,1,ns,1\n",
        "a table",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", UNREAD)
def test_a_form_that_is_not_read_is_refused_as_what_it_is(case: str, tmp_path: Path) -> None:
    text, remedy = UNREAD[case]
    with pytest.raises(InputError, match="old is ") as caught:
        pair(tmp_path, text, text)
    assert remedy in caught.value.remedy


def test_an_hour_of_progress_before_the_result_of_pgbench(tmp_path: Path) -> None:
    plain = (FIXTURES / "pgbench-15-a.txt").read_text()
    progress = "".join(
        f"progress: {second}.0 s, 1234.5 tps, lat 0.8 ms stddev 0.1, 0 failed\n" for second in range(3600)
    )
    result = plain[plain.index("transaction type") :]
    _, found = pair(tmp_path, f"pgbench (15.4)\nstarting vacuum...end.\n{progress}{result}", result)
    assert found and all(table.values["old"] == table.values["new"] for table in found.values())


def test_a_system_whose_first_test_failed_stays_the_baseline(tmp_path: Path) -> None:
    entry = "<Entry><Identifier>{}</Identifier><Value>{}</Value><RawString>{}</RawString></Entry>"
    result = (
        "<Result><Identifier>pts/x-1.0.0</Identifier><Description>{}</Description><Scale>s</Scale>"
        "<Proportion>LIB</Proportion><DisplayFormat>BAR_GRAPH</DisplayFormat><Data>{}</Data></Result>"
    )
    failed, good = entry.format("6.1", "", ""), entry.format("6.1", 2, "1:3")
    new = entry.format("6.12", 2, "2:2")
    file = tmp_path / "composite.xml"
    results = result.format("first", failed + new) + result.format("second", good + new)
    file.write_text(f"<PhoronixTestSuite>{results}</PhoronixTestSuite>")
    bring_in([Source(file)], tmp_path / "run")
    assert [table.contenders for table in read(tmp_path / "run")] == [["6.1", "6.12"]]


def test_a_command_that_failed_is_left_out_and_told(tmp_path: Path) -> None:
    text = (
        '{{"results": [{{"command": "a", "times": [1, 1], "exit_codes": [0, {}]}}, '
        '{{"command": "b", "times": [2, 2], "exit_codes": [0, 0]}}]}}\n'
    )
    record, found = pair(tmp_path, text.format(1), text.format(0))
    assert {*found} == {"b/wall_time"}
    assert any("command 'a': run 2 ended with status 1" in reason for reason in record.skipped)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("3;fio-3.33;seq;0;0;1048576;34952;8738;30000;1;200;5.0\n", "fio's terse output"),
        ("\nreal\t0m1.234s\nuser\t0m1.000s\nsys\t0m0.100s\n", "what the shell's time prints"),
    ],
)
def test_what_has_no_trials_is_called_what_it_is(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "a").write_text(text)
    with pytest.raises(InputError, match=what):
        bring_in([Source(tmp_path / "a")], tmp_path / "run")
