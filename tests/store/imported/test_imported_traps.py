"""Files that look like repetitions of contenders and are not, and outputs of which a part was lost without a word."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from kduel.core.errors import InputError
from kduel.core.samples import Samples
from kduel.judge.imported import results
from kduel.store.documents import document_bytes
from kduel.store.imported import Source, bring_in, read
from kduel.store.imported.cyclictest import Cyclictest
from kduel.store.imported.iperf3 import Iperf3
from kduel.store.imported.support import table as tables
from kduel.store.imported.support.gather import Gathering
from kduel.store.imported.support.store import read_with_settings, record_of
from kduel.store.imported.wide import Wide
from kduel.store.imported.wrk import Wrk

FIXTURES = Path(__file__).parent / "fixtures"


def imported(tmp_path: Path, *texts: str, name: str = "a.txt") -> dict[str, Samples]:
    """A file by itself, or one of each contender `old` and `new`."""
    sources = []
    for number, text in enumerate(texts):
        file = tmp_path / str(number) / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
        sources.append(Source(file, None if len(texts) == 1 else ("old", "new")[number]))
    bring_in(sources, tmp_path / "run")
    return {table.key: table for table in read(tmp_path / "run")}


def refused(tmp_path: Path, *texts: str) -> str:
    with pytest.raises(InputError) as caught:
        imported(tmp_path, *texts)
    return f"{caught.value.message} {caught.value.remedy}"


def table(header: str, *rows: str) -> str:
    return "".join(f"{line}\n" for line in (header, *rows))


@pytest.mark.parametrize(
    "columns",
    [
        "user,sys,real", "read,write", "p50,p99", "joules,watts", "cache-misses,cycles", "%usr,%sys", "rx_bytes,tx_bytes", "freq_mhz,ipc",
        "context-switches,page-faults", "temp_c,fan_rpm", "firmware,loader,kernel,userspace", "old,new,delta", "old,new,ratio",
        "old,new,diff %", "old,new,p-value", "old,old_stddev,new,new_stddev", "old,±,new", "old,new,samples", "1t,2t,4t", "4k,8k", "64B,1KB",
        "old,new,change", "p50,p99,p1", "idle,user", "delta,mean", "read,idle", "busy,idle", "4k,64k", "4K,16K", "p5,p9", "old,delta",
        "base,change", "fan,rpm", "p1,p2",
    ],
)  # fmt: skip
def test_neither_metrics_nor_parameters_nor_differences_are_contenders(columns: str, tmp_path: Path) -> None:
    for number, key in enumerate(("run", "benchmark")):
        row = f"1{',2' * (columns.count(',') + 1)}"
        assert "and no contender" in refused(tmp_path / str(number), table(f"{key},{columns}", row, f"2{row[1:]}"))


@pytest.mark.parametrize(
    "names",
    [
        "old,new", "6.1,6.12", "host-a,host-b", "no-cache,cache-v2", "read-ahead,none", "v5.10,v6.1", "deb,rpm", "idle,menu",
        "other,batch,idle", "pages-4k,pages-64k", "patch-1,patch-2", "base,with-change",
    ],
)  # fmt: skip
def test_contenders_of_any_other_name_are_taken(names: str, tmp_path: Path) -> None:
    values = ",10" * (names.count(",") + 1)
    (found,) = imported(tmp_path, table(f"trial,{names}", f"1{values}", f"2{values}")).values()
    assert found.contenders == names.split(",")


def test_the_stage_of_a_boot_called_kernel_is_no_kernel(tmp_path: Path) -> None:
    rows = "1,1.2,3.4,4.6", "2,1.3,3.5,4.8"
    assert "no contender" in refused(tmp_path / "one", table("boot,kernel,userspace,total", *rows))
    found = imported(tmp_path / "two", *[table("run,kernel,userspace,total", *rows)] * 2)
    assert found["a/kernel"].values["old"] == [1.2, 1.3]


@pytest.mark.parametrize("column", ["size", "message size", "msg_size", "packetSize"])
def test_sizes_that_were_asked_for_are_not_pooled(column: str, tmp_path: Path) -> None:
    """Values at 4 KiB and at 8 KiB are no repetitions; a size with a unit was measured, and may vary."""
    rows = "6.1,4096,100", "6.1,8192,180", "6.12,4096,101", "6.12,8192,185"
    assert "a second value for '6.1': '8192'" in refused(tmp_path / "one", table(f"kernel,{column},ops", *rows))
    assert imported(tmp_path / "two", table(f"kernel,{column} [B: lower],ops", *rows))


@pytest.mark.parametrize("column", ["%", "负载"])
def test_a_heading_without_a_word_is_no_size(column: str, tmp_path: Path) -> None:
    rows = "6.1,1,10", "6.1,2,11", "6.12,3,12"
    found = imported(tmp_path, table(f"kernel,{column},ops", *rows))
    assert found[f"a/{column}"].values == {"6.1": [1, 2], "6.12": [3, None]}


@pytest.mark.parametrize("column", ["timestamp", "date", "time", "elapsed_ns"])
def test_a_column_without_a_moment_is_no_series(column: str, tmp_path: Path) -> None:
    found = imported(tmp_path, *[table(f"{column},ops", ",10", ",11")] * 2)
    assert found["a/ops"].values["old"] == [10, 11]


@pytest.mark.parametrize("column", ["time", "time_ns", "elapsed (ns)"])
def test_durations_in_nanoseconds_are_no_dates(column: str, tmp_path: Path) -> None:
    found = imported(tmp_path, *[table(f"{column},ops", "1234567890,10", "1310000000,11")] * 2)
    assert len(found) == 2


def kept_before(run: Path, *texts: str) -> dict[str, Samples]:
    """Values of a table that a former version took as it is now refused: the original in place of another one."""
    import hashlib
    import json

    document = json.loads((run / "import.json").read_text())
    for stored, text in zip(document["files"], texts, strict=True):
        (run / stored["stored"]).write_text(text)
        stored["sha256"], stored["bytes"] = hashlib.sha256(text.encode()).hexdigest(), len(text)
    (run / "import.json").write_text(json.dumps(document))
    return {table.key: table for table in read(run)}


def test_kernels_beside_stages_of_a_boot_are_read_as_they_were(tmp_path: Path) -> None:
    for number, kernels in enumerate((("6.1", "6.12"), ("6.1.0-12-amd64", "6.12.3"))):
        place = tmp_path / str(number)
        text = table("kernel,other [s: lower]", *(f"{kernel},{value}" for kernel in kernels for value in (3, 4)))
        assert imported(place, text)
        found = kept_before(place / "run", text.replace("other", "userspace"))
        assert found["a/userspace"].values == {kernel: [3, 4] for kernel in kernels}


def test_a_release_beside_stages_of_a_boot_is_no_stage(tmp_path: Path) -> None:
    row = "1,{},3.1", "2,{},3.2"
    texts = [
        table("run,kernel,userspace [s: lower]", *row).format(*[kernel] * 2) for kernel in ("6.1.0-a", "6.12.0-b")
    ]
    assert {*imported(tmp_path, *texts)} == {"a/userspace"}


@pytest.mark.parametrize(
    "text",
    [
        table("Timestamp,load", "1700000000,1", "1700000001,2"),
        table("Time,load", "1700000000000,1", "1700000060000,2"),
        table("Value(ms),Percentile,total", "0.1,0,1", "0.2,0.5,50", "0.3,0.9,90"),
        table("Percentage served,latency", "0,1", "50,2", "100,2"),
    ],
)
def test_samples_of_one_run_are_no_trials(text: str, tmp_path: Path) -> None:
    assert "samples of one series" in refused(tmp_path, text, text)


@pytest.mark.parametrize(
    "header",
    [
        "Application,ProcessID,msBetweenPresents", "MsBetweenPresents,MsInPresentAPI", "response-time,DNS+dialup,DNS", "r,b,swpd,free",
        '"usr","sys","idl","wai"',
    ],
)  # fmt: skip
def test_a_monitors_log_is_named(header: str, tmp_path: Path) -> None:
    text = table(header, *[",".join("1" * (header.count(",") + 1))] * 3)
    assert "samples of one run" in refused(tmp_path, text, text)


@pytest.mark.parametrize("column", ["qd", "offered_rate", "core", "step", "load"])
def test_lines_of_several_parameters_are_no_repetitions(column: str, tmp_path: Path) -> None:
    arms = {name: [f"{x},{10 * x + number}" for x in (1, 2, 4)] for number, name in enumerate(("6.1", "6.12"))}
    alone = table(f"kernel,{column},ops", *(f"{name},{row}" for name, rows in arms.items() for row in rows))
    each = [table(f"{column},ops", *rows) for rows in arms.values()]
    for number, texts in enumerate(([alone], each)):
        assert f"the column '{column}' has the same values" in refused(tmp_path / str(number), *texts)
    assert imported(tmp_path / "stated", alone.replace(f",{column},", f",{column} [1: lower],"))
    # A benchmark of which all values are the same is none, whatever others are.
    alike = "pipe,1,10,10", "pipe,2,11,11", "fork,1,20,21", "fork,2,22,23"
    assert imported(tmp_path / "alike", table("benchmark,trial,old,new", *alike))
    # The same file twice is an odd question, and no sweep.
    assert imported(tmp_path / "same", each[0], each[0])


def test_lines_with_numbers_of_trials_are_repetitions(tmp_path: Path) -> None:
    rows = "old,{}5,10", "old,{}6,20", "new,{}7,10", "new,{}8,20"
    plain = refused(tmp_path / "plain", table("contender,wall,result", *rows).replace("{}", ""))
    assert "number them in a column 'trial'" in plain
    numbered = table("contender,trial,wall,result", *(row.format(f"{1 + n % 2},") for n, row in enumerate(rows)))
    assert [*imported(tmp_path / "numbered", numbered)] == ["a/wall", "a/result"]
    header = "contender,trial,benchmark,metric,unit,better,value"
    pairs = (("old", 1, 5, 10), ("old", 2, 6, 20), ("new", 1, 7, 10), ("new", 2, 8, 20))
    lines = [f"{arm},{n},b,wall,,none,{wall}\n{arm},{n},b,result,,none,{result}" for arm, n, wall, result in pairs]
    assert [*imported(tmp_path / "long", table(header, *lines))] == ["b/wall", "b/result"]


SHEETS = {
    "decimal commas": ("1;1,5;1,7", "2;1,25;1,8"),
    "groups of digits": ("1;1 234,5;1.300,25", "2;1\u00a0234,5;1\u202f310"),
    "groups and points": ("1;1,234.5;1,234,567", "2;12'345;1.234.567"),
}


@pytest.mark.parametrize("separator", [";", "\t", ","])
@pytest.mark.parametrize("what", SHEETS)
def test_numbers_as_spreadsheets_write_them(what: str, separator: str, tmp_path: Path) -> None:
    rows = [";".join(f'"{cell}"' for cell in row.split(";")) for row in SHEETS[what]]
    text = table("trial;old;new", *rows).replace(";", separator)
    if separator == "," and what == "decimal commas":
        assert "'1,5', not a number" in refused(tmp_path, text)
        return
    (found,) = imported(tmp_path, text).values()
    assert (
        found.values
        == {
            "decimal commas": {"old": [1.5, 1.25], "new": [1.7, 1.8]},
            "groups of digits": {"old": [1234.5, 1234.5], "new": [1300.25, 1310]},
            "groups and points": {"old": [1234.5, 12345], "new": [1234567, 1234567]},
        }[what]
    )


@pytest.mark.parametrize("heading", ["contender", "Kernel version"])
@pytest.mark.parametrize("names", [["6,10", "6,1"], ["6 100", "6 200"]])
def test_names_that_look_like_numbers_stay_names(heading: str, names: list[str], tmp_path: Path) -> None:
    text = table(f"{heading};benchmark;ms", *(f"{name};1,5;10,5" for name in names))
    found = imported(tmp_path, text)
    assert found["1,5/ms"].values == {name: [10.5] for name in names}


@pytest.mark.parametrize("cells", ["980;1.020", "980;1,020"])
def test_thousands_are_not_taken_for_decimals(cells: str, tmp_path: Path) -> None:
    text = table("trial;old;new", "1;980;991", f"2;{cells}", "3;990;985")
    assert "may be 1020" in refused(tmp_path / "doubt", text)
    # Other digits behind the mark show what it is.
    (found,) = imported(tmp_path / "clear", text.replace("985", f"9{cells[-4]}5")).values()
    assert found.values["new"][1] == 1.02


@pytest.mark.parametrize(("cells", "told"), [("1.050 2.100", True), ("1.050 0.980", False), ("1.050 2.1", False)])
@pytest.mark.parametrize("separator", [";", "\t", ","])
@pytest.mark.parametrize(
    "heading",
    ["trial;old;new", "contender;latency [ms: lower]", "contender;trial;benchmark;metric;unit;better;value"],
)
def test_how_numbers_were_read_is_told_where_they_may_be_read_otherwise(
    heading: str, separator: str, cells: str, told: bool, tmp_path: Path
) -> None:
    first, second = cells.split()
    if heading.startswith("trial"):
        rows = [f"{trial};{cell};{cell}" for trial, cell in ((1, first), (2, second))]
    else:
        between = "1;b;m;s;lower;" * heading.endswith("value")
        rows = [f"old;{between}{first}", f"new;{between}{second}"]
    file = tmp_path / "a.csv"
    file.write_text(table(heading, *rows).replace(";", separator))
    record = bring_in([Source(file)], tmp_path / "run")
    notes = [one for one in record.skipped if "1.050" in one and "for 1050" in one and "mark of thousands" in one]
    # Where commas separate columns, as programs write them, a point is the decimal mark.
    assert bool(notes) is (told and separator != ",")


def test_a_table_is_read_twice_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    monkeypatch.setattr(
        tables, "lines", lambda path, stream, own=tables.lines: opened.append(path) or own(path, stream)
    )
    for name, heading, row in (
        ("wide", "contender;trial;latency [ms: lower]", "{};{};1.05{}"),
        ("long", "contender;trial;benchmark;metric;unit;better;value", "{};{};b;m;s;lower;1.05{}"),
    ):
        file = tmp_path / f"{name}.csv"
        file.write_text(
            table(heading, *(row.format(arm, trial, trial) for arm in ("old", "new") for trial in range(9)))
        )
        opened.clear()
        bring_in([Source(file)], tmp_path / name)
        # A third time only the heading, for the order of the contenders.
        assert len(opened) <= 2 + (name == "wide")


@pytest.mark.parametrize("separator", [";", "\t"])
@pytest.mark.parametrize(
    ("cells", "values"),
    [
        ("950,000 980,000 1,020,000 1,010,000", [950000, 980000, 1020000, 1010000]),
        ("950.000 980.000 1.020.000 980", [950000, 980000, 1020000, 980]),
        ("1.020 1.020,5 980,25 980", [1020, 1020.5, 980.25, 980]),
        ("1,020 1,020.5 -2,020 980", [1020, 1020.5, -2020, 980]),
        ("1.020 1,5 2,5 3,5", [1020, 1.5, 2.5, 3.5]),
        ("1,020 0,950 0,980 NA", [1.02, 0.95, 0.98, None]),
        ("1.020 12345 980 1.5", [1.02, 12345, 980, 1.5]),
    ],
)
@pytest.mark.parametrize("form", ["wide", "long"])
def test_a_column_shows_by_any_of_its_numbers_which_mark_is_that_of_thousands(
    cells: str, values: list[float | None], separator: str, form: str, tmp_path: Path
) -> None:
    given = cells.split()
    if form == "wide":
        rows = [f"{trial};{cell};1" for trial, cell in enumerate(given, 1)]
        text = table("trial;old;new", *rows)
    else:
        rows = [f"{arm};{trial};b;m;s;lower;{cell}" for arm in ("old", "new") for trial, cell in enumerate(given, 1)]
        text = table("contender;trial;benchmark;metric;unit;better;value", *(row for row in rows if "NA" not in row))
    (found,) = imported(tmp_path, text.replace(";", separator)).values()
    assert found.values["old"] == [value for value in values if value is not None or form == "wide"]


@pytest.mark.parametrize("separator", [";", "\t"])
@pytest.mark.parametrize(
    "cells", ["980 1.020 NA", "980 -1.020 990", "950,000 980,000 990,000", "1.020 1.020.000 1.5", "1.020 1,020 1.030"]
)
def test_a_mark_of_which_nothing_shows_what_it_is_is_refused(cells: str, separator: str, tmp_path: Path) -> None:
    rows = [f"{trial};{cell};1" for trial, cell in enumerate(cells.split(), 1)]
    assert "Write numbers without a mark" in refused(tmp_path, table("trial;old;new", *rows).replace(";", separator))


def test_a_stage_of_a_boot_with_decimal_commas_is_not_lost(tmp_path: Path) -> None:
    rows = ("1,5;0,5;2,1;3,5", "1,6;0,6;2,2;3,6"), ("1,7;0,7;2,4;3,7", "1,8;0,8;2,2;3,8")
    found = imported(tmp_path / "each", *(table("firmware;loader;kernel;userspace", *each) for each in rows))
    assert found["a/kernel"].values == {"old": [2.1, 2.2], "new": [2.4, 2.2]}
    lines = "old;2,1;3,5", "old;2,2;3,6", "new;2,1;3,5", "new;2,4;3,7"
    found = imported(tmp_path / "one", table("contender;kernel;userspace", *lines))
    assert found["a/kernel"].values == {"old": [2.1, 2.2], "new": [2.1, 2.4]}


def test_sizes_of_blocks_are_no_numbers_of_trials(tmp_path: Path) -> None:
    rows = "4,100", "8,180", "16,300"
    assert "sizes of blocks" in refused(tmp_path / "one", *[table("block,ops", *rows)] * 2)
    assert imported(tmp_path / "two", *[table("block,ops", "1,100", "2,180", "4,300")] * 2)
    assert imported(tmp_path / "three", *[table("trial,ops", *rows)] * 2)


def notes(tmp_path: Path, text: str) -> str:
    place = tmp_path / "a.txt"
    place.write_text(text)
    return " ".join(bring_in([Source(place, "old"), Source(place, "new")], tmp_path / "run").skipped)


@pytest.mark.parametrize(
    "line",
    [
        "120,,cycles,5,25.00,,\n",
        '{"counter-value" : "120.0", "unit" : "", "event" : "cycles", "event-runtime" : 5, "pcnt-running" : 25.00}\n',
    ],
)
def test_what_perf_extrapolates_is_said(line: str, tmp_path: Path) -> None:
    assert "that cycles was counted for a part of the time" in notes(tmp_path, line)


def test_figures_of_a_stressor_that_are_not_read_are_named(tmp_path: Path) -> None:
    assert notes(tmp_path, (FIXTURES / "stress-ng-0.22-b.txt").read_text()).startswith(
        "a.txt, line 1: mb-per-sec-pipe-write-rate. "
    )


def test_parameters_of_hyperfine_that_its_command_does_not_show_are_settings(tmp_path: Path) -> None:
    text = '{"results": [{"command": "make", "times": [1.0, 1.1], "parameters": {"tag": "%s"}}]}\n'
    assert imported(tmp_path, text % "v1", text % "v2")
    assert read_with_settings(tmp_path / "run")[1].differing_settings() == {
        "old": {"make: tag": "v1"}, "new": {"make: tag": "v2"},
    }  # fmt: skip


@pytest.mark.parametrize("cell", ["-", "null", "None", "#N/A", "NA"])
def test_a_cell_that_says_that_there_is_no_value_is_counted(cell: str, tmp_path: Path) -> None:
    text = table("trial,old,new", "1,10,11", f"2,{cell},12", "3,12,13")
    (tmp_path / "a.csv").write_text(text)
    record = bring_in([Source(tmp_path / "a.csv")], tmp_path / "run")
    assert any("1 cell that says that there is no value" in note for note in record.skipped)
    assert read(tmp_path / "run")[0].values["old"] == [10, None, 12]


def test_single_programs_of_lmbench_are_taken_with_a_line_before_each_trial(tmp_path: Path) -> None:
    text = "[lmbench3.0 results for host]\nSimple syscall: 0.0521 microseconds\n" * 2
    assert imported(tmp_path, text, text)["lmbench/Simple syscall"].values["old"] == [0.0521, 0.0521]


WRK = (FIXTURES / "wrk-4.1.0-a.txt").read_text()
WRK = "Running " + WRK.split("Running ")[1]


def with_p99(value: str) -> str:
    return "".join(f"     99% {value}\n" if line.startswith("     99%") else line for line in WRK.splitlines(True))


@pytest.mark.parametrize(("value", "why"), [("   1.00h ", "minutes or hours"), ("   -nanus", "'-nan', not a number")])
def test_a_percentile_of_wrk_is_not_lost(value: str, why: str, tmp_path: Path) -> None:
    assert why in refused(tmp_path, with_p99(value), with_p99(value))


def test_a_call_of_wrk_without_an_answer_is_refused(tmp_path: Path) -> None:
    lines = ("Requests/sec:      0.00\n" if line.startswith("Requests") else line for line in WRK.splitlines(True))
    assert "no request was answered" in refused(tmp_path, WRK, "".join(lines))


def test_the_corrected_latencies_of_wrk2_count(tmp_path: Path) -> None:
    again = "  Latency Distribution (HdrHistogram - Uncorrected Latency (measured))\n 50.000%    9.00s \n 99.000%    9.00s \n"
    lines = (again + line if line.startswith("Requests") else line for line in WRK.splitlines(True))
    found, plain = imported(tmp_path / "one", *["".join(lines)] * 2), imported(tmp_path / "two", WRK, WRK)
    assert {key: one.values for key, one in found.items()} == {key: one.values for key, one in plain.items()}


IPERF3 = (FIXTURES / "iperf3-3.12-a.json").read_text()


def test_a_report_of_a_server_that_sent_is_no_throughput_of_nothing(tmp_path: Path) -> None:
    import json

    report = json.loads(IPERF3.partition("\n}\n")[0] + "\n}")
    report["end"]["sum_received"]["bits_per_second"] = 0
    # As iperf3 writes it: over several lines, and packed, a line each.
    assert "a server that sent" in refused(tmp_path / "one", *[json.dumps(report, indent=1) + "\n"] * 2)
    report["end"]["sum_received"]["bits_per_second"] = 5e9
    found = imported(tmp_path / "two", *[2 * (json.dumps(report) + "\n")] * 2)
    assert all(len(one.values["old"]) == 2 for one in found.values())


def test_a_udp_stream_of_netperf_with_the_load_of_cpus(tmp_path: Path) -> None:
    text = """MIGRATED UDP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to localhost () port 0 AF_INET : demo
