"""Pages of every kind by html-validate and axe: at three widths, light and dark, printed, without a script; and LaTeX compiled."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser import PROGRAMS, Browser
from click.testing import CliRunner
from examples import exact, single, undecided
from made_runs import make_run
from pages import KINDS

from kduel.analysis.campaigns.columns import columns
from kduel.analysis.campaigns.compare import compare
from kduel.cli import kduel
from kduel.report import report_format
from kduel.report.campaigns.page import html
from kduel.report.campaigns.wording import page_of
from kduel.run.bisect.outcome import Interval, Level, SearchOutcome
from kduel.run.bisect.show import MeasurementNotes, as_svg
from kduel.run.bisect.show import page_of as bisected

MODULES = Path(__file__).parents[2] / ".venv/page-checks/node_modules"
pytestmark = pytest.mark.slow
WHOLE = KINDS | {"interrupted": lambda _: undecided(), "once": lambda _: single()}
MANY = ["diff", "site2", "site12", "bisect"]
"""Pages about several runs, or commits."""
OUTCOME = SearchOutcome(
    good="c0", bad="c2", metric="time", set=["c1"], probability=0.98, effect=Interval(4.5, 3.1, 5.9), measurements=25, blocks=6,
    levels=[
        Level(commit=f"c{number}", n=6, mean=100 + 4.5 * (number > 0), ci_low=99.0, ci_high=106.0, status=status)
        for number, status in enumerate(("good", "after", "bad"))
    ],
    confirmed=True, segments=[], posterior={"c1": 0.98, "c2": 0.02}, why="",
)  # fmt: skip
RUN = (
    "(await axe.run(document, {resultTypes: ['violations']})).violations.map("
    "one => `${one.id} ${one.nodes.map(node => node.html.slice(0, 150)).join(' ')}`)"
)
STYLE = "(one => (s => [s.stroke, s.strokeLinecap, s.fill])(getComputedStyle(document.querySelector(one))))"
SEEN = """(() => {
  const all = (one) => [...document.querySelectorAll(one)].filter((found) => found.checkVisibility());
  const top = (found) => found ? found.getBoundingClientRect().top + scrollY : null;
  const answers = all(".answer");
  return {
    answer: [top(answers[0]), answers.at(-1).getBoundingClientRect().bottom - answers[0].getBoundingClientRect().top],
    picture: top(all(".effects, .heat")[0]),
    table: top(all(".verdicts, .heat")[0]),
    believe: top(all("#believe")[0]),
    remarks: all("#believe .warning").length,
    fold: top(all("details:not([open])")[0]),
    folded: top(all("section > details:not([open])")[0]),
    ticks: all(".effects .interval text, .heat th").map((one) => one.getBoundingClientRect().x),
  };
})()"""
"""Where the parts of a page are, in pixels from its top, and how high the answer is."""
CUT = "[...document.querySelectorAll('.scroll:has(> .verdicts)')].filter(one => one.scrollWidth > one.clientWidth).length"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("pages")
    for kind, make in WHOLE.items():
        (place / f"{kind}.html").write_text(report_format("html").render(make(place / kind)), "utf-8")
    titled = exact()
    titled.study.title = "A title of 65 characters, which was longer than a heading may be."
    (place / "titled.html").write_text(report_format("html").render(titled), "utf-8")
    runs = [str(make_run(place / f"month{month}", 5 * month, day=30 * month)) for month in (1, 2)]
    (place / "diff.html").write_text(html(page_of(compare(columns(runs)), [])), "utf-8")
    about = MeasurementNotes(subject="a command", host="this", reproduce="kduel bisect", subjects={"c1": "Change it"})
    (place / "bisect.html").write_text(html(bisected(OUTCOME, about), as_svg(OUTCOME, page=True)), "utf-8")
    for name, number in (("site2", 2), ("site12", 12)):
        for day in range(1, number + 1):
            make_run(place / f"{name}-runs/day{day}", 5 if day > 6 else 0, seed=day, day=day, blocks=4, most=4)
        done = CliRunner().invoke(
            kduel, ["site", str(place / f"{name}-runs"), "--output", str(place / f"{name}-pages")]
        )
        assert done.exit_code == 0, done.output
        (place / f"{name}.html").write_text((place / f"{name}-pages/index.html").read_text("utf-8"), "utf-8")
    return place


@pytest.fixture(scope="module")
def browser(need: Callable[..., str]) -> Iterator[Browser]:
    with Browser(need(*PROGRAMS)) as started:
        yield started


def test_every_page_is_below_300_kb(pages: Path) -> None:
    assert {path.name: size for path in pages.glob("*.html") if (size := path.stat().st_size) >= 300_000} == {}


def test_html_validate_finds_nothing(pages: Path, need: Callable[..., str]) -> None:
    (pages / ".htmlvalidate.json").write_text('{"extends": ["html-validate:recommended"], "root": true}')
    program = need(str(MODULES / ".bin/html-validate"))
    done = subprocess.run(
        [program, *map(str, sorted(pages.glob("*.html")))], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kind", [*WHOLE, *MANY])
@pytest.mark.parametrize("scripts", [True, False])
def test_axe_finds_nothing(pages: Path, browser: Browser, need: Callable[..., str], kind: str, scripts: bool) -> None:
    need(str(MODULES / ".bin/html-validate"))
    axe = (MODULES / "axe-core/axe.min.js").read_text("utf-8")
    page = pages / f"{kind}.html"
    if not scripts:
        page = pages / f"{kind}-without.html"
        page.write_text((pages / f"{kind}.html").read_text("utf-8").replace("<script>", '<script type="text/plain">'))
    for width in (360, 800, 1280):
        browser.resize(width, 900)
        for media, scheme in (("screen", "light"), ("screen", "dark"), ("print", "light")):
            browser.media(media, scheme)
            browser.open(page)
            if media == "screen":
                assert browser.evaluate("document.documentElement.scrollWidth") <= width
                assert width < 1280 or browser.evaluate(CUT) == 0, "verdict tables that do not fit a window of 1280"
                browser.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
            browser.evaluate(f"{axe}; 0")
            assert browser.evaluate(RUN) == [], (width, media, scheme)


@pytest.mark.parametrize("width", [1280, 400])
def test_the_answer_is_seen_first_then_a_picture_the_table_and_what_to_know(
    pages: Path, browser: Browser, width: int
) -> None:
    """What a reader sees before touching anything; the limits are those that the page was designed for."""
    browser.resize(width, 900)
    browser.media()
    for kind in KINDS:
        browser.open(pages / f"{kind}.html")
        seen = browser.evaluate(SEEN)
        assert seen["answer"][0] < 80 and seen["answer"][1] < (180 if width == 1280 else 330), (kind, seen)
        assert seen["picture"] < 520 and seen["answer"][0] < seen["picture"] <= seen["table"], (kind, seen)
        remarks = seen["believe"] or seen["table"] + 1  # of exact counts there may be nothing to know
        assert seen["remarks"] <= 3 and seen["table"] < remarks < seen["folded"], (kind, seen)
        assert seen["fold"] <= seen["folded"] and seen["fold"] <= (2500 if width == 1280 else 4000), (kind, seen)
        assert len([x for x in seen["ticks"] if 0 <= x <= width]) >= 2, (kind, "numbers of the axis")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contenders_and_verdicts_differ_in_hue_and_in_shape(pages: Path, browser: Browser, scheme: str) -> None:
    browser.resize(1280, 900)
    browser.media("screen", scheme)
    browser.open(pages / "default.html")
    browser.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    first, second = (tuple(browser.evaluate(f"{STYLE}('.chart.values .arm{arm}.dots')")) for arm in (0, 1))
    assert first[0] != second[0] and first[1] != second[1], "hue, and round or square"
    paper = browser.evaluate("getComputedStyle(document.querySelector('.effects')).backgroundColor")
    better, worse = (browser.evaluate(f"{STYLE}('.effects .{tone} use[x]')")[2] for tone in ("better", "worse"))
    assert better != worse
    assert all(contrast(colour, paper) >= 3 for colour in (first[0], second[0], better, worse))
    shapes = "[...document.querySelectorAll('.effects use[x]')].map(one => one.getAttribute('href'))"
    assert {"#dot-better", "#dot-worse", "#dot-same"} <= set(browser.evaluate(shapes))
    boxes = "['better', 'worse', 'same'].map(one => document.querySelector('#dot-' + one).getBBox().width)"
    assert min(browser.evaluate(boxes)) > 5


def contrast(first: str, second: str) -> float:
    """The contrast of two colours as WCAG 2 has it."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted(map(luminance, (first, second)))
    return (high + 0.05) / (low + 0.05)


