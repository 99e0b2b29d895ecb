"""The terminal's report: a table with two lines a metric, the notes below it, and last what can be concluded."""

from __future__ import annotations

import os
import shutil
import sys
from io import StringIO
from typing import TYPE_CHECKING, ClassVar

from kduel.analysis.matrix import shape
from kduel.core.results import Results
from kduel.core.text import PLAIN_WIDTH, align_columns, obeys_escapes
from kduel.report import DEFAULTS, Format, ReportOptions
from kduel.report.content.answer import answer
from kduel.report.content.closing import EXACT_MEANS, closing, with_command
from kduel.report.content.counted import counted_lines, is_counted
from kduel.report.content.digest import ContenderSummary, Digest, digest
from kduel.report.content.factors import cell_lines, factor_groups
from kduel.report.content.machines import HEAD, machine_tables
from kduel.report.content.matrixtext import all_placed, leads, matrix_parts
from kduel.report.content.ranking import ranking_lines
from kduel.report.content.tails import bound_lines, tail_lines
from kduel.report.content.textgrid import verdict_lines
from kduel.report.page.tradeoffs import scaling_lines, tradeoffs_lines
from kduel.store.rundir import EXACT

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PLAIN_HEIGHT = 24
NARROWEST = 60


class TextFormat(Format):
    """Plain text. `show` is the same, fitted to the terminal and coloured where it may be."""

    name: ClassVar[str] = "text"
    summary: ClassVar[str] = "a table and plain words for the terminal"
    suffix: ClassVar[str] = ".txt"

    def render(self, results: Results, options: ReportOptions = DEFAULTS) -> str:
        return render_text(results, width=PLAIN_WIDTH, colour=False, all_findings=options.all_findings)


PLUGIN = TextFormat()


def show(results: Results, *, all_findings: bool = False, run: str = "") -> str:
    """The report for standard output: its width, and colour only on a terminal where NO_COLOR is not set. `run` is the
    directory as the user may type it; without it no command is shown."""
    _, _, colour = standard_output()
    return render_text(results, width=page_width(), colour=colour, all_findings=all_findings, run=run)


def show_closing(results: Results, run: str, lines_besides: int) -> str:
    """The result on one screen of standard output, with so many lines left for others."""
    from rich.text import Text

    width, height, colour = standard_output()
    out, console = page(width, colour)
    for line in closing(results, run, max(40, width), max(12, height - lines_besides)):
        console.print(Text.assemble(*line), no_wrap=True, overflow="ignore", crop=False)
    return out.getvalue()


def page_width() -> int:
    return max(NARROWEST, standard_output()[0])


def standard_output() -> tuple[int, int, bool]:
    """Columns, rows, and whether there may be colour."""
    if not sys.stdout.isatty():
        return PLAIN_WIDTH, PLAIN_HEIGHT, False
    width, height = shutil.get_terminal_size((PLAIN_WIDTH, PLAIN_HEIGHT))
    return min(width, 120), height, obeys_escapes() and not os.environ.get("NO_COLOR")