Socket  Message  Elapsed      Messages                   CPU      Service
Size    Size     Time         Okay Errors   Throughput   Util     Demand
bytes   bytes    secs            #      #   10^6bits/sec % SS     us/KB

212992   65507   10.00      405411      0      21245.5     24.50    0.190
212992           10.00      405311             21240.2     -1.00    -1.000

"""
    (found,) = imported(tmp_path, text, text).values()
    assert found.values["old"] == [21240.2]


def test_what_sysbench_was_told_about_files_is_a_setting(tmp_path: Path) -> None:
    text = (FIXTURES / "sysbench-1.0.20-a.txt").read_text()
    text = "sysbench 1" + next(part for part in text.split("sysbench 1")[1:] if "Extra file open flags" in part)
    direct = text.replace("Extra file open flags: (none)", "Extra file open flags: directio")
    assert direct != text
    imported(tmp_path, text, direct)
    _, gathering = read_with_settings(tmp_path / "run")
    assert [list(one.values()) for one in gathering.differing_settings().values()] == [["(none)"], ["directio"]]


def test_a_call_of_cyclictest_that_ended_at_a_late_wakeup_is_refused(tmp_path: Path) -> None:
    text = (FIXTURES / "cyclictest-2.4-quiet.txt").read_text() + "# Break thread: 1234\n# Break value: 501\n"
    assert "ended at its first late wake-up" in refused(tmp_path, text, text)


SERVER = IPERF3.partition("\n}\n")[0] + "\n}\n"


@pytest.mark.parametrize(
    "text",
    [
        with_p99("   1.00h "),
        with_p99("   -nanus"),
        re.sub("Requests/sec: .*", "Requests/sec:      0.00", WRK),
        re.sub('("sum_received".*?"bits_per_second":\\s*)[0-9.e+]+', r"\g<1>0", SERVER, flags=re.DOTALL),
        (FIXTURES / "cyclictest-2.4-quiet.txt").read_text() + "# Break thread: 1234\n# Break value: 501\n",
        table("contender,size,latency [ms: lower]", "old,4,1", "old,16,2", "new,4,3", "new,16,4"),
        table("contender,time,latency [ms: lower]", "old,1700000000,4", "new,1700000001,5"),
        table("contender,qd,latency [ms: lower]", "old,1,4", "old,2,5", "new,1,5", "new,2,6"),
        table("contender;latency", "old;980", "old;1.020", "new;990", "new;1.010"),
        table("contender,block,latency [ms: lower]", "old,4,4", "old,8,5", "new,4,5", "new,8,6"),
        table(
            "contender,quantile,latency [ms: lower]", "old,0.5,4", "new,0.9,5", "old,0.99,6", "new,0.999,7", "old,1,8"
        ),
    ],
)
def test_what_is_refused_only_now_is_read_where_it_was_kept(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that a former version brought in is reported as it was."""
    texts = [text] * (1 if text.startswith("contender") else 2)
    refused(tmp_path / "new", *texts)
    for kind in (Wide, Wrk, Iperf3, Cyclictest):
        monkeypatch.setattr(kind, "new_rows", kind.rows)
    monkeypatch.setattr(Gathering, "check_swept", lambda _: None)
    assert imported(tmp_path / "kept", *texts)


