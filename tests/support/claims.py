"""Kinds of run and all that is written about them, for the check that no output claims more than the results hold.

What may not be claimed has no influence: that is the check, and it knows no format. A verdict is replaced by its opposite where
it is not to be claimed, and every output must stay as it was; a verdict that only hints may change nothing but what is called
exploratory. A report format that is added is found by itself.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from examples import single
from factor_runs import COMMAND, HEAD, JOB, KERNELS, THP, make_factor_run, with_interaction
from made_runs import make_run
from pages import KINDS as PAGES
from pages import ROOT

from kduel.analysis.index import SCHEMA
from kduel.analysis.index_rows import add_run
from kduel.cli.write_up import conclude
from kduel.core.metric_results import HARNESS, FindingResult, MachineEffect, MachinesResult, MetricResult
from kduel.core.plugins import plugins
from kduel.core.results import Results
from kduel.judge.evaluate import judge_path, judge_run
from kduel.judge.factors.headline import factor_headlines
from kduel.judge.verdict.headline import headlines
from kduel.judge.verdict.rule import gating_rule
from kduel.judge.verdict.wording import verdict_text, withhold
from kduel.report import report_format
from kduel.report.site.content import STRIP_MEANS, pages
from kduel.report.text import show_closing
from kduel.report.versions import parts_of
from kduel.store.merged import merge

AUDIT = """
[[factor]]
name = "audit"
levels = { on = {}, off = { cmdline = "audit=0" } }
"""
FRACTION = "[design]\nfraction = 2\n"
"""A third factor in half of the cells: each effect has an alias."""


def fraction(place: Path) -> Results:
    """Half of the cells of three factors, in which the kernel's effect depends on huge pages."""
    return judge_run(
        make_factor_run(place / "fraction", HEAD + KERNELS + THP + AUDIT + FRACTION + JOB + COMMAND, with_interaction)
    )


def three_way(place: Path) -> Results:
    """All cells of three factors: the kernel's effect depends on both others together, and on neither by itself."""

    def value(levels: dict[str, str], draw: np.random.Generator) -> float:
        odd = (levels["kernel"] == "installed-new") ^ (levels["thp"] == "always") ^ (levels["audit"] == "off")
        return 10 * math.exp(
            0.05 * (levels["kernel"] == "installed-new") + 0.03 * odd + 0.002 * draw.standard_normal()
        )

    study = HEAD + KERNELS + THP + AUDIT + "[design]\ninteractions = 3\n" + JOB + COMMAND
    return judge_run(make_factor_run(place / "three-way", study, value))


def interrupted(place: Path) -> Results:
    """Seven of at most twenty blocks."""
    return judge_run(make_run(place / "interrupted", 3.0, blocks=7, most=20, sd_pct=2.0))


def contradicting(place: Path) -> Results:
    """Two machines of which one is faster, the other slower."""
    parts = [
        make_run(place / name, effect, place=name, blocks=10, most=10, seed=seed)
        for seed, (name, effect) in enumerate((("rack1", 6.0), ("rack2", -3.0)), 1)
    ]
    merge(parts, place / "merged")
    return judge_run(place / "merged")


KINDS: dict[str, Callable[[Path], Results]] = PAGES | {
    "interrupted": interrupted,
    "one trial each": lambda _: single(),
    "fraction": fraction,
    "three-way interaction": three_way,
    "contradicting": contradicting,
    "published table": lambda _: judge_path(ROOT / "studies/published/generations.csv"),
}
"""The default run, an interrupted one, one trial each, policies, factors with aliases, tails, imports, machines that contradict
each other, counts, three contenders. All are written into a site of two runs, too."""


def site_of(results: Results, place: Path) -> str:
    """All pages of a site of two runs, and what questions to the index are answered from."""
    path = place / "index.sqlite"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA)
        connection.execute("PRAGMA user_version = " + str(index_version()))
        for name in ("first", "second"):
            add_run(connection, name, "", results)
        connection.commit()
        rows = [str(row) for row in connection.execute("SELECT * FROM headline")]
    for page in pages(path, {}):
        for section in page.sections:
            legends = [STRIP_MEANS.format(link=link) for link in ("", ", and leads to its report")]
            sentences = [one for one in section.sentences if one not in legends]
            rows += [f"# {page.title}, {section.heading}", *sentences, *map(repr, section.charts)]
            if section.table:
                rows += [f"{cells[0].text}: {cells[1:]}" for cells in section.table.rows]
    return "\n".join(rows)


