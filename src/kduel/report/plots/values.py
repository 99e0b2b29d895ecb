"""The plots of values, a point for each trial: how they spread, how they followed each other, how long trials took.

Without rows a plot is a template, whose unit and contenders are the placeholders UNIT and NAMES: the HTML report draws
it for every metric.
"""

from __future__ import annotations

from kduel.core.metric_results import MetricResult
from kduel.core.results import Results
from kduel.report.plots.effects import Row, Spec, Theme, base

UNIT = "@unit@"
NAMES = "@names@"
WHOLE = "datum.value % 1 === 0 ? format(datum.value, ',d') : ''"
BOX_FROM = 5
"""A box plot of fewer values would suggest more than is known of their distribution."""


def arm_colour(names: list[str], theme: Theme, legend: bool) -> Spec:
    """A colour for each contender."""
    return {
        "field": "c",
        "type": "nominal",
        "scale": {"domain": names, "range": list(theme.arms)},
        "legend": {"title": None, "orient": "top", "symbolOpacity": 1} if legend else None,
    }


def value_tip() -> list[Spec]:
    """The tooltip of a trial's value."""
    return [
        {"field": "t", "type": "nominal", "title": "trial"},
        {"field": "c", "type": "nominal", "title": "contender"},
        {"field": "b", "type": "nominal", "title": "block"},
        {"field": "s", "type": "nominal", "title": "value"},
    ]


def strip(
    names: list[str],
    theme: Theme,
    rows: list[Row] | None = None,
    *,
    unit: str = UNIT,
    width: int | str = "container",
    box: bool = True,
) -> Spec:
    """Every trial's value, each contender's in a row of its own, over a box where there are BOX_FROM of them.

    `box` is to be off where no contender has so many.
    """
    arm = {
        "field": "c",
        "type": "nominal",
        "sort": None,
        "axis": None,
        "scale": {"domain": names, "paddingInner": 0.1, "paddingOuter": 0.05},
    }
    x = {
        "field": "v",
        "type": "quantitative",
        "scale": {"zero": False, "nice": True},
        "axis": {"title": unit, "tickCount": 6},
    }
    colour = arm_colour(names, theme, legend=False)
    boxes: Spec = {
        "transform": [
            {"joinaggregate": [{"op": "count", "as": "k"}], "groupby": ["c"]},
            {"filter": f"datum.k >= {BOX_FROM}"},
        ],
        "mark": {
            "type": "boxplot",
            "extent": "min-max",
            "size": 26,
            "box": {"fillOpacity": 0.16, "strokeOpacity": 0.7, "strokeWidth": 1},
            "median": {"color": theme.ink, "strokeWidth": 2, "opacity": 0.9},
            "rule": {"color": theme.dim, "opacity": 0.7},
            "aria": False,
        },
        "encoding": {"y": arm, "x": x, "color": colour, "tooltip": {"value": None}},
    }
    spec = base(theme, width, {"step": 82}, rows)
    spec["layer"] = [
        {
            "transform": [{"aggregate": [], "groupby": ["c"]}],
            "mark": {"type": "text", "align": "left", "baseline": "middle", "dy": -29, "limit": {"expr": "width"}},
            "encoding": {"y": arm, "x": {"value": 2}, "text": {"field": "c"}, "color": colour},
        },
        {
            "mark": {
                "type": "circle",
                "size": 46,
                "opacity": 0.75,
                "stroke": theme.paper or "var(--paper)",
                "strokeWidth": 0.7,
            },
            "encoding": {
                "y": arm,
                "x": x,
                "yOffset": {"field": "j", "type": "quantitative", "scale": {"domain": [-1, 1], "range": [30, 52]}},
                "color": colour,
                "tooltip": value_tip(),
            },
        },
    ]
    if box:
        spec["layer"].insert(1, boxes)
    return spec


def order(
    names: list[str],
    theme: Theme,
    rows: list[Row] | None = None,
    *,
    unit: str = UNIT,
    width: int | str = "container",
    legend: bool = False,
    timed: bool = True,
) -> Spec:
    """Every trial's value in the order of time: a drift of the machine shows as a slope of all contenders.

    Where that order is not known (not `timed`) it is the order of the import.
    """
    spec = base(theme, width, 170, rows)
    title = "trial, in the order of time" if timed else "trial, as numbered by its source (order of time unknown)"
    spec["encoding"] = {
        "x": {
            "field": "p",
            "type": "quantitative",
            "scale": {"nice": False, "padding": 8, "zero": False},
            "axis": {"title": title, "tickMinStep": 1, "grid": False, "tickCount": 8, "labelExpr": WHOLE},
        },
        "y": {
            "field": "v",
            "type": "quantitative",
            "scale": {"zero": False, "nice": True},
            "axis": {"title": unit, "tickCount": 5},
        },
        "color": arm_colour(names, theme, legend),
    }
    spec["layer"] = [
        {"mark": {"type": "line", "strokeWidth": 1, "opacity": 0.45}},
        {"mark": {"type": "circle", "size": 40, "opacity": 0.9}, "encoding": {"tooltip": value_tip()}},
    ]
    return spec


