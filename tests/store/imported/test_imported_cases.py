"""Files that were once read wrongly, or refused without need: the right values of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from kduel.core.errors import InputError
from kduel.core.samples import Samples
from kduel.store.imported import Source, bring_in, read

CASES = Path(__file__).parent / "fixtures/cases"


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
