"""The plot of a calibration: verdicts by effect, blocks needed, false alarms."""

from collections.abc import Sequence

from kduel.judge.verdict.calibrate import Characteristics
from kduel.judge.verdict.rule import Rule
from kduel.report.plots.effects import Spec, layer, nominal, quantitative

COLOURS = {"higher": "#2a7f62", "equivalent": "#7fb3d5", "undecided": "#d9d9d9", "lower": "#c0504d"}


def specification(outcomes: Sequence[Characteristics], rule: Rule) -> Spec:
    """One row a noise: shares of the verdicts by true effect, and the blocks that they took; false alarms below."""
    noises = list(dict.fromkeys(outcome.noise for outcome in outcomes))
    rows = [{"hconcat": [shares(noise, outcomes), blocks(noise, outcomes, rule)]} for noise in noises]
    if any(outcome.effect_pct == 0 for outcome in outcomes):
        rows.append(false_alarms(outcomes, rule))
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "title": {
            "text": f"The rule at delta {rule.delta_pct:g} %, alpha {rule.alpha:g}, {rule.max_blocks} blocks at most",
            "subtitle": f"{outcomes[0].runs:,} simulated runs a point" if outcomes else "",
        },
        "config": {"view": {"stroke": None}, "axis": {"grid": False}},
        "vconcat": rows,
    }


def shares(noise: str, outcomes: Sequence[Characteristics]) -> Spec:
    """Stacked areas: how often which verdict, by true effect."""
    values = [
        {"effect": one.effect_pct, "verdict": verdict, "share": share, "place": place}
        for one in outcomes
        if one.noise == noise
        for place, verdict in enumerate(COLOURS)
        for share in (one.undecided_share if verdict == "undecided" else getattr(one, verdict),)
    ]
    colours = {"domain": list(COLOURS), "range": list(COLOURS.values())}
    axis, scale = {"format": "%"}, {"domain": [0, 1]}
    return {
        "title": {"text": noise, "anchor": "start"},
        "width": 280,
        "height": 120,
        "data": {"values": values},
        "mark": {"type": "bar", "width": 18} if len({v["effect"] for v in values}) < 2 else {"type": "area"},
        "encoding": {
            "x": quantitative("effect", title="true effect, %"),
            "y": quantitative("share", stack=True, title="verdicts", axis=axis, scale=scale),
            "color": nominal("verdict", title=None, scale=colours),
            "order": quantitative("place"),
        },
    }


def blocks(noise: str, outcomes: Sequence[Characteristics], rule: Rule) -> Spec:
    values = [
        {"effect": outcome.effect_pct, "mean": outcome.blocks_mean, "most": outcome.blocks_most}
        for outcome in outcomes
        if outcome.noise == noise
    ]
    x = quantitative("effect", title="true effect, %")
    y = quantitative("mean", title="blocks", scale={"domain": [0, rule.max_blocks]})
    return {
        "width": 200,
        "height": 120,
        "data": {"values": values},
        "layer": [
            layer({"type": "rule", "color": "#999999", "strokeWidth": 2}, {"x": x, "y": y, "y2": {"field": "most"}}),
            layer({"type": "line", "point": True, "color": "#333333"}, {"x": x, "y": y}),
        ],
    }


def false_alarms(outcomes: Sequence[Characteristics], rule: Rule) -> Spec:
    """Without an effect: the share of runs that called a difference, with twice its standard error, next to alpha."""
    values = [
        {
            "noise": outcome.noise,
            "share": outcome.any_difference,
            "low": max(0.0, outcome.any_difference - 2 * outcome.any_difference_error),
            "high": outcome.any_difference + 2 * outcome.any_difference_error,
        }
        for outcome in outcomes
        if outcome.effect_pct == 0
    ]
    x = {"title": "false alarms where nothing differs", "axis": {"format": ".1%"}}
    y = nominal("noise", title=None, sort=None, axis={"labelLimit": 300})
    return {
        "width": 280,
        "data": {"values": values},
        "layer": [
            layer(
                {"type": "rule", "strokeWidth": 2}, {"y": y, "x": quantitative("low", **x), "x2": {"field": "high"}}
            ),
            layer(
                {"type": "point", "filled": True, "size": 60, "color": "#333333"},
                {"y": y, "x": quantitative("share", **x)},
            ),
            layer(
                {"type": "rule", "color": "#c0504d", "strokeDash": [4, 3]},
                {"x": quantitative("alpha")},
                [{"alpha": rule.alpha}],
            ),
        ],
    }
