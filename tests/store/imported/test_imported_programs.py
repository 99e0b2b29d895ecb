"""What the kernel's usual benchmarks write gives the numbers that their own parsers give."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from kduel.core.errors import InputError
from kduel.core.samples import Samples
from kduel.store.imported import Source, bring_in, environments, read
from kduel.store.imported.support.store import the_format

FIXTURES = Path(__file__).parent / "fixtures"
CAPTURED = Path(__file__).parents[2] / "benchmarks" / "captured"


def tables(tmp_path: Path, old: str, new: str) -> dict[str, Samples]:
    bring_in([Source(FIXTURES / old, "old"), Source(FIXTURES / new, "new")], tmp_path / "run")
    return {table.key: table for table in read(tmp_path / "run")}


def refused(tmp_path: Path, text: str, name: str = "old.txt") -> InputError:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as caught:
        bring_in([Source(tmp_path / name, "old"), Source(tmp_path / name, "new")], tmp_path / "refused")
    assert caught.value.remedy
    return caught.value


def expected(folder: str, case: str) -> dict[str, float]:
    found: dict[str, float] = json.loads((CAPTURED / folder / f"{case}.json").read_text())["expected"]
    return found


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("fio-3.33-a.json", "fio"),
        ("cyclictest-2.4-a.json", "cyclictest"),
        ("cyclictest-2.4-quiet.txt", "cyclictest"),
        ("cyclictest-2.4-histogram.txt", "cyclictest"),
        ("hackbench-2.4-a.txt", "hackbench"),
        ("schbench-1.0-documented.txt", "schbench"),
        ("stress-ng-0.15-a.txt", "stress-ng"),
        ("perf-stat-6.1-json.txt", "perf-stat"),
        ("lmbench-3.0-a.txt", "lmbench"),
        ("unixbench-5-a.txt", "unixbench"),
        ("will-it-scale-a.csv", "will-it-scale"),
        ("mangohud-ms-a.csv", "mangohud"),
        ("mangohud-us-b.csv", "mangohud"),
        ("turbostat-summary-a.txt", "turbostat"),
        ("turbostat-table-b.txt", "turbostat"),
        ("powertop-2.14-a.csv", "powertop"),
        ("powertop-battery-b.csv", "powertop"),
        ("fio-3.33-client.json", "fio"),
        ("perf-bench-6.1-a.txt", "perf-bench"),
        ("memtier-a.txt", "memtier"),
        ("memtier-b.json", "memtier"),
        ("memtier-averaged.txt", "memtier"),
        ("memtier-averaged.json", "memtier"),
        ("robot-mail-aim9.txt", "robot-mail"),
        ("robot-mail-netperf-raw.txt", "robot-mail"),
    ],
)
@pytest.mark.parametrize("before", ["", "$ cat results\n"])
def test_a_program_is_known_by_its_output(file: str, name: str, before: str, tmp_path: Path) -> None:
    if before and file.endswith(".csv"):
        pytest.skip("a table has its heading first")
    copy = tmp_path / "no-ending-that-helps"
    copy.write_text(before + (FIXTURES / file).read_text())
    assert the_format(copy, None).name == name


@pytest.mark.parametrize(
    ("old", "new", "cases"),
    [
        (
            "fio-3.33-a.json", "fio-3.39-b.json",
            {"kduel randread 4K": "fio-randread-4k-8m-direct-1s", "kduel randrw 16K": "fio-randrw-16k-8m-2jobs-1s"},
        ),
        ("cyclictest-2.4-a.json", "cyclictest-2.6-b.json", {"cyclictest-2t": "cyclictest-idle-2t-1000l"}),
        (
            "hackbench-2.4-a.txt", "hackbench-2.10-b.txt",
            {"hackbench-2g": "hackbench-2g", "hackbench-3g-5f-1000b-threads": "hackbench-3g-5f-1000b-threads-pipe"},
        ),
        ("stress-ng-0.15-a.txt", "stress-ng-0.22-b.txt", {"stress-ng-pipe": "stress-ng-pipe", "stress-ng-switch": "stress-ng-switch"}),
    ],
)  # fmt: skip
def test_values_are_those_of_the_benchmark_itself(old: str, new: str, cases: dict[str, str], tmp_path: Path) -> None:
    folders = {
        "fio": ("fio-3.33-3", "fio-3.39-1"),
        "cyclictest": ("rt-tests-2.4-1", "rt-tests-2.6-1.1"),
        "hackbench": ("rt-tests-2.4-1", "rt-tests-2.10-1"),
        "stress-ng": ("stress-ng-0.15.06-2", "stress-ng-0.22.01-1"),
    }[re.split(r"-\d", old)[0]]
    found = tables(tmp_path, old, new)
    wanted = {
        f"{name}/{metric}": [expected(folder, case)[metric] for folder in folders]
        for name, case in cases.items()
        for metric in expected(folders[0], case)
    }
    assert {key: [table.values["old"][0], table.values["new"][0]] for key, table in found.items()} == {
        key: pytest.approx(values) for key, values in wanted.items()
    }


def test_jobs_of_fio_with_one_name_are_added_up(tmp_path: Path) -> None:
    document = json.loads((FIXTURES / "fio-3.33-a.json").read_text().partition("\n}\n")[0] + "\n}\n")
    alone = document["jobs"][0]["read"]["iops"]
    document["jobs"] *= 2
    (tmp_path / "two.json").write_text(json.dumps(document, indent=1) + "\n")
    sources = [Source(tmp_path / "two.json", "old"), Source(tmp_path / "two.json", "new")]
    record = bring_in(sources, tmp_path / "run")
    found = {table.key: table for table in read(tmp_path / "run")}
    assert found["kduel randread 4K/read-iops"].values["old"] == [pytest.approx(2 * alone)]
    assert not [key for key in found if "latency" in key], "percentiles of two jobs are not those of both"
    assert any("--group_reporting" in reason for reason in record.skipped)
    document["jobs"][1]["error"] = 5
    assert "ended with error 5" in refused(tmp_path, json.dumps(document), "old.json").message


def test_clients_of_fio_are_read_without_their_sum(tmp_path: Path) -> None:
    found = tables(tmp_path, "fio-3.33-client.json", "fio-3.33-client.json")
    assert {table.benchmark for table in found.values()} == {"r randread 4k", "w write 4k"}
    assert found["r randread 4k/read-iops"].values["old"] == [4047.43083]
    assert found["r randread 4k/read-latency-p99"].values["old"] == [3850.24]


def test_calls_of_fio_with_clients_may_be_appended(tmp_path: Path) -> None:
    """Each report begins with an empty line."""
    text = "\n" + (FIXTURES / "fio-3.33-client.json").read_text()
    (tmp_path / "two.json").write_text(text * 2)
    found = tables(tmp_path, str(tmp_path / "two.json"), "fio-3.33-client.json")
    assert found["r randread 4k/read-iops"].values == {"old": [4047.43083] * 2, "new": [4047.43083, None]}


def test_a_report_of_fio_without_jobs_is_told(tmp_path: Path) -> None:
    text = (FIXTURES / "fio-3.33-a.json").read_text()
    told = refused(tmp_path, text + '{\n  "fio version" : "fio-3.33"\n}\n').message
    assert f"call {text.count('fio version') + 1}: a report without jobs" in told


PERF = {
    "perf-sched-messaging/total-time": 0.129, "perf-sched-pipe/time-per-operation": 13.149,
    "perf-syscall-basic/time-per-operation": 0.47511, "perf-mem-memcpy x86-64-movsq/throughput": 9.367506,
    "perf-futex-hash/operations-per-second": 793088, "perf-futex-wake/time": 146.6, "perf-futex-wake-parallel/latency-per-thread": 100.3,
    "perf-epoll-ctl/add-operations": 59808, "perf-internals-synthesize single/data-synthesis": 444.778,
    "perf-breakpoint-thread/time-per-operation": 816.3, "perf-numa-mem/throughput": 2.172,
}  # fmt: skip


def test_perf_bench_has_the_figures_that_it_prints(tmp_path: Path) -> None:
    found = tables(tmp_path, "perf-bench-6.1-a.txt", "perf-bench-6.1-a.txt")
    assert {key: table.values["old"][0] for key, table in found.items() if key in PERF} == pytest.approx(PERF)
    assert len(found) == len(PERF) + 6, "three other functions, two operations of epoll, a synthesis"


def test_calls_of_perf_bench_are_trials(tmp_path: Path) -> None:
    found = tables(tmp_path, "perf-bench-6.1-b.txt", "perf-bench-6.1-a.txt")
    assert found["perf-sched-pipe/time-per-operation"].values == {"old": [41.2245, 46.8805], "new": [13.149, None]}


@pytest.mark.parametrize("unit", ["KB", "MB", "B"])
def test_perf_bench_chooses_a_unit_for_each_value(unit: str, tmp_path: Path) -> None:
    text = (FIXTURES / "perf-bench-6.1-a.txt").read_text()
    (tmp_path / "a").write_text(text.replace("      10.137327 GB/sec", f" 1073741824.000000 {unit}/sec"))
    bring_in([Source(tmp_path / "a", "old"), Source(FIXTURES / "perf-bench-6.1-a.txt", "new")], tmp_path / "run")
    found = {table.key: table.values["old"] for table in read(tmp_path / "run")}
    assert found["perf-mem-memcpy default/throughput"] == [{"KB": 2.0**10, "MB": 2.0**20, "B": 1}[unit]]


def test_perf_bench_has_milliseconds_under_two_names(tmp_path: Path) -> None:
    text = "# Running 'internals/inject-build-id' benchmark:\n  Average build-id injection took: 13.482 msec (+- 0.1 msec)\n"
    (tmp_path / "a").write_text(text)
    found = tables(tmp_path, str(tmp_path / "a"), str(tmp_path / "a"))
    (table,) = found.values()
    assert (table.metric.name, table.metric.unit) == ("build-id-injection", "us")
    assert table.values["old"] == [pytest.approx(13482)]


def test_a_call_of_perf_bench_that_was_cut_is_refused(tmp_path: Path) -> None:
    cut = "# Running 'sched/pipe' benchmark:\n# Executed 2000 pipe operations between two processes\n"
    text = (FIXTURES / "perf-bench-6.1-b.txt").read_text()
    assert "without a figure" in refused(tmp_path, text + cut).message
    other = text.replace("# Executed 2000", "# Executed 4000", 1)
    assert "4000" in refused(tmp_path, other).message


def test_what_perf_bench_prints_as_simple_is_named(tmp_path: Path) -> None:
    for text in (
        "# function 'default' (Default memcpy() provided by glibc)\n21290883248.730961\n",
        "Run summary [PID 7]: 2 threads\n",
    ):
        assert "--format=simple" in refused(tmp_path, text).message


def test_memtier_has_the_figures_of_its_text_and_its_json(tmp_path: Path) -> None:
    found = {key: table.values for key, table in tables(tmp_path, "memtier-a.txt", "memtier-b.json").items()}
    assert found["memtier-sets/operations-per-second"] == {"old": [1354.26, 1038.44], "new": [1354.26, None]}
    assert found["memtier-gets/latency-p99.9"]["old"] == [17.407, 19.199]
    assert found["memtier-gets/latency-mean"] == {"old": [0.26683, 0.34765], "new": [0.266, None]}
    assert not any(key.startswith("memtier-waits") for key in found)


@pytest.mark.parametrize("kind", ["txt", "json"])
def test_the_best_run_of_memtier_is_no_trial(kind: str, tmp_path: Path) -> None:
    name = f"memtier-averaged.{kind}"
    record = bring_in([Source(FIXTURES / name, "old"), Source(FIXTURES / name, "new")], tmp_path / "run")
    found = {table.key: table.values["old"] for table in read(tmp_path / "run")}
    assert found["memtier-totals/operations-per-second"] == [18428.14]
    assert any("WORST RUN RESULTS" in one for one in record.skipped)
    # Its JSON has 0 for the mean of all kinds, and 0.007 for their percentiles, whatever they were.
    assert found.get("memtier-totals/latency-p99") == (None if kind == "json" else [3.567])


def test_a_run_of_memtier_that_did_nothing_is_refused(tmp_path: Path) -> None:
    text = (FIXTURES / "memtier-a.txt").read_text().replace("14881.95", "0.00")
    assert "without operations" in refused(tmp_path, text).message


def test_threads_of_cyclictest_weigh_by_their_wakeups(tmp_path: Path) -> None:
    found = tables(tmp_path, "cyclictest-2.4-quiet.txt", "cyclictest-2.4-quiet.txt")
    lines = re.findall(r"C: +(\d+) .*Avg: +(\d+) Max: +(\d+)", (FIXTURES / "cyclictest-2.4-quiet.txt").read_text())
    calls = [[tuple(map(int, line)) for line in lines[:2]], [tuple(map(int, line)) for line in lines[2:]]]
    means = [sum(one[0] * one[1] for one in call) / sum(one[0] for one in call) for call in calls]
    assert found["cyclictest-2t/latency-avg"].values["old"] == means and len(means) == 2
    assert found["cyclictest-2t/latency-max"].values["old"] == [max(one[2] for one in call) for call in calls]


def test_a_histogram_of_cyclictest_gives_percentiles_that_it_reaches(tmp_path: Path) -> None:
    found = tables(tmp_path, "cyclictest-2.4-histogram.txt", "cyclictest-2.4-histogram.txt")
    assert sorted(found) == [f"cyclictest-2t/latency-{one}" for one in ("avg", "max", "min")], "1 % lie beyond it"
    rows = "".join(
        f"{us:06d} {600 if us == 3 else 398 if us == 7 else 2 if us == 9 else 0:06d}\n" for us in range(20)
    )
    text = (
        f"# Histogram\n{rows}# Total: 000001000\n# Min Latencies: 00003\n# Avg Latencies: 00004\n"
        "# Max Latencies: 00009\n# Histogram Overflows: 00000\n# Histogram Overflow at cycle number:\n# Thread 0:\n"
    )
    for name, columns in (("one", 1), ("all", 2)):
        # -H has a last column for all threads.
        more = r"\g<0> \2\4" if columns == 2 else r"\g<0>"
        whole = re.sub(r"(?m)^(\d{6}) (\d+)$|^(# .*: )(\d+)$", more, text)
        file = tmp_path / f"{name}.txt"
        file.write_text(whole)
        bring_in([Source(file, "old"), Source(file, "new")], tmp_path / f"run-{name}")
        values = {table.metric.name: table.values["old"] for table in read(tmp_path / f"run-{name}")}
        assert (values["latency-p99"], values["latency-p99.9"], values["latency-max"]) == ([7], [9], [9])
    wrong = text.replace("Total: 000001000", "Total: 000001001")
    assert "does not hold its 1001 wake-ups" in refused(tmp_path, wrong).message


def test_the_display_of_cyclictest_is_no_result(tmp_path: Path) -> None:
    line = "T: 0 (  123) P:80 I:1000 C:    100 Min:      7 Act:   15 Avg:   40 Max:    4548\n"
    assert "-q" in refused(tmp_path, f"{line}\x1b[3A{line}").remedy


def test_reports_of_schbench_before_the_last_are_not_counted(tmp_path: Path) -> None:
    found = tables(tmp_path, "schbench-1.0-documented.txt", "schbench-1.0-documented.txt")
    calls = [expected("schbench-documented", f"schbench-1m-{time}-warmup5") for time in ("10s", "90s")]
    assert {key.partition("/")[2]: table.values["old"] for key, table in found.items()} == {
        metric: [call[metric] for call in calls] for metric in calls[0]
    }
    text = (FIXTURES / "schbench-1.0-documented.txt").read_text()
    assert "average rps:" in refused(tmp_path, text.rpartition("average rps")[0]).message


def test_a_stressor_that_did_nothing_is_left_out_and_told(tmp_path: Path) -> None:
    text = (FIXTURES / "stress-ng-0.15-a.txt").read_text()
    first, stressor, rest = text.partition("- stressor: switch\n")
    assert stressor
    idle = re.sub(r"(?m)^(      bogo-ops.*: ).*", r"\g<1>0", rest)
    (tmp_path / "old.txt").write_text(first + stressor + idle)
    record = bring_in([Source(tmp_path / "old.txt", "old"), Source(tmp_path / "old.txt", "new")], tmp_path / "run")
    assert {table.benchmark for table in read(tmp_path / "run")} == {"stress-ng-pipe"}
    assert any("stress-ng-switch did no operation" in reason for reason in record.skipped)


def test_lines_of_perf_stat_in_json(tmp_path: Path) -> None:
    found = tables(tmp_path, "perf-stat-6.1-json.txt", "perf-stat-6.1-json.txt")
    text = (FIXTURES / "perf-stat-6.1-json.txt").read_text()
    clock = found["perf-stat/task-clock"]
    assert clock.values["old"] == [float(one) for one in re.findall(r'"([\d.]+)", "unit" : "msec"', text)]
    assert (clock.metric.unit, clock.metric.better, len(clock.values["old"])) == ("msec", "lower", 3)
    assert "perf-stat/cycles" not in found
    for key in ("interval", "cpu"):
        divided = text.replace('{"counter-value"', f'{{"{key}" : "1", "counter-value"')
        assert "-I" in refused(tmp_path, divided).remedy


def test_figures_of_lmbench_have_their_units(tmp_path: Path) -> None:
    found = tables(tmp_path, "lmbench-3.0-a.txt", "lmbench-3.0-b.txt")
    shown = {key.partition("/")[2]: (t.values["old"][0], t.metric.unit, t.metric.better) for key, t in found.items()}
    assert shown["Simple syscall"] == (0.0407, "microseconds", "lower")
    assert shown["integer bit"] == (0.31, "nanoseconds", "lower")
    assert shown["RPC/tcp latency using localhost"] == (12.3456, "microseconds", "lower")
    assert shown["size=64k 2"] == (2.31, "microseconds", "lower")
    assert shown["read bandwidth 8.39"] == (9212.34, "MB/sec", "higher")
    assert shown["stride=128 64.00000"] == (6.123, "nanoseconds", "lower")
    assert shown["create 0k"] == (84505, "1/sec", "higher") and shown["delete 0k"] == (138552, "1/sec", "higher")
    assert not [name for name in shown if "MHZ" in name or "Random" in name]


def test_copies_of_unixbench_are_benchmarks(tmp_path: Path) -> None:
    found = tables(tmp_path, "unixbench-5-a.txt", "unixbench-5-b.txt")
    assert found["unixbench-1t/Dhrystone 2 using register variables"].values["old"] == [31415926.5]
    assert found["unixbench-2t/index"].values["old"][0] > found["unixbench-1t/index"].values["old"][0] > 1000
    assert found["unixbench-1t/Shell Scripts (8 concurrent)"].metric.unit == "lpm"
    assert len(found) == 16


def test_tasks_of_will_it_scale_are_benchmarks(tmp_path: Path) -> None:
    text = (FIXTURES / "will-it-scale-a.csv").read_text()
    for contender in ("old", "new"):
        (tmp_path / contender).mkdir()
        (tmp_path / contender / "page_fault1.csv").write_text(re.sub(r"(?m)^(4,.*,).*?(,.*,.*)$", r"\1-1\2", text))
    sources = [Source(tmp_path / one / "page_fault1.csv", one) for one in ("old", "new")]
    record = bring_in(sources, tmp_path / "run")
    found = {table.key: table.values["old"] for table in read(tmp_path / "run")}
    assert found["page_fault1-1t/processes"] == [401234] and "page_fault1-4t/threads" not in found
    assert not [key for key in found if "-0t" in key or "idle" in key]
    assert any("threads" in reason for reason in record.skipped)


def test_frames_of_mangohud_in_either_unit(tmp_path: Path) -> None:
    found = tables(tmp_path, "mangohud-ms-a.csv", "mangohud-us-b.csv")
    for name, file, column in (("old", "mangohud-ms-a.csv", 1.0), ("new", "mangohud-us-b.csv", 0.001)):
        rows = [
            line.split(",") for line in (FIXTURES / file).read_text().splitlines() if re.match(r"\d+\.\d+,", line)
        ]
        times = sorted(float(row[1]) * column for row in rows if len(row) > 10)
        assert len(times) == 200
        assert found["frames/frame-time-p50"].values[name] == [pytest.approx(times[99])]
        assert found["frames/frame-time-p99"].values[name] == [pytest.approx(times[197])]
        assert found["frames/frames-per-second"].values[name] == [pytest.approx(200_000 / math.fsum(times))]
        assert found["frames/low-1%"].values[name] == [pytest.approx((1000 / times[198] + 1000 / times[199]) / 2)]
    assert "frames/low-0.1%" not in found, "two hundred frames have no slowest thousandth"
    assert environments(tmp_path / "run")["old"]["release"] == "6.12.0", "which is what is compared"


def test_power_over_a_session_is_the_mean_of_turbostats_intervals(tmp_path: Path) -> None:
    """With --Summary, and with a row for each CPU, of which the first is the whole system's."""
    found = tables(tmp_path, "turbostat-summary-a.txt", "turbostat-table-b.txt")
    power = found["session/package-power"]
    assert power.values == {"old": [pytest.approx((9.31 + 10.07 + 8.92) / 3)], "new": [pytest.approx(11.3)]}
    assert (power.metric.unit, power.metric.better, power.metric.aspect) == ("W", "lower", "power")
    assert found["session/busy"].values["new"] == [pytest.approx(10.0)]
    assert found["session/package-temperature"].values == {"old": [55], "new": [60]}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("10.07\t5.61", "10.07"), "has 4 fields, the heading 5"),
        (("10.07", "(none)"), "PkgWatt is '(none)', not a number"),
        (("14.02\t2401\t56\t10.07\t5.61", "Busy%\tBzy_MHz\tPkgWatt"), "its columns are others than before"),
        (("\n12.48\t2198\t54\t9.31\t5.02\n14.02\t2401\t56\t10.07\t5.61\n11.10\t2010\t55\t8.92\t4.77", ""),
         "no row of the whole system"),
    ],
)  # fmt: skip
def test_a_damaged_log_of_turbostat_is_refused(tmp_path: Path, change: tuple[str, str], told: str) -> None:
    text = (FIXTURES / "turbostat-summary-a.txt").read_text()
    assert change[0] in text
    assert told in refused(tmp_path, text.replace(*change)).message


