"""A page of headings, sentences and tables, and its writers: plain text, Markdown, HTML."""

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from html import escape

from msgspec import Struct, field

from kduel.core.text import PLAIN_WIDTH, cut_in_the_middle, visible
from kduel.report.content.closing import with_command
from kduel.report.markdown import escape_markdown

WIDEST_CELL, NARROWEST_CELL = 60, 13


class CampaignTable(Struct, kw_only=True):
    """Cells as text; the columns from `numbers_from` on are set to the right."""

    head: list[str]
    rows: list[list[str]]
    numbers_from: int = 1


class PageSection(Struct, kw_only=True):
    """A heading with sentences, a table, and sentences below it."""

    heading: str
    """Empty for the answer, which stands below the title."""
    lead: str = ""
    """What is to be read first."""
    sure: list[str] = field(default_factory=list)
    """Sentences on how sure that is."""
    step: str = ""
    """What to do next."""
    command: str = ""
    sentences: list[str] = field(default_factory=list)
    table: CampaignTable | None = None
    bullets: list[str] = field(default_factory=list)
    folded: bool = False
    """Whether a page that can be unfolded shows only the heading first."""


class CampaignPage(Struct, kw_only=True):
    """The content of a report before it is written in any format. No string in it is trusted."""

    title: str
    sections: list[PageSection]


def changed_lines(changed: Mapping[str, Sequence[str]]) -> list[str]:
    """By run, what was changed in it after it had been measured."""
    return [f"{run} was changed afterwards: {what}." for run, changes in changed.items() for what in changes]


def text(page: CampaignPage) -> str:
    """Plain text. Tables are as wide as they must be."""
    lines = [visible(page.title), ""]
    for section in page.sections:
        lines += [visible(section.heading), "-" * len(visible(section.heading))] if section.heading else []
        for sentence in filter(None, [section.lead, " ".join(section.sure)]):
            lines += textwrap.wrap(visible(sentence), PLAIN_WIDTH)
        lines += with_command(section.step, visible(section.command), PLAIN_WIDTH) if section.step else []
        for sentence in section.sentences:
            lines += textwrap.wrap(visible(sentence), PLAIN_WIDTH)
        if section.table is not None:
            lines += plain_table(section.table)
        for bullet in section.bullets:
            lines += textwrap.wrap(visible(bullet), PLAIN_WIDTH, initial_indent="- ", subsequent_indent="  ")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def plain_table(table: CampaignTable) -> list[str]:
    """In columns, as wide as fits; a long cell goes on in the lines below."""
    gaps = 2 * (len(table.head) - 1)
    for widest in range(WIDEST_CELL, NARROWEST_CELL - 1, -1):
        rows = [[textwrap.wrap(visible(cell), widest) or [""] for cell in row] for row in [table.head, *table.rows]]
        widths = [max(len(line) for row in rows for line in row[number]) for number in range(len(table.head))]
        if sum(widths) + gaps <= PLAIN_WIDTH:
            break
    lines = []
    for number, row in enumerate(rows):
        for height in range(max(len(cell) for cell in row)):
            parts = [cell[height] if height < len(cell) else "" for cell in row]
            padded = [
                part.rjust(width) if place >= table.numbers_from else part.ljust(width)
                for place, (part, width) in enumerate(zip(parts, widths, strict=True))
            ]
            lines.append("  ".join(padded).rstrip())
        if number == 0:
            lines.append("  ".join("-" * width for width in widths))
    return lines


def markdown_page(page: CampaignPage) -> str:
    """Page in Markdown, as GitHub and GitLab read it."""
    parts = [f"# {escape_markdown(visible(page.title))}"]
    for section in page.sections:
        parts += [f"## {escape_markdown(visible(section.heading))}"] if section.heading else []
        parts += [f"**{escape_markdown(visible(section.lead))}**"] if section.lead else []
        parts += [escape_markdown(visible(sentence)) for sentence in said_below(section)]
        if section.table is not None:
            table = section.table
            rules = ["---" if place < table.numbers_from else "--:" for place in range(len(table.head))]
            rows = [table.head, rules, *table.rows]
            parts.append(
                "\n".join(
                    f"| {' | '.join(cell if row is rules else escape_markdown(visible(cell)) for cell in row)} |"
                    for row in rows
                )
            )
        if section.bullets:
            parts.append("\n".join(f"- {escape_markdown(visible(bullet))}" for bullet in section.bullets))
    return "\n\n".join(parts) + "\n"


