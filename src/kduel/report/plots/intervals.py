"""Effects with their intervals as a column of the verdicts' table: one small chart a row, all on one axis."""

import math
from collections.abc import Sequence

from markupsafe import Markup
from msgspec import Struct

from kduel.core.format import plain_number, relative_pct
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
    better_right: bool = False
    """Whether a metric has a better side. Better is right: changes are turned round where less is better."""

    @property
    def unit(self) -> str:
        """Unit of the axis for the head of its column."""
        return "%, logarithmic" if isinstance(self.scale, Ratios) else "%"

    @property
    def head(self) -> str:
        """Head of the axis's column: the unit and what its ends are."""
        return f"{self.unit}: ◂ worse, better ▸" if self.better_right else self.unit

    def row(self, metric: MetricResult, tone: str) -> Markup:
        """One effect with its interval in its tone, or a dot for each condition; empty where there is none in per cent."""
        span = drawn_span(metric)
        if span is None:
            return Markup()
        low, middle, high = span
        turned = self.better_right and metric.better == "lower"
        drawn = Markup('<use href="#{}"/>').format(self.name)
        if metric.conditions:
            changes = [100 * one.difference / one.baseline for one in metric.conditions if one.baseline]
            drawn += Markup().join(self.dot(value, tone, turned) for value in changes)
        else:
            first, last = (min(1.0, max(0.0, self.place_of(value, turned))) for value in (low, high))
            drawn += line((first, 0.5), (last, 0.5), "reach") + self.dot(middle, tone, turned)
        before, after = low < self.scale.low, high > self.scale.high
        if after if turned else before:
            drawn += words((0, 0.5), "◂", "beyond", dx=-4, dy=5)
        if before if turned else after:
            drawn += words((1, 0.5), "▸", "end beyond", dx=4, dy=5)
        return cell(drawn, tone)

    def place_of(self, value: float, turned: bool) -> float:
        """The place of a change on the axis, 0 to 1 within it. Both ends of an axis are equally far from 0."""
        return 1 - self.scale.share(value) if turned else self.scale.share(value)

    def background(self) -> Markup:
        """The band in which a difference does not matter, and the line of no change."""
        first, last = (min(1.0, max(0.0, self.scale.share(value))) for value in (-self.delta, self.delta))
        zero = self.scale.share(0.0)
        drawn = rectangle((first, 0), (last, 1), "band") + line((zero, 0), (zero, 1), "zero")
        return Markup('<defs><g id="{}">{}</g></defs>').format(self.name, drawn)

    def dot(self, value: float, tone: str, turned: bool) -> Markup:
        """One effect in the shape of its tone; empty where it lies beyond the axis."""
        if not self.scale.low <= value <= self.scale.high:
            return Markup()
        return Markup('<use href="#dot-{}" x="{:.3g}%" y="50%"/>').format(tone, 100 * self.place_of(value, turned))

    def axis(self) -> Markup:
        return cell(self.background() + self.labels())

    def labels(self) -> Markup:
        inside: list[tuple[float, str]] = []
        for about in (4, 8, 16):
            if len(inside) < 2:
                places = [(self.scale.share(value), self.tick(value)) for value in self.scale.ticks(about)]
                inside = [(x, text) for x, text in places if 1 - INSIDE <= x <= INSIDE]
        return Markup().join(words((x, 0.5), text, "middle", dy=4) for x, text in inside)

    def tick(self, value: float) -> str:
        """The label of a place on the axis: without a sign where changes are turned round."""
        if not self.better_right:
            return signed_tick(value)
        if isinstance(self.scale, Ratios):
            return f"×{plain_number(max(1 + value / 100, 1 / (1 + value / 100)))}" if value else "0"
        return signed_tick(abs(value)).lstrip("+")


def cell(drawn: Markup, tone: str = "") -> Markup:
    """A row's chart, in its tone: the table beside it has its numbers."""
    return Markup('<svg class="{}" aria-hidden="true">{}</svg>').format(f"interval {tone}".rstrip(), drawn)


def intervals(metrics: Sequence[MetricResult], delta: float, name: str) -> Intervals | None:
    """The axis of the metrics, called `name` in its page, or None where none has an interval in per cent."""
    spans = [(span[0], span[2], metric.decided) for metric in metrics if (span := drawn_span(metric)) is not None]
    if not spans:
        return None
    sided = any(metric.better != "none" for metric in metrics)
    return Intervals(scale=change_scale(spans, delta), delta=delta, name=name, better_right=sided)


def drawn_span(metric: MetricResult) -> tuple[float, float, float] | None:
    """(low, effect, high) in per cent; of a single pair, which has no interval, its change alone. None where there is no ratio."""
    change = relative_pct(metric)
    return bounds(metric) or (None if change is None or not math.isfinite(change) else (change, change, change))


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
    """The change, or its inverse where it is negative: -50 % reaches as far as +100 %. 0 for what is no ratio."""
    return change if change >= 0 else inverse(change) if change > -100 else 0.0


def axis_end(reaches: list[tuple[float, bool]], delta: float, farthest: float = FARTHEST) -> float:
    """End of an axis, in per cent, `farthest` at most: far enough for all decided intervals, and not so far that a very wide one squeezes the
    others. A reach is how far an interval goes from 0, and whether it is decided."""
    far = sorted(reach for reach, _ in reaches if math.isfinite(reach))
    typical = far[len(far) // 2] if far else 0.0
    wanted = min(farthest, max([*(reach for reach, sure in reaches if sure), 1.5 * typical, 0.0]))
    return 1.05 * max(2.5 * delta, min(wanted, max(far, default=0.0)))
