"""Data that the page's script draws from: every value once, and each plot's specification once."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kduel.core.format import amount
from kduel.core.host import wait_share
from kduel.core.metric_results import MetricResult
from kduel.core.results import Results
from kduel.core.slices import SliceValue, slice_label
from kduel.core.text import visible
from kduel.report.content.digest import Digest
from kduel.report.content.host import drawn_figure, figures
from kduel.report.content.notes import key
from kduel.report.plots import effects as plots
from kduel.report.plots import values as valueplots

PICTURE_WIDTH = 720
"""Of a plot that the page holds as a picture, in pixels."""


class MetricGroup(Struct, kw_only=True):
    """One metric with its result for each contender. `values` runs parallel to the run's contenders and blocks."""

    number: int
    name: str
    first: MetricResult
    results: list[MetricResult]
    values: list[list[float | None]]

    @property
    def primary(self) -> bool:
        """True if it decides."""
        return any(metric.role == "primary" for metric in self.results)

    @property
    def sliced(self) -> bool:
        """True if it was measured in slices."""
        return any(metric.slices for metric in self.results)


def metric_groups(results: Results) -> list[MetricGroup]:
    """The metrics in the study's order, the primary ones first."""
    names = [contender.name for contender in results.contenders]
    found: dict[tuple[str, str], list[MetricResult]] = {}
    for metric in results.metrics:
        found.setdefault((metric.benchmark, metric.metric), []).append(metric)
    ordered = sorted(found.values(), key=lambda group: all(metric.role != "primary" for metric in group))
    groups = []
    for number, group in enumerate(ordered):
        values: dict[str, list[float | None]] = {}
        for metric in group:
            values.update(metric.values)
        groups.append(
            MetricGroup(
                number=number,
                name=key(group[0]),
                first=group[0],
                results=group,
                values=[values.get(name, []) for name in names],
            )
        )
    return groups


def page_data(results: Results, groups: list[MetricGroup], said: Digest) -> dict[str, Any]:
    """The page's data; strings in it are made visible here since the script shows them as they are."""
    names = distinct([visible(contender.name, 200) for contender in results.contenders])
    arms = {contender.name: number for number, contender in enumerate(results.contenders)}
    delta = results.study.delta
    timed = not results.study.imported
    shown = drawn_figure(results)
    placeholder = [valueplots.NAMES]
    sliced = any(group.sliced for group in groups)
    return {
        "names": names,
        "blocks": results.blocks,
        "trials": [
            [
                visible(trial.id, 200),
                trial.block,
                trial.position,
                arms.get(trial.contender, -1),
                trial.status,
                trial.seconds,
                visible(trial.started or "", 40),
                figures(trial).pressed if shown == "pressed" else figures(trial).waited,
                figures(trial).other,
            ]
            for trial in results.trials
        ],
        "metrics": [
            {
                "name": visible(group.name, 200),
                "unit": visible(group.first.unit, 40),
                "lower": group.first.better == "lower",
                "values": group.values,
                "slices": slice_rows(results, group, arms),
            }
            for group in groups
        ],
        "forests": [
            plots.vega(plots.forest(comparison.gating, delta, plots.PAGE)) if has_forest(comparison.gating) else None
            for comparison in said.comparisons
        ],
        "strip": plots.vega(valueplots.strip(placeholder, plots.PAGE)),
        "points": plots.vega(valueplots.strip(placeholder, plots.PAGE, box=False)),
        "box_from": valueplots.BOX_FROM,
        "order": plots.vega(valueplots.order(placeholder, plots.PAGE, timed=timed)),
        "slices": plots.vega(valueplots.slices(placeholder, plots.PAGE)) if sliced else None,
        "spells": plots.vega(valueplots.spells(plots.PAGE)) if sliced else None,
        "waits": plots.vega(valueplots.spells(plots.PAGE, waiting=True)) if sliced else None,
        "course": plots.vega(valueplots.course(placeholder, plots.PAGE)) if results.trials else None,
        "host": plots.vega(valueplots.host(placeholder, plots.PAGE, shown)) if shown else None,
    }


def forest_pictures(said: Digest, delta: float) -> list[Any]:
    """Plots of effects as SVG, for a page whose script has not drawn them yet, or never will."""
    from markupsafe import Markup

    return [
        Markup(plots.svg(plots.forest(comparison.gating, delta, plots.PAGE, PICTURE_WIDTH)))
        if has_forest(comparison.gating)
        else Markup()
        for comparison in said.comparisons
    ]


def slice_rows(results: Results, group: MetricGroup, arms: dict[str, int]) -> list[list[float | int | None]]:
    """Rows of a contender's number, the block, the slice's begin in seconds, its value, and the share (per cent) of its time that
    the guest waited for a CPU of the host, None where that is not known."""
    hosts = {(trial.contender, trial.block): trial.host for trial in results.trials}
    trials: dict[str, list[list[SliceValue]]] = {}
    for metric in group.results:
        trials |= metric.slices
    rows: list[list[float | int | None]] = []
    for name, blocks in trials.items():
        for block, found in zip(results.blocks, blocks, strict=True):
            for number, one in enumerate(found, 1):
                record = hosts.get((name, block), {}).get(slice_label(group.first.benchmark, number))
                waited = wait_share([record]) if record else None
                rows.append([arms[name], block, one.began, one.value, None if waited is None else 100 * waited])
    return rows


def has_forest(metrics: list[MetricResult]) -> bool:
    """True if there is an interval in per cent to draw."""
    return bool(plots.forest_metrics(metrics))


def distinct(names: list[str]) -> list[str]:
    """Names that a scale can distinguish, should two look the same once made visible."""
    return [name if names.index(name) == number else f"{name} ({number + 1})" for number, name in enumerate(names)]


def describe_plot(group: MetricGroup, names: list[str]) -> str:
    """The plot in words, for those who cannot see it."""
    parts = []
    for name, values in zip(names, group.values, strict=True):
        there = sorted(value for value in values if value is not None)
        if not there:
            parts.append(f"{visible(name, 200)}: no value")
            continue
        middle = (
            there[len(there) // 2] if len(there) % 2 else (there[len(there) // 2 - 1] + there[len(there) // 2]) / 2
        )
        parts.append(
            f"{visible(name, 200)}: {len(there)} values from {amount(there[0])} to {amount(there[-1])}, "
            f"median {amount(middle)}"
        )
    return f"Values in {visible(group.first.unit, 40)}. " + "; ".join(parts) + "."
