"""The plots of factors: means of the cells by level, and beside them the first factor's effect at each level."""

import math
from collections.abc import Sequence

from kduel.core.format import amount, effect_with_interval
from kduel.core.metric_results import EffectResult
from kduel.core.text import visible
from kduel.judge.factors.headline import subjects
from kduel.judge.verdict.spending import critical_t
from kduel.report.content.factors import CellMean, FactorGroup, mean_of, number_of
from kduel.report.content.fits import Fit
from kduel.report.plots import effects

PANEL = 300


def mean_rows(group: FactorGroup, factor: str) -> list[effects.Row]:
    """A row for each level of the first factor and of another: the mean over the cells of both, and 95 % of that mean alone."""
    subject = group.effects[0].factors[0]
    found: dict[tuple[str, str], list[CellMean]] = {}
    for cell in group.cells:
        if cell.mean is not None:
            found.setdefault((cell.levels.get(subject, ""), cell.levels.get(factor, "")), []).append(cell)
    lines = list(dict.fromkeys(level for level, _ in found))
    rows: list[effects.Row] = []
    for number, ((line, level), cells) in enumerate(found.items()):
        mean = mean_of([cell.mean for cell in cells if cell.mean is not None])
        half = half_interval(cells)
        if mean is not None:
            named = {"line": visible(line, 200), "rank": lines.index(line), "level": visible(level, 200)}
            ends = {"mean": mean, "least": mean - half, "most": mean + half, "told": amount(mean)}
            rows.append({**named, "place": number, **ends})
    return rows


def half_interval(cells: Sequence[CellMean]) -> float:
    """Half the t interval at 95 % of the mean of these cells, as if their boots were independent; 0 where a cell has one value."""
    if any(cell.sd is None for cell in cells):
        return 0.0
    variance = math.fsum((cell.sd or 0.0) ** 2 / cell.n for cell in cells) / len(cells) ** 2
    return float(critical_t(0.05, sum(cell.n - 1 for cell in cells))) * math.sqrt(variance)


def effect_rows(group: FactorGroup, factor: str) -> list[effects.Row]:
    """A row for each effect of the first factor at a level of another, in per cent."""
    lines = [main.levels[0] for main in subjects(group.effects)]
    simple: list[EffectResult] = [one for one in group.effects if one.kind == "simple" and factor in one.at]
    return [
        {
            "line": visible(one.levels[0], 200),
            "rank": lines.index(one.levels[0]) + 1,
            "level": visible(one.at[factor], 200),
            "place": number,
            "effect": one.result.effect_pct,
            "low": one.result.ci_low_pct,
            "high": one.result.ci_high_pct,
            "tone": effects.tone(one.result),
            "told": f"{one.result.label}: {effect_with_interval(one.result)}",
        }
        for number, one in enumerate(simple)
        if None not in (one.result.effect_pct, one.result.ci_low_pct, one.result.ci_high_pct)
    ]


def curve_rows(group: FactorGroup, factor: str) -> list[effects.Row]:
    """Points of the curves fitted over a factor, a curve for each level of the first factor."""
    subject = group.effects[0].factors[0]
    return [
        {"line": visible(fit.at.get(subject, ""), 200), "level": place, "fit": value}
        for fit in group.fits
        if fit.factor == factor and set(fit.at) <= {subject}
        for place, value in fit.curve_points()
    ]


def fitted_layer(curves: Sequence[effects.Row]) -> effects.Spec:
    mark = {"type": "line", "strokeDash": [5, 4], "strokeWidth": 1.5}
    return effects.layer(mark, {"y": effects.quantitative("fit"), "tooltip": None}, curves)


