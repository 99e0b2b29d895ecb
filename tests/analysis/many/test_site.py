"""The site and the history from the index: they say what the runs say, and the pages open offline in a real browser."""

from __future__ import annotations

import csv
import io
import re
import shutil
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from click.testing import CliRunner
from made_runs import READING, STEP, make_run
from msgspec import structs

from kduel.analysis.campaigns.history import history
from kduel.analysis.indexed import indexed_history
from kduel.cli import kduel
from kduel.core.errors import KduelError
from kduel.core.experiment import MachineRecord
from kduel.report.site.answer import interval

LINK = re.compile(r'href="([^"]*)"')


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Ten days on one machine, in which `new` gets 5 % slower on the seventh, and one on another; two are merged."""
    place = tmp_path / "runs"
    for day in range(1, 11):
        make_run(place / f"day{day}", 5 if day > 6 else 0, seed=day, day=day, blocks=4, most=4)
    make_run(place / "other", -5, place="<script>alert(1)</script>", seed=20, day=3, blocks=10)
    called("merge", place / "day1", place / "day2", "--out", place / "both")
    return place


def called(*arguments: object) -> str:
    """What `kduel ARGUMENTS...` prints."""
    done = CliRunner().invoke(kduel, [*map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_all_but_the_latest_runs_of_many_are_folded(tmp_path: Path) -> None:
    """At 400 pixels the page of 60 runs was 12,393 high."""
    for day in range(1, 16):
        make_run(tmp_path / f"runs/day{day:02}", seed=day, day=day, blocks=1, most=1)
    called("site", tmp_path / "runs", "--output", tmp_path / "site", "--quiet")
    page = (tmp_path / "site/index.html").read_text()
    shown, folded = page.split("<summary>3 more</summary>")
    assert [f">{name}<" in shown for name in ("day15", "day04", "day03")] == [True, True, False]
    assert ">day03<" in folded and ">day01<" in folded and page.count("<details>") == 1


def test_the_history_of_the_index_is_that_of_the_runs(runs: Path) -> None:
    called("query", "--update", runs, "--quiet")
    plain, indexed = history([runs], metric="time"), indexed_history(runs / "kduel-index.sqlite", metric="time")
    assert [line.steps for line in plain.lines] == [line.steps for line in indexed.lines]
    for one, other in zip(plain.lines, indexed.lines, strict=True):
        assert (one.machine, one.contender, one.key, one.unit) == (
            other.machine,
            other.contender,
            other.key,
            other.unit,
        )
        assert [(p.when, p.n, p.mean, p.sd) for p in one.points] == [
            (p.when, p.n, p.mean, p.sd) for p in other.points
        ]
        assert one.told == other.told
    assert sum(len(line.steps) for line in indexed.lines) == 1
    assert "2026-01-08" in called("query", "--history", runs, "--index")


@pytest.fixture
def counted(tmp_path: Path) -> Path:
    """Six exact runs by one version of QEMU, two by the next, whose counts are 5 % higher, and a timed one with that."""
    place = tmp_path / "counted"
    for day in range(1, 9):
        version = "7.2.22 (Debian 1:7.2+dfsg-7)" if day < 7 else "10.0.13 (Debian 1:10.0.13)"
        record = MachineRecord(kind="icount", exact=True, facts={"accelerator": "tcg", "qemu": version})
        make_run(
            place / f"day{day}", seed=day, day=day, blocks=1, level=10 if day < 7 else 10.5, sd_pct=0, machine=record
        )
    return place


def test_exact_counts_of_two_versions_of_qemu_are_never_one_series(counted: Path) -> None:
    called("query", "--update", counted, "--quiet")
    for found in (history([counted]), indexed_history(counted / "kduel-index.sqlite")):
        lines = {(line.machine, line.contender): len(line.points) for line in found.lines}
        older, newer = (f"icount tcg a CPU, counted by QEMU {version}" for version in ("7.2.22", "10.0.13"))
        assert lines == {(older, "old"): 6, (older, "new"): 6, (newer, "old"): 2, (newer, "new"): 2}
        assert not any(line.steps for line in found.lines)
        (said,) = found.apart
        assert said.startswith("icount tcg a CPU: exact counts by different versions of QEMU are different series")
        assert "10.0.13 (2 runs), 7.2.22 (6 runs)" in said
    for words in ([counted], [counted, "--index"]):
        assert "Separate series" in called("query", "--history", *words)
    called("site", counted, "--output", counted.parent / "site")
    assert "exact counts by different versions" in (counted.parent / "site" / "index.html").read_text()
    head, *rows = csv.reader(io.StringIO(called("query", counted, "--series", "job/time")))
    assert len(head) == 2 + 4 and len(rows) == 8
    assert all(sum(map(bool, row[2:])) == 2 for row in rows)


def test_a_timed_series_is_not_divided_by_qemus_version(tmp_path: Path) -> None:
    for day, version in enumerate(("7.2.22", "10.0.13"), 1):
        record = MachineRecord(kind="qemu", facts={"accelerator": "tcg", "qemu": version})
        make_run(tmp_path / f"day{day}", day=day, blocks=4, most=4, machine=record)
    called("query", "--update", tmp_path, "--quiet")
    for found in (history([tmp_path]), indexed_history(tmp_path / "kduel-index.sqlite")):
        assert [len(line.points) for line in found.lines] == [2, 2] and found.apart == []


def test_a_series_has_a_column_for_each_set_of_parameters(tmp_path: Path) -> None:
    """A change of a parameter is no change point."""
    for day, line in enumerate(("job", "job", "job --twice"), 1):
        step = structs.replace(STEP, parameters={**STEP.parameters, "command": line})
        make_run(tmp_path / f"day{day}", day=day, blocks=1, level=10.0 * day, sd_pct=0, steps=[step])
    called("query", "--update", tmp_path, "--quiet")
    head, *rows = csv.reader(io.StringIO(called("query", tmp_path, "--series", "job/time")))
    assert head[2:] == [f"{name}, command=job{more}" for name in ("new", "old") for more in ("", " --twice")]
    assert [[index for index, value in enumerate(row[2:]) if value] for row in rows] == [[0, 2], [0, 2], [1, 3]]


@pytest.mark.slow
def test_every_page_is_there_and_every_link_leads_to_one(runs: Path, tmp_path: Path) -> None:
    called("report", runs / "day1", "--format", "html")
    called("site", runs, "--output", tmp_path / "site", "--quiet")
    pages = sorted((tmp_path / "site").glob("*.html"))
    kinds = [page.name.split("-")[0].removesuffix(".html") for page in pages]
    assert sorted(set(kinds)) == ["benchmark", "index", "machines", "matrix", "pair"]
    linked = set()
    for page in pages:
        text = page.read_text()
        assert "<script" not in text and "http://" not in text and "https://" not in text
        for link in LINK.findall(text):
            target = (page.parent / unescape(link)).resolve()
            assert target.is_file(), link
            linked.add(target)
    assert {page.resolve() for page in pages} <= linked
    assert (runs / "day1/report/index.html").resolve() in linked
    text = next(page for page in pages if page.name.startswith("benchmark")).read_text()
    assert text.count('class="change"') == 1 and "2026-01-08" in text
    assert "alert(1)" in (tmp_path / "site/machines.html").read_text()
    assert "(merged)" in (tmp_path / "site/index.html").read_text()


@pytest.mark.slow
def test_only_a_site_is_replaced(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "site"
    out.mkdir()
    (out / "precious").write_text("x")
    with pytest.raises(KduelError, match="no site of KDuel"):
        called("site", runs, "--output", out)
    assert [path.name for path in out.iterdir()] == ["precious"]
    (out / "precious").unlink()
    called("site", runs, "--output", out)
    (out / "own.html").write_text("not KDuel's")
    called("site", runs, "--output", out)
    assert (out / "own.html").exists() and (out / "index.html").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs", "site"]


@pytest.mark.slow
def test_the_pages_fit_a_wide_and_a_narrow_window(runs: Path, tmp_path: Path, need: Callable[..., str]) -> None:
    from browser import PROGRAMS, Browser

    called("site", runs, "--output", tmp_path / "site", "--quiet")
    with Browser(need(*PROGRAMS)) as browser:
        for width in (1200, 390):
            browser.resize(width, 800)
            for page in sorted((tmp_path / "site").glob("*.html")):
                browser.open(page)
                assert browser.evaluate("document.documentElement.scrollWidth") <= width, (page.name, width)
                assert browser.evaluate("document.querySelectorAll('h1').length") == 1
                cut = "[...document.querySelectorAll('.cards')].filter(t => t.scrollWidth > t.parentElement.clientWidth).length"
                assert browser.evaluate(cut) == 0, (page.name, width, "what matters is not to be scrolled for")
        assert browser.problems == []
        assert all(url.startswith("file:") for url in browser.requests)


def strips(page: Path) -> dict[str, str]:
    """By contender, the signs of its runs."""
    found = re.findall(
        r'<td data-label="contender">(.*?)</td>.*?<span class="strip">(.*?)</span></td>', page.read_text(), re.S
    )
    return {re.sub("<[^>]*>", "", name): re.sub("<[^>]*>", "", marks) for name, marks in found}


def words_of(page: Path) -> str:
    """The page without the marks that keep a name in one line."""
    return re.sub('<span class="whole">(.*?)</span>', r"\1", unescape(page.read_text())).replace(
        "\N{NO-BREAK SPACE}", " "
    )


def test_a_pair_has_a_sign_for_each_run_in_the_order_of_time_and_an_answer(tmp_path: Path) -> None:
    place = tmp_path / "runs"
    for day, change in enumerate((5, -5, 0, 5), 1):
        made = make_run(place / f"day{day}", change, seed=day, day=day, blocks=10, most=10)
    make_run(place / "day5", 0, seed=5, day=5, blocks=3, sd_pct=5.0)
    called("report", made, "--format", "html")
    called("site", place, "--output", tmp_path / "site", "--quiet")
    index = tmp_path / "site/index.html"
    assert strips(index) == {"new": "▼▲≈▼?"}
    text = words_of(index)
    assert 'title="2026-01-02 day1: 1 slower"' in text and 'href="../runs/day4/report/index.html"' in text
    assert re.search(r"new against old: job/time \d.*>How sure: 95 % confidence; measured on 2026-01-05; ", text), (
        "the latest that is finished"
    )
    assert (
        "a later run has 3 of up to 20 blocks, not finished.</span>" in text
        and "<code>kduel resume day5</code>" in text
    )
    assert (
        "No trend can be told yet: it takes 6 runs of one contender on one machine, and there are 5 at most." in text
    )
    assert not re.search(r">0</td>", text), "what is not there is no zero"


def test_the_answer_says_that_times_are_emulated_and_what_its_exact_part_found(tmp_path: Path) -> None:
    """The site said faster where the run's own answer said slower as well, and emulated."""
    place = tmp_path / "runs"
    emulated = MachineRecord(kind="qemu", timing_warning="The machine is emulated.", facts={"accelerator": "tcg"})
    exact = MachineRecord(kind="icount", exact=True, facts={"accelerator": "tcg"})
    make_run(place / "day1", -5, machine=emulated)
    make_run(place / "day1/exact", 7, blocks=1, most=1, sd_pct=0, machine=exact)
    called("site", place, "--output", tmp_path / "site", "--quiet")
    text = words_of(tmp_path / "site/index.html")
    answer = text.partition("<h2>")[0]
    assert "counted exactly, job/time 7.00 % slower;" in answer and re.search(
        r"; timed, job/time [45]\.\d+ % faster \(−", answer
    )
    assert "<h1>1 run</h1>" in answer, "its exact part is none"
    assert "95 % confidence; emulated: not the times of real hardware; " in answer
    assert strips(tmp_path / "site/index.html") == {"new": "◆"}, "a run has one sign"