def index_version() -> int:
    """The version that the program writes."""
    from kduel.analysis import index

    return index.VERSION


def raw(text: str) -> str:
    """results.json without the rule's own verdicts: it is what programs read them from, beside the status."""
    return re.sub(r'^\s*"(verdict|below_delta)": .*$', "", text, flags=re.MULTILINE)


def outputs(results: Results, place: Path) -> dict[str, str]:
    """All that is written about a run, by its name: each report format there is, the last screen, the exit status, the site."""
    found = {}
    for name in plugins("report"):
        if name == "versions" and not parts_of(results):
            continue
        text = report_format(name).render(results)
        found[name] = raw(text) if name == "json" else text
    found["last screen"] = show_closing(results, "RUN", 3)
    found["exit status"] = str(conclude(results, "slower"))
    found["site"] = site_of(results, place)
    return found


def copied(results: Results) -> Results:
    """A copy to be changed."""
    return msgspec.json.decode(msgspec.json.encode(results), type=Results)


def told_again(results: Results) -> Results:
    """The results with all words that the judge derives from verdicts made anew."""
    rule = gating_rule(results)
    if results.exact is not None:
        told_again(results.exact)
    for metric in every_verdict(results):
        metric.told = verdict_text(metric, rule, len(results.blocks))
        withhold(metric)
    results.headlines = headlines(results) if not results.effects else factor_headlines(results)
    return results


def judged(results: Results) -> list[MetricResult]:
    """Every verdict of a run that decides or hints."""
    return [one.result for one in results.effects] or results.metrics


def every_verdict(results: Results) -> Iterator[MetricResult]:
    """All verdicts of a run, its rankings and its exact part."""
    yield from results.metrics
    yield from (one.result for one in results.effects)
    yield from (one for ranking in results.rankings for one in ranking.results)
    if results.exact is not None:
        yield from every_verdict(results.exact)


def tear(metric: MetricResult) -> None:
    """Let one of two machines contradict the other."""
    metric.warnings = [*metric.warnings, FindingResult(code="machines-disagree", message="m1 contradicts the others")]
    metric.machines = MachinesResult(
        scope="these",
        effects=[
            MachineEffect(
                machine=f"m{number}", n=6, effect=number - 0.5, low=number - 0.6, high=number - 0.4,
                others=0.5 - number, differs=number > 0, contradicts=number > 0,
            )
            for number in range(2)
        ],
        pooled=0.0, low=-0.1, high=0.1, spread=None, spread_low=None, spread_high=None,
    )  # fmt: skip


def set_by_harness(metric: MetricResult) -> None:
    """Let the benchmark's settings determine the metric."""
    metric.warnings = [*metric.warnings, FindingResult(code=HARNESS, message="set")]


FORBIDDEN: dict[str, Callable[[MetricResult], None]] = {"contradicted": tear, "set by the harness": set_by_harness}
"""Ways in which a verdict of the rule may not be said of the kernels."""


def opposites(metric: MetricResult) -> list[dict[str, Any]]:
    """Verdicts that the metric might have had."""
    words = ("more", "fewer", "equal") if metric.scale == "exact" else ("faster", "slower", "equivalent")
    return [{"verdict": word, "below_delta": False} for word in words] + [{"verdict": words[0], "below_delta": True}]


