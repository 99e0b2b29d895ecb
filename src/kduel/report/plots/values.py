"""The plot of values for notebooks: a point for each trial."""

from collections import Counter

from kduel.core.metric_results import MetricResult
from kduel.core.results import Results
from kduel.report.plots.effects import Row, Spec, Theme, base, layer, nominal, quantitative

TIP = {"t": "trial", "c": "contender", "b": "block", "s": "value"}
BOX_FROM = 5
"""A box plot of fewer values would suggest more than is known of their distribution."""


def strip(names: list[str], theme: Theme, rows: list[Row], *, unit: str, width: int) -> Spec:
    """Every trial's value, each contender's in a row of its own, over a box where there are BOX_FROM of them."""
    rows_of_arms = {"domain": names, "paddingInner": 0.1, "paddingOuter": 0.05}
    arm = nominal("c", sort=None, axis=None, scale=rows_of_arms)
    x = quantitative("v", scale={"zero": False, "nice": True}, axis={"title": unit, "tickCount": 6})
    colour = nominal("c", scale={"domain": names, "range": list(theme.arms)}, legend=None)
    offset = quantitative("j", scale={"domain": [-1, 1], "range": [30, 52]})
    tip = [nominal(field, title=title) for field, title in TIP.items()]
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
        layer(
            {"type": "circle", "size": 46, "opacity": 0.75, "stroke": theme.paper, "strokeWidth": 0.7},
            {"y": arm, "x": x, "yOffset": offset, "color": colour, "tooltip": tip},
        ),
    ]
    if has_boxes(rows):
        spec["layer"].insert(1, boxes)
    return spec


def has_boxes(rows: list[Row]) -> bool:
    """True if any contender has values enough for a box."""
    return max(Counter(row["c"] for row in rows).values(), default=0) >= BOX_FROM


def value_rows(results: Results, metric: MetricResult) -> list[Row]:
    """The rows that `strip` draws: a value of a trial each."""
    trials = {(trial.block, trial.contender): trial for trial in results.trials}
    rows = []
    for arm, (name, values) in enumerate(metric.values.items()):
        for index, (block, value) in enumerate(zip(results.blocks, values, strict=False)):
            if value is None:
                continue
            trial = trials.get((block, name))
            told = trial.id if trial else f"number {block}"
            rows.append({"c": name, "b": block, "v": value, "s": f"{value:.10g}", "t": told, "j": jitter(index, arm)})
    return rows


def jitter(index: int, arm: int) -> float:
    """Place of a point in its row, -1 to 1: spread evenly, always the same."""
    return ((index + 1) * 0.6180339887 + arm * 0.37) % 1 * 2 - 1
