"""Effects with their intervals as a column of the verdicts' table: one small chart a row, all on one axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup
from msgspec import Struct

from kduel.core.metric_results import MetricResult
from kduel.report.content.overview import beginning, bounds
from kduel.report.plots.draw import Scale, line, rectangle, signed_tick, words

FARTHEST = 150.0
"""Per cent: beyond it a change is drawn as an arrow, lest it squeeze all others to the zero line."""


LARGE = 100.0
"""Per cent: an axis that goes farther is logarithmic, lest small changes vanish beside a threefold one."""
FARTHEST_RATIO = 9900.0
"""Per cent, a hundred times as much: the end of a logarithmic axis at most."""


INSIDE = 0.96
"""Share of the axis's length up to which a label has room."""


class Ratios(Scale, frozen=True):
    """Changes in per cent, placed by the logarithm of the ratio: twice as much is as far from 0 as half as much."""

    def share(self, value: float) -> float:
        low, high, value = (math.log(max(1 + one / 100, 1e-9)) for one in (self.low, self.high, value))
        return (value - low) / (high - low)

    def ticks(self, about: int) -> list[float]:
        """No change, ten times as much, twice as much and so on, and their inverses, as many as have room; half as much again
        where there is no other, as the label of its inverse is long; as on any axis where that has no room either."""
        found = [0.0]
        for ratio in (10, 100, 2, 5, 20, 50):
            value = 100.0 * (ratio - 1)
            if self.share(value) <= INSIDE and all(
                abs(self.share(value) - self.share(one)) > 0.5 / about for one in found
            ):
                found += [value, inverse(value)]
        if len(found) > 1:
            return sorted(found)
        return [inverse(50.0), 0.0, 50.0] if self.share(50.0) <= INSIDE else super().ticks(about)


class Intervals(Struct, frozen=True):
    """The axis that the rows of a table share. `delta` is the smallest effect of interest, in per cent."""

    scale: Scale
    delta: float
    name: str
    """What the page calls the background of its rows."""

    @property
    def unit(self) -> str:
        """Unit of the axis for the head of its column."""
        return "%, logarithmic" if isinstance(self.scale, Ratios) else "%"

    def row(self, metric: MetricResult, tone: str) -> Markup:
        """One effect with its interval in its tone, or a dot for each condition; empty where there is none in per cent."""
        span = bounds(metric)
        if span is None:
            return Markup()
        low, middle, high = span
        drawn = Markup('<use href="#{}"/>').format(self.name)
        if metric.conditions:
            changes = [100 * one.difference / one.baseline for one in metric.conditions if one.baseline]
            drawn += Markup().join(self.dot(value) for value in changes)
        else:
            first, last = (min(1.0, max(0.0, self.scale.share(value))) for value in (low, high))
            drawn += line((first, 0.5), (last, 0.5), "reach") + self.dot(middle)
        if low < self.scale.low:
            drawn += words((0, 0.5), "◂", "beyond", dx=-4, dy=5)
        if high > self.scale.high:
            drawn += words((1, 0.5), "▸", "end beyond", dx=4, dy=5)
        return cell(drawn, tone)

    def background(self) -> Markup:
        """The band in which a difference does not matter, and the line of no change."""
        first, last = (min(1.0, max(0.0, self.scale.share(value))) for value in (-self.delta, self.delta))
        zero = self.scale.share(0.0)
        drawn = rectangle((first, 0), (last, 1), "band") + line((zero, 0), (zero, 1), "zero")
        return Markup('<defs><g id="{}">{}</g></defs>').format(self.name, drawn)

    def dot(self, value: float) -> Markup:
        """One effect; empty where it lies beyond the axis."""
        if not self.scale.low <= value <= self.scale.high:
            return Markup()
        return Markup('<circle cx="{:.3g}%" cy="50%" r="4.5"/>').format(100 * self.scale.share(value))

    def axis(self) -> Markup:
        """Labels of the axis: the row below the others."""
        inside: list[tuple[float, str]] = []
        for about in (4, 8, 16):
            if len(inside) < 2:
                places = [(self.scale.share(value), signed_tick(value)) for value in self.scale.ticks(about)]
                inside = [(x, text) for x, text in places if 1 - INSIDE <= x <= INSIDE]
        return cell(self.background() + Markup().join(words((x, 0.5), text, "middle", dy=4) for x, text in inside))


def cell(drawn: Markup, tone: str = "") -> Markup:
    """A row's chart, in its tone: the table beside it has its numbers."""
    return Markup('<svg class="{}" aria-hidden="true">{}</svg>').format(f"interval {tone}".rstrip(), drawn)


def intervals(metrics: Sequence[MetricResult], delta: float, name: str) -> Intervals | None:
    """The axis of the metrics, called `name` in its page, or None where none has an interval in per cent."""
    spans = [(span[0], span[2], metric.decided) for metric in metrics if (span := bounds(metric)) is not None]
    return Intervals(scale=change_scale(spans, delta), delta=delta, name=name) if spans else None


def change_scale(spans: Sequence[tuple[float, float, bool]], delta: float) -> Scale:
    """The common scale of intervals in per cent, (low, high, whether decided); by ratios where one is LARGE."""
    limit = axis_end([(max(abs(low), abs(high)), sure) for low, high, sure in spans], delta)
    if limit <= LARGE:
        return Scale(low=beginning(limit), high=limit)
    reaches = [(max(ratio_reach(low), ratio_reach(high)), sure) for low, high, sure in spans]
    limit = axis_end(reaches, delta, FARTHEST_RATIO)
    return Ratios(low=inverse(limit), high=limit)


def inverse(change: float) -> float:
    """The change in per cent that undoes another, above -100 %: -50 % undoes +100 %."""
    return 100 * (1 / (1 + change / 100) - 1)


def ratio_reach(change: float) -> float:
    """The change, or its inverse where it is negative: -50 % reaches as far as +100 %. 0 for what is no ratio, -100 % and
    less: its other end says how far the axis goes."""
    return change if change >= 0 else inverse(change) if change > -100 else 0.0


def axis_end(reaches: list[tuple[float, bool]], delta: float, farthest: float = FARTHEST) -> float:
    """End of an axis, in per cent, `farthest` at most: far enough for all decided intervals, and not so far that a very wide one squeezes the
    others. A reach is how far an interval goes from 0, and whether it is decided."""
    far = sorted(reach for reach, _ in reaches if math.isfinite(reach))
    typical = far[len(far) // 2] if far else 0.0
    wanted = min(farthest, max([*(reach for reach, sure in reaches if sure), 1.5 * typical, 0.0]))
    return 1.05 * max(2.5 * delta, min(wanted, max(far, default=0.0)))
