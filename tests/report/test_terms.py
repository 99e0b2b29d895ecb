"""Terms of the page: linked at their first use in prose, and explained as the glossary explains them."""

from __future__ import annotations

import re
from pathlib import Path

from examples import hostile, simulated, undecided

from kduel.report import report_format
from kduel.report.page.glossary import TERMS, link_terms, term_id

GLOSSARY = Path(__file__).parents[2] / "docs/glossary.md"


def test_a_term_means_on_the_page_what_it_means_in_the_glossary() -> None:
    rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", GLOSSARY.read_text("utf-8"), re.M))
    # The glossary goes on where the page ends.
    assert {term: rows.get(term, "")[: len(text)] for term, text in TERMS.items()} == TERMS


def test_each_is_linked_once_where_it_is_first_used_and_explained() -> None:
    page = report_format("html").render(undecided())
    links = re.findall(r'<a class="term" href="#([^"]*)">', page)
    assert {"term-undecided", "term-primary-metric", "term-interval", "term-would-have-seen"} <= set(links)
    assert len(links) == len(set(links)) and sorted(links) == re.findall(r'<dt id="([^"]*)">', page)
    assert page.index("term-undecided") < page.index("<main>"), "the answer has it first"


def test_only_prose_is_linked() -> None:
    made = (
        "<body><summary>delta</summary><p>x <code>delta</code> <a href='#x'>delta</a> deltas</p>"
        '<table><tr><th scope="row">void</th><td>void</td></tr></table><svg><text>trial</text></svg><pre>block</pre></main>'
    )
    page = link_terms(made)
    assert page.count('class="term"') == 1 and f'<a class="term" href="#{term_id("delta")}">deltas</a></p>' in page
    assert link_terms("<body><p>nothing</p></main>") == "<body><p>nothing</p></main>"


def test_a_strangers_strings_stay_escaped() -> None:
    page = report_format("html").render(hostile())
    assert '<script>alert("x")</script>' not in page and page.count("<script>") == 1


def test_no_page_says_min_detectable() -> None:
    assert "min. detectable" not in report_format("html").render(simulated())
