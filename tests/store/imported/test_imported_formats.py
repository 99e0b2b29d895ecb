"""Foreign files, really written by their programs, give exactly the numbers that they hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kduel.core.errors import InputError
from kduel.core.samples import Samples
from kduel.judge.imported import results
from kduel.store.imported import Source, bring_in, contenders, environments, read
from kduel.store.imported.perf_stat import of_perf
from kduel.store.imported.support.store import the_format

FIXTURES = Path(__file__).parent / "fixtures"


def samples_of(tmp_path: Path, *sources: Source) -> dict[str, Samples]:
    """The tables of an import, by full name."""
    bring_in(sources, tmp_path / "run")
    return {table.key: table for table in read(tmp_path / "run")}


def named(**files: str) -> list[Source]:
    return [Source(FIXTURES / file, name) for name, file in files.items()]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("hyperfine-1.15.0-two.json", "hyperfine"),
        ("hyperfine-1.20.0-two.json", "hyperfine"),
        ("pyperf-2.10.0-a.json", "pyperf"),
        ("pyperf-2.10.0-single.json", "pyperf"),
        ("google-benchmark-1.7.1-a.json", "google-benchmark"),
        ("google-benchmark-1.7.1-aggregates.json", "google-benchmark"),
        ("phoronix-after-schema.xml", "phoronix"),
        ("perf-stat-6.1-a.txt", "perf-stat"),
        ("perf-stat-6.1-repeated.csv", "perf-stat"),
        ("jmh-1.37-a.json", "jmh"),
        ("jmh-1.37-modes.json", "jmh"),
        ("go-1.26-a.txt", "benchstat"),
        ("benchstat-tables.txt", "benchstat"),
        ("pgbench-15-a.txt", "pgbench"),
        ("redis-benchmark-7.0.15-a.csv", "redis-benchmark"),
        ("wrk-4.1.0-a.txt", "wrk"),
        ("iperf3-3.12-a.json", "iperf3"),
        ("iperf3-3.18-b.json", "iperf3"),
        ("netperf-2.7.1-a.txt", "netperf"),
        ("sysbench-1.0.20-a.txt", "sysbench"),
        ("mmtests-a.json", "mmtests"),
        ("lkp-matrix-a.json", "lkp"),
        ("wide-contenders.csv", "wide"),
        ("wide-metrics.csv", "wide"),
        ("../../../../studies/published/generations.csv", "csv"),
    ],
)
def test_a_format_is_known_by_its_content(file: str, name: str, tmp_path: Path) -> None:
    copy = tmp_path / "no-ending-that-helps"
    copy.write_bytes((FIXTURES / file).read_bytes())
    assert the_format(copy, None).name == name


def test_hyperfine_alone_has_its_commands_as_contenders(tmp_path: Path) -> None:
    tables = samples_of(tmp_path, Source(FIXTURES / "hyperfine-1.15.0-two.json"))
    document = json.loads((FIXTURES / "hyperfine-1.15.0-two.json").read_text())
    assert list(tables) == ["hyperfine/wall_time"]
    table = tables["hyperfine/wall_time"]
    assert table.values == {result["command"]: result["times"] for result in document["results"]}
    assert (table.metric.unit, table.metric.better, table.paired) == ("s", "lower", False)
    assert table.blocks == list(range(1, 9))


def test_hyperfine_with_names_has_its_commands_as_benchmarks(tmp_path: Path) -> None:
    tables = samples_of(tmp_path, *named(old="hyperfine-1.15.0-a.json", new="hyperfine-1.15.0-b.json"))
    assert {key: table.contenders for key, table in tables.items()} == {"sleep 0.02/wall_time": ["old", "new"]}


def test_later_hyperfine_has_memory_too(tmp_path: Path) -> None:
    tables = samples_of(tmp_path, Source(FIXTURES / "hyperfine-1.20.0-two.json"))
    memory = tables["hyperfine/peak_memory"]
    assert memory.values["sleep 0.02"] == [3162112.0] * 5
    assert (memory.metric.unit, memory.metric.statistic) == ("B", "max")


def test_pyperf_gives_one_number_a_process(tmp_path: Path) -> None:
    tables = samples_of(tmp_path, *named(old="pyperf-2.10.0-a.json", new="pyperf-2.10.0-b.json"))
    assert list(tables) == ["sort/time", "join/time"]
    for name, file in (("old", "a"), ("new", "b")):
        document = json.loads((FIXTURES / f"pyperf-2.10.0-{file}.json").read_text())
        for index, key in enumerate(tables):
            processes = [run["values"] for run in document["benchmarks"][index]["runs"] if "values" in run]
            assert len(processes) == 4, "the process that calibrates has no values"
            assert tables[key].values[name] == [sum(values) / len(values) for values in processes]
    assert tables["sort/time"].metric.statistic == "mean"


def test_pyperf_memory_is_in_bytes_and_a_lone_benchmark_has_the_files_name(tmp_path: Path) -> None:
    source = FIXTURES / "pyperf-2.10.0-memory.json"
    table = samples_of(tmp_path, Source(source, "old"), Source(source, "new"))["rss/memory"]
    assert (table.metric.unit, table.values["old"]) == ("B", [12611584, 12648448, 12652544])
    other = FIXTURES / "pyperf-2.10.0-single.json"
    assert list(samples_of(tmp_path / "2", Source(other, "old"), Source(other, "new"))) == ["single/time"]


def test_google_benchmark_gives_one_number_a_repetition(tmp_path: Path) -> None:
    tables = samples_of(tmp_path, *named(old="google-benchmark-1.7.1-a.json", new="google-benchmark-1.7.1-b.json"))
    document = json.loads((FIXTURES / "google-benchmark-1.7.1-a.json").read_text())
    copies = [b for b in document["benchmarks"] if b["run_type"] == "iteration" and b["name"] == "BM_Copy/1024"]
    assert len(copies) == 4
    assert tables["BM_Copy/1024/real_time"].values["old"] == [b["real_time"] for b in copies]
    shown = {key: (t.metric.unit, t.metric.better) for key, t in tables.items()}
    assert shown["BM_Copy/1024/cpu_time"] == ("ns", "lower")
    assert shown["BM_Copy/1024/bytes_per_second"] == ("B/s", "higher")
    assert shown["BM_Copy/1024/size"] == ("", "none")
    assert shown["BM_Sum/real_time"] == ("us", "lower")
    assert shown["BM_Sum/items_per_second"] == ("items/s", "higher")
    assert not [key for key in tables if "index" in key or "iterations" in key or "threads" in key]


def test_google_benchmark_failures_are_left_out_and_told(tmp_path: Path) -> None:
    source = FIXTURES / "google-benchmark-1.7.1-broken.json"
    record = bring_in([Source(source, "old"), Source(source, "new")], tmp_path / "run")
    assert any("BM_Broken" in reason and "no such device" in reason for reason in record.skipped)
    assert not [table for table in read(tmp_path / "run") if table.benchmark == "BM_Broken"]


def test_google_benchmark_aggregates_alone_are_refused(tmp_path: Path) -> None:
    source = FIXTURES / "google-benchmark-1.7.1-aggregates.json"
    with pytest.raises(InputError, match="aggregates only") as caught:
        bring_in([Source(source, "old"), Source(source, "new")], tmp_path / "run")
    assert "--benchmark_report_aggregates_only" in caught.value.remedy


def test_phoronix_systems_are_contenders_and_their_hardware_is_compared(tmp_path: Path) -> None:
    source = Source(FIXTURES / "phoronix-after-schema.xml")
    record = bring_in([source], tmp_path / "run")
    tables = {table.key: table for table in read(tmp_path / "run")}
    cpu = tables["sysbench-1.1.0/Test: CPU"]
    assert cpu.values == {"Linux 6.1": [16010.2, 16020.9, 16006.1], "Linux 6.12": [16001.7, 16009.4, 15998.5]}
    assert (cpu.metric.unit, cpu.metric.better) == ("Events Per Second", "higher")
    build = tables["build-linux-kernel-1.15.0/Build: defconfig"]
    assert build.values["Linux 6.12"] == [209.8, None, None], "a single value, and no raw ones"
    assert build.metric.better == "lower"
    assert any("LINE_GRAPH" in reason for reason in record.skipped)
    found = environments(tmp_path / "run")
    assert found["Linux 6.1"]["hardware"]["Motherboard"] == "QEMU Standard PC (Q35 + ICH9, 2009)"
    differing = {f"{d.group}.{d.key}" for d in results(tmp_path / "run").differences}
    assert differing == {"software.Kernel", "software.File-System"}


def test_phoronix_one_system_may_be_renamed_but_not_two(tmp_path: Path) -> None:
    text = (FIXTURES / "phoronix-after-schema.xml").read_text()
    lone = tmp_path / "lone.xml"
    lone.write_text("\n".join(line for line in text.splitlines() if "<Entry><Identifier>Linux 6.12" not in line))
    tables = samples_of(tmp_path, Source(lone, "old"), Source(lone, "new"))
    assert tables["sysbench-1.1.0/Test: CPU"].contenders == ["old", "new"]
    with pytest.raises(InputError, match="holds 2 systems"):
        bring_in([Source(FIXTURES / "phoronix-after-schema.xml", "old")], tmp_path / "other")


def test_files_without_names_are_called_after_themselves(tmp_path: Path) -> None:
    files = [Source(FIXTURES / f"pyperf-2.10.0-{which}.json") for which in "ab"]
    bring_in(files, tmp_path / "run")
    assert contenders(tmp_path / "run") == ["pyperf-2.10.0-a", "pyperf-2.10.0-b"]


@pytest.mark.parametrize("file", sorted(path.name for path in FIXTURES.glob("*.json")))
def test_a_file_cut_off_anywhere_is_an_error_and_never_a_number(file: str, tmp_path: Path) -> None:
    whole = (FIXTURES / file).read_bytes().rstrip()
    for part in range(1, 8):
        cut = tmp_path / f"{part}.json"
        cut.write_bytes(whole[: len(whole) * part // 8])
        with pytest.raises(InputError):
            bring_in([Source(cut, "old"), Source(cut, "new")], tmp_path / "run")
    assert not list(tmp_path.glob("*run*")), "nothing is left behind"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({}, ["library_build_type"]),
        ({"library_build_type": "release"}, []),
        ({"library_build_type": "release", "cpu_scaling_enabled": True}, ["cpu_scaling_enabled"]),
        ({"cpu_scaling_enabled": True}, ["library_build_type", "cpu_scaling_enabled"]),
        ({"library_build_type": ["debug"], "cpu_scaling_enabled": "yes"}, []),
    ],
)
def test_what_google_benchmark_warns_of_is_a_finding(
    tmp_path: Path, change: dict[str, object], named: list[str]
) -> None:
    sources = []
    for name in ("a", "b"):
        document = json.loads((FIXTURES / f"google-benchmark-1.7.1-{name}.json").read_text())
        document["context"] |= change
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
        sources.append(Source(tmp_path / f"{name}.json"))
    bring_in(sources, tmp_path / "run")
    found = [one.message for one in results(tmp_path / "run").warnings if one.code == "foreign-setup"]
    assert [key for message in found for key in (message.rsplit("(", 1)[1].rstrip(")."),)] == named
    assert all("measured a, b under" in message for message in found)


def test_perf_stat_gives_one_value_a_call(tmp_path: Path) -> None:
    sources = named(old="perf-stat-6.1-a.txt", new="perf-stat-6.1-b.txt")
    record = bring_in(sources, tmp_path / "run")
    tables = {table.key: table for table in read(tmp_path / "run")}
    lines = (FIXTURES / "perf-stat-6.1-a.txt").read_text().splitlines()
    clocks = [float(line.split(";")[0]) for line in lines if ";task-clock;" in line]
    clock = tables["perf-stat/task-clock"]
    assert clock.values["old"] == clocks and len(clocks) == 5
    assert (clock.metric.unit, clock.metric.better, clock.metric.statistic) == ("msec", "lower", "value")
    assert tables["perf-stat/context-switches"].metric.better == "none"
    assert "perf-stat/cycles" not in tables
    assert any("cycles was not supported" in reason for reason in record.skipped)


def test_repeated_perf_stat_is_one_mean(tmp_path: Path) -> None:
    source = FIXTURES / "perf-stat-6.1-repeated.csv"
    record = bring_in([Source(source, "old"), Source(source, "new")], tmp_path / "run")
    faults = next(table for table in read(tmp_path / "run") if table.metric.name == "page-faults")
    assert len(faults.values["old"]) == 1 and faults.metric.statistic == "mean"
    assert any("-r" in reason for reason in record.skipped)


@pytest.mark.parametrize(
    "line",
    [
        "     0.010229159;0.91;msec;task-clock;911549;100.00;0.091;CPUs utilized",
        "CPU0;3.61;msec;cpu-clock;3611895;100.00;0.621;CPUs utilized",
        "S0;2;3.61;msec;cpu-clock;3611895;100.00;0.621;CPUs utilized",
        "0,91;msec;task-clock;911549;100,00;0,091;CPUs utilized",
        "CPU0;<not counted>;;cycles;0;0.00;;",
        "S0-D0;4;3.61;Joules;power/energy-pkg/;3611895;100.00;;",
        "0.91;msec;task-clock",
    ],
)
def test_other_layouts_of_perf_stat_are_refused(line: str, tmp_path: Path) -> None:
    path = tmp_path / "perf.txt"
    path.write_text(f"0.71;msec;task-clock;710622;100.00;1.623;CPUs utilized\n{line}\n")
    with pytest.raises(InputError, match="line 2") as caught:
        bring_in([Source(path, "old"), Source(path, "new")], tmp_path / "run")
    assert "-I" in caught.value.remedy
    # Recognised by its first line, too.
    if ";<" in line or "/" in line:
        assert of_perf(line)
        assert not of_perf(line.replace(";Joules;", ";Jou;les;").replace(";;cycles", ";;;cycles"))


def test_jmh_gives_one_number_a_fork(tmp_path: Path) -> None:
    tables = samples_of(tmp_path, *named(old="jmh-1.37-a.json", new="jmh-1.37-b.json"))
    assert list(tables) == ["demo.Words.join(count=10)/average_time"]
    table = tables["demo.Words.join(count=10)/average_time"]
    document = json.loads((FIXTURES / "jmh-1.37-a.json").read_text())
    forks = document[0]["primaryMetric"]["rawData"]
    assert len(forks) == 3 and table.values["old"] == pytest.approx([sum(fork) / len(fork) for fork in forks])
    assert (table.metric.unit, table.metric.better) == ("us/op", "lower")


def test_jmh_modes_have_their_own_metrics_and_histograms_are_weighted(tmp_path: Path) -> None:
    source = FIXTURES / "jmh-1.37-modes.json"
    tables = samples_of(tmp_path, Source(source, "old"), Source(source, "new"))
    shown = {table.metric.name: (table.metric.unit, table.metric.better) for table in tables.values()}
    assert shown["throughput"] == ("ops/us", "higher") and shown["sampled_time"] == ("us/op", "lower")
    assert shown["gc.alloc.rate.norm (thrpt)"] == shown["gc.alloc.rate.norm (sample)"] == ("B/op", "lower")
    sampled = next(r for r in json.loads(source.read_text()) if r["mode"] == "sample")["primaryMetric"]
    means = tables["demo.Words.join(count=10)/sampled_time"].values["old"]
    # JMH's own score is the mean of all samples.
    counts = [sum(n for part in fork for _, n in part) for fork in sampled["rawDataHistogram"]]
    pooled = sum(mean * n for mean, n in zip(means, counts, strict=True) if mean is not None) / sum(counts)
    assert pooled == pytest.approx(sampled["score"], rel=1e-6)


def test_go_benchmarks_give_one_value_a_line(tmp_path: Path) -> None:
    tables = samples_of(tmp_path, *named(old="go-1.26-a.txt", new="go-1.26-b.txt"))
    assert tables["Sort-2/time"].values["old"] == [6599, 4857, 3895, 6150, 3042, 1905]
    shown = {key: (table.metric.unit, table.metric.better) for key, table in tables.items()}
    assert shown["Sort-2/time"] == ("ns/op", "lower")
    assert shown["Copy-2/throughput"] == ("MB/s", "higher")
    assert environments(tmp_path / "run")["old"]["go"]["goarch"] == "amd64"


def test_benchstats_tables_give_medians_in_their_units(tmp_path: Path) -> None:
    record = bring_in([Source(FIXTURES / "benchstat-tables.txt")], tmp_path / "run")
    tables = {table.key: table for table in read(tmp_path / "run")}
    assert tables["Sort-2/time"].values == {"old": [4376.0], "new": [6624.0]}
    shown = {key: (t.metric.unit, t.metric.better, t.metric.statistic) for key, t in tables.items()}
    assert shown["Sort-2/time"] == ("nsec/op", "lower", "median")
    assert shown["Copy-2/time"] == ("nsec/op", "lower", "median")
    assert shown["Copy-2/throughput"] == ("GiB/s", "higher", "median")
    assert not [key for key in tables if "geomean" in key]
    assert record.skipped
    assert {metric.verdict for metric in results(tmp_path / "run").metrics} == {"undecided"}


def test_a_wide_table_has_a_column_for_each_contender(tmp_path: Path) -> None:
    table = samples_of(tmp_path, Source(FIXTURES / "wide-contenders.csv"))["copy/value"]
    assert table.values == {"old": [10.5, 10.25, 10.75], "new": [9.5, 9.75, None]}
    assert (table.metric.unit, table.metric.better) == ("ms", "lower")


def test_a_wide_table_has_a_column_for_each_metric(tmp_path: Path) -> None:
    tables = samples_of(tmp_path, Source(FIXTURES / "wide-metrics.csv"))
    assert tables["wide-metrics/rate"].values == {"old": [100, 101], "new": [120, 121]}
    shown = {table.metric.name: (table.metric.unit, table.metric.better) for table in tables.values()}
    assert shown == {"latency": ("ms", "lower"), "rate": ("1/s", "higher"), "note": ("pages", "none")}


def test_wide_tables_of_one_contender_each_are_named_by_the_user(tmp_path: Path) -> None:
    for name, value in (("a", 1.5), ("b", 2.5)):
        (tmp_path / f"{name}.tsv").write_text(
            f"iteration\tbenchmark\ttime [s: lower]\tsize [B]\n1\tcopy\t{value}\t7\n"
        )
    tables = samples_of(tmp_path, Source(tmp_path / "a.tsv", "old"), Source(tmp_path / "b.tsv", "new"))
    assert tables["copy/time"].values == {"old": [1.5], "new": [2.5]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("trial,old,new\n1,2\n", "line 2"),
        ("trial,old,new\n1,2,fast\n", "line 2"),
        ("trial,old,new\n1,2,3", "line 2"),
        ("trial,old,new\n1,2,3\n1,4,5\n", "line 3"),
        ("trial,run,old,new\n1,1,2,3\n", "both number trials"),
        ("trial,old,old\n1,2,3\n", "named twice"),
        ("contender,trial,unit,time\nold,1,s,2\n", "column 'unit'"),
        ("trial,better,old,new\n1,faster,2,3\n", "line 2: better is 'faster'"),
        ("contender,trial,time [s: faster]\nold,1,2\n", "wide.csv, line 1: the column 'time [s: faster]'"),
    ],
)
def test_a_bad_wide_table_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "wide.csv").write_text(text)
    with pytest.raises(InputError) as caught:
        bring_in([Source(tmp_path / "wide.csv")], tmp_path / "run")
    assert said in caught.value.message and caught.value.remedy


def values_of(table: Samples, contender: str) -> list[float]:
    return list(table.values[contender])


def test_appended_calls_of_redis_benchmark_are_trials(tmp_path: Path) -> None:
    tables = samples_of(tmp_path, *named(old="redis-benchmark-7.0.15-a.csv", new="redis-benchmark-8.0.2-b.csv"))
    assert values_of(tables["GET/requests-per-second"], "old") == [42553.19, 32258.06, 26666.67, 34482.76]
    assert values_of(tables["SET/latency-p99"], "old") == [4.159, 6.167, 5.159, 5.631]


def test_latencies_of_wrk_are_in_one_unit_whatever_it_printed(tmp_path: Path) -> None:
    tables = samples_of(tmp_path, *named(old="wrk-4.1.0-a.txt", new="wrk-4.1.0-b.txt"))
    place = "http://127.0.0.1:8391/file"
    assert values_of(tables[f"{place}/latency-p50"], "old")[0] == pytest.approx(0.116)
    assert values_of(tables[f"{place}/latency-p99"], "old")[0] == pytest.approx(4.40)
    assert values_of(tables[f"{place}/requests-per-second"], "new")[0] == 35073.70


def test_pgbench_gives_a_benchmark_for_each_type_of_transaction(tmp_path: Path) -> None:
    tables = samples_of(tmp_path, *named(old="pgbench-15-a.txt", new="pgbench-17-b.txt"))
    text = (FIXTURES / "pgbench-15-a.txt").read_text().splitlines()
    rates = [float(line.split()[2]) for line in text if line.startswith("tps")]
    assert values_of(tables["select only/transactions-per-second"], "old") == rates[:1]
    assert values_of(tables["TPC-B (sort of)/transactions-per-second"], "old") == rates[1:]


@pytest.mark.parametrize(
    "file", ["pgbench-15-a.txt", "wrk-4.1.0-a.txt", "netperf-2.7.1-a.txt", "sysbench-1.0.20-a.txt"]
)
def test_a_call_whose_output_is_cut_is_refused(file: str, tmp_path: Path) -> None:
    lines = (FIXTURES / file).read_text().splitlines(keepends=True)
    cut = tmp_path / file
    cut.write_text("".join(line for line in lines[:-2] if not line.startswith("tps")))
    with pytest.raises(InputError) as error:
        list(the_format(cut, None).rows(cut, "a", []))
    assert error.value.remedy


def test_iperf3_gives_what_the_receiver_had_for_each_number_of_streams(tmp_path: Path) -> None:
    tables = samples_of(tmp_path, *named(old="iperf3-3.12-a.json", new="iperf3-3.18-b.json"))
    calls = (FIXTURES / "iperf3-3.18-b.json").read_text().replace("}\n{", "}\0{").split("\0")
    received = [json.loads(call)["end"]["sum_received"]["bits_per_second"] for call in calls]
    for name, rate in zip(("TCP 1 stream", "TCP 2 streams"), received, strict=True):
        assert values_of(tables[f"{name}/throughput"], "new") == [rate]
    assert values_of(tables["TCP 1 stream/retransmits"], "new") == [4]


def test_a_failed_call_of_iperf3_is_refused(tmp_path: Path) -> None:
    failed = tmp_path / "failed.json"
    good = (FIXTURES / "iperf3-3.12-a.json").read_text()
    failed.write_text(good + '{\n"start": {"connected": []}, "end": {}, "error": "unable to connect"\n}\n')
    with pytest.raises(InputError, match="call 3: unable to connect"):
        list(the_format(failed, None).rows(failed, "a", []))


def test_netperf_has_requests_connections_and_streams(tmp_path: Path) -> None:
    tables = samples_of(tmp_path, *named(old="netperf-2.7.1-a.txt", new="netperf-2.7.1-b.txt"))
    assert sorted(tables) == [
        "TCP connect/request/response/transactions-per-second",
        "TCP request/response/transactions-per-second",
        "TCP stream/throughput",
        "UDP request/response/transactions-per-second",
    ]
    assert values_of(tables["TCP request/response/transactions-per-second"], "old")[:2] == [5418.07, 11294.86]
    assert values_of(tables["TCP stream/throughput"], "old")[0] == 1225.50


def test_netperfs_udp_stream_counts_what_arrived(tmp_path: Path) -> None:
    path = tmp_path / "udp.txt"
    path.write_text(
        "MIGRATED UDP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 127.0.0.1 () port 0 AF_INET : demo\n"
        "Socket  Message  Elapsed      Messages                \n"
        "Size    Size     Time         Okay Errors   Throughput\n"
        "bytes   bytes    secs            #      #   10^6bits/sec\n\n"
        "212992   65507   1.00        31860      0    16694.10\n"
        "212992           1.00        15547           8146.37\n\n"
    )
    assert [row.value for row in the_format(path, None).rows(path, "a", [])] == [8146.37]


def test_sysbench_calls_are_told_apart_by_test_and_threads(tmp_path: Path) -> None:
    tables = samples_of(tmp_path, *named(old="sysbench-1.0.20-a.txt", new="sysbench-1.0.20-b.txt"))
    assert values_of(tables["sysbench-cpu-1t/events-per-second"], "new") == [1456.46]
    assert values_of(tables["sysbench-cpu-4t/events-per-second"], "new") == [10743.16]
    assert values_of(tables["sysbench-memory-read-2t/throughput"], "new") == [906.68]
    assert values_of(tables["sysbench-fileio-random-r/w-2t/fsyncs-per-second"], "new") == [940.08]
    assert values_of(tables["sysbench-fileio-random-r/w-2t/latency-p95"], "new") == [0.26]


def test_an_iteration_of_mmtests_is_a_trial(tmp_path: Path) -> None:
    tables = samples_of(tmp_path, Source(FIXTURES / "mmtests-a.json"), Source(FIXTURES / "mmtests-b.json"))
    table = tables["hackbench-process-pipes/time-1"]
    assert table.contenders == ["kernel-a", "kernel-b"] and table.metric.better == "lower"
    assert table.values["kernel-a"] == pytest.approx([0.544 / 3, 1.206 / 3, 0.352 / 3])


def test_of_lkp_the_benchmarks_own_statistics_are_taken(tmp_path: Path) -> None:
    record = bring_in(named(old="lkp-matrix-a.json", new="lkp-matrix-b.json"), tmp_path / "run")
    tables = {table.key: table for table in read(tmp_path / "run")}
    assert values_of(tables["netperf/Throughput_tps"], "new") == [11903.4, 11899.12, 11921.77]
    shown = {key: table.metric.better for key, table in tables.items()}
    assert shown == {
        "netperf/Throughput_tps": "higher",
        "netperf/Throughput_total_tps": "higher",
        "netperf/workload": "none",
        "netperf/time.system_time": "lower",
    }
    assert any("3 statistics of monitors" in reason for reason in record.skipped)