@pytest.mark.parametrize(
    "line", ["CPU0,12,,context-switches,1000,100.00,,", "S0-D0-C0,2,12,,context-switches,1000,100.00,,"]
)
def test_perf_stat_by_cpu_is_named(line: str, tmp_path: Path) -> None:
    assert "Measure without -I, -A and --per-*" in refused(tmp_path, f"{line}\n" * 2, f"{line}\n" * 2)


@pytest.mark.parametrize(
    ("better", "kind", "verdict"),
    [("higher", "exact", "faster"), ("higher", "count", "different"), ("lower", "count", "more"), ("lower", "exact", "more"),
     ("none", "exact", "different"), ("none", "count", "different")],
)  # fmt: skip
def test_more_of_a_count_is_called_so_only_where_fewer_is_better(
    better: str, kind: str, verdict: str, tmp_path: Path
) -> None:
    """What counts regressions (`query worse`, KCIDB) takes `more` for one."""
    rows = [f"{name},1,parse,lines,lines,{better},{kind},{n}" for name, n in (("old", 10), ("new", 12))]
    imported(tmp_path, table("contender,trial,benchmark,metric,unit,better,kind,value", *rows))
    assert [metric.verdict for metric in results(tmp_path / "run").metrics] == [verdict]


@pytest.mark.parametrize("scale", [0.25, 4.0, 250.0])
def test_frame_times_of_an_unknown_unit_are_refused(scale: float, tmp_path: Path) -> None:
    """They are milliseconds or microseconds by the rate beside them."""
    lines = [f"{1000 / time:.4f},{scale * time:.4f},9\n" for time in [16.0, 17.0, 18.0] * 100]
    text = "os,cpu,gpu,ram,kernel,driver\na,b,c,1,6.1,d\nfps,frametime,cpu_load\n" + "".join(lines)
    assert "contradict each other" in refused(tmp_path, text, text)


