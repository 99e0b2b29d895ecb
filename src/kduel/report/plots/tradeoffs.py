"""The picture of a trade: throughput against latency against power, a panel for each two of them."""

from __future__ import annotations

from itertools import combinations

from kduel.analysis.tradeoffs import Front
from kduel.analysis.tradeoffs.pareto import Position, Scale
from kduel.core.format import percent
from kduel.core.text import visible
from kduel.report.content.overview import beginning
from kduel.report.plots.effects import SIGNED, Row, Spec, Theme, base
from kduel.report.plots.intervals import FARTHEST

PANEL = 250
"""Pixels of a panel's sides."""


def panel_rows(front: Front, across: Scale, up: Scale) -> list[Row]:
    """A row for each contender. What lies beyond FARTHEST is drawn at the edge, with its true value as text."""
    rows = []
    for name in front.contenders:
        x, y = across.places[name], up.places[name]
        rows.append(
            {
                "contender": visible(name, 200),
                "arm": front.contenders.index(name) % 6,
                "beaten": name in front.beaten,
                "x": clip_to_picture(x.effect),
                "x_low": clip_to_picture(x.low),
                "x_high": clip_to_picture(x.high),
                "y": clip_to_picture(y.effect),
                "y_low": clip_to_picture(y.low),
                "y_high": clip_to_picture(y.high),
                "x_told": place_told(x),
                "y_told": place_told(y),
            }
        )
    return rows


def clip_to_picture(value: float | None) -> float | None:
    return None if value is None else max(beginning(FARTHEST), min(FARTHEST, value))


def place_told(place: Position) -> str:
    """A change with its interval and verdict."""
    if place.low is None or place.high is None:
        return "the baseline"
    return f"{percent(place.effect)} ({percent(place.low)} to {percent(place.high)}), {place.verdict}"


def front_plots(front: Front, delta: float, theme: Theme) -> list[Spec]:
    """One panel for each two scales."""
    return [panel(front, across, up, delta, theme) for across, up in combinations(front.scales, 2)]


def panel(front: Front, across: Scale, up: Scale, delta: float, theme: Theme) -> Spec:
    """A cross is a contender with both its intervals; the better corner is always the upper right one."""

    def channel(scale: Scale, field: str, arrow: str) -> Spec:
        reach = [abs(v) for p in scale.places.values() for v in (p.effect, p.low, p.high) if v is not None]
        limit = 1.1 * max(2 * delta, min(FARTHEST, max(reach)))
        return {
            "field": field,
            "type": "quantitative",
            # With neither way better it stands as it is.
            "scale": {"domain": [beginning(limit), limit], "nice": False, "reverse": scale.better == "lower"},
            "axis": {"title": f"{scale.axis}, change in % ({arrow} better)", "labelExpr": SIGNED, "tickCount": 5},
        }

    def x(field: str) -> Spec:
        return channel(across, field, "→")

    def y(field: str) -> Spec:
        return channel(up, field, "↑")

    colour: Spec = {
        "field": "arm",
        "type": "nominal",
        "scale": {"domain": list(range(6)), "range": list(theme.arms)},
        "legend": None,
    }
    tip = [
        {"field": "contender", "type": "nominal"},
        {"field": "x_told", "type": "nominal", "title": across.axis},
        {"field": "y_told", "type": "nominal", "title": up.axis},
    ]
    rule: Spec = {"type": "rule", "strokeWidth": 2, "opacity": 0.7}
    zero: Spec = {"type": "rule", "color": theme.line}
    band = {"values": [{"low": -delta, "high": delta}]}
    spec = base(theme, PANEL, PANEL, panel_rows(front, across, up))
    spec["layer"] = [
        {
            "data": band,
            "mark": {"type": "rect", "color": theme.band},
            "encoding": {"x": x("low"), "x2": {"field": "high"}},
        },
        {
            "data": band,
            "mark": {"type": "rect", "color": theme.band},
            "encoding": {"y": y("low"), "y2": {"field": "high"}},
        },
        {"data": {"values": [{"zero": 0}]}, "mark": zero, "encoding": {"x": x("zero")}},
        {"data": {"values": [{"zero": 0}]}, "mark": zero, "encoding": {"y": y("zero")}},
        {
            "transform": [{"filter": "isValid(datum.x_low)"}],
            "mark": rule,
            "encoding": {
                "x": x("x_low"),
                "x2": {"field": "x_high"},
                "y": y("y"),
                "color": colour,
                "tooltip": tip,
            },
        },
        {
            "transform": [{"filter": "isValid(datum.y_low)"}],
            "mark": rule,
            "encoding": {
                "x": x("x"),
                "y": y("y_low"),
                "y2": {"field": "y_high"},
                "color": colour,
                "tooltip": tip,
            },
        },
        {
            "mark": {"type": "point", "size": 110, "strokeWidth": 2.5, "opacity": 1},
            "encoding": {
                "x": x("x"),
                "y": y("y"),
                "color": colour,
                # Filled are those that no other beats.
                "fill": {
                    "condition": {"test": "datum.beaten", "value": theme.paper or "var(--paper)"},
                    **colour,
                },
                "tooltip": tip,
            },
        },
    ]
    return spec
