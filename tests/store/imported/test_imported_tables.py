"""Tables as people have them: no column of numbers becomes a contender by chance."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from kduel.core.errors import InputError
from kduel.core.samples import Samples
from kduel.store.documents import document_bytes
from kduel.store.imported import Source, bring_in, read
from kduel.store.imported.support.store import Import
from kduel.store.imported.support.table import without_frame


def imported(tmp_path: Path, text: str | bytes, contender: str | None = None) -> tuple[Import, list[Samples]]:
    tmp_path.mkdir(exist_ok=True)
    file = tmp_path / "table.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    sources = [Source(file, contender)]
    if contender:
        (tmp_path / "more").mkdir()
        other = tmp_path / "more" / "table.csv"
        other.write_bytes(file.read_bytes())
        sources.append(Source(other, "other"))
    return bring_in(sources, tmp_path / "run"), read(tmp_path / "run")


@pytest.mark.parametrize(
    "heading",
    ["Trial", "RUN", "Run #", "run_id", "trial number", "Iteration", "iter", "rep", "round", "Unnamed: 0", '""', "#"],
)
def test_a_column_of_numbers_of_trials_is_no_baseline(heading: str, tmp_path: Path) -> None:
    _, (table,) = imported(tmp_path, f"{heading},old,new\n1,10,11\n2,10,12\n")
    assert table.values == {"old": [10.0, 10.0], "new": [11.0, 12.0]} and table.contenders[0] == "old"


@pytest.mark.parametrize("heading", ["day", "Zeit", "groups", "no", "id", "x", "r,b,free"])
def test_a_table_that_does_not_say_what_its_columns_are_is_refused(heading: str, tmp_path: Path) -> None:
    row = ",1" * heading.count(",")
    with pytest.raises(InputError, match=r"does not say whether .* contenders or metrics") as caught:
        imported(tmp_path, f"{heading},old,new\n1{row},10,11\n2{row},10,12\n")
    assert "'trial'" in caught.value.remedy and "NAME=FILE" in caught.value.remedy


@pytest.mark.parametrize(
    "columns",
    [
        "fps,frametime",
        "latency,throughput",
        "mean,stddev",
        "cpu_load,memory",
        "blocksize,old,new",
        "nthreads,old,new",
    ],
)
def test_a_metric_is_no_contender(columns: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="and no contender"):
        imported(tmp_path, f"trial,{columns}\n1,10,11{',1' * (columns.count(',') - 1)}\n")


def test_names_with_words_of_metrics_are_contenders(tmp_path: Path) -> None:
    names = "latency-performance,throughput-performance"
    _, (table,) = imported(tmp_path, f"trial,{names}\n1,10,11\n")
    assert table.contenders == names.split(",")


@pytest.mark.parametrize(
    "heading", ["Kernel", "kernel version", "KernelVersion", "Linux version", "uname", "Release"]
)
def test_a_column_of_kernels_names_the_contenders_however_it_is_written(heading: str, tmp_path: Path) -> None:
    _, (table,) = imported(tmp_path, f"{heading},score [1/s: higher]\n6.1,100\n6.12,110\n6.1,101\n")
    assert table.key == "table/score" and table.contenders == ["6.1", "6.12"]
    assert table.values["6.1"] == [100.0, 101.0]


def test_two_columns_that_may_name_the_contender_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'kernel' and 'version' may both name the contender"):
        imported(tmp_path, "kernel,version,score\n6.1,1,100\n6.12,1,110\n")


def test_the_kernel_of_a_named_contender_is_no_metric(tmp_path: Path) -> None:
    record, found = imported(tmp_path, "contender,kernel,score\nold,6.1,100\nnew,6.12,110\n")
    assert [table.key for table in found] == ["table/score"]
    assert any("the column 'kernel'" in reason for reason in record.skipped)


@pytest.mark.parametrize("column", ["kernel", "threads", "block size"])
def test_lines_of_several_kernels_or_parameters_are_not_pooled(column: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"line 3: the column '{column}' has a second value for 'old': '2'"):
        imported(tmp_path, f"{column},latency [ms: lower]\n1,10\n2,20\n", "old")


@pytest.mark.parametrize(
    "header", ["kernel,run1,run2", "contender,1,2", "contender,Trial 1,Trial 2", "benchmark,run_1,run_2"]
)
def test_columns_of_trials_are_refused(header: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"are trials") as caught:
        imported(tmp_path, f"{header}\n6.1,10,11\n6.12,9,10\n")
    assert "a line for each trial" in caught.value.remedy


@pytest.mark.parametrize(
    "text",
    [
        "trial,old,new,\n1,10,11,\n2,10,12,\n",
        "trial,old,new\n1,10,11\n2,10,12\n,,\n,,\n",
        "sep=;\r\ntrial;old;new\r\n1;10;11\r\n2;10;12\r\n",
        b"\xef\xbb\xbfTrial;old;new\r\n1;10;11\r\n2;1.0E+01;12\r\n",
    ],
)
def test_what_a_spreadsheet_writes(text: str | bytes, tmp_path: Path) -> None:
    _, (table,) = imported(tmp_path, text)
    assert table.values == {"old": [10.0, 10.0], "new": [11.0, 12.0]}


def test_a_column_without_a_name_is_not_lost(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 3: a column without a name has a value"):
        imported(tmp_path, "trial,old,new,\n1,10,11,\n2,10,12,5\n")


@pytest.mark.parametrize("word", ["NA", "NaN", "n/a"])
def test_a_cell_that_says_that_it_has_no_value_is_missing_and_told(word: str, tmp_path: Path) -> None:
    record, (table,) = imported(tmp_path, f"trial,old,new\n1,10,{word}\n2,10,12\n")
    assert table.values["new"] == [None, 12.0]
    assert any("1 cell" in reason for reason in record.skipped)


def test_the_heading_of_kduels_own_table_in_other_letters(tmp_path: Path) -> None:
    _, (table,) = imported(
        tmp_path, "Contender,Trial,Benchmark,Metric,Unit,Better,Value\nold,1,b,m,s,lower,1\nnew,1,b,m,s,lower,2\n"
    )
    assert table.key == "b/m" and table.values == {"old": [1.0], "new": [2.0]}


def test_text_in_a_column_of_names_has_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the column 'scheduler' is 'EEVDF', not a number") as caught:
        imported(tmp_path, "trial,scheduler,6.1,6.12\n1,EEVDF,60,61\n1,BORE,61,62\n")
    assert "'contender'" in caught.value.remedy


def test_a_line_of_a_shell_is_no_heading(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="in no format that KDuel knows"):
        imported(tmp_path, "[root@host ~]# cat results, all\nfoo, bar\n")


def test_a_contender_without_a_first_value_stays_the_baseline(tmp_path: Path) -> None:
    _, (table,) = imported(tmp_path, "trial,old,new\n1,,11\n2,10,12\n")
    assert table.contenders == ["old", "new"] and table.values == {"old": [None, 10.0], "new": [11.0, 12.0]}


@pytest.mark.parametrize(
    ("heading", "first"), [("timestamp", "1700000000"), ("Date", "2026-01-01"), ("epoch_s", "1.7e9")]
)
def test_a_date_beside_numbered_trials_is_no_metric(heading: str, first: str, tmp_path: Path) -> None:
    rows = f"old,1,{first},10\nnew,1,{first},11\n"
    record, found = imported(tmp_path, f"contender,trial,{heading},latency [ms: lower]\n{rows}")
    assert [table.key for table in found] == ["table/latency"]
    assert any(f"the column {heading!r}" in reason for reason in record.skipped)


def test_a_duration_beside_numbered_trials_is_a_metric(tmp_path: Path) -> None:
    _, found = imported(tmp_path, "contender,trial,time,elapsed\nold,1,3,4\nnew,1,3,5\n")
    assert [table.key for table in found] == ["table/time", "table/elapsed"]


def test_a_kept_import_keeps_its_baseline_and_is_asked_for_no_clearer_table(tmp_path: Path) -> None:
    """As earlier versions brought them in: without a column of trials, and in the order of the values that came first."""
    record, _ = imported(tmp_path, "trial,old,new\n1,10,12\n2,10,12\n3,,13\n")
    run = tmp_path / "run"
    record.contenders = ["new", "old"]
    (file,) = (run / one.stored for one in record.files)
    file.write_text("old,new\n10,12\n,13\n")
    record.files[0].sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    (run / "import.json").write_bytes(document_bytes(record))
    (table,) = read(run)
    assert table.contenders == ["new", "old"] and table.values["new"][0] == 12


def test_a_parameter_that_differs_between_contenders_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'threads' has a second value for 'new': '8'"):
        imported(tmp_path, "contender,trial,threads,latency [ms: lower]\nold,1,4,10\nnew,1,8,12\n")


def test_numbers_below_the_heading_of_a_kernel_are_no_contenders(tmp_path: Path) -> None:
    """Release and Debug are how both were built."""
    with pytest.raises(InputError, match="the column of kernels has another value in each trial"):
        imported(tmp_path, "trial,Release,Debug\n1,10.1,11.2\n2,10.2,11.3\n")
    _, (table,) = imported(tmp_path / "again", "trial,release,latency\n1,6.1,10\n1,6.12,11\n2,6.1,10\n2,6.12,12\n")
    assert table.contenders == ["6.1", "6.12"]


def test_a_table_with_power_is_no_log_of_turbostat(tmp_path: Path) -> None:
    text = "contender\ttrial\tPkgWatt\tRAMWatt\nold\t1\t10\t1\nold\t2\t11\t1\nnew\t1\t12\t1\nnew\t2\t12\t1\n"
    _, found = imported(tmp_path, text)
    assert found[0].values == {"old": [10.0, 11.0], "new": [12.0, 12.0]}


def test_one_table_twice_for_a_contender_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("latency [ms: lower]\n10\n11\n")
    (tmp_path / "b.csv").write_text("latency [ms: lower]\n12\n13\n")
    with pytest.raises(InputError, match="has the same bytes as"):
        bring_in([Source(file, "old"), Source(file, "old"), Source(tmp_path / "b.csv", "new")], tmp_path / "run")


@pytest.mark.parametrize(
    ("line", "bare"),
    [
        ("\x1b[1m\x1b[Kold,1\x1b[m\x1b[K\r\n", "old,1\r\n"),
        ("o\x1b[31mld,1\x1b[0m", "o\x1b[31mld,1"),
        ("\x1b[0m\n", "\n"),
        ("x" + "\x1b[m" * 3 + "x\n", "x" + "\x1b[m" * 3 + "x\n"),
        ("\x1b[m\x1b[m", ""),
    ],
)
def test_colours_around_a_line_are_left_out_and_those_in_names_kept(line: str, bare: str) -> None:
    assert without_frame(line) == bare
