"""The plots of a matrix: wall and CPU time by count, context switches next to it, and the heat map of verdicts."""

from __future__ import annotations

from kduel.analysis.matrix.grid import GridPoint
from kduel.analysis.matrix.shape import Matrix
from kduel.core.format import amount, effect_with_interval, relative_pct, signed_number
from kduel.core.text import visible
from kduel.report.content.digest import SIGNS
from kduel.report.content.matrixtext import column_of, kinds_of
from kduel.report.plots.effects import TONES, Row, Spec, Theme, base, tone

PANEL = 190
"""Pixels of a count's panel: each has its own scale, since times grow a hundredfold over the counts."""


def has_times(matrix: Matrix, family: str) -> bool:
    """True if the family can be drawn in the published form."""
    return len(times_of(matrix, family)) == 3


def times_of(matrix: Matrix, family: str) -> list[str]:
    """The metrics of the published form: elapsed time, then the two parts of CPU time; empty where one is missing."""
    elapsed, parts = matrix.of_aspect(family, "scheduling")[:1], matrix.of_aspect(family, "cpu-time")
    units = matrix.units[family]
    return [*elapsed, *parts] if len(parts) == 2 and {units[name] for name in (*elapsed, *parts)} == {"s"} else []


def switches_of(matrix: Matrix, family: str) -> list[str]:
    """The two kinds of context switches; empty where there are not two metrics of that aspect."""
    found = matrix.of_aspect(family, "activity")
    return found if len(found) == 2 else []


def has_switches(matrix: Matrix, family: str) -> bool:
    """True if its context switches can be drawn."""
    return bool(switches_of(matrix, family))


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
            sd = cell.sds[name]
            rows.append(
                {
                    "contender": visible(cell.contender, 200),
                    "rank": matrix.contenders.index(cell.contender),
                    "count": cell.place.count,
                    "bar": "wall" if name == names[0] else "cpu",
                    "part": visible(name, 200),
                    "mean": mean,
                    # No time is below 0, whatever the spread.
                    "low": max(0.0, wall - sd) if name == names[0] and wall is not None and sd is not None else None,
                    "high": wall + sd if name == names[0] and wall is not None and sd is not None else None,
                    "told": f"{amount(mean)} s" + (f" (SD {amount(sd)}, n = {cell.n})" if sd is not None else ""),
                }
            )
    return rows


def switch_rows(matrix: Matrix, family: str) -> list[Row]:
    """A row per contender, count and kind of switch."""
    names = switches_of(matrix, family)
    return [
        {
            "contender": visible(cell.contender, 200),
            "rank": matrix.contenders.index(cell.contender),
            "count": cell.place.count,
            "kind": visible(kind, 200),
            "mean": cell.means[name],
            "told": f"{amount(cell.means[name])} (n = {cell.n})",
        }
        for cell in matrix.cells
        if cell.place.family == family
        for name, kind in zip(names, kinds_of(names)[0], strict=True)
        if cell.means[name] is not None
    ]


def panels(matrix: Matrix, family: str, theme: Theme, rows: list[Row], layers: list[Spec]) -> Spec:
    """One panel a count, side by side, each with a scale of its own."""
    spec = base(theme, PANEL, 180, rows)
    del spec["width"], spec["height"]
    spec["autosize"] = {"type": "pad", "contains": "padding"}
    counts = sorted({place.count for place in matrix.families[family]})
    # Not a facet: in the page, Vega's layout of facet headers fails.
    spec["hconcat"] = [
        {
            "title": {"text": f"{count} processes", "color": theme.ink, "fontSize": 13, "fontWeight": "normal"},
            "transform": [{"filter": f"datum.count === {count}"}],
            "width": PANEL,
            "height": 180,
            "layer": layers,
        }
        for count in counts
    ]
    spec["resolve"] = {"scale": {"y": "independent"}}
    return spec


BY_RANK: Spec = {"field": "rank", "op": "min"}
"""A list of names would become part of an expression; names are the user's."""


def contender_axis(theme: Theme) -> Spec:
    """The contenders on x, in the study's order."""
    return {
        "field": "contender",
        "type": "nominal",
        "sort": BY_RANK,
        "axis": {"title": None, "labelAngle": -40, "labelLimit": 200, "labelColor": theme.ink},
        "scale": {"paddingInner": 0.25, "paddingOuter": 0.12},
    }


def times(matrix: Matrix, family: str, theme: Theme) -> Spec:
    """Grouped bars: wall time with its SD, and next to it user and system time stacked. The published form."""
    parts = [visible(name, 200) for name in times_of(matrix, family)]
    y: Spec = {"field": "mean", "type": "quantitative", "title": "seconds", "stack": "zero", "axis": {"tickCount": 5}}
    x = contender_axis(theme)
    offset: Spec = {"field": "bar", "type": "nominal", "sort": ["wall", "cpu"]}
    tip = [
        {"field": "contender", "type": "nominal"},
        {"field": "count", "type": "ordinal", "title": "processes"},
        {"field": "part", "type": "nominal"},
        {"field": "told", "type": "nominal", "title": "mean"},
    ]
    colour = {
        "field": "part",
        "type": "nominal",
        "scale": {"domain": parts, "range": [theme.arms[0], theme.arms[2], theme.arms[1]]},
        "legend": {"title": None, "orient": "top"},
    }
    error: Spec = {
        "transform": [{"filter": "isValid(datum.low)"}],
        "mark": {"type": "rule", "color": theme.ink, "strokeWidth": 1.5},
        "encoding": {
            "x": x,
            "xOffset": offset,
            "y": {"field": "low", "type": "quantitative"},
            "y2": {"field": "high"},
        },
    }
    bars: Spec = {
        "mark": {"type": "bar", "opacity": 0.9},
        "encoding": {"x": x, "xOffset": offset, "y": y, "color": colour, "tooltip": tip},
    }
    rows = time_rows(matrix, family)
    spread = any(row["low"] is not None for row in rows)
    return panels(matrix, family, theme, rows, [bars, error] if spread else [bars])


