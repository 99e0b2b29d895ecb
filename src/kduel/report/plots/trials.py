"""Charts of what each trial gave, in the order of time: values, slices, seconds that it took, what the host did meanwhile."""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from statistics import median, quantiles
from typing import Literal

from markupsafe import Markup
from msgspec import Struct, structs

from kduel.report.plots.draw import (
    Point,
    Scale,
    bottom_axis,
    chart,
    dots,
    group,
    left_axis,
    polyline,
    scale_of,
    stretched_area,
    tick_text,
    words,
)

BOX_FROM = 5
"""A box of fewer values would suggest more than is known of their distribution."""
BOXES = 0.12
"""Share of a chart's width that boxes take."""
ARMS = 6
"""So many colours."""
WAITED = (5.0, 20.0)
"""Per cent of its time that a guest waited for a CPU: from each on, a dot is larger."""
WORSE = (-20.0, -10.0, -4.0, 4.0, 10.0, 20.0)
"""Per cent that a slice is worse than usual: each colour begins at one."""
LONG = (2.0, 5.0, 10.0, 25.0)
"""Per cent of its time that a guest waited: each colour begins at one."""


class Dot(Struct, frozen=True):
    """One value of a trial. `place` is the trial's place in the order of time, from 1; `block` its block."""

    arm: int
    block: int
    place: int
    value: float


class SliceDot(Struct, frozen=True):
    """One slice: its begin in seconds after the boot, value, and how much worse it is and how it waited in %."""

    arm: int
    trial: int
    began: float
    value: float
    worse: float | None
    waited: float | None


def summarize_slices(found: Sequence[SliceDot], most: int) -> tuple[list[SliceDot], int]:
    """At most about so many dots: neighbouring slices of a trial as one, by their median, the one that is worst and the one that
    waited longest; and how many slices a dot stands for at most."""
    if len(found) <= most:
        return list(found), 1
    trials = len({(one.arm, one.trial) for one in found})
    size = math.ceil(len(found) / max(most, trials))
    ordered = sorted(found, key=lambda one: (one.arm, one.trial, one.began))
    kept = []
    for _, mine in groupby(ordered, key=lambda one: (one.arm, one.trial)):
        slices = list(mine)
        for start in range(0, len(slices), size):
            piece = slices[start : start + size]
            worse = max((one.worse for one in piece if one.worse is not None), default=None)
            waited = max((one.waited for one in piece if one.waited is not None), default=None)
            value = median(one.value for one in piece)
            kept.append(structs.replace(piece[0], value=value, worse=worse, waited=waited))
    return kept, size


def place_scale(places: Iterable[int]) -> Scale:
    found = list(places)
    return Scale(low=min(found, default=1) - 0.7, high=max(found, default=1) + 0.7)


def values_chart(found: Sequence[Dot], unit: str, label: str, *, timed: bool) -> Markup:
    """Every value by trial, those of a block joined in their order; at the right a box of each contender's, where there are
    BOX_FROM. Where the order of time is not known (not `timed`) it is that of the source, and nothing is joined."""
    upward = scale_of([one.value for one in found])
    across = place_scale(one.place for one in found)
    arms = sorted({one.arm for one in found})
    boxed = [arm for arm in arms if sum(one.arm == arm for one in found) >= BOX_FROM]
    width = 1 - BOXES if boxed else 1.0

    def at(one: Dot) -> Point:
        return width * across.share(one.place), 1 - upward.share(one.value)

    ordered = sorted(found, key=lambda one: one.place)
    blocks = [[at(one) for one in found] for _, found in groupby(ordered, key=lambda one: one.block)] if timed else []
    drawn = [
        left_axis(upward),
        stretched_area(
            *(box(arm, number, [one.value for one in found if one.arm == arm], upward, len(boxed)) for number, arm in enumerate(boxed)),
            polyline(blocks, "joined"),
            *(dots((at(one) for one in found if one.arm == arm), arm_class(arm)) for arm in arms),
        ),
    ]  # fmt: skip
    title = "block, its trials in the order of time" if timed else "number of the trial in its source"
    drawn.append(bottom_axis(block_ticks(ordered, across, width) if timed else place_ticks(across, width), title))
    return chart("values", label, words((0, 0), unit, dy=-8), *drawn)


def box(arm: int, number: int, values: list[float], upward: Scale, count: int) -> Markup:
    """Range, middle half and median of a contender's values, in its place at the right of the stretched area."""
    width = BOXES / (count + 0.5)
    x = 1 - BOXES + width * (number + 0.75)
    low, middle, high = (1 - upward.share(value) for value in quantiles(values, n=4, method="inclusive"))
    least, most = (1 - upward.share(value) for value in (min(values), max(values)))
    left, right = x - 0.35 * width, x + 0.35 * width
    half = [(left, low), (left, high), (right, high), (right, low), (left, low)]
    return polyline([[(x, least), (x, low)], half, [(x, high), (x, most)]], f"box {arm_class(arm)}") + polyline(
        [[(left, middle), (right, middle)]], "median"
    )