@pytest.mark.parametrize(
    ("unit", "megabits"),
    [("10^3bits", 0.1), ("10^6bits", 100.0), ("10^9bits", 1e5), ("KBytes", 0.8192), ("MBytes", 838.8608), ("GBytes", 858993.4592)],
)  # fmt: skip
def test_each_unit_of_netperf_is_read_as_it_means_it(unit: str, megabits: float, tmp_path: Path) -> None:
    """Its bytes are counted in powers of two, its bits in powers of ten (netlib.c, calc_thruput)."""
    text = f"""MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to localhost () port 0 AF_INET : demo
Recv   Send    Send
Socket Socket  Message  Elapsed
Size   Size    Size     Time     Throughput
bytes  bytes   bytes    secs.    {unit}/sec

131072  16384  16384    10.00    100.00
"""
    (found,) = imported(tmp_path, text, text).values()
    assert found.metric.unit == "Mbit/s" and found.values["old"] == [pytest.approx(megabits)]


@pytest.mark.parametrize(
    "columns",
    ["old_1,old_2,new_1,new_2", "old run 1,old run 2,new run 1,new run 2", "old (1),old (2),new (1),new (2)",
     "old avg,new avg,old std,new std", "median old,median new,max old,max new"],
)  # fmt: skip
def test_several_columns_of_each_contender_are_no_contenders(columns: str, tmp_path: Path) -> None:
    said = refused(tmp_path, table(f"benchmark,{columns}", "pipe,1.5,1.6,1.7,1.8"))
    assert "are figures of" in said or ("are repetitions of" in said and "name them otherwise" in said)


