"""The site and the history from the index: they say what the runs say, and the pages open offline in a real browser."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from click.testing import CliRunner
from made_runs import make_run

from kduel.analysis.campaigns.history import history
from kduel.analysis.indexed import indexed_history
from kduel.cli import kduel
from kduel.core.errors import KduelError

sys.path.append(str(Path(__file__).parents[1] / "report"))
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


def test_the_history_of_the_index_is_that_of_the_runs(runs: Path) -> None:
    called("index", runs, "--quiet")
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
    assert "2026-01-08" in called("history", runs, "--index")


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
        assert browser.problems == []
        assert all(url.startswith("file:") for url in browser.requests)


def test_a_missing_index_is_an_error_with_a_remedy(runs: Path) -> None:
    with pytest.raises(KduelError, match="there is no index"):
        called("history", runs, "--index")
