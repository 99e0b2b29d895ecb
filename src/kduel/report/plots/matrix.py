"""The plots of a matrix: wall and CPU time by count, and context switches next to it."""

from collections.abc import Sequence

from markupsafe import Markup

from kduel.analysis.matrix.shape import Matrix, MatrixCell
from kduel.core.text import visible
from kduel.report.content.matrixtext import kinds_of
from kduel.report.plots.draw import Scale, bottom_axis, chart, line, rectangle, tick_text, words
from kduel.report.plots.effects import Row


def times_of(matrix: Matrix, family: str) -> list[str]:
    """The metrics of the published form: elapsed time, then the two parts of CPU time; empty where one is missing."""
    elapsed, parts = matrix.of_aspect(family, "scheduling")[:1], matrix.of_aspect(family, "cpu-time")
    units = matrix.units[family]
    return [*elapsed, *parts] if len(parts) == 2 and {units[name] for name in (*elapsed, *parts)} == {"s"} else []


def switches_of(matrix: Matrix, family: str) -> list[str]:
    """The two kinds of context switches; empty where there are not two metrics of that aspect."""
    found = matrix.of_aspect(family, "activity")
    return found if len(found) == 2 else []


def time_rows(matrix: Matrix, family: str) -> list[Row]:
    """A row per bar: wall, and user and system to be stacked next to it."""
    rows = []
    names = times_of(matrix, family)
    for cell in matrix.cells:
        if cell.place.family != family:
            continue
        wall = cell.means[names[0]]
        for name in names:
            mean = cell.means[name]
            if mean is None:
                continue
            sd = cell.sds[name] if name == names[0] else None
            ends: Row = {"low": None, "high": None}
            if wall is not None and sd is not None:
                # No time is below 0, whatever the spread.
                ends = {"low": max(0.0, wall - sd), "high": wall + sd}
            bar = "wall" if name == names[0] else "cpu"
            rows.append({**row_of(matrix, cell), "bar": bar, "part": visible(name, 200), "mean": mean, **ends})
    return rows


def row_of(matrix: Matrix, cell: MatrixCell) -> Row:
    """The part that all rows of a cell have in common."""
    rank = matrix.contenders.index(cell.contender)
    return {"contender": visible(cell.contender, 200), "rank": rank, "count": cell.place.count}


def switch_rows(matrix: Matrix, family: str) -> list[Row]:
    """A row per contender, count and kind of switch."""
    names = switches_of(matrix, family)
    return [
        {**row_of(matrix, cell), "part": visible(kind, 200), "mean": cell.means[name]}
        for cell in matrix.cells
        if cell.place.family == family
        for name, kind in zip(names, kinds_of(names)[0], strict=True)
        if cell.means[name] is not None
    ]


def times(matrix: Matrix, family: str) -> list[tuple[int, Markup]]:
    """By count: bars of wall time with its SD, and below them user and system time stacked. The published form."""
    parts = [visible(name, 200) for name in times_of(matrix, family)]
    panels = []
    for count, rows in by_count(time_rows(matrix, family)):
        drawn: list[Bar] = []
        for name, bars in rows.items():
            stacks = [stack([row for row in bars if row["bar"] == bar], parts) for bar in ("wall", "cpu")]
            spread = next(((row["low"], row["high"]) for row in bars if row["low"] is not None), None)
            drawn.append((name, stacks, spread))
        ends = [sum(length for length, _ in pieces) for _, stacks, _ in drawn for pieces in stacks]
        ends += [spread[1] for *_, spread in drawn if spread]
        scale = Scale(low=0, high=1.02 * max(ends) or 1.0)
        label = f"{family}, {count} processes; the table has the figures."
        panels.append((count, bars_chart(drawn, scale, "seconds", label)))
    return panels


def switches(matrix: Matrix, family: str) -> list[tuple[int, Markup]]:
    """By count: context switches, voluntary and involuntary, on a scale that shows 5 and 500,000."""
    kinds, noun = kinds_of(switches_of(matrix, family))
    panels = []
    for count, rows in by_count(switch_rows(matrix, family)):
        scale = Scale(low=0, high=max(1.0, *(row["mean"] or 0 for bars in rows.values() for row in bars)), log=True)
        drawn = [
            (name, [stack([row], kinds, 3) for row in bars if row["mean"] is not None], None)
            for name, bars in rows.items()
        ]
        title = visible(noun, 200) or "per trial"
        panels.append(
            (count, bars_chart(drawn, scale, title, f"{family}, {count} processes; the table has the figures."))
        )
    return panels


def by_count(rows: list[Row]) -> list[tuple[int, dict[str, list[Row]]]]:
    found: dict[int, dict[str, list[Row]]] = {}
    for row in rows:
        found.setdefault(row["count"], {}).setdefault(row["contender"], []).append(row)
    return sorted(found.items())


def stack(rows: list[Row], parts: list[str], first: int = 0) -> list[tuple[float, str]]:
    return [(row["mean"], f"arm{first + parts.index(row['part'])}") for row in rows]


Bar = tuple[str, Sequence[Sequence[tuple[float, str]]], tuple[float, float] | None]
"""A contender, its bars each in pieces of a length and a class, and the spread of the first bar."""


def bars_chart(found: Sequence[Bar], scale: Scale, title: str, label: str) -> Markup:
    """Bars from 0; `label` has the figures."""
    drawn = Markup()
    height = 1 / max(1, len(found))
    for number, (name, bars, spread) in enumerate(found):
        top = (number + 0.42) * height
        thick = 0.5 * height / max(1, len(bars))
        drawn += words((0, top), name, "name", dy=-4)
        for index, pieces in enumerate(bars):
            begin, y = 0.0, top + index * thick
            for length, kind in pieces:
                first, last = scale.share(begin), scale.share(begin + length)
                drawn += rectangle((first, y), (last, y + 0.85 * thick), f"piece {kind}")
                begin += length
        if spread:
            middle = top + 0.42 * thick
            drawn += line((scale.share(spread[0]), middle), (scale.share(spread[1]), middle), "spread")
    places = [(scale.share(value), tick_text(value)) for value in [*([0.0] if scale.log else []), *scale.ticks(3)]]
    return chart(f"bars rows{min(len(found), 9)}", label, drawn, bottom_axis(places, title))
