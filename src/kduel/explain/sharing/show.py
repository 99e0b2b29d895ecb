"""Shared lines as text and as a picture: a row a line, with who takes it from whom."""

import textwrap
from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape

from kduel.core.text import PLAIN_WIDTH, plural
from kduel.explain.sharing.compare import INVALIDATES, READS, Row, SharingExplanation

RARE = 0.05
"""Lines that move in fewer operations than this share are summed up, unless all rows are asked for."""
MEETINGS = 2
"""Meetings of one line that are shown."""
NOTES = (
    "Lines that move are no time: queues, waiting and migrations do not count. A security module and the configuration add lines; "
    "limits per CPU grow with the number of CPUs, which two do not show."
)
VERBS = {READS: "reads what", INVALIDATES: "writes what", "W": "writes what"}
ENDS = {READS: "wrote", INVALIDATES: "read", "W": "wrote"}


def format_moves(value: float) -> str:
    """`2`, `0.35`; a rarer thing is not reported as none."""
    return f"{value:.0f}" if value == round(value) else f"{value:.2f}" if value >= 0.005 else f"{value:.1g}"


def as_text(found: SharingExplanation, limit: int = 25, width: int = PLAIN_WIDTH) -> str:
    """The lines of each kernel; `limit` rows, 0 for all."""
    heads = [arm.contender for arm in found.kernels]
    columns = [max(len(head), 8) for head in heads]

    def line(word: str, figures: Iterable[str], rest: str = "") -> str:
        cells = "  ".join(f"{figure:>{size}}" for figure, size in zip(figures, columns, strict=True))
        return f"{word:8}{cells}   {rest}".rstrip()

    lines = [
        f"{found.benchmark}: cache lines that move between CPUs, per operation, in {', '.join(heads)}",
        "(exact, under the plain condition)",
        "",
        line("", heads),
        line("steady", (format_moves(arm.median) for arm in found.kernels), "lines in the usual operation"),
        line("mean", (format_moves(arm.mean) for arm in found.kernels), "rarer ones included"),
    ]
    weights = {
        "loads and stores of the usual operation to its lines": [arm.accesses for arm in found.kernels],
        "locked operations among them": [arm.locked for arm in found.kernels],
    }
    for words, counts in weights.items():
        if any(one is not None for one in counts):
            lines.append(line("", ("–" if one is None else format_moves(one) for one in counts), words))
    lines.append("")
    shown, rest = rows_of(found, limit)
    indent = " " * len(line("", [""] * len(columns), "|")[:-1])
    for row in shown:
        lines.append(line(row.change, figures(row), f"{row.name}{false_sharing_note(row)}"))
        for text in meeting_lines(row):
            lines += textwrap.wrap(
                text, max(width, 60), initial_indent=indent, subsequent_indent=indent + "  ", break_long_words=False,
                break_on_hyphens=False,
            )  # fmt: skip
    if rest:
        sums = (format_moves(sum(times)) for times in zip(*(row.times for row in rest), strict=True))
        lines.append(line("", sums, f"in {plural(len(rest), 'rarer line')} (--limit 0)"))
    if not found.rows:
        lines.append("No line moves.")
    lines += [arm.note for arm in found.kernels if arm.note]
    lines += ["", *textwrap.wrap(NOTES, width), f"Counted by QEMU {found.qemu}."]
    return "\n".join([*lines, ""])


def figures(row: Row) -> list[str]:
    return [format_moves(line.times) if line else "–" for line in row.lines]


def rows_of(found: SharingExplanation, limit: int) -> tuple[list[Row], list[Row]]:
    """The rows that are shown, and the others."""
    if not limit:
        return found.rows, []
    often = [row for row in found.rows if max(row.times) >= RARE][:limit]
    return often, [row for row in found.rows if all(row is not one for one in often)]


def false_sharing_note(row: Row) -> str:
    shares = [line.false for line in row.lines if line]
    return "  (false sharing)" if shares and min(shares) > 0.5 else ""


def meeting_lines(row: Row) -> Iterator[str]:
    """`down_read < do_user_addr_fault writes what up_read wrote`, in the last kernel that has the line."""
    for one in row.latest.meetings[:MEETINGS]:
        yield f"{one.function} {VERBS[one.kind]} {one.other} {ENDS[one.kind]}"
    if (more := len(row.latest.meetings) - MEETINGS) > 0:
        yield f"and {plural(more, 'other pair')} of functions"


ROW, CHARACTER, MARGIN = 20, 7.3, 12
COLOURS = {"gone": "#1a7f37", "fewer": "#1a7f37", "new": "#cf222e", "more": "#cf222e", "kept": "#57606a"}


def as_svg(found: SharingExplanation) -> str:
    """Picture of the comparison: lines, how often each moves in each kernel, who takes it, and who had it."""
    heads = ["", *(arm.contender for arm in found.kernels), "line", "takes it", "had it"]
    table = [["steady", *(format_moves(arm.median) for arm in found.kernels), "", "", ""]]
    changes = ["kept"]
    for row in rows_of(found, 40)[0]:
        first = row.latest.meetings[0]
        table.append(
            [
                row.change,
                *figures(row),
                row.name + false_sharing_note(row),
                f"{first.function} {'reads' if first.kind == READS else 'writes'}",
                f"{first.other} {ENDS[first.kind]}",
            ]
        )
        changes.append(row.change)
    widths = [max(len(cells[column]) for cells in (heads, *table)) for column in range(len(heads))]
    starts = [MARGIN + CHARACTER * (sum(widths[:column]) + 2 * column) for column in range(len(heads))]
    width, height = starts[-1] + CHARACTER * widths[-1] + MARGIN, ROW * (len(table) + 3) + MARGIN
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" font-family="monospace" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{MARGIN}" y="{ROW}" font-weight="bold">{escape(found.benchmark)}: cache lines that CPUs share, per operation</text>',
    ]
    for number_of_row, cells in enumerate((heads, *table)):
        y = ROW * (number_of_row + 2) + MARGIN
        colour = COLOURS[changes[number_of_row - 1]] if number_of_row else "#57606a"
        out += [
            f'<text x="{x:.0f}" y="{y}" fill="{colour}" xml:space="preserve">{escape(cell)}</text>'
            for x, cell in zip(starts, cells, strict=True)
            if cell
        ]
    return "\n".join([*out, "</svg>", ""])