def test_the_answer_says_since_when_and_how_to_see_what_changed(tmp_path: Path) -> None:
    place = tmp_path / "runs"
    for day, (change, blocks) in enumerate(((0, 10), (0, 3), (5, 10), (5, 3), (5, 10)), 1):
        make_run(place / f"day{day}", change, seed=day, day=day, blocks=blocks, most=10)
    called("site", place, "--output", tmp_path / "site", "--quiet")
    text = words_of(tmp_path / "site/index.html")
    assert "). Worse in 2 of the last 3 runs, since 2026-01-04." in text
    assert "changes of level" not in text, "a column of dashes"
    assert re.search(r'<p class="next"><strong>Next:</strong> [^<]*<code>kduel diff day2 day3</code></p>', text)


def test_the_answer_says_where_the_run_before_found_otherwise(tmp_path: Path) -> None:
    place = tmp_path / "runs"
    for day, change in enumerate((0, 5), 1):
        make_run(place / f"day{day}", change, level=12.3, seed=day, day=day, blocks=10, most=10)
    called("site", place, "--output", tmp_path / "site", "--quiet")
    answer = words_of(tmp_path / "site/index.html").partition("<h2>")[0]
    assert " % slower (" in answer and "). No difference that matters in the run before, of 2026-01-02. " in answer