def arm_class(arm: int) -> str:
    return f"arm{arm % ARMS}"


def block_ticks(ordered: Sequence[Dot], across: Scale, width: float) -> list[tuple[float, str]]:
    """The blocks' numbers in the middle of their trials, at most about a dozen."""
    middles = [(block, [one.place for one in found]) for block, found in groupby(ordered, key=lambda one: one.block)]
    every = -(-len(middles) // 12)
    return [(width * across.share((min(places) + max(places)) / 2), str(block)) for block, places in middles[::every]]


def place_ticks(across: Scale, width: float = 1.0) -> list[tuple[float, str]]:
    """Whole numbers of the axis of trials."""
    return [
        (width * across.share(value), tick_text(value))
        for value in across.ticks(8)
        if value == int(value) and value >= 1
    ]


def trials_chart(
    found: Sequence[tuple[int, int, float, str]], unit: str, label: str, *, zero: bool = False
) -> Markup:
    """A figure of each trial: (contender's number, place in the order of time, value, status). What is `ok` is a dot, a partial
    trial a triangle, a void one a cross. From 0 on request."""
    upward = scale_of([one[2] for one in found], zero=zero)
    across = place_scale(one[1] for one in found)
    marks = Markup()
    plain: dict[int, list[Point]] = {}
    for arm, place, value, status in found:
        at = (across.share(place), 1 - upward.share(value))
        if status == "ok":
            plain.setdefault(arm, []).append(at)
        else:
            marks += words(at, "✕" if status == "void" else "▲", f"mark middle {arm_class(arm)}", dy=5)
    drawn = stretched_area(*(dots(points, arm_class(arm)) for arm, points in sorted(plain.items())))
    below = bottom_axis(place_ticks(across), "trial, in the order of time")
    return chart("course", label, words((0, 0), unit, dy=-8), left_axis(upward, 4), drawn, marks, below)


def slices_chart(found: Sequence[SliceDot], unit: str, label: str) -> Markup:
    """Each slice's value by its time in the trial, a line a trial; the larger a dot, the longer the guest waited for a CPU."""
    upward, across = scale_of(one.value for one in found), scale_of(one.began for one in found)

    def at(one: SliceDot) -> Point:
        return across.share(one.began), 1 - upward.share(one.value)

    shapes = []
    for arm in sorted({one.arm for one in found}):
        mine = sorted((one for one in found if one.arm == arm), key=lambda one: (one.trial, one.began))
        runs = [[at(one) for one in trial] for _, trial in groupby(mine, key=lambda one: one.trial)]
        shapes.append(polyline(runs, f"joined {arm_class(arm)}"))
        for size in range(len(WAITED) + 1):
            chosen = (at(one) for one in mine if step_of(one.waited or 0.0, WAITED) == size)
            shapes.append(dots(chosen, f"{arm_class(arm)} size{size}"))
    return chart(
        "values", label, words((0, 0), unit, dy=-8), left_axis(upward), stretched_area(*shapes), seconds(across)
    )


def seconds(across: Scale) -> Markup:
    """The axis of time within a trial."""
    return bottom_axis(
        [(across.share(value), tick_text(value)) for value in across.ticks(8)], "seconds after the boot"
    )


def step_of(value: float, steps: Sequence[float]) -> int:
    """Number of the steps that a value has reached."""
    return sum(value >= step for step in steps)


def spells_chart(found: Sequence[SliceDot], what: Literal["worse", "waited"], label: str) -> Markup:
    """All slices, a row a trial, coloured by how much worse than usual each is, or by how long it waited."""
    across, down = scale_of(one.began for one in found), place_scale(one.trial for one in found)
    steps, kind = (WORSE, "worse") if what == "worse" else (LONG, "long")
    figure: Callable[[SliceDot], float | None] = (
        (lambda one: one.worse) if what == "worse" else (lambda one: one.waited)
    )
    known = [(one, value) for one in found if (value := figure(one)) is not None]
    shapes = [
        dots(
            (
                (across.share(one.began), down.share(one.trial))
                for one, value in known
                if step_of(value, steps) == step
            ),
            f"square {kind}{step}",
        )
        for step in range(len(steps) + 1)
    ]
    numbered = (words((0, down.share(value)), tick_text(value)) for value in down.ticks(6) if value >= 1)
    title = words((0, 0), "trial", dy=-8)
    return chart("spells", label, title, group("end", -6, 4, *numbered), stretched_area(*shapes), seconds(across))


def worse_by(value: float, usual: float, *, lower_is_better: bool) -> float | None:
    """Loss against the usual value, in per cent of a logarithm; None where there is no ratio."""
    if value <= 0 or usual <= 0:
        return None
    return 100 * math.log(value / usual if lower_is_better else usual / value)
