"""Markdown with tables, as GitHub and GitLab read it: for issues, merge requests and wikis."""

from __future__ import annotations

import re
from typing import ClassVar

from kduel.core.format import effect, interval_text, means
from kduel.core.results import MetricResult, Results
from kduel.core.text import visible
from kduel.judge.verdict.headline import decided
from kduel.report import Format
from kduel.report.content.counted import MODES_HEADING, modes_of, name, with_modes
from kduel.report.content.digest import SIGNS, ContenderSummary, Digest, digest, sided
from kduel.report.content.machines import HEAD, machine_tables, part_facts
from kduel.report.content.methods import methods
from kduel.report.content.notes import key

SPECIAL = re.compile(r"[\\`*\[\]<>|~&$#!@]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "|": "&#124;", "@": "&#64;", "`": "&#96;", "$": "&#36;"}


class MarkdownFormat(Format):
    """Verdict words, tables, notes."""

    name: ClassVar[str] = "markdown"
    summary: ClassVar[str] = "tables and words for issues and merge requests"
    suffix: ClassVar[str] = ".md"

    def render(self, results: Results) -> str:
        said = digest(results)
        parts = [f"# {escaped(said.title)}", escaped(" · ".join(said.facts))]
        for comparison in said.comparisons:
            parts += comparison_parts(comparison, said)
        for found in machine_tables(results):
            parts.append(f"## Machines, {escaped(found.title)}")
            rows = [f"| {' | '.join(map(escaped, row))} |" for row in (HEAD, *(row.cells for row in found.rows))]
            parts.append("\n".join([rows[0], "|---|--:|--:|--:|---|", *rows[1:]]))
            parts.append(escaped(found.spread))
        if facts := part_facts(results):
            parts += ["## Merged from", bullets(facts)]
        if said.notes.notes:
            parts.append("## Findings")
            chosen = said.notes.chosen(self.all_findings)
            parts.append(
                "\n".join(f"{f'{number}.' if number else '   -'} {escaped(words)}" for number, words in chosen)
            )
            parts.append("" if self.all_findings else escaped(said.notes.hidden))
        parts += ["## How sure", bullets([said.sure, *said.caveats])]
        parts += ["## Methods", *(escaped(paragraph) for paragraph in methods(results))]
        return "\n\n".join(part for part in parts if part) + "\n"


PLUGIN = MarkdownFormat()


def comparison_parts(comparison: ContenderSummary, said: Digest) -> list[str]:
    """One contender against the baseline."""
    parts = [f"## {escaped(comparison.headline)}"]
    for heading, metrics in (
        ("Primary metrics", comparison.primary),
        ("Exploratory metrics", comparison.exploratory),
    ):
        if metrics:
            both = comparison.primary and comparison.exploratory
            parts.append((f"**{heading}**\n\n" if both else "") + table(comparison, metrics, said))
    if modal := with_modes(comparison):
        parts += [f"**{MODES_HEADING.capitalize()}**", bullets([modes_sentence(metric) for metric in modal])]
    if comparison.can:
        parts += ["**What can be concluded**", bullets(comparison.can)]
    if comparison.cannot:
        parts += ["**What cannot be concluded**", bullets(comparison.cannot)]
    return parts


def modes_sentence(metric: MetricResult) -> str:
    """`shell: 887,907 (40 %), 862,606 (35 %) → 886,780 (40 %)`."""
    before, after = (modes_of(metric.modes.get(arm, [])) for arm in (metric.baseline, metric.contender))
    return f"{name(metric)}: {before} → {after}"


def table(comparison: ContenderSummary, metrics: list[MetricResult], said: Digest) -> str:
    """One row a metric."""
    names = escaped(comparison.baseline), escaped(comparison.contender)
    head = f"| metric | verdict | change | interval | {names[0]} | {names[1]} | n | notes |"
    rows = [row(metric, said) for metric in metrics]
    return "\n".join([head, "|---|---|--:|--:|--:|--:|--:|---|", *rows])


def row(metric: MetricResult, said: Digest) -> str:
    """A metric's row; the verdict in bold where a difference was shown."""
    verdict = f"{SIGNS[metric.verdict]} {metric.word}"
    if decided(metric):
        verdict = f"**{verdict}**" + (f", {metric.size}" if metric.size else "")
    marks = ", ".join(str(number) for number in said.notes.marks_of(metric))
    cells = (
        f"{escaped(key(metric))} ({escaped(visible(metric.unit, 40))}, {sided(metric)})",
        verdict,
        escaped(effect(metric)),
        escaped(interval_text(metric)),
        *means(metric),
        str(metric.n),
        marks,
    )
    return f"| {' | '.join(cells)} |"


def bullets(sentences: list[str]) -> str:
    """A list."""
    return "\n".join(f"- {escaped(sentence)}" for sentence in sentences if sentence)


def escaped(text: str) -> str:
    """Text that Markdown shows as it is: nothing in it is markup, HTML, a link or a mention."""
    return SPECIAL.sub(lambda match: ENTITIES.get(match[0], f"\\{match[0]}"), text)