CLAIM = re.compile(
    r"\b(?:faster|slower|better|worse|beats|beaten|equivalent|equal|fewer|more instructions|larger|smaller|quicker"
    r"|[Cc]osts?:? (?=\d|\w+/)|[Gg]ains?:? (?=\d|\w+/)|differs?|the same|improve\w*|regress\w*|FAIL|PASS)\b|[▲▼≈★☆]"
)
"""What a claim of a difference or of equivalence has."""
NO_CLAIM = re.compile(
    r"(?:higher|lower|neither way|more|upper right) is better|not the same as equal|better\W+(?:lower|higher|none)"
    r"|◂ worse, better ▸|the better side|≈ are shown to differ|differ in (?:one|more)|what differs|(?:slower|faster) than linear"
    r"|would be \w+ instead|smaller differences|in the same order|differ the other way|differ by another size"
    r"|nothing counts as equivalent|better half|a larger delta|worse violated|better holds|the same numbers",
    re.IGNORECASE,
)
"""What has the words of a claim and is none."""
HINT = re.compile(r"exploratory|hint", re.IGNORECASE)
VOID = frozenset(("meta", "link", "br", "wbr", "input", "img", "hr"))
BLOCKS = frozenset(
    ("p", "li", "tr", "h1", "h2", "h3", "caption", "summary", "figcaption", "text", "title", "testcase", "suite")
)
SCOPES = frozenset(("section", "article", "details", "table", "div", "body", "main", "aside", "svg"))
MARK = "mark within a row"
TITLES = frozenset(("h1", "h2", "h3", "caption", "summary"))


class Piece(NamedTuple):
    """What is read by itself, and the headings that it stands under."""

    heading: str
    text: str

    @property
    def claim(self) -> str:
        """The text, if it claims anything; else empty."""
        return self.text if CLAIM.search(NO_CLAIM.sub(" ", self.text)) else ""

    @property
    def hint(self) -> bool:
        """Whether it says that it decides nothing, itself or by a heading."""
        return HINT.search(" ".join(self)) is not None


class Outline(HTMLParser):
    """The text of a page in pieces, each behind the headings that hold for it; colours are words, too."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Piece] = []
        self.scopes: list[list[str]] = [[]]
        self.stack: list[str] = []
        self.words: list[str] = []

    def flush(self) -> None:
        text = " ".join(" ".join(self.words).split())
        self.words = []
        if text:
            self.found.append(Piece(" | ".join(" ".join(scope) for scope in self.scopes if scope), text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in VOID:
            return
        if tag == "svg" and (dict(attrs).get("class") or "").startswith("interval"):
            # A mark within a row, which is read as one.
            tag = MARK
        if tag in BLOCKS | SCOPES:
            self.flush()
        if tag in SCOPES:
            self.scopes.append([])
        self.stack.append(tag)
        self.words += [
            value or ""
            for name, value in attrs
            if name in ("class", "aria-label", "title", "fill") and value != "term"
        ]

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.stack):
            self.words.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "svg" and next((one for one in reversed(self.stack) if one in ("svg", MARK)), "") == MARK:
            tag = MARK
        if tag not in self.stack:
            return
        while self.stack:
            ended = self.stack.pop()
            if ended in TITLES:
                self.scopes[-1].append(" ".join(self.words))
            if ended in BLOCKS | SCOPES:
                self.flush()
            if ended in SCOPES:
                self.scopes.pop()
            if ended == tag:
                break


def pieces(text: str) -> Iterator[Piece]:
    """The pieces of an output that are read by themselves, each behind its headings: elements of a page, objects of JSON,
    paragraphs and rows of plain text."""
    if text.lstrip().startswith("<"):
        outline = Outline()
        outline.feed(text)
        outline.flush()
        yield from outline.found
        return
    if text.lstrip().startswith("{"):
        for one in re.split(r"\n\s*\{", text):
            yield Piece("", " ".join(one.split()))
        return
    yield from paragraphs(text)


def paragraphs(text: str) -> Iterator[Piece]:
    """Lines with those that continue them, behind the last heading: a line that nothing but a heading is."""
    heading, held = "", ""
    for line in [*text.splitlines(), ""]:
        if re.fullmatch(r"[-=─]{4,}", line):
            heading, held = held, ""
            continue
        continues = held and re.match(r" +(?![-+•→!\d ])|[a-z(](?!.*  )", line)
        if continues:
            held += " " + line.strip()
            continue
        if held:
            yield Piece(heading, held)
        if is_heading(line):
            heading = line
        held = line
    if held:
        yield Piece(heading, held)


def is_heading(line: str) -> bool:
    """True for a short line that stands above others: of markup, with a colon at its end, or of letters alone."""
    bare = line.strip("#*=-_ \\{}")
    return bool(bare) and (
        line.startswith(("#", "**", r"\multicolumn"))
        or re.fullmatch(r"[A-Za-z][A-Za-z ,:'-]{2,60}", line) is not None
    )
