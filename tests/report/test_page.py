"""The page in a real browser: it opens offline, draws its plots, tells a trial on hover, and runs nothing of a stranger's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser import PROGRAMS, Browser
from examples import ALL, Results, hostile, published, simulated

from kduel.core.format import effect
from kduel.core.metric_results import Warning_
from kduel.report import report_format
from kduel.report.content.digest import digest


@pytest.fixture(scope="module")
def browser(need: Callable[..., str]) -> Iterator[Browser]:
    with Browser(need(*PROGRAMS)) as started:
        yield started


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Browser]:
    """The browser, with what it noted cleared; at the end nothing must have gone wrong in the page."""
    browser.problems.clear()
    browser.requests.clear()
    browser.resize(1200, 900)
    browser.media()
    yield browser
    assert browser.problems == []
    assert [url for url in browser.requests if not url.startswith(("file:", "data:"))] == []


def show(page: Browser, directory: Path, results: Results) -> None:
    path = directory / "index.html"
    path.write_text(report_format("html").render(results), "utf-8")
    page.open(path)


def scroll_through(page: Browser) -> list[tuple[str, int]]:
    """Look at every plot; each is drawn by the time one looks at it. Its kind, and how many symbols it shows."""
    seen = []
    for number in range(page.evaluate("document.querySelectorAll('.plot').length")):
        plot = f"document.querySelectorAll('.plot')[{number}]"
        page.evaluate(f"{plot}.scrollIntoView({{block: 'center'}})")
        page.wait(f"'drawn' in {plot}.dataset")
        symbols = page.evaluate(f"{plot}.querySelectorAll('.mark-symbol path').length")
        seen.append((page.evaluate(f"{plot}.dataset.plot"), symbols))
    return seen


def test_every_value_is_drawn(page: Browser, tmp_path: Path) -> None:
    show(page, tmp_path, published())
    seen = scroll_through(page)
    assert [count for kind, count in seen if kind == "strip"] == [20] * 7
    assert [count for kind, count in seen if kind == "order"] == [20] * 7
    forest = [count for kind, count in seen if kind == "forest"]
    assert len(forest) == 1
    assert forest[0] >= 7
    assert page.evaluate("[...document.querySelectorAll('.plot')].every(p => p.getAttribute('role') === 'img')")


def test_effects_are_drawn_without_a_script(page: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(report_format("html").render(hostile()).replace("<script>", '<script type="text/plain">'))
    page.open(path)
    shown = page.evaluate("document.querySelector('[data-plot=forest] svg').textContent")
    assert "%" in shown and page.evaluate("document.querySelectorAll('[data-plot=forest] svg path').length") > 3
    assert page.evaluate("document.querySelector('[data-plot=forest] svg').getBoundingClientRect().height") > 40
    assert page.evaluate("document.querySelectorAll('[data-plot=forest] script').length") == 0


def test_hover_tells_the_trial_and_its_value(page: Browser, tmp_path: Path) -> None:
    show(page, tmp_path, simulated())
    page.evaluate("document.querySelector('.strip').scrollIntoView({block: 'center'})")
    page.wait("document.querySelector('.strip').dataset.drawn === '24'")
    page.wait("!!document.querySelector('[data-plot=forest]').dataset.drawn")
    box = "document.querySelector('.strip .mark-symbol path').getBoundingClientRect()"
    for _ in range(40):
        # Plots that are drawn late may still move the page below the mouse.
        x, y = page.evaluate(f"[{box}.x + {box}.width / 2, {box}.y + {box}.height / 2]")
        page.hover(x, y)
        if page.evaluate("!document.getElementById('tip').hidden"):
            break
        time.sleep(0.25)
    told = page.evaluate(
        "[...document.querySelectorAll('#tip div')].map(line => [...line.childNodes].map(n => n.textContent))"
    )
    lines = dict(told)
    assert list(lines) == ["trial", "contender", "block", "value"]
    assert f"-b{int(lines['block']):02d}-{lines['contender']}" in lines["trial"]
    assert lines["value"] == f"{simulated().metrics[0].values[lines['contender']][int(lines['block']) - 1]:.10g}"


def test_a_strangers_strings_do_nothing(page: Browser, tmp_path: Path) -> None:
    page.call("Page.addScriptToEvaluateOnNewDocument", source="window.alert = () => { window.pwned = true; };")
    show(page, tmp_path, hostile())
    scroll_through(page)
    # Data, the library as text, our own script, and the library.
    assert page.evaluate("document.scripts.length") == 4
    assert not page.evaluate("window.pwned === true")
    labels = page.evaluate("document.querySelector('.strip svg').textContent")
    assert '<script>alert("x")</script>' in labels
    told = page.evaluate("document.body.innerText")
    assert "\\u202egnp.exe" in told
    assert "\u202e" not in told


def test_a_table_too_wide_for_its_card_is_scrolled_in_it(page: Browser, tmp_path: Path) -> None:
    wide = simulated()
    for metric in wide.metrics:
        metric.baseline_mean, metric.mean = 1.795e18, 1.796e18
        metric.baseline_sd = metric.sd = 8.9236131434e10
    show(page, tmp_path, wide)
    right = "getBoundingClientRect().right"
    seen = f"[...document.querySelectorAll('.verdicts')].map(t => t.parentElement.{right} <= t.closest('article').{right})"
    assert page.evaluate(f"{seen}.every(Boolean)")
    clipped = "[...document.querySelectorAll('.verdicts')].map(t => getComputedStyle(t.parentElement).overflowX)"
    assert set(page.evaluate(clipped)) == {"auto"}


def test_the_exact_part_is_shown_and_linked(page: Browser, tmp_path: Path) -> None:
    whole, counts = simulated(), ALL["exact"]()
    counts.metrics[0].warnings = [Warning_(code="planted", message="of the part")]
    pages = [tmp_path / "report/index.html", tmp_path / "exact/report/index.html"]
    for path in pages:
        path.parent.mkdir(parents=True)
    show(page, pages[1].parent, counts)
    whole.exact = counts
    show(page, pages[0].parent, whole)
    shown = page.evaluate("document.querySelector('#exact').innerText")
    (part,), (timed,) = digest(counts).comparisons, digest(whole).comparisons
    assert part.headline in shown and effect(part.primary[0]) in shown
    assert page.evaluate("document.querySelectorAll('#exact tbody tr').length") == len(part.primary)
    assert timed.headline in page.evaluate("document.querySelector('#verdicts').innerText")
    assert page.evaluate("document.body.innerText").count(part.headline) == 1
    assert page.evaluate("document.querySelectorAll('#exact .mark').length") == 0, "its findings are on its own page"
    assert page.evaluate("document.querySelector('#exact a').href") == pages[1].as_uri()
    show(page, pages[0].parent, simulated())
    assert page.evaluate("document.querySelectorAll('#exact, nav a[href=\"#exact\"]').length") == 0


@pytest.mark.parametrize("width", [360, 768, 1200])
@pytest.mark.parametrize("example", ["published", "three", "broken", "exact", "hostile"])
def test_no_page_is_wider_than_its_window(page: Browser, tmp_path: Path, example: str, width: int) -> None:
    page.resize(width, 800)
    show(page, tmp_path, ALL[example]())
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_dark_and_light_reach_the_plots(page: Browser, tmp_path: Path) -> None:
    show(page, tmp_path, published())
    page.wait("!!document.querySelector('[data-plot=forest]').dataset.drawn")
    ink = "getComputedStyle(document.querySelector('[data-plot=forest] text')).fill"
    light = page.evaluate(ink)
    page.media(scheme="dark")
    dark = page.evaluate(ink)
    assert light != dark
    page.media("print", "dark")
    assert page.evaluate(ink) == light


def test_a_long_run_stays_light(page: Browser, tmp_path: Path) -> None:
    """Plots out of sight are dropped: the page does not grow with the number of metrics looked at."""
    show(page, tmp_path, simulated(blocks=60, metrics=40))
    page.evaluate("document.querySelectorAll('details.metric').forEach(d => { d.open = true; })")
    most = 0
    for number in range(0, 80, 4):
        page.evaluate(f"document.querySelectorAll('.strip, .order')[{number}].scrollIntoView()")
        page.wait(f"'drawn' in document.querySelectorAll('.strip, .order')[{number}].dataset")
        most = max(most, page.evaluate("document.querySelectorAll('[data-drawn]').length"))
    assert most <= 50


def test_filter_and_tables_of_values(page: Browser, tmp_path: Path) -> None:
    show(page, tmp_path, simulated(blocks=4, metrics=16))
    page.evaluate(
        "const f = document.getElementById('filter'); f.value = 'hackbench'; f.dispatchEvent(new Event('input'))"
    )
    assert page.evaluate("document.getElementById('matches').textContent") == "2 of 16"
    page.evaluate("document.querySelector('details.metric:not([hidden]) details[data-values]').open = true")
    page.wait("!!document.querySelector('details[data-values][open] table')")
    rows = page.evaluate(
        "[...document.querySelectorAll('details[data-values][open] tr')].map(r => [...r.cells].map(c => c.textContent))"
    )
    values = simulated(blocks=4, metrics=16).metrics[2].values
    assert rows[0] == ["block", *values]
    assert [[float(cell) for cell in row[1:]] for row in rows[1:]] == [
        list(pair) for pair in zip(*values.values(), strict=True)
    ]


def test_a_missing_value_is_not_drawn(page: Browser, tmp_path: Path) -> None:
    show(page, tmp_path, ALL["broken"]())
    page.evaluate("document.querySelector('.strip').scrollIntoView()")
    page.wait("document.querySelector('.strip').dataset.drawn === '22'")


@pytest.mark.parametrize("example", ["empty", "single", "exact", "undecided"])
def test_thin_runs_open_too(page: Browser, tmp_path: Path, example: str) -> None:
    show(page, tmp_path, ALL[example]())
    scroll_through(page)