def test_a_trend_is_of_the_run_that_the_answer_is_about(tmp_path: Path) -> None:
    place = tmp_path / "runs"
    without_values = structs.replace(STEP, label="other")
    for day, (change, blocks) in enumerate(((-5, 20), (5, 10), (5, 10)), 1):
        make_run(place / f"day{day}", change, seed=day, day=day, blocks=blocks, steps=[STEP, without_values])
    called("site", place, "--output", tmp_path / "site", "--quiet")
    answer = words_of(tmp_path / "site/index.html").partition("<h2>")[0]
    assert strips(tmp_path / "site/index.html") == {"new": "▲▼▼"} and "10 of up to 20 blocks, not finished" in answer
    assert " % faster (" in answer and "Worse in" not in answer


def test_no_run_is_to_be_continued_that_cannot_be(tmp_path: Path) -> None:
    """It is refused where a trial was removed, and the report does not ask for it either."""
    place = tmp_path / "runs"
    made = make_run(place / "day1", 0, blocks=3, sd_pct=5.0)
    shutil.rmtree(sorted((made / "trials").iterdir())[2])
    called("site", place, "--output", tmp_path / "site", "--quiet")
    answer = words_of(tmp_path / "site/index.html").partition("<h2>")[0]
    assert "of up to 20 blocks, not finished and changed afterwards; " in answer
    assert "resume" not in answer and "<code>kduel report day1</code>" in answer
    assert "resume" not in called("report", made).partition("\n\n")[0]


