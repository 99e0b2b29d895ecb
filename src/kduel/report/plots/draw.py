"""Charts as SVG that fit every width: places are shares of the chart, sizes are pixels, colours are classes of the page.

A chart holds its gridlines and labels, and in it an area of EDGE x EDGE units that is stretched over it: what is drawn there keeps
the width of its strokes, so that a stroke without length is a dot (SVG 2, 13.5.6 and "vector-effect")."""

import itertools
import math
from collections.abc import Iterable, Sequence

from markupsafe import Markup
from msgspec import Struct

from kduel.core.format import MINUS, amount, signed_number

EDGE = 1000
STEPS = (1, 2, 5, 10)
Point = tuple[float, float]


class Scale(Struct, frozen=True):
    """Values from `low` to `high` on an axis; `log` for counts from 0 over many decades: each decade is about as long as another."""

    low: float
    high: float
    log: bool = False

    def share(self, value: float) -> float:
        """Place of a value, 0 to 1 within the axis."""
        low, high, value = (math.log1p(one) if self.log else one for one in (self.low, self.high, value))
        return (value - low) / (high - low)

    def ticks(self, about: int) -> list[float]:
        """Round values on the axis, about so many, two at least; powers of ten on a logarithmic one."""
        if self.log:
            powers = math.floor(math.log10(max(1.0, self.high)))
            return [10.0**power for power in range(0, powers + 1, 1 if powers < 4 else 2)]
        step = round_up((self.high - self.low) / about)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)] if first < last else self.ticks(2 * about)


def round_up(wanted: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is not below `wanted`, which is positive."""
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(step * power for step in STEPS if step * power >= wanted * (1 - 1e-9))


def scale_of(values: Iterable[float], *, zero: bool = False, room: float = 0.06) -> Scale:
    """A scale that takes in all values with some room at its ends, and 0 on request."""
    found = [*values, *([0.0] if zero else [])]
    low, high = min(found, default=0.0), max(found, default=1.0)
    width = (high - low) or abs(high) or 1.0
    return Scale(low=low if zero and low == 0 else low - room * width, high=high + room * width)


def tick_text(value: float) -> str:
    """A tick's value; in powers of ten where it has many digits."""
    if abs(value) >= 1e7 or 0 < abs(value) < 1e-4:
        digits, power = f"{value:.3e}".split("e")
        return f"{digits.rstrip('0').rstrip('.')}e{int(power)}".replace("-", MINUS)
    return amount(float(f"{value:.6g}"))


def signed_tick(value: float) -> str:
    value = float(f"{value:.6g}")
    return "0" if value == 0 else signed_number(value, 0 if value == int(value) else 1)


def percent(share: float) -> str:
    """A share as an attribute: `43.2%`."""
    return f"{100 * share:.3g}%"


def class_attribute(kind: str) -> Markup:
    return Markup(' class="{}"').format(kind) if kind else Markup()


def line(first: Point, last: Point, kind: str = "") -> Markup:
    (x1, y1), (x2, y2) = first, last
    return Markup('<line x1="{}" y1="{}" x2="{}" y2="{}"{}/>').format(
        percent(x1), percent(y1), percent(x2), percent(y2), class_attribute(kind)
    )


def rectangle(first: Point, last: Point, kind: str = "") -> Markup:
    x, width = min(first[0], last[0]), abs(last[0] - first[0])
    y, height = min(first[1], last[1]), abs(last[1] - first[1])
    return Markup('<rect x="{}" y="{}" width="{}" height="{}"{}/>').format(
        percent(x), percent(y), percent(width), percent(height), class_attribute(kind)
    )


def words(place: Point, text: str, kind: str = "", dx: int = 0, dy: int = 0) -> Markup:
    """Text at a place, moved by so many pixels; its class says which end is there."""
    at = {"x": percent(place[0]), "y": percent(place[1]), "dx": f"{dx}", "dy": f"{dy}"}
    told = "".join(f' {name}="{value}"' for name, value in at.items() if value not in ("0", "0%"))
    return Markup("<text{}{}>{}</text>").format(Markup(told), class_attribute(kind), text)


def group(kind: str, dx: int, dy: int, *shapes: Markup) -> Markup:
    return Markup('<g class="{}" transform="translate({} {})">{}</g>').format(kind, dx, dy, Markup().join(shapes))


def in_units(points: Iterable[Point]) -> list[tuple[int, int]]:
    """Places in the stretched area."""
    return [(round(EDGE * x), round(EDGE * y)) for x, y in points]


def dots(points: Iterable[Point], kind: str) -> Markup:
    """Dots of one class in the stretched area; empty without points."""
    path = "".join(f"M{x} {y}h0" for x, y in in_units(points))
    return Markup('<path class="dots {}" d="{}"/>').format(kind, path) if path else Markup()


def polyline(runs: Iterable[Sequence[Point]], kind: str) -> Markup:
    """Lines through points, one for each run, in the stretched area."""
    path = "".join(run_text(in_units(points)) for points in runs if len(points) > 1)
    return Markup('<path class="{}" d="{}"/>').format(kind, path) if path else Markup()


def run_text(points: Sequence[tuple[int, int]]) -> str:
    """The commands of one run, as short as they can be."""
    drawn = f"M{points[0][0]} {points[0][1]}"
    for (x, y), (to_x, to_y) in itertools.pairwise(points):
        drawn += (
            f"h{to_x - x}"
            if y == to_y
            else f"v{to_y - y}"
            if x == to_x
            else f"l{to_x - x}{' ' * (to_y > y)}{to_y - y}"
        )
    return drawn


def stretched_area(*shapes: Markup) -> Markup:
    """The area that dots and polylines are drawn in."""
    return Markup('<svg viewBox="0 0 {0} {0}" preserveAspectRatio="none">{1}</svg>').format(
        EDGE, Markup().join(shapes)
    )


def left_axis(scale: Scale, about: int = 5) -> Markup:
    """Gridlines with their values at the left."""
    places = [(1 - scale.share(value), tick_text(value)) for value in scale.ticks(about)]
    grid = stretched_area(polyline([((0, y), (1, y)) for y, _ in places], "grid"))
    return grid + group("end", -6, 4, *(words((0, y), text) for y, text in places))


def bottom_axis(places: Iterable[tuple[float, str]], title: str) -> Markup:
    """Labels below the chart, and what they say."""
    labels = group("middle", 0, 16, *(words((x, 1), text) for x, text in places))
    return labels + words((0.5, 1), title, "middle", dy=32)


def chart(kind: str, label: str, *shapes: Markup) -> Markup:
    """The whole; `label` says it to those who cannot see it."""
    return Markup('<svg class="chart {}" role="img" aria-label="{}">{}</svg>').format(
        kind, label, Markup().join(shapes)
    )
