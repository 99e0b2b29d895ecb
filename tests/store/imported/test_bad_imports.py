"""Bad input: every kind ends in one clear paragraph that names file, place and remedy, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from kduel.cli import kduel
from kduel.core.errors import InputError
from kduel.core.samples import within_reason
from kduel.judge.imported import results
from kduel.store.imported import Source, bring_in, read
from kduel.store.rundir import check_free

HEADER = "contender,trial,benchmark,metric,unit,better,value"
FIXTURES = Path(__file__).parent / "fixtures"
GOOD = ["old,1,b,m,s,lower,1.5", "old,2,b,m,s,lower,1.6", "new,1,b,m,s,lower,1.4", "new,2,b,m,s,lower,1.3"]


def refused(tmp_path: Path, data: bytes | str, name: str = "values.csv", **how: object) -> InputError:
    """The error of importing a file with these bytes; nothing may be left of the attempt."""
    path = tmp_path / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    with pytest.raises(InputError) as caught:
        bring_in([Source(path)], tmp_path / "run", **how)  # type: ignore[arg-type]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [name]
    assert caught.value.remedy, "an error says what to do"
    assert caught.value.exit_status == 2
    return caught.value


@pytest.mark.parametrize("place", ["values.csv/run", "values.csv/deep/run"])
def test_a_run_cannot_be_below_a_file(tmp_path: Path, place: str) -> None:
    """It was called a full disk, with another status and other words than `kduel run` has."""
    path = tmp_path / "values.csv"
    path.write_text("\n".join([HEADER, *GOOD]) + "\n")
    with pytest.raises(InputError) as imported:
        bring_in([Source(path)], tmp_path / place)
    with pytest.raises(InputError) as checked:
        check_free(tmp_path / place)
    assert str(imported.value) == str(checked.value)
    assert str(tmp_path / place) in imported.value.message and "Not a directory" in imported.value.message


def with_line(line: str, *, header: str = HEADER) -> str:
    return "\n".join([header, *GOOD, line]) + "\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("new,3,b,m,ms,lower,1400", "the unit 'ms', but 's'"),
        ("new,3,b,m,s,higher,1.4", "the better 'higher', but 'lower'"),
        ("new,3,b,m,s,lower,nan", "'nan', not a number"),
        ("new,3,b,m,s,lower,inf", "'inf', not a number"),
        ("new,3,b,m,s,lower,-inf", "not a number"),
        ("new,3,b,m,s,lower,1e999", "too large"),
        ("new,3,b,m,s,lower,1e200", "the value is 1e+200"),
        ("new,3,b,m,s,lower,1e151", "from 1e-150 to 1e+150"),
        ("new,3,b,m,s,lower,1e-200", "the value is 1e-200"),
        ("new,3,b,m,s,lower,fast", "'fast', not a number"),
        ("new,3,b,m,s,lower,1_000", "not a number"),
        ("new,3,b,m,s,lower,0x10", "not a number"),
        ("new,3,b,m,s,lower,", "'', not a number"),
        ("new,3,b,m,s,lower,1.4 s", "not a number"),
        ("new,2,b,m,s,lower,1.4", "a second value of b/m for 'new', trial 2"),
        ("new,two,b,m,s,lower,1.4", "the trial is 'two'"),
        ("new,-1,b,m,s,lower,1.4", "the trial is '-1'"),
        ("new,1.5,b,m,s,lower,1.4", "the trial is '1.5'"),
        ("new,²,b,m,s,lower,1.4", "the trial is '²'"),
        ("new,3,b,m,s,smaller,1.4", "better is 'smaller'"),
        (",3,b,m,s,lower,1.4", "the contender is empty"),
        ("new,3,,m,s,lower,1.4", "the benchmark is empty"),
        ("new,3,b,,s,lower,1.4", "the metric is empty"),
        ("new,3,b,m,s,lower", "has 6 fields, not 7"),
        ("new,3,b,m,s,lower,1.4,5", "has 8 fields, not 7"),
        ("new,3,b,m,s,lower,1,400", "has 8 fields, not 7"),
        ('new,3,b,"m,s,lower,1.4', "unexpected end of data"),
        ("new,3,b,m\x1b[31m,s,lower,1.4", "control characters"),
        ("new,3,b," + "m" * 400 + ",s,lower,1.4", "too long"),
        ("new,3,b,m\x00,s,lower,1.4", "NUL"),
        ("new,3,b," + "m" * 20000 + ",s,lower,1.4", "longer than"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    error = refused(tmp_path, with_line(line))
    assert said in error.message
    assert "values.csv, line 6" in error.message


def test_a_line_after_a_byte_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    filler = "".join(f"old,{n},b,m,s,lower,1.5\n" for n in range(10, 3000)).encode()
    data = (HEADER + "\n").encode() + filler + b"n\xe9w,1,b,m,s,lower,1.4\n"
    error = refused(tmp_path, data)
    assert "line 2992" in error.message and "UTF-8" in error.message


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_utf16_is_read_by_its_mark(tmp_path: Path, encoding: str, end: str) -> None:
    """As spreadsheets and PowerShell write text; a number without its line end may be cut there, too."""
    path, plain = tmp_path / "values.csv", tmp_path / "plain.csv"
    text = "\n".join([HEADER, *GOOD]) + "\n"
    plain.write_text(text)
    path.write_bytes(
        "\N{BYTE ORDER MARK}".encode(encoding)
        + text.replace("\n", end or "\n").removesuffix("" if end else "\n").encode(encoding)
    )
    for number, file in enumerate((plain, path)):
        bring_in([Source(file)], tmp_path / str(number))
    assert read(tmp_path / "0") == read(tmp_path / "1")


@pytest.mark.parametrize(
    "text", ["\n".join([HEADER, *GOOD]) + "\n", '{"results": [{"command": "x", "times": [1,\n2]}]}']
)
def test_utf16_that_was_cut_is_refused(text: str, tmp_path: Path) -> None:
    assert "UTF-16" in refused(tmp_path, text.encode("utf-16")[:-1]).message


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "values.csv"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([HEADER, *GOOD, "", ""]).encode())
    bring_in([Source(path)], tmp_path / "run")
    assert read(tmp_path / "run")[0].values == {"old": [1.5, 1.6], "new": [1.4, 1.3]}


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("contender,trial,benchmark,metric,unit,better", "lacks 'value'"),
        (HEADER + ",note", "has besides 'note'"),
        (HEADER.replace("unit", "units"), "lacks 'unit'; has besides 'units'"),
        (HEADER + ",value", "has twice 'value'"),
        (HEADER.replace(",value", "").replace(",", ";"), "lacks 'value'"),
        (HEADER.replace(",value", "").replace(",", "\t"), "lacks 'value'"),
        (HEADER + ",kind,kind", "has twice 'kind'"),
        ("1,2,3", "in no format that KDuel knows"),
    ],
)
def test_a_bad_header_is_named(tmp_path: Path, header: str, said: str) -> None:
    assert said in refused(tmp_path, "\n".join([header, *GOOD])).message


def test_columns_may_stand_in_another_order(tmp_path: Path) -> None:
    path = tmp_path / "values.csv"
    path.write_text("value,contender,trial,benchmark,metric,unit,better\n1,a,1,b,m,s,lower\n2,c,1,b,m,s,lower\n")
    bring_in([Source(path)], tmp_path / "run")
    assert read(tmp_path / "run")[0].values == {"a": [1.0], "c": [2.0]}


@pytest.mark.parametrize("data", ["", "\n\n", " "])
def test_an_empty_file_is_named(tmp_path: Path, data: str) -> None:
    assert "values.csv is empty" in refused(tmp_path, data).message


def test_a_header_alone_holds_no_values(tmp_path: Path) -> None:
    assert "holds no values" in refused(tmp_path, HEADER + "\n").message


def test_one_contender_is_not_enough(tmp_path: Path) -> None:
    assert "only one contender, 'old'" in refused(tmp_path, "\n".join([HEADER, *GOOD[:2]])).message


def test_a_metric_of_one_arm_that_is_to_be_primary_is_named_with_what_is_missing(tmp_path: Path) -> None:
    error = refused(tmp_path, with_line("old,1,b,other,s,lower,2"), primary=["other"])
    assert "b/other has values of 'old' only" in error.message and "'new' is missing" in error.message


def test_an_arm_missing_among_several_is_stated(tmp_path: Path) -> None:
    path = tmp_path / "values.csv"
    path.write_text(
        "\n".join([HEADER, *GOOD, "third,1,b,m,s,lower,1", "third,1,b,n,s,lower,1", "old,1,b,n,s,lower,1"])
    )
    bring_in([Source(path)], tmp_path / "run")
    found = {(m.metric, m.contender): m for m in results(tmp_path / "run").metrics}
    absent = found["n", "new"]
    assert (absent.verdict, absent.n, absent.effect_pct) == ("undecided", 0, None)
    assert "Cannot decide: new has no value" in absent.told


def test_one_trial_only_cannot_decide(tmp_path: Path) -> None:
    path = tmp_path / "values.csv"
    path.write_text("\n".join([HEADER, GOOD[0], GOOD[2]]))
    bring_in([Source(path)], tmp_path / "run")
    (found,) = results(tmp_path / "run").metrics
    assert (found.verdict, found.ci_low_pct, found.ci_high_pct) == ("undecided", None, None)
    assert "Cannot decide" in found.told


def test_a_missing_file_a_directory_and_a_pipe_are_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    for name in ("absent", "directory", "pipe"):
        with pytest.raises(InputError, match=r"there is no|is not a file"):
            bring_in([Source(tmp_path / name)], tmp_path / "run")


def test_an_unknown_format_lists_what_there_is(tmp_path: Path) -> None:
    error = refused(tmp_path, "\n".join([HEADER, *GOOD]), format_name="excel")
    assert "'excel'" in error.message and "hyperfine" in error.remedy
    (tmp_path / "values.csv").unlink()
    assert "no format that KDuel knows" in refused(tmp_path, b"\x1f\x8b\x08\x00compressed", "x.json.gz").message


def test_a_csv_cannot_be_named(tmp_path: Path) -> None:
    path = tmp_path / "values.csv"
    path.write_text("\n".join([HEADER, *GOOD]))
    with pytest.raises(InputError, match="names its contenders itself"):
        bring_in([Source(path, "old")], tmp_path / "run")


def test_contradictions_between_files_are_named(tmp_path: Path) -> None:
    for name, line in (("a.csv", GOOD[0]), ("b.csv", "new,1,b,m,ms,lower,1400")):
        (tmp_path / name).write_text(f"{HEADER}\n{line}\n")
    with pytest.raises(InputError, match=r"b\.csv, line 2.*at a\.csv, line 2"):
        bring_in([Source(tmp_path / "a.csv"), Source(tmp_path / "b.csv")], tmp_path / "run")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"command": "sleep 0.02"', '"command": 5', "results[0].command"),
        ("0.023810644000000002", '"0.02"', "results[0].times[1]"),
        ("0.023810644000000002", "NaN", "line 14"),
        ("0.023810644000000002", "1e999", "times[1]"),
        ('"times": [', '"times": [[', "times[0]"),
        ('"results"', '"result"', "no format"),
    ],
)
def test_garbled_hyperfine_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = (FIXTURES / "hyperfine-1.15.0-two.json").read_text()
    assert old in text
    error = refused(tmp_path, text.replace(old, new, 1), "h.json")
    assert said in error.message and "h.json" in error.message


def test_failed_hyperfine_runs_are_no_measurement(tmp_path: Path) -> None:
    error = refused(tmp_path, (FIXTURES / "hyperfine-1.15.0-failing.json").read_bytes(), "h.json")
    assert "command 'false': run 1 ended with status 1" in error.message


@pytest.mark.parametrize(
    "document",
    [
        '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><PhoronixTestSuite>&b;</PhoronixTestSuite>',
        '<!DOCTYPE x SYSTEM "file:///etc/passwd"><PhoronixTestSuite/>',
        '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><PhoronixTestSuite>&e;</PhoronixTestSuite>',
    ],
)
def test_a_document_type_is_refused(tmp_path: Path, document: str) -> None:
    text = f'<?xml version="1.0"?>\n{document}'
    assert "c.xml, line 2 declares a document type" in refused(tmp_path, text, "c.xml").message
    for encoding in ("utf-16", "utf-8-sig"):
        data = text.replace("?>", f' encoding="{encoding.removesuffix("-sig")}"?>', 1).encode(encoding)
        error = refused(tmp_path, data, "c.xml", format_name="phoronix")
        assert "document type" in error.message


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("<PhoronixTestSuite><Result>", "no element found"),
        ("<PhoronixTestSuite/>", "holds no values"),
        ("<Other><PhoronixTestSuite/></Other>", "is a Other document"),
        ("<PhoronixTestSuite>&unknown;</PhoronixTestSuite>", "undefined entity"),
        ("<PhoronixTestSuite>" + "<a>" * 100 + "</a>" * 100 + "</PhoronixTestSuite>", "nests too deep"),
    ],
)
def test_garbled_phoronix_is_named(tmp_path: Path, document: str, said: str) -> None:
    assert said in refused(tmp_path, document, "c.xml").message


def test_google_benchmark_text_where_a_number_belongs_is_named(tmp_path: Path) -> None:
    text = (FIXTURES / "google-benchmark-1.7.1-a.json").read_text()
    error = refused(tmp_path, text.replace('"real_time": 1.0209655263724802e+01', '"real_time": "slow"', 1), "g.json")
    assert "real_time is 'slow'" in error.message
    assert "has no real_time" in refused(tmp_path, text.replace('"time_unit"', '"time"', 1), "g.json").message


@pytest.mark.slow
@pytest.mark.parametrize("name", ["huge.csv", "huge.json", "huge.xml", "line.csv"])
def test_huge_files_are_refused_in_little_memory(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    start = {"huge.csv": HEADER + "\n", "line.csv": HEADER + "\n", "huge.json": '{"results": [{"command": "',
             "huge.xml": "<PhoronixTestSuite>"}[name]  # fmt: skip
    with path.open("wb") as stream:
        stream.write(start.encode())
        # Zeros that take no room on the disk.
        stream.truncate((30 << 20) if name == "line.csv" else (5 << 30))
    code = (
        "import sys; from pathlib import Path; from kduel.store.imported import Source, bring_in\n"
        "from kduel.core.errors import InputError\n"
        "try: bring_in([Source(Path(sys.argv[1]))], Path(sys.argv[2]))\n"
        "except InputError as error: print(error.message)"
    )
    done = subprocess.run(
        ["prlimit", f"--as={1 << 30}", sys.executable, "-c", code, str(path), str(tmp_path / "run")],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "larger than" in done.stdout or "longer than" in done.stdout or "NUL" in done.stdout


@pytest.mark.slow
def test_trial_numbers_that_would_fill_memory_are_refused(tmp_path: Path) -> None:
    rows = [f"{name},{1000 * metric + n},b,m{metric},s,lower,1" for metric in range(300) for n in range(60)
            for name in ("old", "new")]  # fmt: skip
    assert "are too many" in refused(tmp_path, "\n".join([HEADER, *rows])).message


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    data=st.one_of(st.binary(max_size=400), st.text(max_size=200).map(str.encode)),
    start=st.sampled_from(
        [
            b"",
            (HEADER + "\n").encode(),
            b'{"results": [{"command": ',
            b'{"benchmarks": [',
            b'{"context": {',
            b"<PhoronixTestSuite>",
        ]
    ),
)
def test_no_bytes_whatever_raise_anything_but_an_input_error(
    data: bytes, start: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    where = tmp_path_factory.mktemp("fuzz")
    (where / "file").write_bytes(start + data)
    try:
        bring_in([Source(where / "file")], where / "run")
    except InputError:
        assert not (where / "run").exists()


WORDS = st.text("ab,\"\n' ;é漢", min_size=1, max_size=6).filter(
    lambda word: word.strip() == word and word.isprintable()
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    rows=st.dictionaries(
        st.tuples(WORDS, st.integers(0, 20), WORDS),
        st.floats(-1e150, 1e150, allow_nan=False).filter(within_reason),
        min_size=2,
        max_size=25,
    )
)
def test_whatever_is_written_as_csv_is_read_back(
    rows: dict[tuple[str, int, str], float], tmp_path_factory: pytest.TempPathFactory
) -> None:
    import csv

    where = tmp_path_factory.mktemp("round")
    with (where / "values.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(HEADER.split(","))
        for (contender, trial, metric), value in rows.items():
            writer.writerow([contender, trial, "b", metric, "s", "lower", repr(value)])
    try:
        record = bring_in([Source(where / "values.csv")], where / "run")
    except InputError as error:
        assert "only one contender" in error.message or " only (first" in error.message
        return
    with_metric = {metric: {name for name, _, other in rows if other == metric} for _, _, metric in rows}
    alone = {metric for metric, names in with_metric.items() if len(names) == 1}
    assert len([reason for reason in record.skipped if " only (first" in reason]) == len(alone)
    found = {
        (name, block, table.metric.name): value
        for table in read(where / "run")
        for name, values in table.values.items()
        for block, value in zip(table.blocks, values, strict=True)
        if value is not None
    }
    assert found == {key: value for key, value in rows.items() if key[2] not in alone}


@pytest.mark.parametrize("blank", ["\n", "\r\n\r\n", "  \n\t\n", "\ufeff\n"])
def test_blank_lines_before_the_header_do_no_harm(tmp_path: Path, blank: str) -> None:
    path = tmp_path / "values.csv"
    path.write_text(blank + "\n".join([HEADER, *GOOD]) + "\n", newline="")
    bring_in([Source(path)], tmp_path / "run")
    assert sum(len(values) for samples in read(tmp_path / "run") for values in samples.values.values()) == 4
    (tmp_path / "bad").mkdir()
    line = blank.count("\n") + 6
    assert f"line {line}" in str(refused(tmp_path / "bad", blank + "\n".join([HEADER, *GOOD, "x"]) + "\n"))


def test_a_contender_that_no_file_has_is_an_error_in_every_command(tmp_path: Path) -> None:
    (tmp_path / "values.csv").write_text("\n".join([HEADER, *GOOD]) + "\n")
    bring_in([Source(tmp_path / "values.csv")], tmp_path / "run")
    path = tmp_path / "run/import.json"
    path.write_text(path.read_text().replace('"new"', '"newer"'))
    for words in (["diff", str(path.parent)], ["report", str(path.parent)], ["plan", str(path.parent)]):
        assert isinstance(CliRunner().invoke(kduel, words).exception, InputError), words
