"""Charts of tails: the share of measurements above each value on logarithmic axes, and the shift of quantiles."""

import math
from collections.abc import Sequence

from markupsafe import Markup

from kduel.core.tail_results import ShiftResult, TailResult
from kduel.core.text import visible
from kduel.report.plots import draw
from kduel.report.plots.trials import arm_class

NEARLY_ALL = 0.99
"""A curve begins at the largest value that so many of the measurements exceed."""
FINE = 2.2
"""An axis of so many decades at most has ticks at 1, 2 and 5."""


def survival_chart(tails: Sequence[tuple[int, TailResult]], label: str) -> Markup:
    """One line a contender: the mean distribution over boots, a dot at the maximum; the bound as a vertical line."""
    curves = {arm: tail_of(tail) for arm, tail in tails}
    bound = next((tail.bound for _, tail in tails if tail.bound is not None), None)
    values = [math.log10(value) for curve in curves.values() for value, _ in curve]
    across = draw.scale_of([*values, *([math.log10(bound.limit)] if bound else [])], room=0.02)
    upward = draw.Scale(
        low=min((math.log10(share) for curve in curves.values() for _, share in curve), default=-1) - 0.1, high=0
    )

    def at(value: float, share: float) -> draw.Point:
        return across.share(math.log10(value)), 1 - upward.share(math.log10(share))

    drawn = [
        draw.polyline([steps([at(*point) for point in curve])], f"curve {arm_class(arm)}")
        for arm, curve in curves.items()
    ]
    drawn += [draw.dots([at(*curve[-1])], arm_class(arm)) for arm, curve in curves.items() if curve]
    if bound:
        drawn.append(draw.polyline([[(at(bound.limit, 1)[0], 0), at(bound.limit, bound.share)]], "limit"))
    shares = [(at(1, share)[1], f"{draw.tick_text(100 * share)} %") for share in log_ticks(upward, fine=False)]
    grid = draw.stretched_area(draw.polyline([((0, y), (1, y)) for y, _ in shares], "grid"))
    below = [(at(value, 1)[0], draw.tick_text(value)) for value in log_ticks(across)]
    title = f"{visible(tails[0][1].metric, 60)}, {visible(tails[0][1].unit, 20)}"
    return draw.chart(
        "tall", label, draw.words((0, 0), "share of measurements above", dy=-8), grid,
        draw.group("end", -6, 4, *(draw.words((0, y), text) for y, text in shares)), draw.stretched_area(*drawn), draw.bottom_axis(below, title),
    )  # fmt: skip


def tail_of(tail: TailResult) -> list[draw.Point]:
    """The curve without its beginning, where nearly all measurements lie above. None lies above the largest, which a logarithm
    cannot show: the curve keeps its last height until there."""
    curve = [(value, share) for value, share in tail.survival if value > 0 and share > 0]
    begin = max((number for number, (_, share) in enumerate(curve) if share >= NEARLY_ALL), default=0)
    end = [(tail.largest, curve[-1][1])] if curve and tail.largest is not None else []
    return [*curve[begin:], *end]


def steps(points: Sequence[draw.Point]) -> list[draw.Point]:
    """The points of a curve that keeps each height until the next place."""
    found = list(points[:1])
    for x, y in points[1:]:
        found += [(x, found[-1][1]), (x, y)]
    return found


def log_ticks(scale: draw.Scale, *, fine: bool = True) -> list[float]:
    """At least two round values on an axis of decimal logarithms: powers of ten, and 2 and 5 times them if `fine`."""
    parts = (1, 2, 5) if fine and scale.high - scale.low <= FINE else (1,)
    powers = range(math.floor(scale.low), math.floor(scale.high) + 1)
    found = [part * 10.0**power for power in powers for part in parts]
    inside = [value for value in found if scale.low <= math.log10(value) <= scale.high]
    return inside if len(inside) > 1 else draw.Scale(low=10**scale.low, high=10**scale.high).ticks(4)


def shift_chart(one: ShiftResult, arm: int, delta: float, label: str) -> Markup:
    """Change of each quantile with its interval, at even distances; in the band a difference does not matter."""
    points = [
        (number, point.effect_pct, point.low_pct, point.high_pct)
        for number, point in enumerate(one.points)
        if point.effect_pct is not None and point.low_pct is not None and point.high_pct is not None
    ]
    upward = draw.scale_of([value for _, *values in points for value in values], zero=True)
    across = draw.Scale(low=-0.5, high=len(one.points) - 0.5)

    def at(number: int, value: float) -> draw.Point:
        return across.share(number), 1 - upward.share(value)

    low = [at(number, low) for number, _, low, _ in points]
    high = [at(number, high) for number, _, _, high in points]
    middle = [at(number, effect) for number, effect, _, _ in points]
    first, last = (min(1.0, max(0.0, at(0, value)[1])) for value in (delta, -delta))
    drawn = [
        draw.polyline([[*low, *reversed(high)]], f"around {arm_class(arm)}"),
        draw.polyline([middle], f"curve {arm_class(arm)}"),
        draw.dots(middle, arm_class(arm)),
    ]
    below = [(at(number, 0)[0], draw.tick_text(100 * point.share)) for number, point in enumerate(one.points)]
    return draw.chart(
        "shift", label, draw.words((0, 0), "change against the baseline, %", dy=-8), draw.rectangle((0, first), (1, last), "band"),
        draw.left_axis(upward), draw.line((0, at(0, 0)[1]), (1, at(0, 0)[1]), "zero"), draw.stretched_area(*drawn),
        draw.bottom_axis(below, "quantile within a boot, %"),
    )  # fmt: skip
