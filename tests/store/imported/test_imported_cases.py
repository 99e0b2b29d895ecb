"""Files that were once read wrongly, or refused without need: the right values of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from kduel.core.errors import InputError
from kduel.core.samples import Samples
from kduel.store.imported import Source, bring_in, read

FIXTURES = Path(__file__).parent / "fixtures"
CASES = FIXTURES / "cases"


def tables(tmp_path: Path, *sources: Source) -> dict[str, Samples]:
    bring_in(sources, tmp_path / "run")
    return {table.key: table for table in read(tmp_path / "run")}


def pair(tmp_path: Path, old: str, new: str) -> dict[str, Samples]:
    return tables(tmp_path, Source(CASES / old, "old"), Source(CASES / new, "new"))


def twice(tmp_path: Path, file: str) -> dict[str, Samples]:
    return pair(tmp_path, file, file)


def test_latencies_of_wrk_in_seconds_are_not_lost(tmp_path: Path) -> None:
    found = pair(tmp_path, "S24-wrk-p99-over-a-second-old.txt", "S24-wrk-p99-over-a-second-new.txt")
    (table,) = [table for key, table in found.items() if key.endswith("latency-p99")]
    new = table.values["new"]
    assert len(new) == 12 and None not in new
    assert sum(1500 <= value <= 1600 for value in new if value is not None) == 6


def test_calls_of_one_benchmark_have_the_same_figures(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"call 2 of sysbench-.* has no latency-p95"):
        twice(tmp_path, "S25-sysbench-second-call-lacks-p95.txt")


def test_udp_of_an_old_iperf3_counts_what_arrived(tmp_path: Path) -> None:
    names = [f"S05-iperf3-udp-before-3.11-{one}.json" for one in ("old", "new")]
    record = bring_in([Source(CASES / n, c) for n, c in zip(names, ("old", "new"), strict=True)], tmp_path / "run")
    (table,) = [table for table in read(tmp_path / "run") if table.metric.name == "throughput"]
    assert [table.values[one][0] for one in ("old", "new")] == [pytest.approx(1e9), pytest.approx(0.6e9)]
    assert any("before 3.11" in reason for reason in record.skipped), "and that is said"


def test_a_throughput_of_netperf_has_the_unit_of_its_heading(tmp_path: Path) -> None:
    (table,) = twice(tmp_path, "S06-netperf-f-k.txt").values()
    assert (table.metric.unit, table.values["old"][0]) == ("Mbit/s", pytest.approx(9412.33011))


def test_netperf_with_the_load_of_cpus(tmp_path: Path) -> None:
    (table,) = twice(tmp_path, "S15-netperf-c-C.txt").values()
    assert table.values["old"] == [52345.67]


def test_pgbench_with_reconnections(tmp_path: Path) -> None:
    found = twice(tmp_path, "S16-pgbench-C.txt")
    (rate,) = [table for key, table in found.items() if key.endswith("transactions-per-second")]
    assert rate.values["old"] == [1234.482112]


def test_a_benchmark_that_failed_for_one_contender_is_left_out_and_told(tmp_path: Path) -> None:
    names = {one: CASES / f"S07-one-benchmark-failed-{one}.json" for one in ("old", "new")}
    record = bring_in([Source(path, one) for one, path in names.items()], tmp_path / "run")
    found = read(tmp_path / "run")
    assert found and all(len(table.values) == 2 and any(table.values["new"]) for table in found)
    lacking = [reason for reason in record.skipped if "'new' is missing" in reason or "'old' is missing" in reason]
    assert lacking


def test_release_numbers_are_whole_names(tmp_path: Path) -> None:
    sources = [Source(CASES / "S08" / name) for name in ("6.1.10", "6.12.1", "6.12.2")]
    found = tables(tmp_path, *sources)
    assert {tuple(table.contenders) for table in found.values()} == {("6.1.10", "6.12.1", "6.12.2")}


def test_a_table_of_one_metric_a_file(tmp_path: Path) -> None:
    (table,) = pair(tmp_path, "S10-wide-one-metric-k61/r.csv", "S10-wide-one-metric-k612/r.csv").values()
    assert (table.metric.name, table.metric.unit, table.metric.better) == ("latency", "ms", "lower")
    assert table.values["new"][:2] == [11.01, 11.02]


def test_appended_calls_with_line_ends_of_windows(tmp_path: Path) -> None:
    found = twice(tmp_path, "S17-iperf3-appended-crlf.json")
    assert all(len(table.values["old"]) == 2 for table in found.values())


def test_a_last_line_without_a_number_needs_no_end(tmp_path: Path) -> None:
    found = twice(tmp_path, "S19-go-test-no-last-newline.txt")
    assert [table.values["old"] for table in found.values()] == [[10.0, 11.0]]


@pytest.mark.parametrize(
    ("file", "column"),
    [
        ("S02-time-column.csv", "time"),
        ("S03-ab-percentiles.csv", "Percentage served"),
        ("S04-monitor-timestamp.csv", "timestamp"),
    ],
)
def test_a_time_or_a_share_is_no_contender(file: str, column: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"'{column}' is a time, a share or a parameter"):
        tables(tmp_path, Source(CASES / file))


def test_a_column_of_kernels_names_the_contenders(tmp_path: Path) -> None:
    file = tmp_path / "results.csv"
    file.write_text("kernel,latency [ms: lower]\n6.1.10,1\n6.12.1,2\n6.1.10,3\n")
    (table,) = tables(tmp_path, Source(file)).values()
    assert table.values["6.1.10"] == [1.0, 3.0]


def test_results_of_one_test_differ_by_their_scale(tmp_path: Path) -> None:
    found = tables(tmp_path, Source(CASES / "S01-pts-fio-twins.xml"))
    assert {table.metric.unit: table.values["A"] for table in found.values()} == {
        "MB/s": [1390.0, 1405.0, 1402.0],
        "IOPS": [356000.0, 359000.0, 358000.0],
    }


def test_one_command_with_several_parameters(tmp_path: Path) -> None:
    (table,) = tables(tmp_path, Source(CASES / "S09-hyperfine-parameter-list.json")).values()
    assert table.values == {"git_tag=v0.1": [0.2, 0.21, 0.2], "git_tag=v0.2": [0.3, 0.31, 0.3]}


@pytest.mark.parametrize("file", ["S11-sysbench-warning-first.txt", "S12-sysbench-prompt-first.txt"])
@pytest.mark.parametrize("colour", [False, True])
def test_a_line_before_the_output(file: str, colour: bool, tmp_path: Path) -> None:
    text = (CASES / file).read_text()
    copy = tmp_path / "old.txt"
    copy.write_text(f"\x1b[1;32m{text}".replace("\n", "\x1b[0m\n", 1) if colour else text)
    found = tables(tmp_path, Source(copy, "old"), Source(copy, "new"))
    assert found and all(key.startswith("sysbench-") for key in found)


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("S13-perf-stat-french.txt", "LC_ALL=C"),
        ("S14-perf-stat-interval.txt", "without -I"),
        ("S20-hyperfine-csv.csv", "--export-json"),
    ],
)
def test_what_cannot_be_read_is_refused_as_what_it_is(file: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        twice(tmp_path, file)
    assert says in caught.value.remedy


def test_several_files_of_one_contender_are_its_trials(tmp_path: Path) -> None:
    first, second = CASES / "S18-several-files-1.json", CASES / "S18-several-files-2.json"
    sources = [Source(first, "old"), Source(second, "old"), Source(second, "new"), Source(first, "new")]
    for table in tables(tmp_path, *sources).values():
        old, new = table.values["old"], table.values["new"]
        assert len(old) == 2 and old == new[::-1] and None not in old


def test_tables_with_other_prefixes_have_one_unit(tmp_path: Path) -> None:
    (table,) = tables(tmp_path, Source(CASES / "S23-benchstat-two-tables.txt")).values()
    assert table.metric.unit == "nsec/op"
    assert [values[0] for values in table.values.values()] == [1701.0, 298.0]


@pytest.mark.parametrize(
    "column", ["elapsed_ms", "Time (s)", "sec", "interval", "nr_tasks", "startTime", "DATE", "Percentile", "cpu_time"]
)
def test_no_way_to_write_a_time_or_a_parameter_makes_it_a_contender(column: str, tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text(f"{column},old,new\n1,10,11\n2,10,12\n")
    with pytest.raises(InputError, match="and no contender"):
        tables(tmp_path, Source(file))


@pytest.mark.parametrize(
    "name", ["linux-6.1", "linux-6.12.1", "bore", "timeless", "update", "debian:6.12", "scx_lavd"]
)
def test_names_of_kernels_are_contenders(name: str, tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text(f"trial,{name},other\n1,10,11\n2,10,12\n")
    (table,) = tables(tmp_path, Source(file)).values()
    assert table.contenders == [name, "other"]


def test_both_directions_of_iperf3_are_kept(tmp_path: Path) -> None:
    file = FIXTURES / "iperf3-3.12-bidir.json"
    found = tables(tmp_path, Source(file, "old"), Source(file, "new"))
    assert found["TCP 1 stream bidir/throughput"].values["old"] == [5094507792.254178]
    assert found["TCP 1 stream bidir reverse/throughput"].values["old"] == [3747277326.46509]
    assert found["TCP 1 stream bidir reverse/retransmits"].values["old"] == [11]


@pytest.mark.parametrize(
    "before", ["$ hyperfine --export-json - true", "[root@host ~]# cat a.json", "\x1b[32m#\x1b[0m x"]
)
@pytest.mark.parametrize("file", ["hyperfine-1.15.0-two.json", "jmh-1.37-a.json", "iperf3-3.12-a.json"])
def test_a_prompt_before_json(before: str, file: str, tmp_path: Path) -> None:
    plain = FIXTURES / file
    told = tmp_path / "told.json"
    told.write_text(f"{before}\n{plain.read_text()}")
    prompted = tables(tmp_path / "1", Source(told, "old"), Source(plain, "new"))
    assert prompted and all(table.values["old"] == table.values["new"] for table in prompted.values())


def test_a_fault_below_a_prompt_is_named_by_its_line(tmp_path: Path) -> None:
    text = (FIXTURES / "iperf3-3.12-a.json").read_text()
    file = tmp_path / "old.json"
    file.write_text("$ iperf3\n" + text.replace('"num_streams":\t1', '"num_streams":\t1x', 1))
    line = 1 + (file.read_text().partition("1x")[0]).count("\n")
    with pytest.raises(InputError, match=f"line {line}:"):
        tables(tmp_path, Source(file, "old"), Source(file, "new"))


@pytest.mark.parametrize("index", ["trial", "", "benchmark"])
def test_release_numbers_are_headings_of_contenders(index: str, tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text(f"{index},6.1,6.12\n1,10,11\n2,10,12\n")
    found = tables(tmp_path, Source(file))
    assert all(table.contenders == ["6.1", "6.12"] for table in found.values())


def test_a_table_of_something_else_is_no_table_of_values(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text("name;state;note;1\na;running;none;2\n")
    with pytest.raises(InputError, match="in no format that KDuel knows") as caught:
        tables(tmp_path, Source(file))
    assert "a table" in caught.value.remedy


@pytest.mark.parametrize(
    ("heading", "times"),
    [
        ("timestamp", "1769940000 1769940001 1769940002"),
        ("Time (s)", "0.1 0.2 0.3"),
        ("date", "2026-02-01T10:00:00 2026-02-01T10:00:01 2026-02-01T10:00:02"),
    ],
)
def test_samples_of_a_series_are_no_trials(heading: str, times: str, tmp_path: Path) -> None:
    file = tmp_path / "monitor.csv"
    file.write_text(f"{heading},latency\n" + "".join(f"{time},{10 + len(time)}\n" for time in times.split()))
    with pytest.raises(InputError, match=rf"the column '{heading.partition('(')[0]}.*' is a moment") as caught:
        tables(tmp_path, Source(file, "old"), Source(file, "new"))
    assert "one line for each trial" in caught.value.remedy


def test_durations_are_no_moments(tmp_path: Path) -> None:
    file = tmp_path / "times.csv"
    file.write_text("time,elapsed [s: lower]\n3,1\n1,2\n2,3\n")
    assert len(tables(tmp_path, Source(file, "old"), Source(file, "new"))) == 2


def test_text_in_a_table_is_named_by_its_column(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text("application,fps\ngame,60\n")
    with pytest.raises(InputError, match="line 2: the column 'application' is 'game', not a number"):
        tables(tmp_path, Source(file, "old"), Source(file, "new"))


def test_calls_of_one_contender_have_the_same_figures_in_all_its_files(tmp_path: Path) -> None:
    """A file for each call is as usual as a file of calls."""
    text = (CASES / "S24-wrk-p99-over-a-second-old.txt").read_text()
    call = "Running " + text.split("Running ")[1]
    for name, lines in {
        "1": call,
        "2": "".join(line for line in call.splitlines(True) if " 99%" not in line),
    }.items():
        (tmp_path / name).write_text(lines)
    whole, without = Source(tmp_path / "1", "new"), Source(tmp_path / "2", "new")
    for files in ((whole, without), (without, whole)):
        with pytest.raises(InputError, match=r"2: http.* of 'new' has no latency-p99, which it has in 1"):
            tables(tmp_path, Source(tmp_path / "1", "old"), *files)