def scaling(fit: Fit, group: FactorGroup, theme: effects.Theme) -> effects.Spec:
    """The means over the only factor, with 95 % of each alone, and the curve fitted through them."""
    rows: list[effects.Row] = [
        {"level": number_of(cell.levels[fit.factor]), "mean": cell.mean, "told": amount(cell.mean), "least": cell.mean - half, "most": cell.mean + half}
        for cell in group.cells
        if cell.mean is not None
        for half in (half_interval([cell]),)
    ]  # fmt: skip
    axis: effects.Spec = {"title": visible(fit.factor, 100), "values": fit.grown.counts}
    unit = visible(group.effects[0].result.unit, 40)
    spec = effects.base(theme, PANEL, 220, rows)
    spec["encoding"] = {
        "x": effects.quantitative("level", axis=axis, scale={"zero": False, "padding": 16}),
        "y": effects.quantitative("mean", title=unit, scale={"zero": False}),
        "color": {"value": theme.arms[0]},
        "tooltip": [effects.nominal("level"), effects.nominal("told")],
    }
    spec["layer"] = [
        effects.layer(
            {"type": "rule", "opacity": 0.5}, {"y": effects.quantitative("least"), "y2": {"field": "most"}}
        ),
        {"mark": {"type": "point", "filled": True, "size": 70, "opacity": 1}},
        fitted_layer(curve_rows(group, fit.factor)),
    ]
    return spec


def interaction(group: FactorGroup, factor: str, delta: float, theme: effects.Theme) -> effects.Spec:
    """Lines that are not parallel are an interaction; beside them the effect at each level with its interval."""
    means, shown = mean_rows(group, factor), effect_rows(group, factor)
    scaled = all(number_of(row["level"]) is not None for row in means)
    for row in (*means, *shown):
        if scaled:
            row["level"] = number_of(row["level"])
    axis: effects.Spec = {"title": visible(factor, 100), "labelAngle": 0, "labelColor": theme.ink}
    if scaled:
        axis["values"] = sorted({row["level"] for row in means})
        x = effects.quantitative("level", axis=axis, scale={"zero": False, "padding": 16})
    else:
        points = {"type": "point", "padding": 0.5}
        x = effects.nominal("level", axis=axis, sort={"field": "place", "op": "min"}, scale=points)
    legend = {"title": None, "orient": "top", "columns": 1, "symbolOpacity": 1}
    order = {"field": "rank", "op": "min"}
    tip = [effects.nominal(name) for name in ("line", "level", "told")]
    unit = visible(group.effects[0].result.unit, 40)
    left: effects.Spec = {
        "data": {"values": means},
        "width": PANEL,
        "height": 220,
        "encoding": {
            "x": x,
            "y": effects.quantitative("mean", title=unit, scale={"zero": False}),
            "color": effects.nominal("line", sort=order, scale={"range": list(theme.arms)}, legend=legend),
            "tooltip": tip,
        },
        "layer": [
            effects.layer(
                {"type": "area", "opacity": 0.15} if scaled else {"type": "rule", "opacity": 0.5},
                {"y": effects.quantitative("least"), "y2": {"field": "most"}},
            ),
            {"mark": {"type": "line", "strokeWidth": 2}},
            {"mark": {"type": "point", "filled": True, "size": 70, "opacity": 1}},
            *([fitted_layer(curves)] if scaled and (curves := curve_rows(group, factor)) else []),
        ],
    }
    # Beside one another they need bands, not points.
    place: effects.Spec = x if scaled else {key: value for key, value in x.items() if key != "scale"}
    at: effects.Spec = {"x": place} if scaled else {"x": place, "xOffset": effects.nominal("line")}
    shown_as: effects.Spec = {"color": effects.tone_channel(theme), "tooltip": tip}
    y: effects.Spec = {"title": "change against the first level, %", "axis": {"labelExpr": effects.SIGNED}}
    span: effects.Spec = {"y": effects.quantitative("low", **y), "y2": {"field": "high"}}
    right: effects.Spec = {
        "data": {"values": shown},
        "width": PANEL,
        "height": 220,
        "layer": [
            effects.layer({"type": "rect", "color": theme.band}, span, [{"low": -delta, "high": delta}]),
            effects.layer(
                {"type": "rule", "color": theme.dim}, {"y": effects.quantitative("zero", **y)}, [{"zero": 0}]
            ),
            effects.layer({"type": "rule", "strokeWidth": 3}, {**at, **span, **shown_as}),
            effects.layer(
                {"type": "point", "filled": True, "size": 80, "opacity": 1},
                {**at, "y": effects.quantitative("effect", **y), **shown_as},
            ),
        ],
    }
    spec = effects.base(theme, PANEL, 220, [])
    del spec["width"], spec["height"], spec["data"]
    spec["autosize"] = {"type": "pad", "contains": "padding"}
    spec["hconcat"] = [left, right]
    spec["resolve"] = {"scale": {"color": "independent", "x": "independent"}}
    return spec