def test_two_runs_that_show_nothing_are_not_to_be_compared(tmp_path: Path) -> None:
    for day in (1, 2):
        make_run(tmp_path / f"runs/day{day}", blocks=4, most=4, sd_pct=5.0, seed=day, day=day)
    called("site", tmp_path / "runs", "--output", tmp_path / "site", "--quiet")
    answer = words_of(tmp_path / "site/index.html").partition("<h2>")[0]
    assert "new against old: no difference is shown (1 undecided)." in answer
    assert "See what would decide it" in answer and "<code>kduel report day2</code>" in answer


def test_no_merged_run_is_to_be_compared_by_a_command_that_refuses_it(tmp_path: Path) -> None:
    place = tmp_path / "runs"
    for day, change in enumerate((0, 5), 1):
        made = [make_run(tmp_path / f"made{day}{half}", change, seed=day + half, day=day) for half in (0, 20)]
        called("merge", *made, "--out", place / f"both{day}")
    called("site", place, "--output", tmp_path / "site", "--quiet")
    assert "<code>kduel report both2</code>" in words_of(tmp_path / "site/index.html")
    make_run(place / "day3", 5, seed=3, day=3)
    called("site", place, "--output", tmp_path / "site", "--quiet")
    assert "<code>kduel report day3</code>" in words_of(tmp_path / "site/index.html")


def test_counts_and_what_is_undecided_have_no_confidence(tmp_path: Path) -> None:
    """The range of a count over conditions was taken for an interval."""
    exact = MachineRecord(kind="icount", exact=True, facts={"accelerator": "tcg"})
    for name, made in (
        ("counts", {"effect_pct": 7, "blocks": 2, "most": 2, "sd_pct": 0.1, "machine": exact}),
        ("open", {"blocks": 3, "most": 3, "sd_pct": 5.0}),
    ):
        make_run(tmp_path / name / "day1", **made)
        called("site", tmp_path / name, "--output", tmp_path / f"{name}-site", "--quiet")
        answer = words_of(tmp_path / f"{name}-site/index.html").partition("<h2>")[0]
        assert "confidence" not in answer and "new against old: " in answer
    assert re.search(r"7\.\d+ % slower\.", words_of(tmp_path / "counts-site/index.html")), "without a range"
    assert "<code>kduel report day1</code>" in answer


def test_a_run_in_a_directory_called_exact_is_a_run_of_its_own(tmp_path: Path) -> None:
    place = tmp_path / "runs"
    made = make_run(place / "month1/exact", 5, most=10)
    called("report", made, "--format", "html")
    called("site", place, "--output", tmp_path / "site", "--quiet")
    text = (tmp_path / "site/index.html").read_text()
    assert 'title="2026-01-02 month1/exact: 1 slower"' in unescape(text)
    assert text.count('href="../runs/month1/exact/report/index.html"') == 2, "in the strip and in the list"


def test_what_has_no_date_is_in_no_trend() -> None:
    from kduel.report.site.answer import trend

    rows = [
        {"path": f"run{day}", "measured": f"2026-01-{day:02}" if day else "unknown", "verdict": word}
        for day, word in ((4, "slower"), (3, "slower"), (0, "slower"))
    ]
    assert trend(rows) == ("Worse in each of the last 2 runs, since 2026-01-03", [])
    assert trend(rows[2:]) == trend([rows[0], rows[2]]) == ("", [])


