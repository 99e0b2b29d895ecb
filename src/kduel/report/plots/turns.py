"""The strip of a run in turns: each contender's slices against its own mean in the order of time, and their ratios on the same scale."""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from markupsafe import Markup

from kduel.report.plots import draw
from kduel.report.plots.trials import arm_class, place_scale

Column = Sequence[Sequence[float]]
"""By block, a contender's values in the order of time; none where it has not all of them."""
Strip = list[tuple[int, float]]
"""Place in time from 1, and per cent of a logarithm from the mean."""
HEIGHTS = ("slice against its contender's mean, %", "ratio to the baseline against its mean, %")


def turns_charts(blocks: Sequence[int], columns: Mapping[int, Column]) -> Markup:
    """Both charts; `columns` by contender's number, the baseline's 0. Empty where nothing can be compared."""
    own, ratios = strips(columns)
    if not ratios:
        return Markup()
    upward = draw.scale_of(value for found in (own, ratios) for strip in found.values() for _, value in strip)
    places = {place for strip in own.values() for place, _ in strip}
    across = place_scale(places)
    below = block_ticks(blocks, columns, across)
    axes = draw.left_axis(upward, 4), draw.bottom_axis(below, "block, its slices in the order of time")
    labels = ("Slices of each contender in the order of time.", "Ratios of the same slices, on the same scale.")
    drawn = Markup()
    for found, title, label in zip((own, ratios), HEIGHTS, labels, strict=True):
        shapes = []
        for arm, strip in found.items():
            points = [(across.share(place), 1 - upward.share(value)) for place, value in strip]
            shapes += [draw.polyline([points], f"joined {arm_class(arm)}"), draw.dots(points, arm_class(arm))]
        drawn += draw.chart(
            "spells", label, draw.words((0, 0), title, dy=-8), axes[0], draw.stretched_area(*shapes), axes[1]
        )
    return drawn


def strips(columns: Mapping[int, Column]) -> tuple[dict[int, Strip], dict[int, Strip]]:
    """By contender: its values, and their ratios to the baseline's of the same slice, each less its mean."""
    logs: dict[int, Strip] = {arm: [] for arm in columns}
    gaps: dict[int, Strip] = {arm: [] for arm in columns if arm}
    for place, values in slices_in_time(columns):
        for arm, value in values.items():
            logs[arm].append((place, 100 * math.log(value)))
            if arm and 0 in values:
                gaps[arm].append((place, 100 * math.log(value / values[0])))
    own, ratios = ({arm: centre(strip) for arm, strip in found.items() if len(strip) > 1} for found in (logs, gaps))
    return own, ratios


def slices_in_time(columns: Mapping[int, Column]) -> Iterator[tuple[int, dict[int, float]]]:
    """Place in time and values by contender; what has no logarithm is left out."""
    place = 0
    for trials in zip(*columns.values(), strict=True):
        for number in range(max(map(len, trials), default=0)):
            place += 1
            found = {arm: trial[number] for arm, trial in zip(columns, trials, strict=True) if number < len(trial)}
            yield place, {arm: value for arm, value in found.items() if value > 0}


def centre(strip: Strip) -> Strip:
    mean = fmean(value for _, value in strip)
    return [(place, value - mean) for place, value in strip]


def block_ticks(blocks: Sequence[int], columns: Mapping[int, Column], across: draw.Scale) -> list[tuple[float, str]]:
    """The blocks' numbers in the middle of their slices, at most about a dozen."""
    ticks, place = [], 0
    for block, trials in zip(blocks, zip(*columns.values(), strict=True), strict=True):
        size = max(map(len, trials), default=0)
        if size:
            ticks.append((across.share(place + (size + 1) / 2), str(block)))
        place += size
    return ticks[:: -(-len(ticks) // 12) or 1]
