"""Small faults of importing and exporting, and sizes that are exact."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import unicodedata
from pathlib import Path

import pytest
from click.testing import CliRunner

from kduel.cli import kduel
from kduel.core.errors import InputError
from kduel.judge.imported import results
from kduel.report import report_format
from kduel.report.csv import no_formula
from kduel.store.imported import Source, bring_in, read

HEADER = "contender,trial,benchmark,metric,unit,better,value"
FIXTURES = Path(__file__).parent / "fixtures"
GOOD = ["old,1,b,m,s,lower,1.5", "old,2,b,m,s,lower,1.6", "new,1,b,m,s,lower,1.4", "new,2,b,m,s,lower,1.3"]


def bring(tmp_path: Path, data: str | bytes, name: str = "values.csv") -> Path:
    """The run that comes of a file with these bytes."""
    path = tmp_path / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    bring_in([Source(path)], tmp_path / "run")
    return tmp_path / "run"


def refusal(tmp_path: Path, data: str | bytes, name: str = "values.csv") -> str:
    with pytest.raises(InputError) as caught:
        bring(tmp_path, data, name)
    assert caught.value.remedy
    return caught.value.message


def table(*lines: str, header: str = HEADER) -> str:
    return "\n".join([header, *lines]) + "\n"


def hyperfine(**changed: object) -> str:
    run = {"command": "true", "times": [0.5, 0.25], **changed}
    return json.dumps({"results": [run, {"command": "false", "times": [0.5, 0.75]}]})


def test_negative_times_of_hyperfine_are_refused(tmp_path: Path) -> None:
    assert "wall_time is -0.25, which cannot be below 0" in refusal(tmp_path, hyperfine(times=[0.5, -0.25]), "a.json")
    assert "peak_memory is -1" in refusal(tmp_path, hyperfine(memory_usage_byte=[-1, 5]), "b.json")


def test_a_byte_order_mark_before_json_does_no_harm(tmp_path: Path) -> None:
    run = bring(tmp_path, b"\xef\xbb\xbf" + hyperfine().encode(), "a.json")
    assert read(run)[0].values == {"true": [0.5, 0.25], "false": [0.5, 0.75]}


@pytest.mark.parametrize("value", [int("9" * 400), -1, int("9" * 200)])
def test_a_real_time_beyond_all_bounds_is_refused(tmp_path: Path, value: int) -> None:
    document = json.loads((FIXTURES / "google-benchmark-1.7.1-a.json").read_text())
    document["benchmarks"][0]["real_time"] = value
    text = json.dumps(document).replace(": -1,", ": -1.0,")
    assert "real_time is" in refusal(tmp_path, text, "a.json")


def test_an_aggregate_is_no_repetition_even_where_its_type_is_not_told(tmp_path: Path) -> None:
    document = json.loads((FIXTURES / "google-benchmark-1.7.1-a.json").read_text())
    kept = [entry for entry in document["benchmarks"] if entry["run_type"] == "iteration"]
    mean = kept[0] | {"aggregate_name": "mean", "real_time": 123456.0}
    del mean["run_type"]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"context": document["context"], "benchmarks": [*kept, mean]}))
    other = FIXTURES / "google-benchmark-1.7.1-b.json"
    bring_in([Source(path, "old"), Source(other, "new")], tmp_path / "run")
    assert not [sample for sample in read(tmp_path / "run") if 123456.0 in sample.values["old"]]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (gzip.compress(table(*GOOD).encode(), mtime=0), "it is compressed with gzip"),
        (b"BZh91AY", "it is compressed with bzip2"),
        (b"\xfd7zXZ\x00", "it is compressed with xz"),
        (b"\x28\xb5\x2f\xfd", "it is compressed with zstd"),
        (b"PK\x03\x04", "it is a ZIP archive"),
    ],
)
def test_what_a_foreign_file_is_is_told(tmp_path: Path, data: str | bytes, told: str) -> None:
    assert told in refusal(tmp_path, data)


@pytest.mark.parametrize("number", ["9007199254740993", "9007199254740993.0", "9.007199254740993e15"])
def test_an_exact_count_is_refused_where_it_would_be_rounded_however_it_is_written(
    tmp_path: Path, number: str
) -> None:
    lines = [f"{name},1,b,m,,lower,{value},count" for name, value in (("old", number), ("new", "9007199254740992"))]
    text = table(*lines, header=f"{HEADER},kind")
    assert "has more digits than are kept" in refusal(tmp_path, text)


def test_conditions_that_are_no_file_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "conditions")
    source = tmp_path / "values.csv"
    source.write_text(table(*GOOD))
    with pytest.raises(InputError, match="is not a file"):
        bring_in([Source(source)], tmp_path / "run", conditions=tmp_path / "conditions")
    assert not (tmp_path / "run").exists()


def test_a_number_too_small_to_be_kept_is_not_zero(tmp_path: Path) -> None:
    assert "1e-400, which is too small" in refusal(tmp_path, table("old,1,b,m,s,lower,1e-400", *GOOD))
    bring(tmp_path, table("old,9,b,m,s,lower,0.0e-400", *GOOD))


def test_a_key_twice_in_one_object_is_refused(tmp_path: Path) -> None:
    text = (FIXTURES / "google-benchmark-1.7.1-a.json").read_text()
    twice = re.sub(r'("real_time": )', r'"real_time": 1.5, \1', text, count=1)
    assert "has the key 'real_time' twice" in refusal(tmp_path, twice, "a.json")


@pytest.mark.parametrize("encoding", ["utf-7", "shift_jis", "gb2312", "no-such"])
def test_an_encoding_that_is_not_read_is_named(tmp_path: Path, encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?>\n<PhoronixTestSuite></PhoronixTestSuite>'
    assert "line 1" in refusal(tmp_path, text, "composite.xml")


@pytest.mark.parametrize("column", ["{},1,b,m,s,lower,1.5", "old,3,{},m,s,lower,1.5", "old,3,b,{},s,lower,1.5"])
def test_names_that_differ_in_normalisation_only_are_refused(tmp_path: Path, column: str) -> None:
    one, two = "caf\u00e9", unicodedata.normalize("NFD", "caf\u00e9")
    message = refusal(tmp_path, table(column.format(one), column.format(two), *GOOD))
    assert "looks like an earlier one" in message and "line 3" in message and r"\u0301" in message


@pytest.mark.parametrize(
    ("lines", "cut"),
    [
        (GOOD, "1."),
        (GOOD, "1"),
        (["old,1,size,text,B,lower,1838116", "new,1,size,text,B,lower,2253870"], "225387"),
        (["old,1,b,m,s,lower,1.5", "new,1,b,m,s,lower,1.25"], "1.25"),
        (["old,1,b,m,s,lower,1e5", "new,1,b,m,s,lower,1e5"], "1e5"),
    ],
)
def test_a_last_number_that_may_be_cut_is_refused(tmp_path: Path, lines: list[str], cut: str) -> None:
    text = "\n".join([HEADER, *lines[:-1], lines[-1].rpartition(",")[0] + f",{cut}"])
    assert "has no line end, so that its last number may be cut" in refusal(tmp_path, text)


def test_a_last_line_without_its_end_counts_where_its_number_is_written_like_the_others(tmp_path: Path) -> None:
    run = bring(tmp_path, "\n".join([HEADER, *GOOD]))
    assert read(run)[0].values == {"old": [1.5, 1.6], "new": [1.4, 1.3]}
    other = "value," + HEADER.removesuffix(",value")
    (tmp_path / "second").mkdir()
    assert "may be cut" in refusal(tmp_path / "second", f"{other}\n1.5,old,1,b,m,s,lower\n1.6,new,1,b,m,s,lower")


def test_digits_of_other_scripts_are_no_number(tmp_path: Path) -> None:
    assert "not a number" in refusal(tmp_path, table(*GOOD, "old,3,b,m,s,lower,٣"))


# Sizes and counts are exact.

SIZES = ["old,1,size-arm64,text,B,lower,1838116", "new,1,size-arm64,text,B,lower,2253870"]


def test_a_size_differs_for_certain_by_one_value_each(tmp_path: Path) -> None:
    (found,) = results(bring(tmp_path, table(*SIZES))).metrics
    assert (found.verdict, found.scale, found.effect, found.n) == ("different", "exact", 415_754, 1)
    assert "chance" not in found.told
    assert found.values == {"old": [1838116.0], "new": [2253870.0]}


@pytest.mark.parametrize(
    ("kind", "unit", "verdict"),
    [("size", "pages", "different"), ("count", "", "different"), ("time", "B", "undecided"), ("rate", "B", "undecided"),
     ("other", "B", "undecided"), ("", "B", "different"), ("", "s", "undecided")],
)  # fmt: skip
def test_a_column_says_what_kind_a_metric_is(tmp_path: Path, kind: str, unit: str, verdict: str) -> None:
    lines = [f"{arm},1,size,pages,{unit},lower,{kind},{value}" for arm, value in (("old", 7), ("new", 9))]
    header = HEADER.replace("value", "kind,value")
    (found,) = results(bring(tmp_path, table(*lines, header=header))).metrics
    assert found.verdict == verdict


def test_a_kind_that_is_none_is_refused(tmp_path: Path) -> None:
    lines = [f"{line},counted" for line in GOOD]
    assert "the kind is 'counted'" in refusal(tmp_path, table(*lines, header=f"{HEADER},kind"))
    mixed = [f"{GOOD[0]},count", f"{GOOD[2]},time"]
    assert "has the kind 'measured', but 'count or size'" in refusal(tmp_path, table(*mixed, header=f"{HEADER},kind"))


def test_a_column_says_what_a_metric_measures(tmp_path: Path) -> None:
    lines = [f"{line},wakeup-latency" for line in GOOD]
    stated = tmp_path / "stated"
    stated.mkdir()
    found = results(bring(stated, table(*lines, header=f"{HEADER},aspect")))
    assert {metric.aspect for metric in found.metrics} == {"wakeup-latency"}
    unknown = [f"{line},speed" for line in GOOD]
    assert "the aspect is 'speed'" in refusal(tmp_path, table(*unknown, header=f"{HEADER},aspect"))
    mixed = [f"{GOOD[0]},power", f"{GOOD[2]},throughput"]
    assert "has the aspect 'throughput', but 'power'" in refusal(tmp_path, table(*mixed, header=f"{HEADER},aspect"))


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("resident-set-size,x", "B"),
        ("memory,size", "KiB"),
        ("heap-size,x", "MB"),
        ("resize,x", "B"),
        ("size,x", "count"),
    ],
)
def test_memory_in_use_and_other_names_are_no_exact_sizes(tmp_path: Path, name: str, unit: str) -> None:
    lines = [f"{arm},1,{name},{unit},lower,{value}" for arm, value in (("old", 7), ("new", 9))]
    (found,) = results(bring(tmp_path, table(*lines))).metrics
    assert found.verdict == "undecided"


def test_a_size_that_varies_is_estimated(tmp_path: Path) -> None:
    more = ["old,2,size-arm64,text,B,lower,1838117", "new,2,size-arm64,text,B,lower,2253871"]
    (found,) = results(bring(tmp_path, table(*SIZES, *more))).metrics
    assert found.verdict == "undecided" and found.scale == "ratio"


def test_sizes_take_no_alpha_from_what_is_measured(tmp_path: Path) -> None:
    times = [
        f"{arm},{n},b,m,s,lower,{10 + n % 5 + shift}" for arm, shift in (("old", 0), ("new", 0.5)) for n in range(9)
    ]
    (tmp_path / "alone").mkdir()
    alone = results(bring(tmp_path / "alone", table(*times))).metrics[0]
    both = {m.metric: m for m in results(bring(tmp_path, table(*times, *SIZES))).metrics}
    assert both["m"].ci_low_pct == alone.ci_low_pct and both["text"].verdict == "different"


def test_counts_above_a_billion_are_told_apart_to_the_last(tmp_path: Path) -> None:
    header = f"{HEADER},kind"
    lines = ["old,1,b,calls,,lower,9000000000000001,count", "new,1,b,calls,,lower,9000000000000002,count"]
    (found,) = results(bring(tmp_path, table(*lines, header=header))).metrics
    assert (found.verdict, found.effect) == ("different", 1.0)
    (tmp_path / "more").mkdir()
    text = table(*(line.replace("900000000000000", "9007199254740993") for line in lines), header=header)
    assert "has more digits than are kept" in refusal(tmp_path / "more", text)


# The CSV that is written.


def test_names_that_a_spreadsheet_would_run_are_quoted_and_read_back(tmp_path: Path) -> None:
    names = ["=cmd|'/C calc'!A0", "+1", "-2", "@sum", "'=x", "' -y", "plain", "'plain"]
    lines = [[arm, "1", f"{name}b", f"{name}m", f"{name}u", "lower", "-1.5"] for name in names for arm in names]
    path = tmp_path / "values.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows(
            [HEADER.split(","), *([*map(no_formula, line[:-1]), line[-1]] for line in lines)]
        )
    bring_in([Source(path)], tmp_path / "run")
    written = report_format("csv").render(results(tmp_path / "run"))
    for line in csv.reader(written.splitlines()[1:]):
        assert not any(field.startswith(("=", "+", "-", "@")) for place, field in enumerate(line) if place != 6), line
        assert line[6] == "-1.5", "a number stays one"
    again = tmp_path / "again.csv"
    again.write_text(written)
    bring_in([Source(again)], tmp_path / "second")
    assert [s.key for s in read(tmp_path / "second")] == [s.key for s in read(tmp_path / "run")]
    assert list(read(tmp_path / "second")[0].values) == names


# kduel plan.


def plan(path: Path) -> object:
    return CliRunner().invoke(kduel, ["plan", str(path)])


@pytest.mark.parametrize("name", ["fifo", "zero"])
def test_plan_reads_no_pipe_and_no_device(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    path = tmp_path / "fifo" if name == "fifo" else Path("/dev/zero")
    error = plan(path).exception  # type: ignore[attr-defined]
    assert isinstance(error, InputError) and "is not a file" in error.message


def test_plan_says_nothing_raw(tmp_path: Path) -> None:
    path = tmp_path / "values.csv"
    path.write_text(table("old\x1b]0;x\x07,1,b,m,s,lower,1.5", *GOOD))
    error = plan(path).exception  # type: ignore[attr-defined]
    assert isinstance(error, InputError) and "\x1b" not in str(error) and "control characters" in error.message


def test_plan_works_for_values_that_nothing_pairs(tmp_path: Path) -> None:
    """Trials of their own for each contender: 10 and 14 of them."""
    lines = [f"old,{n},b,m,s,lower,{100 + n % 5}" for n in range(1, 11)]
    lines += [f"new,{n},b,m,s,lower,{101 + n % 3}" for n in range(101, 115)]
    path = tmp_path / "values.csv"
    path.write_text(table(*lines))
    told = CliRunner().invoke(kduel, ["plan", str(path), "--format", "json"])
    (cost,) = json.loads(told.stdout)["costs"]
    assert (cost["pairs"], cost["paired"]) == (10, False)
    assert 1.0 < cost["spread_pct"] < 2.5
    assert "These values are not paired" in CliRunner().invoke(kduel, ["plan", str(path)]).stdout
    bring_in([Source(path)], tmp_path / "run")
    (same,) = json.loads(CliRunner().invoke(kduel, ["plan", str(tmp_path / "run"), "--format", "json"]).stdout)[
        "costs"
    ]
    assert same["spread_pct"] == cost["spread_pct"] and not same["paired"]


def test_zero_is_a_value_of_what_cannot_be_negative(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / f"{name}.txt").write_text("0;;context-switches;802488;100.00;;\n")
    bring_in([Source(tmp_path / f"{name}.txt", name) for name in ("old", "new")], tmp_path / "zero")
    (table,) = read(tmp_path / "zero")
    assert table.values == {"old": [0.0], "new": [0.0]}
