"""Horizontal bars, a group for each contender."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from kduel.report.plots.draw import Scale, bottom_axis, chart, line, rectangle, tick_text, words

Bar = tuple[str, Sequence[Sequence[tuple[float, str]]], tuple[float, float] | None]
"""A contender, its bars each in pieces of a length and a class, and the spread of the first bar."""


def bars_chart(found: Sequence[Bar], scale: Scale, title: str, label: str) -> Markup:
    """Bars from 0; `label` has the figures."""
    drawn = Markup()
    height = 1 / max(1, len(found))
    for number, (name, bars, spread) in enumerate(found):
        top = (number + 0.42) * height
        thick = 0.5 * height / max(1, len(bars))
        drawn += words((0, top), name, "name", dy=-4)
        for index, pieces in enumerate(bars):
            begin, y = 0.0, top + index * thick
            for length, kind in pieces:
                first, last = scale.share(begin), scale.share(begin + length)
                drawn += rectangle((first, y), (last, y + 0.85 * thick), f"piece {kind}")
                begin += length
        if spread:
            middle = top + 0.42 * thick
            drawn += line((scale.share(spread[0]), middle), (scale.share(spread[1]), middle), "spread")
    places = [(scale.share(value), tick_text(value)) for value in [*([0.0] if scale.log else []), *scale.ticks(3)]]
    return chart(f"bars rows{min(len(found), 9)}", label, drawn, bottom_axis(places, title))