@pytest.mark.parametrize(
    "columns",
    ["6.1-eevdf,6.1-bore,6.12-eevdf,6.12-bore", "patch-1,patch-2", "throughput-performance,latency-performance", "6.1.1,6.1.2,6.12.1,6.12.2",
     "linux-6.1.1,linux-6.1.2,linux-6.12.1,linux-6.12.2", "6.1-100,6.1-1000,6.12-100,6.12-1000", "old-16,old-64,new-16,new-64"],
)  # fmt: skip
def test_contenders_of_two_factors_are_contenders(columns: str, tmp_path: Path) -> None:
    (found,) = imported(
        tmp_path, table(f"benchmark,{columns}", "pipe,1.5,1.6,1.7,1.8"[: -4 * (columns.count(",") == 1) * 2 or None])
    ).values()
    assert list(found.values) == columns.split(",")


@pytest.mark.parametrize("line", ["mean,1,1.55", "Average,,1.55", "geomean,3,1.55"])
def test_a_line_that_is_calculated_from_others_is_no_contender(line: str, tmp_path: Path) -> None:
    text = table("contender,trial,latency [ms: lower]", "old,1,1.5", "new,1,1.6", line)
    assert "calculated from others" in refused(tmp_path, text)


@pytest.mark.parametrize("heading", ["exit_code", "Exit status", "returncode", "failed"])
def test_a_trial_that_failed_measures_nothing(heading: str, tmp_path: Path) -> None:
    text = table(
        f"contender,trial,{heading},latency [ms: lower]", "old,1,0,1.5", "old,2,137,0.1", "new,1,0,1.6", "new,2,0,1.7"
    )
    assert "what failed measured nothing" in refused(tmp_path / "failed", text)
    assert imported(tmp_path / "well", text.replace("137", "0"))