def switches(matrix: Matrix, family: str, theme: Theme) -> Spec:
    """Context switches, voluntary and involuntary side by side, on a scale that shows 5 and 500,000."""
    x = contender_axis(theme)
    kinds, noun = kinds_of(switches_of(matrix, family))
    bars: Spec = {
        "mark": {"type": "bar", "opacity": 0.9},
        "encoding": {
            "x": x,
            "xOffset": {"field": "kind", "type": "nominal"},
            "y": {
                "field": "mean",
                "type": "quantitative",
                "title": visible(noun, 200) or "per trial",
                "scale": {"type": "symlog"},
                "axis": {"values": [0, *(k * 10**n for n in range(7) for k in (1, 3))], "format": ",d"},
            },
            "color": {
                "field": "kind",
                "type": "nominal",
                "scale": {"domain": [visible(kind, 200) for kind in kinds], "range": [theme.arms[3], theme.arms[4]]},
                "legend": {"title": None, "orient": "top"},
            },
            "tooltip": [
                {"field": "contender", "type": "nominal"},
                {"field": "kind", "type": "nominal"},
                {"field": "told", "type": "nominal", "title": "mean"},
            ],
        },
    }
    return panels(matrix, family, theme, switch_rows(matrix, family), [bars])


def row_of(place: GridPoint) -> str:
    """A heat map's row."""
    return visible(f"{place.family} {place.count}", 200)


def heat_rows(matrix: Matrix) -> list[Row]:
    """A row per cell: the verdict on the family's main metric."""
    rows = []
    labels = [place for members in matrix.families.values() for place in members]
    for family, metrics in matrix.metrics.items():
        if not metrics:
            continue
        for judged in matrix.verdicts(family, metrics[0]):
            result = judged.result
            share = relative_pct(result)
            size = "" if share is None else f"{signed_number(share, 0 if abs(share) >= 9.95 else 1)} %"
            matters = not result.below_delta
            rows.append(
                {
                    "row": row_of(judged.place),
                    "row_rank": labels.index(judged.place),
                    "column": column_of(judged),
                    "column_rank": matrix.pairs.index(judged.pair),
                    "tone": tone(result) if matters else "same",
                    "strength": 0.25 if result.verdict == "undecided" or not matters else strength(share),
                    "said": f"{SIGNS[result.verdict if matters else 'equivalent']} {size}",
                    "told": f"{result.metric}: {result.word}, {effect_with_interval(result)}",
                }
            )
    return rows


def strength(effect_pct: float | None) -> float:
    """Opacity of a decided cell's colour: full from 40 per cent on."""
    return 0.6 if effect_pct is None else 0.35 + 0.65 * min(1.0, abs(effect_pct) / 40)


def heat(matrix: Matrix, theme: Theme) -> Spec:
    """Verdicts over the whole matrix: a colour where something is shown, its strength the size of the effect."""
    rows = heat_rows(matrix)
    spec = base(theme, {"step": 96}, {"step": 26}, rows)  # type: ignore[arg-type]
    spec["autosize"] = {"type": "pad", "contains": "padding"}
    place: Spec = {
        "y": {
            "field": "row",
            "type": "nominal",
            "sort": {"field": "row_rank", "op": "min"},
            "axis": {"title": None, "domain": False, "ticks": False, "labelLimit": 420, "labelColor": theme.ink},
        },
        "x": {
            "field": "column",
            "type": "nominal",
            "sort": {"field": "column_rank", "op": "min"},
            "axis": {
                "title": None, "orient": "top", "domain": False, "ticks": False, "labelLimit": 330, "labelAngle": -32,
                "labelColor": theme.ink,
            },
        },
    }  # fmt: skip
    tip = [
        {"field": "row", "type": "nominal", "title": "benchmark"},
        {"field": "column", "type": "nominal", "title": "compared"},
        {"field": "told", "type": "nominal", "title": "verdict"},
    ]
    spec["encoding"] = place
    spec["layer"] = [
        {
            "mark": {"type": "rect", "stroke": theme.paper or "var(--paper)", "strokeWidth": 2},
            "encoding": {
                "color": {
                    "field": "tone",
                    "type": "nominal",
                    "scale": {"domain": list(TONES), "range": list(theme.tones)},
                    "legend": None,
                },
                "opacity": {"field": "strength", "type": "quantitative", "scale": None},
                "tooltip": tip,
            },
        },
        {"mark": {"type": "text", "fontSize": 12, "tooltip": None}, "encoding": {"text": {"field": "said"}}},
    ]
    return spec
