"""The plots of tails: the share of measurements above each value on logarithmic axes, and the shift of quantiles."""

from __future__ import annotations

from collections.abc import Sequence

from kduel.core.format import amount
from kduel.core.tail_results import ShiftResult, TailResult
from kduel.core.text import visible
from kduel.report.plots.effects import SIGNED, Row, Spec, Theme, base

PANEL = 420


def survival(tails: Sequence[TailResult], theme: Theme) -> Spec:
    """One line a contender, of the mean distribution over boots; the bound as a vertical line with its share."""
    rows: list[Row] = [
        {"line": visible(tail.contender, 200), "rank": rank, "value": value, "share": share, "said": f"{share:.3g} above {amount(value)}"}
        for rank, tail in enumerate(tails)
        for value, share in tail.survival
        if value > 0
    ]  # fmt: skip
    spec = base(theme, PANEL, 260, rows)
    spec["autosize"] = {"type": "pad", "contains": "padding"}
    x: Spec = {
        "type": "quantitative",
        "scale": {"type": "log", "nice": False},
        "title": f"{visible(tails[0].metric, 60)}, {visible(tails[0].unit, 20)}",
    }
    y: Spec = {
        "type": "quantitative",
        "scale": {"type": "log", "nice": False},
        "title": "share of measurements above",
        "axis": {"format": "~e"},
    }
    layers: list[Spec] = [
        {
            "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2},
            "encoding": {
                "x": {"field": "value", **x},
                "y": {"field": "share", **y},
                "color": {
                    "field": "line",
                    "type": "nominal",
                    "sort": {"field": "rank", "op": "min"},
                    "scale": {"range": list(theme.arms)},
                    "legend": {"title": None, "orient": "top", "columns": 1},
                },
                "tooltip": [{"field": "line", "type": "nominal"}, {"field": "said", "type": "nominal"}],
            },
        }
    ]
    if bound := next((tail.bound for tail in tails if tail.bound is not None), None):
        layers.append(
            {
                "data": {"values": [{"value": bound.limit, "share": bound.share}]},
                "mark": {"type": "rule", "color": theme.tones[1], "strokeDash": [5, 4]},
                "encoding": {"x": {"field": "value", **x}},
            }
        )
    spec["layer"] = layers
    return spec


def shift(one: ShiftResult, delta: float, theme: Theme) -> Spec:
    """Change of each quantile with its interval, on an axis that stretches towards the tail."""
    rows: list[Row] = [
        {
            "place": number,
            "quantile": f"{100 * point.share:g} %",
            "effect": point.effect_pct,
            "low": point.low_pct,
            "high": point.high_pct,
        }
        for number, point in enumerate(one.points)
    ]
    spec = base(theme, PANEL, 220, rows)
    spec["autosize"] = {"type": "pad", "contains": "padding"}
    x: Spec = {
        "field": "quantile",
        "type": "ordinal",
        "sort": {"field": "place", "op": "min"},
        "axis": {"title": "quantile within a boot", "labelAngle": 0},
    }
    y: Spec = {"type": "quantitative", "title": "change against the baseline, %", "axis": {"labelExpr": SIGNED}}
    spec["layer"] = [
        {
            "data": {"values": [{"low": -delta, "high": delta}]},
            "mark": {"type": "rect", "color": theme.band},
            "encoding": {"y": {"field": "low", **y}, "y2": {"field": "high"}},
        },
        {
            "data": {"values": [{"zero": 0}]},
            "mark": {"type": "rule", "color": theme.dim},
            "encoding": {"y": {"field": "zero", **y}},
        },
        {
            "mark": {"type": "area", "opacity": 0.25, "color": theme.arms[1]},
            "encoding": {"x": x, "y": {"field": "low", **y}, "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "line", "point": True, "color": theme.arms[1]},
            "encoding": {"x": x, "y": {"field": "effect", **y}},
        },
    ]
    return spec