@pytest.mark.parametrize("index", ['""', "Unnamed: 0"])
def test_an_index_beside_the_trials_is_left_out(index: str, tmp_path: Path) -> None:
    text = table(
        f"{index},contender,trial,latency [ms: lower]", "1,old,1,1.5", "2,old,2,1.6", "3,new,1,1.7", "4,new,2,1.8"
    )
    (found,) = imported(tmp_path, text).values()
    assert found.values == {"old": [1.5, 1.6], "new": [1.7, 1.8]}


def test_a_bar_may_separate_columns(tmp_path: Path) -> None:
    (found,) = imported(tmp_path, table("contender|latency [ms: lower]", "old|1.5", "new|1.7")).values()
    assert found.values == {"old": [1.5], "new": [1.7]}


def test_numbers_alone_are_trials(tmp_path: Path) -> None:
    (found,) = imported(tmp_path / "ministat", "# before\n10.5\n11\n", "9.5\n1e1\n").values()
    assert found.values == {"old": [10.5, 11.0], "new": [9.5, 10.0]}
    assert "moments" in refused(tmp_path / "dates", "1795940490\n1795940491\n", "1795940490\n1795940491\n")
    assert "not a number" in refused(tmp_path / "damaged", "1\n" * 60 + "x\n", "1\n" * 60)