def test_a_session_by_powertop_in_either_form(tmp_path: Path) -> None:
    """The battery's power in watts, whatever its prefix; what powertop could not measure is no zero."""
    older = (FIXTURES / "powertop-2.14-a.csv").read_text()
    battery = "The battery reports a discharge rate of:  8.97  W;\nThe energy consumed was :  180  J;\n"
    (tmp_path / "old.csv").write_text(older + battery)
    sources = [Source(tmp_path / "old.csv", "old"), Source(FIXTURES / "powertop-battery-b.csv", "new")]
    record = bring_in(sources, tmp_path / "run")
    found = {table.key: table for table in read(tmp_path / "run")}
    power = found["session/battery-power"]
    assert power.values == {"old": [8.97], "new": [pytest.approx(0.817)]}
    assert (power.metric.unit, power.metric.better, power.metric.aspect) == ("W", "lower", "power")
    assert found["session/cpu-use"].values == {"old": [129.9], "new": [22.6]}
    assert "session/wakeups" not in found and any("old.csv: wakeups is 0" in reason for reason in record.skipped)
    (tmp_path / "mains.csv").write_text(older.replace("  0 wakeup/s", "  395.6 wakeup/s"))
    record = bring_in([Source(tmp_path / "mains.csv", "old"), *sources[1:]], tmp_path / "mains")
    assert {table.key for table in read(tmp_path / "mains")} == {"session/wakeups", "session/cpu-use"}
    assert any("mains.csv: no battery-power" in reason for reason in record.skipped)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ((" 817 m W", " 8,17 W"), "battery-power is '8,17', not a number"),
        (("1933.1", "nan"), "wakeups is 'nan', not a number"),
        ((" 817 m W", " -2.5  W"), "which cannot be below 0"),
        (("The energy", "The battery reports a discharge rate of: , 9.0  W\nThe energy"), "battery-power for the second time"),
    ],
)  # fmt: skip
def test_a_damaged_report_of_powertop_is_refused(tmp_path: Path, change: tuple[str, str], told: str) -> None:
    text = (FIXTURES / "powertop-battery-b.csv").read_text()
    assert change[0] in text
    assert told in refused(tmp_path, text.replace(*change)).message