def test_print_has_no_cut_column(pages: Path, browser: Browser) -> None:
    browser.resize(717, 1000)  # A4 less the margins of Chromium; Letter is wider.
    browser.media("print")
    for kind in KINDS:
        browser.open(pages / f"{kind}.html")
        assert browser.evaluate("document.documentElement.scrollWidth") <= 717, kind


@pytest.mark.parametrize("kind", KINDS)
def test_latex_has_no_overfull_line_and_keeps_notes_with_the_table(
    need: Callable[..., str], tmp_path: Path, kind: str
) -> None:
    body = report_format("latex").render(KINDS[kind](tmp_path))
    (tmp_path / "body.tex").write_text(body)
    (tmp_path / "paper.tex").write_text(
        "\\documentclass{article}\\usepackage[T1]{fontenc}\\usepackage{textcomp,booktabs,graphicx,longtable}\n"
        "\\begin{document}\\input{body}\\end{document}\n"
    )
    program = need("pdflatex")
    for _ in range(3):  # A longtable knows its columns' widths from the run before.
        done = subprocess.run(
            [program, "-interaction=nonstopmode", "paper"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0 and "Overfull" not in done.stdout, done.stdout
    if "longtable}" not in body.split("\n", 1)[1]:
        assert not body.rsplit("\\end{table}", 1)[1].strip(), "the notes are in the float"