@pytest.mark.parametrize("release", ["6.1", "6.12", "5.10", "4.19", "# seconds\n\n6.1"])
def test_a_release_above_numbers_is_no_value_of_them(release: str, tmp_path: Path) -> None:
    text = f"{release}\n10.2\n10.3\n10.1\n"
    told = refused(tmp_path, text, text)
    assert "first number may be a kernel's release" in told and "--format numbers" in told
    sources = [Source(tmp_path / number / "a.txt", name) for number, name in (("0", "old"), ("1", "new"))]
    bring_in(sources, tmp_path / "asked", format_name="numbers")
    (found,) = read(tmp_path / "asked")
    assert found.values["old"] == [float(release.split()[-1]), 10.2, 10.3, 10.1]


def test_calls_of_go_with_another_configuration_are_no_repetitions(tmp_path: Path) -> None:
    lines = "commit: {}\nBenchmarkX 10 5.0 ns/op\n"
    assert "has commit 'b'" in refused(tmp_path, lines.format("a") + lines.format("b"), lines.format("a"))


def test_a_test_of_go_that_failed_is_told(tmp_path: Path) -> None:
    for name, text in (
        ("old", "BenchmarkX 10 5.0 ns/op\n--- FAIL: BenchmarkZ\n    x_test.go:5: bad\nFAIL\n"),
        ("new", "BenchmarkX 10 5.0 ns/op\n"),
    ):
        (tmp_path / name).write_text(text)
    record = bring_in([Source(tmp_path / "old"), Source(tmp_path / "new")], tmp_path / "run")
    assert any("BenchmarkZ failed" in one for one in record.skipped)


