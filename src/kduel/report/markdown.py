"""Markdown with tables, as GitHub and GitLab read it: for issues, merge requests and wikis."""

import re
from typing import ClassVar

from kduel.core.format import effect, interval_text, means
from kduel.core.metric_results import MetricResult
from kduel.core.results import Results
from kduel.judge.verdict.headline import shows_difference
from kduel.report import DEFAULTS, Format, ReportOptions
from kduel.report.content.answer import answer
from kduel.report.content.counted import MODES_HEADING, modes_of, name, with_modes
from kduel.report.content.digest import ContenderSummary, Digest, digest, sign_of, unit_and_side
from kduel.report.content.machines import HEAD, machine_tables
from kduel.report.content.methods import methods
from kduel.report.content.notes import key, split_code
from kduel.report.content.ranking import RANKING_MEANS, ranking_rows, ranking_title, verdict_note
from kduel.report.content.tails import bound_lines, tail_lines
from kduel.report.content.textgrid import shows_counts, shows_intervals

SPECIAL = re.compile(r"[\\`*\[\]<>|~&$#!@]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "|": "&#124;", "`": "&#96;", "$": "&#36;", "@": "@"}
REFERENCE = re.compile(
    r"[@~%](?=\w)|[#!&$](?=\d)|:(?=//)|\bwww(?=\.)|\bGH(?=-\d)|[\[*](?=\w+:)|:(?=[\w+-]*[a-z][\w+-]*:)", re.IGNORECASE
)
"""What begins a link or an emoji, or mentions somebody, an issue, a merge request, an epic, a label, a milestone, a snippet, a
vulnerability or an iteration: GitHub and GitLab look for it in what Markdown has become."""
APART = "\u200b"
"""A space without width, which keeps it from being one."""


class MarkdownFormat(Format):
    name: ClassVar[str] = "markdown"
    summary: ClassVar[str] = "tables and words for issues and merge requests"
    suffix: ClassVar[str] = ".md"

    def render(self, results: Results, options: ReportOptions = DEFAULTS) -> str:
        said = digest(results)
        parts = [f"# {escape_markdown(said.title)}", escape_markdown(" · ".join(said.facts))]
        first = answer(results)
        following = f"{first.step} `{first.command}`".removesuffix(" ``")
        parts += [f"**{escape_markdown(first.text)}**", mark_code(following)]
        for comparison in said.comparisons:
            parts += comparison_parts(comparison, said)
        parts += ranking_parts(results)
        for found in machine_tables(results):
            parts.append(f"## Machines, {escape_markdown(found.title)}")
            rows = [
                f"| {' | '.join(map(escape_markdown, row))} |" for row in (HEAD, *(row.cells for row in found.rows))
            ]
            parts.append("\n".join([rows[0], "|---|--:|--:|--:|---|", *rows[1:]]))
            parts.append(escape_markdown(found.spread))
        for heading, lines in (("Bound", bound_lines(results)), ("Tails", tail_lines(results))):
            if lines:
                parts += [f"## {heading}", bullets(lines)]
        if said.notes.notes:
            parts.append("## Findings")
            chosen = said.notes.chosen(options.all_findings)
            parts.append(
                "\n".join(f"{f'{number}.' if number else '   -'} {mark_code(words)}" for number, words in chosen)
            )
            parts.append("" if options.all_findings else mark_code(said.notes.hidden_sentence))
        parts += ["## Measured", bullets(said.measured)]
        parts += ["## How sure", bullets([said.sure, *said.caveats])]
        parts += ["## Methods", *map(mark_code, methods(results))]
        return "\n\n".join(part for part in parts if part) + "\n"


PLUGIN = MarkdownFormat()


def comparison_parts(comparison: ContenderSummary, said: Digest) -> list[str]:
    parts = [f"## {escape_markdown(comparison.headline)}"]
    for heading, metrics in (
        ("Primary metrics", comparison.primary),
        ("Exploratory metrics", comparison.exploratory),
    ):
        if metrics:
            both = comparison.primary and comparison.exploratory
            parts.append((f"**{heading}**\n\n" if both else "") + table(comparison, metrics, said))
    modal = []
    for one in with_modes(comparison):
        before, after = (modes_of(one.modes.get(arm, [])) for arm in (one.baseline, one.contender))
        modal.append(f"{name(one)}: {before} → {after}")
    parts += [f"**{MODES_HEADING.capitalize()}**", bullets(modal)] if modal else []
    for heading, _, sentences in comparison.conclusion_lists:
        parts += [f"**{heading}**", bullets(sentences)]
    return parts


def ranking_parts(results: Results) -> list[str]:
    """The rankings under their heading, a table each; none for a run without."""
    parts = []
    for ranking in results.rankings:
        rows = [
            f"| {row.rank} | {escape_markdown(row.contender)} | {escape_markdown(row.said + verdict_note(row))} |"
            for row in ranking_rows(ranking)
        ]
        parts += [
            escape_markdown(ranking_title(ranking)),
            "\n".join(["| rank | contender | against the baseline |", "|---|---|---|", *rows]),
        ]
    return ["## Ranking", *parts, RANKING_MEANS] if parts else []


def table(comparison: ContenderSummary, metrics: list[MetricResult], said: Digest) -> str:
    names = escape_markdown(comparison.baseline), escape_markdown(comparison.contender)
    bounded, several = shows_intervals(metrics), shows_counts(metrics)
    head = ["metric", "verdict", "change", *(["interval"] * bounded), *names, *(["n"] * several), "notes"]
    rows = [row(metric, said, several=several, bounded=bounded) for metric in metrics]
    return "\n".join([f"| {' | '.join(head)} |", f"|---|---|{'--:|' * (len(head) - 3)}---|", *rows])


def row(metric: MetricResult, said: Digest, *, several: bool, bounded: bool) -> str:
    """A metric's row, `several`: with n, `bounded`: with its interval; the verdict in bold where a difference was shown."""
    verdict = f"{sign_of(metric)} {metric.word}"
    if shows_difference(metric):
        verdict = f"**{verdict}**" + (f", {metric.size}" if metric.size else "")
    marks = ", ".join(str(number) for number in said.notes.marks_of(metric))
    cells = (
        f"{escape_markdown(key(metric))} ({escape_markdown(unit_and_side(metric))})",
        verdict,
        escape_markdown(effect(metric)),
        *([escape_markdown(interval_text(metric))] if bounded else []),
        *means(metric),
        *([str(metric.n)] if several else []),
        marks,
    )
    return f"| {' | '.join(cells)} |"


def bullets(sentences: list[str]) -> str:
    return "\n".join(f"- {mark_code(sentence)}" for sentence in sentences if sentence)


def mark_code(sentence: str) -> str:
    return "".join(
        f"`{part}`" if number % 2 else escape_markdown(part) for number, part in enumerate(split_code(sentence))
    )


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is: nothing in it is markup, HTML, a link or a mention."""
    text = REFERENCE.sub(lambda match: match[0] + APART, text)
    return SPECIAL.sub(lambda match: ENTITIES.get(match[0], f"\\{match[0]}"), text).replace(APART, "&#8203;")