def render_text(results: Results, *, width: int, colour: bool, all_findings: bool = False, run: str = "") -> str:
    """The report in lines of at most `width` columns; with terminal escapes only where `colour`."""
    from rich.text import Text

    out, console = page(width, colour)
    said = digest(results, run or "RUN")
    title = " · ".join([said.title, *said.facts])
    console.print(title, style="bold")
    found = answer(results, run or "RUN")
    console.print(found.text, style="bold")
    print_next(console, found.step, found.command)
    for counted in said.before:
        print_exact_part(console, counted, f"{run}/{EXACT}" if run else "")
        console.print(said.second, style="bold")
    matrix = shape(results) if all_placed(results) else None
    if matrix is not None and leads(matrix, results):
        for part in matrix_parts(matrix, results):
            console.print()
            console.print(part, overflow="ignore", no_wrap=True, crop=False)
        console.print()
        where = f"kduel report {run} --format markdown" if run else "in the formats markdown, csv and html"
        console.print(f"Each of the {len(results.metrics)} verdicts: {where}", soft_wrap=True)
    else:
        matrix = None
    for comparison in said.comparisons:
        console.print()
        console.print(comparison.headline, style="bold reverse" if colour else None)
        if matrix is None and is_counted(results):
            for line in counted_lines(comparison, width, run):
                console.print(Text.assemble(*line), overflow="fold")
        elif comparison.gating and (matrix is None or results.effects):
            for line in verdict_lines(comparison, said.notes, width):
                console.print(Text.assemble(*line), overflow="fold")
    print_lines(console, "Ranking", ranking_lines(results))
    for comparison in said.comparisons:
        if is_counted(results):
            comparison.can = []  # the lines above say each
        print_conclusions(console, comparison, several=len(said.comparisons) > 1)
    print_notes(console, said, all_findings)
    for table in machine_tables(results):
        lines = align_columns([HEAD, *(row.cells for row in table.rows)], left=(0, len(HEAD) - 1))
        print_lines(console, f"Machines, {table.title}", [*lines, *([table.spread] if table.spread else [])])
    for group in factor_groups(results):
        print_lines(console, f"Cells, {'/'.join(group.group)}", cell_lines(group))
    print_lines(console, "Bound", bound_lines(results))
    print_lines(console, "Tails", tail_lines(results))
    print_lines(console, "Trade-offs", tradeoffs_lines(results, width))
    print_lines(console, "Threads", scaling_lines(results))
    for heading, sentences in (("Measured", said.measured), ("How sure", [said.sure, *said.own_caveats])):
        console.print()
        console.print(heading, style="bold")
        console.print(bullets([("", sentence) for sentence in sentences if sentence]))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def page(width: int, colour: bool) -> tuple[StringIO, Console]:
    """A place to print to, and rich's console that prints there, independent of the environment."""
    from rich.console import Console

    out = StringIO()
    console = Console(
        file=out, width=width, force_terminal=colour, color_system="standard" if colour else None,
        no_color=not colour, highlight=False, markup=False, emoji=False, legacy_windows=False, _environ={},
    )  # fmt: skip
    return out, console


def bullets(rows: list[tuple[str, str]], mark_style: str = "") -> Table:
    """Lines with a hanging indent behind their mark."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", no_wrap=True, min_width=3)
    grid.add_column(overflow="fold")
    for mark, words in rows:
        grid.add_row(Text(mark, style=mark_style), Text(words))
    return grid


def print_next(console: Console, step: str, command: str) -> None:
    """The next step, with a command that can be pasted."""
    for line in with_command(step, command, console.width):
        console.print(line, no_wrap=True, overflow="ignore", crop=False)


def print_exact_part(console: Console, said: Digest, run: str) -> None:
    """Print what was counted before the rest, apart from what follows."""
    from rich.text import Text

    console.print()
    console.print(f"Counted first: {' · '.join([said.title, *said.facts])}", style="bold")
    for comparison in said.comparisons:
        console.print(comparison.headline)
        for line in counted_lines(comparison, console.width, run):
            console.print(Text.assemble(*line), overflow="fold")
    console.print(EXACT_MEANS)
    console.print()


def print_notes(console: Console, said: Digest, all_findings: bool) -> None:
    """The most important notes with their numbers, or all of them with all that belongs to each."""
    if not said.notes.notes:
        return
    console.print()
    console.print("Findings", style="bold")
    console.print(bullets(said.notes.chosen(all_findings), "yellow"))
    if more := "" if all_findings else said.notes.hidden_sentence:
        console.print(f"    {more}")


def print_conclusions(console: Console, comparison: ContenderSummary, *, several: bool) -> None:
    of = f" of {comparison.subject}" if several else ""
    for heading, mark, sentences in comparison.conclusion_lists:
        console.print()
        console.print(f"{heading}{of}", style="bold")
        console.print(bullets([(mark, sentence) for sentence in sentences]))


def print_lines(console: Console, heading: str, lines: list[str]) -> None:
    """Lines below their heading; nothing where there are none."""
    if lines:
        console.print()
        console.print(heading, style="bold")
        for line in lines:
            console.print(line, overflow="fold")
