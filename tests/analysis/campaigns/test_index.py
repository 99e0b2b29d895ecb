"""The index of many runs: it says what the runs say, follows their changes, and can only be read by queries."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import shutil
import signal
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from made_runs import make_run
from terminal import watch

from kduel.analysis.campaigns.history import history
from kduel.analysis.index import run_query, stamp_of, update
from kduel.analysis.indexed import indexed_history
from kduel.cli.query import as_csv
from kduel.cli.query import command as query_command
from kduel.cli.query import history as history_command
from kduel.cli.query import index as index_command
from kduel.core.errors import HostError, InputError, KduelError
from kduel.core.progress import Progress
from kduel.judge.evaluate import judge_run
from kduel.report.site.content import matrix, pages
from kduel.store.imported import Source, bring_in
from kduel.store.rundir import INDEX

HEADER = "contender,trial,benchmark,metric,unit,better,value\n"


def run_of(folder: Path, name: str, shift: float, missing: int | None = None, date: str = "", new: str = "") -> Path:
    """An imported run: `new` is `shift` per cent slower than `old`; measured on `date`, if that is known, `new` on another."""
    lines = [
        f"{contender},{trial},b,time,s,lower,{100 * factor + trial * 0.01}"
        for contender, factor in (("old", 1.0), ("new", 1 + shift / 100))
        for trial in range(1, 13)
        if (contender, trial) != ("new", missing)
    ]
    source = folder / f"{name}.csv"
    source.write_text(HEADER + "\n".join(lines) + "\n")
    known = folder / f"{name}.toml"
    # A date that has blanks is TOML's own.
    dates = {
        who: when if " " in when or not when else f'"{when}"' for who, when in (("old", date), ("new", new or date))
    }
    known.write_text(
        "".join(f"[contenders.{who}]\nconditions.date = {when}\n" for who, when in dates.items() if when)
    )
    bring_in([Source(source)], folder / name, conditions=known if date or new else None)
    source.unlink()
    known.unlink()
    return folder / name


def indexed(folder: Path) -> Path:
    """The index of all runs in a folder."""
    runs = sorted(path for path in folder.iterdir() if path.is_dir())
    return update(folder, runs, folder / INDEX, Progress()).path


def test_the_index_says_what_the_runs_say(tmp_path: Path) -> None:
    run = run_of(tmp_path, "first", 10, missing=3)
    answer = run_query(indexed(tmp_path), "SELECT effect_pct, ci_low_pct, verdict, n, wording FROM verdict")
    (metric,) = judge_run(run).metrics
    assert answer.rows == [[metric.effect_pct, metric.ci_low_pct, metric.verdict, metric.n, metric.told]]
    assert metric.verdict == "slower"
    values = run_query(tmp_path / INDEX, "SELECT block, value FROM value WHERE contender = 'new' ORDER BY block").rows
    assert values[2] == [3, None] and len(values) == 12


def test_a_kernels_runs_are_counted_not_its_contenders(tmp_path: Path) -> None:
    for name in ("first", "second"):
        run_of(tmp_path, name, 10)
    (row,) = run_query(indexed(tmp_path), "kernels").rows
    assert row[2] == 2


def test_only_changed_runs_are_judged_again(tmp_path: Path) -> None:
    first, second = run_of(tmp_path, "first", 10), run_of(tmp_path, "second", 0)
    assert update(tmp_path, [first, second], tmp_path / INDEX, Progress()).added == 2
    assert update(tmp_path, [first, second], tmp_path / INDEX, Progress()).added == 0
    shutil.rmtree(second)
    third = run_of(tmp_path, "second", 10)
    assert update(tmp_path, [first, third], tmp_path / INDEX, Progress()).added == 1
    assert [row[7] for row in run_query(tmp_path / INDEX, "verdicts").rows] == ["slower", "slower"]
    found = update(tmp_path, [first], tmp_path / INDEX, Progress())
    assert (found.removed, found.runs) == (1, 1)
    assert (
        run_query(tmp_path / INDEX, "SELECT DISTINCT run FROM value").rows
        == run_query(tmp_path / INDEX, "SELECT id FROM run").rows
    )


@pytest.mark.parametrize("place", ["trials/0001/raw/b/stdout", "imported/01/values.csv", "runs/0001/trials/0001/x"])
def test_a_raw_file_that_was_rewritten_in_place_changes_the_stamp(tmp_path: Path, place: str) -> None:
    raw = tmp_path / place
    raw.parent.mkdir(parents=True)
    raw.write_text("1\n")
    before, folder = stamp_of(tmp_path), raw.parent.stat().st_mtime_ns
    raw.write_text("1\n2\n")
    assert raw.parent.stat().st_mtime_ns == folder
    assert stamp_of(tmp_path) != before
    assert stamp_of(tmp_path) == stamp_of(tmp_path)


def test_a_run_whose_raw_file_was_changed_is_not_served_from_the_index(tmp_path: Path) -> None:
    run = run_of(tmp_path, "first", 10)
    assert update(tmp_path, [run], tmp_path / INDEX, Progress()).runs == 1
    (raw,) = (path for path in (run / "imported").rglob("*") if path.is_file())
    raw.write_bytes(raw.read_bytes() + b"\n")
    found = update(tmp_path, [run], tmp_path / INDEX, Progress())
    assert (found.runs, list(found.skipped)) == (0, ["first"])


def test_a_damaged_run_is_named_and_the_others_are_there(tmp_path: Path) -> None:
    run_of(tmp_path, "first", 10)
    damaged = run_of(tmp_path, "second", 10)
    (damaged / "import.json").write_text("{")
    done = CliRunner().invoke(index_command, [str(tmp_path), "--format", "json", "--quiet"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["runs"] == 1 and list(document["skipped"]) == ["second"]
    assert run_query(tmp_path / INDEX, "skipped").rows[0][0] == "second"


def test_names_that_are_not_utf8_are_shown_and_stop_nothing(tmp_path: Path) -> None:
    run_of(tmp_path, "first", 10).rename(os.fsdecode(bytes(tmp_path) + b"/\xff"))
    damaged = run_of(tmp_path, "second", 10)
    (damaged / "import.json").unlink()
    (damaged / "lock.json").write_text("{}")
    Path(os.fsdecode(bytes(damaged) + b"/trials/\xfe")).mkdir(parents=True)
    assert run_query(indexed(tmp_path), "SELECT path FROM run").rows == [["\\xff"]]
    assert [row[0] for row in run_query(tmp_path / INDEX, "skipped").rows] == ["second"]


def test_queries_cannot_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_of(tmp_path, "first", 10)
    path = indexed(tmp_path)
    for statement in ("DELETE FROM run", "DROP TABLE run", "PRAGMA user_version = 7", "ATTACH 'x' AS y", "garbage"):
        with pytest.raises(InputError):
            run_query(path, statement)
    assert len(run_query(path, "runs").rows) == 1 and not Path("x").exists()


def test_a_question_may_hold_any_text_and_nothing_else(tmp_path: Path) -> None:
    run_of(tmp_path, "first", 10)
    path = indexed(tmp_path)
    assert run_query(path, "SELECT\r\n'a\u00a0b'").rows == [["a\u00a0b"]]
    with pytest.raises(InputError, match="not UTF-8"):
        run_query(path, "SELECT '\udcff'")


def test_an_index_of_a_later_version_is_refused(tmp_path: Path) -> None:
    run_of(tmp_path, "first", 10)
    with sqlite3.connect(indexed(tmp_path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(InputError, match="version 99"):
        run_query(tmp_path / INDEX, "runs")


def test_the_command_line(tmp_path: Path) -> None:
    run_of(tmp_path, "first", 10)
    run_of(tmp_path, "=cmd", 0)
    missing = CliRunner().invoke(query_command, [str(tmp_path)])
    assert missing.exit_code != 0 and isinstance(missing.exception, InputError)
    assert CliRunner().invoke(index_command, [str(tmp_path)]).exit_code == 0
    text = CliRunner().invoke(query_command, [str(tmp_path), "slower"]).stdout
    assert text.splitlines()[0].split()[:2] == ["started", "path"] and len(text.splitlines()) == 2
    rows = json.loads(CliRunner().invoke(query_command, [str(tmp_path), "runs", "--format", "json"]).stdout)["rows"]
    assert {row["path"] for row in rows} == {"first", "=cmd"}
    table = CliRunner().invoke(query_command, [str(tmp_path), "runs", "--format", "csv"]).stdout
    assert "'=cmd" in table


def asked(*words: str) -> Result:
    """What `kduel query` says."""
    return CliRunner().invoke(query_command, list(words))


def test_what_is_too_small_to_matter_is_no_regression(tmp_path: Path) -> None:
    def asked(question: str) -> list[dict[str, object]]:
        said = CliRunner().invoke(query_command, [str(tmp_path), question, "--format", "json"]).output
        return json.loads(said)["rows"]

    run_of(tmp_path, "slow", 5)
    CliRunner().invoke(index_command, [str(tmp_path)])
    assert [one["verdict"] for one in asked("worse")] == ["slower"] and asked("pairs")[0]["small"] == 0
    with contextlib.closing(sqlite3.connect(tmp_path / INDEX)) as connection:
        connection.execute("UPDATE verdict SET small = 1")
        connection.commit()
    assert asked("worse") == asked("slower") == [], "the report says that nothing that matters got slower"
    assert asked("verdicts")[0]["verdict"] == "too small to matter"
    assert (asked("pairs")[0]["slower"], asked("pairs")[0]["small"]) == (0, 1)


def test_an_index_that_is_older_than_the_runs_says_so(tmp_path: Path) -> None:
    def asked() -> str:
        return CliRunner().invoke(query_command, [str(tmp_path), "worse"]).output

    made = run_of(tmp_path, "same", 0)
    told = CliRunner().invoke(index_command, [str(tmp_path)]).output
    assert "sqlite: 1 run; 1 judged" in told
    assert asked() == "No rows.\n"
    run_of(tmp_path, "slow", 5)
    assert f"lacks 1 run; `kduel query --update {tmp_path}` brings it" in " ".join(asked().split())
    shutil.rmtree(made)
    assert "lacks 1 run and still has 1 run that is gone;" in " ".join(asked().split())
    CliRunner().invoke(index_command, [str(tmp_path)])
    assert "index" not in asked()
    timed = make_run(tmp_path / "timed", blocks=2)
    CliRunner().invoke(index_command, [str(tmp_path)])
    assert "index" not in asked()
    later = (tmp_path / INDEX).stat().st_mtime + 1
    os.utime(timed / "trials", (later, later))
    assert "is older than 1 run;" in " ".join(asked().split())


def test_a_series_has_no_date_but_that_of_the_measurement(tmp_path: Path) -> None:
    run_of(tmp_path, "undated", 0)
    place = str(indexed(tmp_path).parent)
    none = asked(place, "--series", "b/time").exception
    assert isinstance(none, InputError) and "says when it was measured" in none.message
    run_of(tmp_path, "dated", 10, date="2024-05-06")
    indexed(tmp_path)
    done = asked(place, "--series", "b/time")
    rows = list(csv.reader(io.StringIO(done.stdout)))
    assert rows[0] == ["time", "run", "new", "old"] and [row[:2] for row in rows[1:]] == [["2024-05-06", "dated"]]
    assert "undated" in done.stderr
    assert run_query(tmp_path / INDEX, "SELECT DISTINCT time FROM series ORDER BY time").rows == [
        [None],
        ["2024-05-06"],
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message", "remedy"),
    [
        (["slowest"], "'slowest'", "one of: runs, verdicts"),
        (["SELECT nope FROM run"], "no such column: nope", "docs/many-runs.md"),
        (["DROP TABLE run"], "not authorized", "Only a SELECT"),
        (["SELECT 1; SELECT 2"], "one statement", "Give one SELECT"),
        ([" "], "asks nothing", "one of: runs"),
        (["SELECT path AS a, name AS a FROM run"], "two columns a", "AS"),
        (["--series", "time"], "--series time names no metric", "BENCHMARK/METRIC"),
        (["slower", "--series", "b/time"], "a question of its own", "Leave out"),
        (["--series", "b/time", "--format", "json"], "a question of its own", "Leave out"),
    ],
)
def test_a_question_that_cannot_be_answered_is_told_so(
    tmp_path: Path, words: list[str], message: str, remedy: str
) -> None:
    run_of(tmp_path, "first", 10, date="2024-05-06")
    error = asked(str(indexed(tmp_path).parent), *words).exception
    assert isinstance(error, InputError) and message in error.message and remedy in error.remedy


def test_an_answer_is_never_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_of(tmp_path, "first", 10)
    path = indexed(tmp_path)
    monkeypatch.setattr("kduel.analysis.index.MOST_ROWS", 24)
    assert len(run_query(path, "SELECT * FROM value").rows) == 24
    with pytest.raises(InputError, match="more than 24 rows"):
        run_query(path, "SELECT * FROM value UNION ALL SELECT * FROM value LIMIT 25")


class Signalled:
    """Stands for READS: a signal arrives while SQLite asks what a question may do, where Python drops exceptions."""

    def __contains__(self, _action: int) -> bool:
        raise KeyboardInterrupt


def test_an_interrupted_question_is_not_called_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's callbacks turned the interruption into "interrupted" and "not authorized", with the status of wrong SQL."""
    run_of(tmp_path, "first", 10)
    path = indexed(tmp_path)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):  # The question has no end.
            run_query(path, "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    monkeypatch.setattr("kduel.analysis.index.READS", Signalled())
    with pytest.raises(KeyboardInterrupt):
        run_query(path, "runs")


@pytest.mark.slow
def test_an_index_that_is_in_use_is_not_called_full_or_damaged(tmp_path: Path) -> None:
    run_of(tmp_path, "first", 10)
    path = indexed(tmp_path)
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(HostError, match="in use by another process"):
            update(tmp_path, [], path, Progress())
        with pytest.raises(HostError, match="in use by another process"):
            run_query(path, "verdicts")


def test_the_latest_verdict_is_of_what_was_measured_last(tmp_path: Path) -> None:
    """The older measurement is imported last, and one of unknown age after it."""
    run_of(tmp_path, "measured-last", 10, date="2026-03-02")
    run_of(tmp_path, "imported-later", -10, date="2025-01-05")
    run_of(tmp_path, "undated", 0)
    for run, moment in (("measured-last", 1), ("imported-later", 2), ("undated", 3)):
        record = tmp_path / run / "import.json"
        text = re.sub(r'("imported": ?)"[^"]+"', rf'\1"2026-05-0{moment}T00:00:00+00:00"', record.read_text())
        assert f"2026-05-0{moment}" in text
        record.write_text(text)
    path = indexed(tmp_path)
    assert [(row[5], row[8]) for row in run_query(path, "latest").rows] == [("slower", "measured-last")]
    (row,) = matrix(path).sections[0].table.rows
    assert [cell.text.split()[0] for cell in row[2:]] == ["slower"]


@pytest.mark.parametrize(
    ("earlier", "later", "shown"),
    [
        ("2026-11-21T00:30:00+14:00", "2026-11-20T23:00:00Z", "2026-11-20T10:30:00+00:00"),
        ("2026-01-31 10:00:00", "2026-01-31T10:00:00.5", "2026-01-31T10:00:00+00:00"),
        ("2026-01-31", "2026-01-31T00:00:00", "2026-01-31"),
        ("2026-01-31T23:59:59", "2026-02-01", "2026-01-31T23:59:59+00:00"),
    ],
)
def test_dates_in_any_form_are_in_the_order_of_time(tmp_path: Path, earlier: str, later: str, shown: str) -> None:
    """They were compared as text: by the form, and by the local time."""
    run_of(tmp_path, "b-earlier", 10, date=earlier)
    run_of(tmp_path, "a-later", -10, date=later)
    path = indexed(tmp_path)
    assert [row[8] for row in run_query(path, "latest").rows] == ["a-later"]
    rows = list(csv.reader(io.StringIO(asked(str(tmp_path), "--series", "b/time").stdout)))[1:]
    assert [row[1] for row in rows] == ["b-earlier", "a-later"] and rows[0][0] == shown
    listed = {page.title: str(page.sections[-1]) for page in pages(path, {})}
    for title in ("2 runs", "new against old"):
        assert listed[title].index("a-later") < listed[title].index("b-earlier")
        assert f"'{shown[:16].replace('T', ' ')}'" in listed[title]
    assert "faster" in str(matrix(path).sections) and "slower" not in str(matrix(path).sections)
    for found in (history([tmp_path]), indexed_history(path)):
        assert [[Path(point.run).name for point in line.points] for line in found.lines] == [
            ["b-earlier", "a-later"]
        ] * 2
        assert {line.points[0].when for line in found.lines} == {shown}


def test_an_index_of_an_earlier_version_is_made_again_and_no_other_file_is(tmp_path: Path) -> None:
    run_of(tmp_path, "first", 10, date="2026-01-31")
    path = indexed(tmp_path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE run SET measured = '20260131'")
        connection.execute("PRAGMA user_version = 5")
        connection.commit()
    with pytest.raises(InputError, match="version 5") as refused:
        run_query(path, "latest")
    assert refused.value.remedy == "Make it again: `kduel query --update DIR`."
    assert run_query(indexed(tmp_path), "SELECT measured FROM run").rows == [["2026-01-31"]]
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE run (path TEXT, kept TEXT)")
        connection.execute("PRAGMA user_version = 5")
        connection.commit()
    kept = path.read_bytes()
    with pytest.raises(InputError, match="is no index of KDuel"):
        indexed(tmp_path)
    assert path.read_bytes() == kept


def test_each_contender_has_a_date_of_its_own(tmp_path: Path) -> None:
    """Where one alone had a date, `kduel query --history` called the run's unknown, and with --index it was that of both."""
    run_of(tmp_path, "first", 10, date="2026-01-31")
    run_of(tmp_path, "second", 10, date="2026-02-01", new="2026-02-03")
    run_of(tmp_path, "half", 10, date="", new="2026-03-01")
    run_of(tmp_path, "none", 10)
    path = indexed(tmp_path)
    for found in (history([tmp_path]), indexed_history(path)):
        assert {Path(run).name: why for run, why in found.skipped.items()} == {
            "half": "the date of old is unknown",
            "none": "its date is unknown",
        }
        points = {line.contender: [(Path(one.run).name, one.when[5:]) for one in line.points] for line in found.lines}
        assert points == {
            "old": [("first", "01-31"), ("second", "02-01")],
            "new": [("first", "01-31"), ("second", "02-03"), ("half", "03-01")],
        }
    assert {*history([tmp_path], contender="new").skipped} == {str(tmp_path / "none")}
    assert {*indexed_history(path, contender="new").skipped} == {"none"}
    told = asked(str(tmp_path), "--series", "b/time").stderr
    assert "left out: half (the date of old is unknown), none (its date is unknown)" in told
    assert run_query(path, "SELECT measured FROM run WHERE path = 'second'").rows == [["2026-02-03"]]


def test_long_texts_are_cut_on_a_terminal_only(tmp_path: Path, environment: dict[str, str]) -> None:
    run_of(tmp_path, "first", 5)
    indexed(tmp_path)
    words = [str(tmp_path), "SELECT replace(hex(zeroblob(50)), '0', 'x') AS text, name FROM run"]
    frames, _, _ = watch(["query", *words], environment, tmp_path, size=(120, 24))
    assert any("x" * 60 + "... (40 more characters)" in line for line in frames[-1])
    assert "x" * 100 + "  first" in CliRunner().invoke(query_command, words, catch_exceptions=False).output
    CliRunner().invoke(query_command, [*words, "-o", str(tmp_path / "answer")], catch_exceptions=False)
    assert "x" * 100 + "  first" in (tmp_path / "answer").read_text()


def test_a_number_that_json_has_not_is_refused(tmp_path: Path) -> None:
    run_of(tmp_path, "first", 5)
    indexed(tmp_path)
    words = [str(tmp_path), "SELECT 1.5 AS small, -1e999 AS large"]
    with pytest.raises(InputError, match="large is -inf, which JSON does not have"):
        CliRunner().invoke(query_command, [*words, "-f", "json"], catch_exceptions=False)
    assert (
        CliRunner().invoke(query_command, [*words, "-f", "csv"], catch_exceptions=False).output
        == "small,large\n1.5,-inf\n"
    )


def test_an_empty_series_is_an_empty_word(tmp_path: Path) -> None:
    assert (
        "It is empty, as an unset variable is."
        in CliRunner().invoke(query_command, [str(tmp_path), "--series", ""]).output
    )


OTHER_DATABASE = "CREATE TABLE run (path TEXT); CREATE TABLE verdict (mine TEXT); PRAGMA user_version = {version}"


@pytest.mark.parametrize("content", ["a,b\n1,2\n" * 40, "x", 0, 4, 5], ids=["table", "letter", "0", "4", "5"])
@pytest.mark.parametrize("rebuild", [[], ["--rebuild"]], ids=["update", "rebuild"])
def test_a_file_of_another_program_is_neither_replaced_nor_called_an_index(
    tmp_path: Path, content: str | int, rebuild: list[str]
) -> None:
    run_of(tmp_path, "first", 10)
    mine = tmp_path / "mine.db"
    if isinstance(content, str):
        mine.write_text(content)
    else:
        with contextlib.closing(sqlite3.connect(mine)) as connection:
            connection.executescript(OTHER_DATABASE.format(version=content))
    before = mine.read_bytes()
    done = CliRunner().invoke(index_command, [str(tmp_path), "-o", str(mine), *rebuild])
    assert isinstance(done.exception, InputError) and done.exception.message == f"{mine} is no index of KDuel"
    assert "elete" not in done.exception.remedy and "--output" in done.exception.remedy
    assert mine.read_bytes() == before
    asking = asked(str(mine), "runs").exception
    assert isinstance(asking, InputError) and asking.message == f"{mine} is no index of KDuel"
    # In the index's own place `kduel query --update DIR` refuses it, too.
    assert "Name the index" in asking.remedy and "move it away first" in asking.remedy


def test_a_damaged_index_is_called_so_with_what_to_do(tmp_path: Path) -> None:
    run_of(tmp_path, "first", 10)
    path = indexed(tmp_path)
    with path.open("r+b") as stream:
        stream.truncate(20_000)
    for found in (asked(str(tmp_path), "runs"), CliRunner().invoke(index_command, [str(tmp_path), "--rebuild"])):
        assert isinstance(found.exception, InputError) and f"the index {path} is damaged: " in found.exception.message
        assert "Move it away and run `kduel query --update DIR`" in found.exception.remedy


def damage_table(index: Path, table: str) -> None:
    """Overwrite the first page of a table."""
    with contextlib.closing(sqlite3.connect(index)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    with index.open("r+b") as stream:
        stream.seek((page - 1) * size)
        stream.write(b"\xff" * size)


def test_damage_that_a_question_meets_is_no_fault_of_the_question(tmp_path: Path) -> None:
    run_of(tmp_path, "first", 10)
    path = indexed(tmp_path)
    damage_table(path, "run")
    for words in (["runs"], ["--series", "b/time"]):
        found = asked(str(tmp_path), *words).exception
        assert isinstance(found, InputError) and found.message.startswith(f"the index {path} is damaged: ")
        assert "Move it away and run `kduel query --update DIR`" in found.remedy


def test_damage_where_an_update_does_not_look_is_told(tmp_path: Path) -> None:
    """It counted the runs, and said nothing."""
    run_of(tmp_path, "first", 10)
    path = tmp_path / "mine.sqlite"
    words = [str(tmp_path), "-o", str(path)]
    assert CliRunner().invoke(index_command, words).exit_code == 0
    damage_table(path, "value")
    found = CliRunner().invoke(index_command, words).exception
    assert isinstance(found, InputError) and found.message.startswith(f"the index {path} is damaged: ")
    assert f"`kduel query --update DIR -o {path}`" in found.remedy
    assert CliRunner().invoke(index_command, [*words, "--rebuild"]).exit_code == 0
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    found = CliRunner().invoke(index_command, words).exception
    assert isinstance(found, InputError) and f"`kduel query --update DIR --rebuild -o {path}`" in found.remedy


@pytest.mark.parametrize("history", [False, True])
def test_what_is_no_index_or_missing_has_a_remedy_that_works(
    tmp_path: Path, history: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_of(tmp_path, "my runs", 10)
    os.mkfifo("pipe")

    def answer(place: str) -> KduelError:
        words = [place, "--index"] if history else [place, "runs"]
        error = CliRunner().invoke(history_command if history else query_command, words).exception
        assert isinstance(error, InputError)
        return error

    assert answer("pipe").message == "pipe is no index of KDuel"
    assert answer("none").message == "there is no index none"
    assert "Name a directory of runs that `kduel query --update` was given" in answer("none").remedy
    assert answer("my runs").message == f"there is no index my runs/{INDEX}"
    assert answer("my runs").remedy == "Make it first: kduel query --update 'my runs'"


@pytest.mark.parametrize("version", [-1, 1, 99])
def test_an_index_of_another_version_is_known_and_rebuilt(tmp_path: Path, version: int) -> None:
    run_of(tmp_path, "first", 10)
    path = indexed(tmp_path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"DROP TABLE point; PRAGMA user_version = {version}")
    asking = asked(str(tmp_path), "runs").exception
    assert isinstance(asking, InputError) and f"is an index of version {version}" in asking.message
    assert ("--rebuild" in asking.remedy) == (version != 1)
    assert CliRunner().invoke(index_command, [str(tmp_path), "--rebuild"]).exit_code == 0
    assert len(run_query(path, "runs").rows) == 1


def test_an_index_is_written_into_no_pipe(tmp_path: Path) -> None:
    run_of(tmp_path, "first", 10)
    os.mkfifo(tmp_path / "pipe")
    done = CliRunner().invoke(index_command, [str(tmp_path), "-o", str(tmp_path / "pipe")])
    assert isinstance(done.exception, InputError) and "pipe is no index of KDuel" in done.exception.message


def test_the_csv_of_an_answer_hides_nothing() -> None:
    rows = as_csv([["a\u202eb", "\u202e=1", "\x1b[31m", "=1", "two\nlines"]])
    assert list(csv.reader(io.StringIO(rows))) == [["a\\u202eb", "\\u202e=1", "\\x1b[31m", "'=1", "two\nlines"]]
