"""Parts of Vega-Lite plots, and the plot of effects. Strings of users stand in data only, never in an expression."""

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup
from msgspec import Struct

from kduel.core.format import effect, effect_with_interval
from kduel.core.metric_results import MetricResult
from kduel.judge.verdict.headline import matters, side
from kduel.report.content.digest import sign_of
from kduel.report.content.notes import key
from kduel.report.plots.draw import Scale
from kduel.report.plots.engine import drawing
from kduel.report.plots.intervals import Ratios, change_scale

Spec = dict[str, Any]
Row = dict[str, Any]

SIGNED = "datum.value === 0 ? '0' : format(datum.value, '+,.3~r')"
AS_CHANGE = "datum.value === 1 ? '0' : format(100 * datum.value - 100, '+,.3~r')"
NARROW = 400
"""Points below which a name and a verdict stand above each other."""
FOREST_ROWS = 40
"""More rows than this are no picture any more."""


TONES = ("better", "worse", "neutral", "same", "undecided")


class Theme(Struct, frozen=True):
    """Colours: as names of the page's CSS variables, or fixed ones for a picture."""

    ink: str
    dim: str
    line: str
    band: str
    paper: str | None
    arms: tuple[str, ...]
    tones: tuple[str, ...]
    """Of TONES."""


PAGE = Theme(
    ink="var(--ink)", dim="var(--dim)", line="var(--line)", band="var(--band)", paper=None,
    arms=tuple(f"var(--arm{number})" for number in range(6)), tones=tuple(f"var(--{tone})" for tone in TONES),
)  # fmt: skip
PICTURE = Theme(
    ink="#1b1f24",
    dim="#5b6470",
    line="#d5d9df",
    band="#e8edf3",
    paper="#ffffff",
    arms=("#3b6fb6", "#d9731a", "#2c8c6b", "#a04a8f", "#8a6d1d", "#5f6b7a"),
    tones=("#12784a", "#b3261e", "#7a3ea8", "#2b6cb0", "#8a6100"),
)
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif'


def tone(metric: MetricResult) -> str:
    """The side of a verdict; a difference too small to matter is none."""
    if matters(metric):
        return side(metric)
    return "same" if metric.claimed else "undecided"


def quantitative(field: str, **further: Any) -> Spec:
    return {"field": field, "type": "quantitative", **further}


def nominal(field: str, **further: Any) -> Spec:
    return {"field": field, "type": "nominal", **further}


def tone_channel(theme: Theme) -> Spec:
    return nominal("tone", scale={"domain": list(TONES), "range": list(theme.tones)}, legend=None)


def layer(mark: Spec, encoding: Spec, rows: Sequence[Row] | None = None) -> Spec:
    """A layer, on the rows of the whole unless it has its own."""
    return {**({} if rows is None else {"data": {"values": [*rows]}}), "mark": mark, "encoding": encoding}


def base(theme: Theme, width: int | str, height: int | Spec, data: list[Row]) -> Spec:
    words = {"labelColor": theme.dim, "titleColor": theme.dim, "titleFontWeight": "normal", "labelLimit": 140}
    sizes = {"labelFontSize": 12, "titleFontSize": 12}
    lines = dict.fromkeys(("gridColor", "domainColor", "tickColor"), theme.line)
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": width,
        "height": height,
        "background": theme.paper,
        "padding": {"left": 2, "right": 6, "top": 4, "bottom": 4},
        "autosize": {"type": "fit-x" if width == "container" else "pad", "contains": "padding"},
        "data": {"name": "rows", "values": data},
        "config": {
            "font": FONT,
            "aria": False,
            "view": {"stroke": None},
            "axis": {**words, **sizes, **lines},
            "text": {"color": theme.ink, "fontSize": 13},
            "legend": {"labelColor": theme.ink, "titleColor": theme.dim, "labelFontSize": 12, "labelLimit": 260},
        },
    }


def drawable_metrics(metrics: list[MetricResult]) -> list[MetricResult]:
    return [m for m in metrics if None not in (m.effect_pct, m.ci_low_pct, m.ci_high_pct)]


def forest_metrics(metrics: list[MetricResult]) -> list[MetricResult]:
    """Those of the metrics that can be drawn, the decided ones first if too many."""
    drawn = drawable_metrics(metrics)
    if len(drawn) <= FOREST_ROWS:
        return drawn
    kept = set(map(id, sorted(drawn, key=lambda m: m.verdict == "undecided")[:FOREST_ROWS]))
    return [m for m in drawn if id(m) in kept]


def forest_rows(metrics: list[MetricResult], scale: Scale) -> list[Row]:
    """Effects with intervals in per cent, cut at the ends of the axis."""
    rows, least, limit = [], scale.low, scale.high
    for number, metric in enumerate(metrics):
        assert metric.effect_pct is not None and metric.ci_low_pct is not None and metric.ci_high_pct is not None
        said = f"{sign_of(metric)} {metric.label}  {effect(metric)}"
        words = {"label": key(metric), "said": said, "told": effect_with_interval(metric), "tone": tone(metric)}
        rows.append(
            {
                "row": number,
                **words,
                "effect": metric.effect_pct if least <= metric.effect_pct <= limit else None,
                "low": max(least, min(limit, metric.ci_low_pct)),
                "high": min(limit, max(least, metric.ci_high_pct)),
                "under": least if metric.ci_low_pct < least else None,
                "over": limit if metric.ci_high_pct > limit else None,
            }
        )
    return rows