def said_below(section: PageSection) -> list[str]:
    """The sentences below the lead, a paragraph each."""
    step = f"Next: {section.step} {section.command}".rstrip() if section.step else ""
    return [*filter(None, (" ".join(section.sure), step)), *section.sentences]


HEAD = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
NOT_BROKEN = r'<span class="option">\1</span>'
"""An option of a command, which a narrow window would break behind its first hyphen."""
STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:75em;overflow-wrap:anywhere;margin:2em auto;padding:0 1em;color-scheme:light dark}"
    "h1{font-size:1.4em}svg{max-width:100%;height:auto}div{overflow-x:auto}table{border-collapse:collapse}"
    "th,td{overflow-wrap:break-word;padding:.25em .7em;border-bottom:1px solid #8886;vertical-align:top;text-align:left}"
    "summary h2{display:inline;font-size:1.1em}details{margin:.6em 0}"
    ".option{white-space:nowrap}.n{text-align:right;font-variant-numeric:tabular-nums}.answer{font-size:1.15em;font-weight:600}"
    "@media screen and (max-width:40em){.cards thead{display:none}.cards tr{display:block;padding:.5em 0;border-bottom:1px solid #8886}"
    ".cards td{display:flex;justify-content:space-between;gap:1em;border:0;padding:.1em 0;text-align:right}.cards td::before{content:attr(data-label);opacity:.75}}"
)


def html(page: CampaignPage, picture: str = "") -> str:
    """One file that needs no other. `picture` is our own SVG, put below the first sentences."""

    def safe(words: str) -> str:
        return escape(visible(words)).replace(" %", "&nbsp;%")

    parts = [f"<h1>{safe(page.title)}</h1>"]
    for number, section in enumerate(page.sections):
        heading = f"<h2>{safe(section.heading)}</h2>" if section.heading else ""
        parts.append(f"<details><summary>{heading}</summary>" if section.folded else heading)
        parts += [f'<p class="answer">{safe(section.lead)}</p>'] if section.lead else []
        command = safe(section.command)
        code = f"<code>{re.sub(r'(?<= )(-[a-z-]+)', NOT_BROKEN, command)}</code>"
        for sentence in map(safe, said_below(section)):
            pasted = bool(command) and sentence.endswith(f" {command}")
            parts.append(f"<p>{sentence.removesuffix(command) + code if pasted else sentence}</p>")
        parts.append(picture if number == 0 else "")
        if section.table is not None:
            parts.append(f'<div tabindex="0"><table class="cards">{html_rows(section.table, safe)}</table></div>')
        if section.bullets:
            parts.append(f"<ul>{''.join(f'<li>{safe(bullet)}</li>' for bullet in section.bullets)}</ul>")
        parts.append("</details>" if section.folded else "")
    head = f"{HEAD}<title>{safe(cut_in_the_middle(page.title, 70))}</title><style>{STYLE}</style>"
    body = "\n".join(part for part in parts if part)
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body><main>\n{body}\n</main></body></html>\n'


def html_rows(table: CampaignTable, safe: Callable[[str], str]) -> str:

    def cell(place: int, words: str, tag: str) -> str:
        one = tag if words else "td"  # an empty head is none
        mark = ' scope="col"' if one == "th" else ""
        mark += f' data-label="{safe(label)}"' if tag == "td" and (label := table.head[place]) else ""
        mark += ' class="n"' if place >= table.numbers_from else ""
        return f"<{one}{mark}>{safe(words)}</{one}>"

    def line(cells: Sequence[str], tag: str) -> str:
        return "".join(cell(place, words, tag) for place, words in enumerate(cells))

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in table.rows)
    return f"<thead><tr>{line(table.head, 'th')}</tr></thead><tbody>{body}</tbody>"


FORMATS: dict[str, Callable[[CampaignPage], str]] = {"text": text, "markdown": markdown_page, "html": html}
"""Writers of a page by the names that `--format` takes."""
