"""Fits of a metric over a factor whose levels are whole numbers, such as CPUs: the exponent b of metric = a * number^b."""

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from kduel.analysis.matrix.grid import GridPoint
from kduel.analysis.matrix.growth import Growth, growth
from kduel.core.format import MINUS
from kduel.core.text import visible

LEAST_LEVELS = 3
"""Any two points lie on a curve."""
MOST_FITS = 8
"""For each factor: of more, the tables have the figures."""
Values = Sequence[float | None]


class Fit(Struct, kw_only=True):
    """A metric over the levels of a factor, at one level of each other factor."""

    factor: str
    at: dict[str, str]
    grown: Growth

    @property
    def side(self) -> int:
        """1: it grows, -1: it falls, 0: neither is shown."""
        return (round(self.grown.low, 2) > 0) - (round(self.grown.high, 2) < 0)

    @property
    def sentence(self) -> str:
        """The exponent with its interval, that of each step, and what an exponent is."""
        one = self.grown
        where = "".join(f"{level}: " for level in [", ".join(self.at.values())] if level)
        verb = ("may not change; it goes", "grows", "falls")[self.side]
        between = "" if not one.varies and one.n < 2 else f" [{figure_text(one.low)}, {figure_text(one.high)}]"
        steps = zip(one.counts, one.counts[1:], one.steps, strict=False)
        each = ", ".join(f"{figure_text(step)} from {first} to {last}" for first, last, step in steps)
        means = ("", "; 1 is twice with twice as many", f"; {MINUS}1 is half with twice as many")[self.side]
        power = f"{self.factor}^{figure_text(one.exponent)}{between}"
        return visible(
            f"{where}{one.metric} {verb} as {power} over {one.counts[0]} to {one.counts[-1]} ({each}{means})", 1000
        )

    def curve_points(self) -> list[tuple[float, float]]:
        one = self.grown
        logs, values = list(map(math.log, one.counts)), list(map(math.log, one.means))
        middle, level = math.fsum(logs) / len(logs), math.fsum(values) / len(values)
        places = [logs[0] + (logs[-1] - logs[0]) * step / 24 for step in range(25)]
        return [(math.exp(place), math.exp(level + one.exponent * (place - middle))) for place in places]


def figure_text(value: float) -> str:
    """An exponent with two digits."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", MINUS)


def fits(metric: str, cells: Sequence[tuple[Mapping[str, str], Values]], *, varies: bool) -> list[Fit]:
    """The fits of a metric, from the levels of each cell and its values by block. None where a block lacks a positive value, or
    a factor has fewer than LEAST_LEVELS levels that are whole numbers."""
    found: list[Fit] = []
    for factor in dict.fromkeys(name for levels, _ in cells for name in levels):
        lines: dict[tuple[tuple[str, str], ...], dict[int, Values]] = {}
        for levels, values in cells:
            if levels.get(factor, "").isdecimal():
                others = tuple((name, level) for name, level in levels.items() if name != factor)
                lines.setdefault(others, {})[int(levels[factor])] = values
        made = [
            Fit(factor=factor, at=dict(others), grown=grown)
            for others, line in lines.items()
            if len(line) >= LEAST_LEVELS and min(line) > 0 and (grown := _grown(metric, factor, line, varies))
        ]
        found += made if len(made) <= MOST_FITS else []
    return found


def _grown(metric: str, factor: str, line: Mapping[int, Values], varies: bool) -> Growth | None:
    places = [GridPoint(label=str(count), family=factor, count=count) for count in sorted(line)]
    return growth(places, "", metric, {str(count): values for count, values in line.items()}, varies=varies)