PARTLY_FAILED = pytest.mark.parametrize(
    ("file", "before", "inserted", "told"),
    [
        ("pgbench-15-a.txt", "tps = ", "pgbench: error: client 0 aborted in command 5\n", "incomplete"),
        ("hackbench-2.4-a.txt", "Time:", "SENDER: write (error: Broken pipe)\n", "ended early"),
        ("memtier-a.txt", "ALL STATS", "connection error: Connection refused\n", "connection errors"),
        ("memtier-b.json", '"Connection Errors": 0', '"Connection Errors": 7, "was', "connection errors"),
        ("memtier-averaged.txt", "AGGREGATED", "connection error: Connection refused\n", "connection errors"),
    ],
)


def partly_failed(text: str, before: str, inserted: str) -> str:
    other = text.replace(before, inserted + (before.removeprefix('"') if inserted[0] == '"' else before), 1)
    assert other != text
    return other


@PARTLY_FAILED
def test_a_call_of_which_a_part_failed_is_no_trial(
    file: str, before: str, inserted: str, told: str, tmp_path: Path
) -> None:
    text = (FIXTURES / file).read_text()
    assert told in refused(tmp_path, text, partly_failed(text, before, inserted))


@PARTLY_FAILED
def test_a_kept_import_of_which_a_part_failed_is_read_as_before(
    file: str, before: str, inserted: str, told: str, tmp_path: Path
) -> None:
    text = (FIXTURES / file).read_text()
    plain = imported(tmp_path, text, text)
    record = record_of(tmp_path / "run")
    kept = tmp_path / "run" / record.files[1].stored
    kept.write_text(partly_failed(text, before, inserted))
    record.files[1].sha256 = hashlib.sha256(kept.read_bytes()).hexdigest()
    (tmp_path / "run" / "import.json").write_bytes(document_bytes(record))
    assert {table.key: table.values for table in read(tmp_path / "run")} == {
        key: table.values for key, table in plain.items()
    }, told


def test_contenders_that_differ_by_the_size_of_letters_only_are_refused(tmp_path: Path) -> None:
    rows = ("Old,1,1.5", "old,2,1.6", "new,1,1.7", "new,2,1.8")
    assert "size of its letters" in refused(tmp_path, table("contender,trial,latency [ms: lower]", *rows))