def on_axis(change: float, scale: Scale) -> float:
    """A change in per cent as the axis has it: as a ratio where it is logarithmic."""
    return 1 + change / 100 if isinstance(scale, Ratios) else change


def forest_scale(metrics: list[MetricResult], delta: float) -> Scale:
    """The axis: to all decided intervals, and not so far that a very wide one squeezes the others."""
    return change_scale([(m.ci_low_pct or 0, m.ci_high_pct or 0, m.decided) for m in metrics], delta)


def forest(metrics: list[MetricResult], delta: float, theme: Theme, width: int | str = "container") -> Spec:
    """Every effect with its interval against the band in which a difference does not matter."""
    shown = forest_metrics(metrics)
    scale = forest_scale(shown, delta)
    rows = forest_rows(shown, scale)
    row: Spec = {"field": "row", "type": "ordinal", "axis": None, "scale": {"paddingInner": 0, "paddingOuter": 0}}
    domain = [on_axis(scale.low, scale), on_axis(scale.high, scale)]
    x: Spec = {"scale": {"domain": domain, "nice": False}}
    axis: Spec = {"title": "change against the baseline, %", "labelExpr": SIGNED, "tickCount": 7}
    names = {name: name for name in ("low", "effect", "high", "under", "over")}
    if isinstance(scale, Ratios):
        names = {name: f"{name}_ratio" for name in names}
        x["scale"]["type"] = "log"
        axis["title"] += ", logarithmic"
        ticks = [on_axis(value, scale) for value in scale.ticks(4)]
        axis |= {"labelExpr": AS_CHANGE, "values": ticks, "labelOverlap": False}
    colour = tone_channel(theme)
    tip = [nominal("label", title="metric"), nominal("told", title="change")]
    # In one column of a page a metric's name and its verdict do not fit one line.
    two_lines = 0 if width == "container" or int(width) >= NARROW else 16
    words: Spec = {"type": "text", "align": "left", "baseline": "middle", "dy": -11 + two_lines / 2, "tooltip": None}

    def lower_half(field: str, mark: Spec, **further: Spec) -> Spec:
        """A layer below the words of a row."""
        at = {"y": row, "yOffset": {"value": 32 + two_lines}, "x": quantitative(names[field], **x), **further}
        return layer(mark, {**at, "color": colour, "tooltip": tip})

    def edge(field: str, shape: str) -> Spec:
        mark = {"type": "point", "shape": shape, "filled": True, "size": 70, "opacity": 1}
        return {"transform": [{"filter": f"isValid(datum.{field})"}], **lower_half(field, mark)}

    spec = base(theme, width, {"step": 46 + two_lines}, rows)
    if isinstance(scale, Ratios):
        spec["transform"] = [
            {"calculate": f"isValid(datum.{name}) ? 1 + datum.{name} / 100 : null", "as": ratio}
            for name, ratio in names.items()
        ]
    said = {"y": row, "x": {"value": {"expr": "width - 2"}}, "text": {"field": "said"}, "color": colour}
    spec["layer"] = [
        layer(
            {"type": "rect", "color": theme.band},
            {"x": quantitative("low", **x, axis=axis), "x2": {"field": "high"}},
            [{"low": on_axis(-delta, scale), "high": on_axis(delta, scale)}],
        ),
        layer({"type": "rule", "color": theme.dim}, {"x": quantitative("zero", **x)}, [{"zero": on_axis(0, scale)}]),
        layer(
            {
                **words,
                "dy": words["dy"] - two_lines,
                "limit": {"expr": f"max(80, width - {4 if two_lines else 185})"},
            },
            {"y": row, "x": {"value": 2}, "text": {"field": "label"}},
        ),
        layer({**words, "align": "right", "fontWeight": "bold"}, said),
        lower_half(
            "low",
            {"type": "rule", "strokeWidth": 3, "strokeCap": "round", "dy": 9, "opacity": 0.85},
            x2={"field": names["high"]},
        ),
        lower_half("effect", {"type": "point", "filled": True, "size": 110, "opacity": 1}),
        edge("under", "triangle-left"),
        edge("over", "triangle-right"),
    ]
    return spec


def picture(spec: Spec) -> Markup:
    """A plot as SVG within a page: what it names is the name of nothing else there."""
    drawn = svg(spec).replace("<svg ", '<svg aria-hidden="true" ', 1)
    own = hashlib.sha256(drawn.encode()).hexdigest()[:8]
    return Markup(re.sub(r"\b(clip|gradient|gradient_)(\d+)\b", rf"\1\2-{own}", drawn))


def svg(spec: Spec) -> str:
    drawn: str = drawing().vegalite_to_svg(spec)
    return drawn