def test_sixty_runs_have_a_strip_that_ends_with_the_latest(tmp_path: Path) -> None:
    from kduel.report.site.content import MOST_MARKS, strip

    rows = [
        {"path": f"run{day}", "measured": f"2026-01-{day:02}", "verdict": "faster" if day == 70 else "undecided"}
        for day in range(70, 0, -1)
    ]
    marks = strip(rows, {})
    assert len(marks) == MOST_MARKS == 60 and marks[-1].sign == "▲" and {one.sign for one in marks[:-1]} == {"?"}
    both = [{"path": "a", "measured": "", "verdict": word} for word in ("faster", "more", "not judged")]
    assert [one.sign for one in strip(both, {})] == ["◆"]
    assert [one.sign for one in strip(both[2:], {})] == ["–"]
    begun = [{"path": "a/exact", "measured": "", "verdict": "fewer"}]
    assert [one.link for one in strip(begun, {"a": "a.html"})] == ["a.html"], (
        "of a run that has begun with its exact part"
    )


def test_two_machines_of_one_kind_are_named_by_their_places(tmp_path: Path) -> None:
    """A later run on another machine does not hide what the first one said."""
    place = tmp_path / "runs"
    for day, (machine, change) in enumerate((("rack1", 5), ("rack2", -5)), 1):
        make_run(place / machine, change, seed=day, day=day, place=machine)
    called("merge", place / "rack1", place / "rack2", "--out", place / "both")
    called("site", place, "--output", tmp_path / "site", "--quiet")
    for page, machines in (
        ("index", ["ssh 2 machines", "ssh rack2", "ssh rack1"]),
        ("matrix", ["ssh 2 machines", "ssh rack1", "ssh rack2"]),
    ):
        text = (tmp_path / f"site/{page}.html").read_text()
        assert sorted(re.findall(r'data-label="machine">([^<]*)<', text)) == sorted(machines)
    assert re.search(r"slower \+[45]", text) and re.search("faster −[45]", text)


def test_a_missing_index_is_an_error_with_a_remedy(runs: Path) -> None:
    with pytest.raises(KduelError, match="there is no index"):
        called("query", "--history", runs, "--index")


def test_the_one_value_of_an_exact_change_is_no_interval() -> None:
    assert interval(69.95, 69.95).text == "exact"
    assert interval(None, None).text == "–" and interval(-2.0, 1.0).text == "−2.00 to +1.00 %"


def test_counts_are_not_added_to_times_and_what_was_measured_last_comes_last(tmp_path: Path) -> None:
    """Fewer instructions are not faster: neither in an index, nor in a query, nor in the site's sums."""
    place = tmp_path / "both"
    make_run(place / "timed-late", 5, day=9)
    make_run(place / "timed-early", -5, day=2)
    reading = {"name": "instructions", "unit": "instructions", "better": "lower", "regex": "^time ([0-9.]+)$"}
    step = structs.replace(STEP, parameters={"command": "job", "metrics": [reading]}, primary=["instructions"])
    machine = MachineRecord(kind="icount", exact=True, facts={"accelerator": "tcg"})
    made = make_run(place / "counted", 7, blocks=1, level=1000, sd_pct=0, machine=machine, steps=[step])
    neither = structs.replace(STEP, parameters={"command": "job", "metrics": [READING | {"better": "none"}]})
    make_run(place / "neither", 9, day=3, steps=[neither])
    called("query", "--update", place, "--quiet")
    rows = {
        question: list(csv.DictReader(io.StringIO(called("query", place, question, "--format", "csv"))))
        for question in ("slower", "faster", "more", "fewer", "worse", "better", "pairs", "latest")
    }
    assert [row["path"] for row in rows["more"]] == [made.name] and not rows["fewer"]
    assert [row["path"] for row in rows["slower"]] == ["timed-late"]
    assert sorted(row["path"] for row in rows["worse"]) == sorted([made.name, "timed-late"])
    assert [row["path"] for row in rows["better"]] == ["timed-early"], "a metric without a better side is neither"
    assert [rows["pairs"][0][key] for key in ("runs", "faster", "slower", "more", "fewer", "differing")] == [
        "4",
        "1",
        "1",
        "1",
        "0",
        "1",
    ]
    timed = [row for row in rows["latest"] if row["metric"] == "time"]
    assert [row["path"] for row in timed] == ["timed-late"]


def test_a_verdict_that_nobody_has_is_no_row_of_zeros(runs: Path, tmp_path: Path) -> None:
    called("site", runs, "--output", tmp_path / "site", "--quiet")
    page = (tmp_path / "site/index.html").read_text()
    assert ">0<" not in page and ">10<" in page


def test_without_an_option_the_pages_go_to_a_directory_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(tmp_path / "runs/one", 5)
    monkeypatch.chdir(tmp_path)
    assert called("site", tmp_path / "runs", "--quiet").startswith("kduel-site/index.html: 1 run")
    assert (tmp_path / "kduel-site/index.html").is_file()