def slices(names: list[str], theme: Theme, rows: list[Row] | None = None, *, width: int | str = "container") -> Spec:
    """Every slice's value by the time at which it began in its trial, a line a trial: interference that comes in spells shows as
    neighbouring slices of one trial that are worse. The larger a point, the longer the guest waited for a CPU of the host."""
    spec = order(names, theme, rows, width=width)
    spec["encoding"] |= {
        "x": {
            "field": "p",
            "type": "quantitative",
            "scale": {"nice": False, "padding": 8, "zero": False},
            "axis": {"title": "seconds after the boot", "grid": False, "tickCount": 8},
        },
        "detail": {"field": "t"},
    }
    size = {
        "field": "w",
        "type": "quantitative",
        "scale": {"domain": [0, 50], "range": [18, 260], "clamp": True},
        "legend": None,
    }
    tip = [*value_tip(), {"field": "w", "type": "quantitative", "title": "guest waited, %", "format": ".1f"}]
    spec["layer"] = [
        {"mark": {"type": "line", "strokeWidth": 1, "opacity": 0.3}},
        {"mark": {"type": "circle", "opacity": 0.7}, "encoding": {"size": size, "tooltip": tip}},
    ]
    return spec


def spells(
    theme: Theme, *, waiting: bool = False, rows: list[Row] | None = None, width: int | str = "container"
) -> Spec:
    """All slices of the run, a row a trial, by their time in it; coloured by how much worse each is than the median of its
    contender's, or by how long the guest waited for a CPU of the host meanwhile. A spell is a stretch of one colour, whatever
    the steps."""
    spec = base(theme, width, 260, rows)
    scale = {"domain": [0, 25], "scheme": "oranges"} if waiting else {"domain": [20, -20], "scheme": "redblue"}
    spec["mark"] = {"type": "square", "size": 36, "opacity": 1}
    spec["encoding"] = {
        "x": {
            "field": "p",
            "type": "quantitative",
            "scale": {"nice": False, "padding": 8, "zero": False},
            "axis": {"title": "seconds after the boot", "grid": False, "tickCount": 8},
        },
        "y": {
            "field": "n",
            "type": "quantitative",
            "scale": {"nice": False, "padding": 6, "zero": False, "reverse": True},
            "axis": {"title": "trial, in the order of time", "tickMinStep": 1, "grid": False, "labelExpr": WHOLE},
        },
        "color": {
            "field": "w" if waiting else "d",
            "type": "quantitative",
            "scale": scale | {"clamp": True},
            "legend": {"title": "guest waited, %" if waiting else "worse by, %", "orient": "top"},
        },
        "tooltip": [
            {"field": "t", "type": "nominal", "title": "trial"},
            {"field": "m", "type": "nominal", "title": "metric"},
            {"field": "s", "type": "nominal", "title": "value"},
            {"field": "d", "type": "quantitative", "title": "worse by, %", "format": ".1f"},
            {"field": "w", "type": "quantitative", "title": "guest waited, %", "format": ".1f"},
        ],
    }
    return spec


def course(names: list[str], theme: Theme, rows: list[Row] | None = None, *, width: int | str = "container") -> Spec:
    """The run itself: every trial in the order of time with how long it took; crosses are void or partial ones."""
    spec = order(names, theme, rows, unit="seconds a trial took", width=width)
    status = {
        "field": "s",
        "type": "nominal",
        "scale": {"domain": ["ok", "partial", "void"], "range": ["circle", "triangle-up", "cross"]},
        "legend": None,
    }
    size = {"condition": {"test": "datum.s === 'ok'", "value": 40}, "value": 190}
    tip = [
        {"field": "t", "type": "nominal", "title": "trial"},
        {"field": "s", "type": "nominal", "title": "status"},
        {"field": "w", "type": "nominal", "title": "began"},
        {"field": "v", "type": "quantitative", "title": "seconds", "format": ".1f"},
    ]
    spec["layer"] = [
        {
            "mark": {"type": "point", "filled": True, "opacity": 0.9},
            "encoding": {"shape": status, "size": size, "tooltip": tip},
        }
    ]
    return spec


def host(
    names: list[str],
    theme: Theme,
    drawn: str = "waited",
    rows: list[Row] | None = None,
    *,
    width: int | str = "container",
) -> Spec:
    """Every trial in the order of time with the share of its time that the guest waited for a CPU of the host; or, `drawn`
    being "pressed", in which some task of a real machine waited for a CPU."""
    inside = drawn == "pressed"
    unit = "% of the time some task waited" if inside else "% of its time the guest waited"
    spec = order(names, theme, rows, unit=unit, width=width)
    spec["height"] = 90
    spec["encoding"]["y"]["scale"] = {"zero": True, "nice": True}
    tip = [
        {"field": "t", "type": "nominal", "title": "trial"},
        {
            "field": "v",
            "type": "quantitative",
            "title": "some task waited, %" if inside else "guest waited, %",
            "format": ".1f",
        },
    ]
    if not inside:
        tip.append({"field": "o", "type": "quantitative", "title": "other work, % of the CPUs", "format": ".1f"})
    spec["layer"] = [{"mark": {"type": "point", "filled": True, "opacity": 0.9}, "encoding": {"tooltip": tip}}]
    return spec


def value_rows(results: Results, metric: MetricResult) -> list[Row]:
    """The rows that `strip` and `order` draw: a value of a trial each."""
    trials = {(trial.block, trial.contender): trial for trial in results.trials}
    rows = []
    for arm, (name, values) in enumerate(metric.values.items()):
        for index, (block, value) in enumerate(zip(results.blocks, values, strict=False)):
            if value is None:
                continue
            trial = trials.get((block, name))
            rows.append(
                {
                    "c": name,
                    "b": block,
                    "v": value,
                    "s": f"{value:.10g}",
                    "t": trial.id if trial else f"number {block}",
                    "p": trial.position + 1 if trial else index + 1,
                    "j": jitter(index, arm),
                }
            )
    return rows


def jitter(index: int, arm: int) -> float:
    """Place of a point in its row, -1 to 1: spread evenly, always the same."""
    return ((index + 1) * 0.6180339887 + arm * 0.37) % 1 * 2 - 1
