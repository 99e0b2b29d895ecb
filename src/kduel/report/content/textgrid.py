"""The table of verdicts in plain characters: metric and verdict in one line, its numbers in columns in the next."""

from collections.abc import Callable, Iterable, Iterator

from kduel.core.format import MISSING, arms, effect, interval_text, means
from kduel.core.metric_results import MetricResult
from kduel.judge.verdict.headline import matters, side
from kduel.report.content.digest import ContenderSummary, sign_of, unit_and_side
from kduel.report.content.notes import Notes, key

INDENT = 3
GAP = 2
WIDEST_HEADING = 18
VERDICT_WIDTH = 14

Cell = tuple[str, ...]
"""The lines of a cell."""
Line = list[tuple[str, str]]
"""Pieces of text, each with its style (rich's names)."""


def verdict_lines(
    comparison: ContenderSummary, notes: Notes, width: int, spell: Callable[[str], str] = str
) -> Iterator[Line]:
    """All metrics of a comparison, the primary ones first, in `width` columns; `spell` gives a medium's text."""
    metrics = [*comparison.primary, *comparison.exploratory]
    several = shows_counts(metrics)
    last = ("n", "notes") if several else ("notes",)
    bounded = ["interval"] if shows_intervals(metrics) else []
    headings: tuple[str, ...] = ("change", *bounded, comparison.baseline, comparison.contender, *last)
    rows = [one_line(metric, notes, spell, several=several, bounded=bool(bounded)) for metric in metrics]
    widths = column_widths(headings, rows)
    if INDENT + sum(widths) + GAP * (len(widths) - 1) > width:
        headings = ("change", comparison.baseline, comparison.contender, *last)
        rows = [stacked_cells(metric, notes, spell, several=several) for metric in metrics]
        widths = column_widths(headings, rows)
    folded = tuple(fold(spell(heading), column) for heading, column in zip(headings, widths, strict=True))
    yield from ([(line, "dim")] for line in column_lines(folded, widths))
    rule = min(width, INDENT + sum(widths) + GAP * (len(widths) - 1))
    yield [(spell("─") * rule, "dim")]
    both = bool(comparison.primary and comparison.exploratory)
    for number, (metric, row) in enumerate(zip(metrics, rows, strict=True)):
        if both and number == 0:
            yield [("primary", "italic")]
        if both and number == len(comparison.primary):
            yield []
            yield [(f"exploratory: {comparison.exploratory_note}", "italic")]
        verdict = spell(f"{sign_of(metric)} {metric.word}".strip())
        small = f"{metric.size}, " if metric.size else ""
        yield [
            (verdict.ljust(VERDICT_WIDTH), style(metric)),
            (spell(key(metric)), "bold"),
            (spell(f"  {small}{unit_and_side(metric)}"), "dim"),
        ]
        yield from ([(line, "")] for line in column_lines(row, widths))


def shows_counts(metrics: Iterable[MetricResult]) -> bool:
    """True if a table of these has a column n: not where each was measured once."""
    return any(metric.n != 1 for metric in metrics)


def shows_intervals(metrics: Iterable[MetricResult]) -> bool:
    return any(interval_text(metric) != MISSING for metric in metrics)


def one_line(
    metric: MetricResult, notes: Notes, spell: Callable[[str], str], *, several: bool, bounded: bool
) -> tuple[Cell, ...]:
    """Numbers side by side; `several`: with n, `bounded`: with the interval."""
    bounds = interval_text(metric)
    texts = (
        effect(metric),
        *([] if not bounded else ["" if bounds == MISSING else bounds]),
        *means(metric),
        *([str(metric.n)] if several else []),
        marks(metric, notes),
    )
    return tuple((spell(text),) for text in texts)


def stacked_cells(
    metric: MetricResult, notes: Notes, spell: Callable[[str], str], *, several: bool
) -> tuple[Cell, ...]:
    """For narrow places: the interval below the change, the SD below the mean; `several`: with n."""
    bounds = interval_text(metric)
    return (
        (spell(effect(metric)), *(() if bounds == MISSING else (spell(bounds),))),
        *((spell(mean), *([spell(f"± {sd}")] if sd else [])) for mean, sd in arms(metric)),
        *([(str(metric.n),)] if several else []),
        (marks(metric, notes),),
    )


def marks(metric: MetricResult, notes: Notes) -> str:
    """The numbers of its notes, five at most."""
    numbers = notes.marks_of(metric)
    return ",".join(str(number) for number in numbers[:5]) + (",.." if len(numbers) > 5 else "")


def column_widths(headings: Iterable[str], rows: list[tuple[Cell, ...]]) -> list[int]:
    """By column: its widest cell, or its heading up to WIDEST_HEADING."""
    return [
        max(min(len(heading), WIDEST_HEADING), *(len(line) for cell in column for line in cell))
        for heading, column in zip(headings, zip(*rows, strict=True), strict=True)
    ]


def fold(heading: str, width: int) -> Cell:
    """A heading in lines of that width, four at most."""
    from rich.cells import chop_cells

    chopped = chop_cells(heading, width)
    return tuple(chopped[:4]) if len(chopped) <= 4 else (*chopped[:3], "...")


def column_lines(cells: tuple[Cell, ...], widths: list[int]) -> list[str]:
    """The cells set to the right in their columns, line below line; the last column stands to the left."""
    from rich.cells import cell_len

    found = []
    for number in range(max(len(cell) for cell in cells)):
        parts = [cell[number] if number < len(cell) else "" for cell in cells]
        padded = [" " * (width - cell_len(part)) + part for part, width in zip(parts[:-1], widths, strict=False)]
        found.append((" " * INDENT + (" " * GAP).join([*padded, parts[-1]])).rstrip())
    return found


def style(metric: MetricResult) -> str:
    """Colour never carries information that the word next to it lacks."""
    if matters(metric):
        return {"better": "bold green", "worse": "bold red", "neutral": "bold magenta"}[side(metric)]
    return "yellow" if metric.verdict == "undecided" else "cyan"
