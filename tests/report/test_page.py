"""The page in a real browser: it opens offline, tells a value on hover, and runs nothing of a stranger's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser import PROGRAMS, Browser
from examples import ALL, Results, hostile, published, simulated

from kduel.core.format import effect
from kduel.core.metric_results import FindingResult
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
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")


def dots(page: Browser) -> list[int]:
    """How many dots each chart of values has."""
    return page.evaluate(
        "[...document.querySelectorAll('.chart.values')].map(chart => [...chart.querySelectorAll('.dots')]"
        ".reduce((sum, path) => sum + path.getAttribute('d').split('M').length - 1, 0))"
    )


@pytest.mark.slow
def test_every_value_is_drawn_without_a_script(page: Browser, tmp_path: Path) -> None:
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        show(page, tmp_path, published())
        assert dots(page) == [20] * 7
        assert page.evaluate("document.querySelectorAll('.effects svg.interval').length") == 6, "and the axis"
        high = "[...document.querySelectorAll('.effects svg.interval')].map(s => s.getBoundingClientRect().height)"
        assert min(page.evaluate(high)) > 15
        assert page.evaluate("[...document.querySelectorAll('.chart')].every(p => p.getAttribute('role') === 'img')")
        assert page.evaluate("document.querySelectorAll('.every tbody td').length") == 7 * 2 * 11
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)


@pytest.mark.slow
def test_an_interval_lies_where_its_axis_says(page: Browser, tmp_path: Path) -> None:
    show(page, tmp_path, simulated())
    metric = simulated().metrics[3]
    row = "document.querySelector('#exploratory-1 tbody tr')"
    drawn = page.evaluate(f"['x1', 'x2'].map(end => parseFloat({row}.querySelector('.reach').getAttribute(end)))")
    axis = "[...document.querySelector('#exploratory-1 .axis').querySelectorAll('text')]"
    ticks = page.evaluate(f"{axis}.map(t => [t.textContent, parseFloat(t.getAttribute('x'))])")
    (low, first), (high, last) = [(float(text), x) for text, x in (ticks[0], ticks[-1])]
    # Worse is left and better right, both without a sign: a lower value is better here.
    values = [(x - first) / (last - first) * (high + low) - low for x in drawn]
    assert metric.better == "lower" and values == pytest.approx([-metric.ci_low_pct, -metric.ci_high_pct], abs=0.04)


def test_hover_tells_the_trial_and_its_value(page: Browser, tmp_path: Path) -> None:
    show(page, tmp_path, simulated())
    page.evaluate("document.querySelector('.chart.values').scrollIntoView({block: 'center', behavior: 'instant'})")
    for number in (0, 7):
        arm, index = number % 2, number // 2
        x, y = page.evaluate(
            "(() => { const chart = document.querySelector('.chart.values'), box = chart.querySelector('svg').getBoundingClientRect();"
            f"const at = chart.querySelectorAll('.dots')[{arm}].getAttribute('d').split('M')[{index + 1}].split(/[ h]/);"
            "return [box.x + at[0] / 1000 * box.width, box.y + at[1] / 1000 * box.height]; })()"
        )
        page.hover(x, y)
        told = page.evaluate(
            "[...document.querySelectorAll('#tip div')].map(line => [...line.childNodes].map(n => n.textContent))"
        )
        name, values = list(simulated().metrics[0].values.items())[arm]
        assert told == [["contender", name], ["block", str(index + 1)], ["value", f"{values[index]:.10g}"]]


def test_a_strangers_strings_do_nothing(page: Browser, tmp_path: Path) -> None:
    page.call("Page.addScriptToEvaluateOnNewDocument", source="window.alert = () => { window.pwned = true; };")
    show(page, tmp_path, hostile())
    assert page.evaluate("document.scripts.length") == 1
    assert not page.evaluate("window.pwned === true")
    labels = page.evaluate("document.querySelector('.chart').textContent")
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
    seen = f"[...document.querySelectorAll('.verdicts')].map(t => t.parentElement.{right} <= t.closest('article, section').{right})"
    assert page.evaluate(f"{seen}.every(Boolean)")
    clipped = "[...document.querySelectorAll('.verdicts')].map(t => getComputedStyle(t.parentElement).overflowX)"
    assert set(page.evaluate(clipped)) == {"auto"}


@pytest.mark.slow
def test_the_exact_part_is_shown_and_linked(page: Browser, tmp_path: Path) -> None:
    whole, counts = simulated(), ALL["exact"]()
    counts.metrics[0].warnings = [FindingResult(code="planted", message="of the part")]
    pages = [tmp_path / "report/index.html", tmp_path / "exact/report/index.html"]
    for path in pages:
        path.parent.mkdir(parents=True)
    show(page, pages[1].parent, counts)
    whole.exact = counts
    show(page, pages[0].parent, whole)
    shown = page.evaluate("document.querySelector('#exact').innerText")
    (part,), (timed,) = digest(counts).comparisons, digest(whole).comparisons
    assert part.headline in shown and effect(part.primary[0]) in shown
    assert page.evaluate("document.querySelectorAll('#exact tbody tr:not(.axis)').length") == len(part.primary)
    assert timed.headline in page.evaluate("document.querySelector('#verdicts').innerText")
    assert page.evaluate("document.body.innerText").count(part.headline) == 1
    assert page.evaluate("document.querySelectorAll('#exact .mark').length") == 0, "its findings are on its own page"
    assert page.evaluate("document.querySelector('#exact a').href") == pages[1].as_uri()
    show(page, pages[0].parent, simulated())
    assert page.evaluate("document.querySelectorAll('#exact, nav a[href=\"#exact\"]').length") == 0


@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 768, 1200])
@pytest.mark.parametrize("example", ["published", "three", "broken", "exact", "hostile"])
def test_no_page_is_wider_than_its_window(page: Browser, tmp_path: Path, example: str, width: int) -> None:
    page.resize(width, 800)
    show(page, tmp_path, ALL[example]())
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_dark_and_light_reach_the_charts(page: Browser, tmp_path: Path) -> None:
    show(page, tmp_path, published())
    ink = "getComputedStyle(document.querySelector('.chart text')).fill"
    light = page.evaluate(ink)
    page.media(scheme="dark")
    dark = page.evaluate(ink)
    assert light != dark
    page.media("print", "dark")
    assert page.evaluate(ink) == light


def test_a_long_page_is_folded(page: Browser, tmp_path: Path) -> None:
    (path := tmp_path / "index.html").write_text(
        report_format("html").render(simulated(blocks=3, metrics=40)), "utf-8"
    )
    page.open(path)
    page.evaluate("document.querySelector('#values > details').open = true")
    seen = "[...document.querySelectorAll('#values details.metric')].filter(d => d.checkVisibility()).length"
    assert page.evaluate(seen) == 24
    page.evaluate(
        "{ const f = document.getElementById('filter'); f.value = 'stress-ng-vm-4'; f.dispatchEvent(new Event('input')); }"
    )
    assert page.evaluate("document.getElementById('matches').textContent") == "1 of 40"
    assert page.evaluate(seen) == 1, "and the fold around it is open"


def test_a_missing_value_is_not_drawn(page: Browser, tmp_path: Path) -> None:
    show(page, tmp_path, ALL["broken"]())
    assert dots(page)[0] == 22


@pytest.mark.slow
@pytest.mark.parametrize("example", ["empty", "single", "exact", "undecided"])
def test_thin_runs_open_too(page: Browser, tmp_path: Path, example: str) -> None:
    show(page, tmp_path, ALL[example]())
