"""The picture of a trade: throughput against latency against power, a panel for each two of them."""

from kduel.analysis.tradeoffs import Front
from kduel.analysis.tradeoffs.pareto import Position, Scale
from kduel.core.format import percent
from kduel.core.text import visible
from kduel.report.content.overview import beginning
from kduel.report.plots.effects import SIGNED, Row, Spec, Theme, base, layer, nominal, quantitative
from kduel.report.plots.intervals import FARTHEST

PANEL = 250
"""Pixels of a panel's sides."""


def panel_rows(front: Front, across: Scale, up: Scale) -> list[Row]:
    """A row for each contender. What lies beyond FARTHEST is drawn at the edge, with its true value as text."""
    rows: list[Row] = []
    for number, name in enumerate(front.contenders):
        row: Row = {"contender": visible(name, 200), "arm": number % 6, "beaten": name in front.beaten}
        for axis, place in (("x", across.places[name]), ("y", up.places[name])):
            ends = {axis: place.effect, f"{axis}_low": place.low, f"{axis}_high": place.high}
            row |= {key: clip_to_picture(value) for key, value in ends.items()} | {f"{axis}_told": place_told(place)}
        rows.append(row)
    return rows


def clip_to_picture(value: float | None) -> float | None:
    return None if value is None else max(beginning(FARTHEST), min(FARTHEST, value))


def place_told(place: Position) -> str:
    """A change with its interval and verdict."""
    if place.low is None or place.high is None:
        return "the baseline"
    return f"{percent(place.effect)} ({percent(place.low)} to {percent(place.high)}), {place.verdict}"


def panel(front: Front, across: Scale, up: Scale, delta: float, theme: Theme) -> Spec:
    """A cross is a contender with both its intervals; the better corner is always the upper right one."""

    def channel(scale: Scale, field: str, arrow: str) -> Spec:
        reach = [abs(v) for p in scale.places.values() for v in (p.effect, p.low, p.high) if v is not None]
        limit = 1.1 * max(2 * delta, min(FARTHEST, max(reach)))
        # With neither way better it stands as it is.
        sides = {"domain": [beginning(limit), limit], "nice": False, "reverse": scale.better == "lower"}
        axis = {"title": f"{scale.axis}, change in % ({arrow} better)", "labelExpr": SIGNED, "tickCount": 5}
        return quantitative(field, scale=sides, axis=axis)

    def encode(**fields: str) -> Spec:
        """Channels x and y over these fields."""
        axes = {"x": (across, "→"), "y": (up, "↑")}
        return {axis: channel(axes[axis][0], field, axes[axis][1]) for axis, field in fields.items()}

    colour = nominal("arm", scale={"domain": list(range(6)), "range": list(theme.arms)}, legend=None)
    tip = [nominal("contender"), nominal("x_told", title=across.axis), nominal("y_told", title=up.axis)]
    drawn: Spec = {"color": colour, "tooltip": tip}
    spec = base(theme, PANEL, PANEL, panel_rows(front, across, up))
    spec["layer"] = [
        *(
            layer(
                {"type": "rect", "color": theme.band},
                encode(**{axis: "low"}) | {f"{axis}2": {"field": "high"}},
                [{"low": -delta, "high": delta}],
            )
            for axis in "xy"
        ),
        *(layer({"type": "rule", "color": theme.line}, encode(**{axis: "zero"}), [{"zero": 0}]) for axis in "xy"),
        *(
            {
                "transform": [{"filter": f"isValid(datum.{axis}_low)"}],
                "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.7},
                "encoding": encode(**{"x": "x", "y": "y", axis: f"{axis}_low"})
                | {f"{axis}2": {"field": f"{axis}_high"}}
                | drawn,
            }
            for axis in "xy"
        ),
        {
            "mark": {"type": "point", "size": 110, "strokeWidth": 2.5, "opacity": 1},
            "encoding": {
                **encode(x="x", y="y"),
                **drawn,
                # Filled are those that no other beats.
                "fill": {"condition": {"test": "datum.beaten", "value": theme.paper or "var(--paper)"}, **colour},
            },
        },
    ]
    return spec