def test_samples_of_frames_are_not_all_frames(tmp_path: Path) -> None:
    lines = (FIXTURES / "mangohud-us-b.csv").read_text().splitlines(keepends=True)
    thinned = "".join([*lines[:3], *lines[3::12]])
    assert "log_interval=0" in refused(tmp_path, thinned).remedy
    assert "_summary" in refused(tmp_path, "0.1% Min FPS,1% Min FPS,Average FPS\n30.1,40.2,60.3\n").remedy


@pytest.mark.parametrize(
    ("file", "figures"),
    [
        ("robot-mail-context-switch.txt", {
            "will-it-scale/104.threads": (18317774, 18781349), "will-it-scale/per_thread_ops": (176131, 180589),
            "will-it-scale/workload": (18317774, 18781349),
        }),
        ("robot-mail-stress-ng-msg.txt", {
            "stress-ng/msg.ops": (1.418e9, 8.345e8), "stress-ng/msg.ops_per_sec": (23637039, 13908394),
        }),
        ("robot-mail-aim9-three-commits.txt", {"aim9/brk_test.ops_per_sec": (3220697, 3028867)}),
        ("robot-mail-brk2-without-tabs.txt", {
            "will-it-scale/104.processes": (13467005, 26223847), "will-it-scale/per_process_ops": (129489, 252151),
        }),
        ("robot-mail-hackbench-answered.txt", {"hackbench/throughput": (92566, 68598)}),
        ("robot-mail-two-tests.txt", {
            "will-it-scale/64.threads": (77338762, 80146917), "will-it-scale/per_thread_ops": (1208417, 1252295),
        }),
    ],
)  # fmt: skip
def test_a_robots_mail_has_the_figures_of_its_own_test(
    file: str, figures: dict[str, tuple[float, float]], tmp_path: Path
) -> None:
    record = bring_in([Source(FIXTURES / file)], tmp_path / "run")
    found = {table.key: table for table in read(tmp_path / "run")}
    assert {key: tuple(own[0] for own in table.values.values()) for key, table in found.items()} == figures
    assert {table.metric.better for key, table in found.items() if key.endswith("ops_per_sec")} <= {"higher"}
    left_out = {"robot-mail-two-tests.txt": "1 more tables", "robot-mail-aim9-three-commits.txt": "9cecc5dc8938"}
    assert left_out.get(file, "") in " ".join(record.skipped)


def test_a_robots_figure_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    line = "   1322908            -5.0%    1256536        aim9.brk_test.ops_per_sec\n"
    text = (FIXTURES / "robot-mail-aim9.txt").read_text().replace(line, line + line.replace("1256536", "1256537"))
    (tmp_path / "mail.txt").write_text(text)
    with pytest.raises(InputError, match="there twice"):
        bring_in([Source(tmp_path / "mail.txt")], tmp_path / "run")
