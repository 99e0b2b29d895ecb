"""The table that fits a screen: a line for each metric with its interval as a bar, all bars on one axis.

    metric                    change  −5 %       ┊│┊       +5 %  verdict      blocks
    fork/operations           +3.1 %               │  ├──●──┤    ▲ faster
    switch/operations         +0.2 %         ├────┼●─────┤       ? undecided    ~12

It is drawn while a run continues and at its end.
"""

import math
from collections import Counter
from collections.abc import Sequence

from kduel.core.format import (
    MINUS,
    bounds_text,
    decimals,
    effect,
    effect_numbers,
    interval_text,
    pct_of_means,
    plain_number,
    relative_pct,
    signed_number,
)
from kduel.core.metric_results import MetricResult
from kduel.core.text import CUT, visible
from kduel.judge.verdict.wording import HOPELESS
from kduel.report.content.digest import sign_of
from kduel.report.content.notes import key
from kduel.report.content.textgrid import Line, style

NARROWEST, WIDEST = 40, 120
EFFECT, STATE, NEED = 9, 12, 6
SHORTEST_BAR = 15
SHORTEST_NAME, LONGEST_NAME = 12, 30
"""A bar is left out where names would have fewer columns."""
REACH = 10
"""The axis ends at so many times the smallest effect of interest; what lies farther out is cut, with an arrow."""
FARTHEST_PCT = 1000.0
LEAST_PCT = -100.0
"""No change of a ratio is below it, so that no axis begins below it."""
NICE = (1, 1.5, 2, 3, 5, 10)


def overview(
    metrics: Sequence[MetricResult], delta: float, width: int, most: int, blocks_left: int | None = None
) -> list[Line]:
    """At most `most` lines (at least two) of `width` columns. `delta` is the smallest effect of interest in per cent,
    `blocks_left` how many blocks the run may still make; a need beyond it is marked."""
    width = max(NARROWEST, min(width, WIDEST))
    count = Counter((metric.benchmark, metric.contender) for metric in metrics)
    names = [
        visible(metric.benchmark, 200) if count[metric.benchmark, metric.contender] == 1 else key(metric)
        for metric in metrics
    ]
    longest = max((len(name) for name in names), default=6)
    several = len({metric.contender for metric in metrics}) > 1
    needed = blocks_left is not None or any(map(need, metrics))
    fixed = EFFECT + STATE + (NEED if needed else 0) + 4
    name_width = max(6, min(longest, LONGEST_NAME, width - fixed - SHORTEST_BAR - 2))
    bar_width = width - fixed - name_width - 2
    bar_width -= 1 - bar_width % 2
    if bar_width < SHORTEST_BAR or name_width < min(longest, SHORTEST_NAME):
        bar_width, name_width = 0, max(6, min(width - fixed, LONGEST_NAME))
    reach = axis(metrics, delta)
    names = fit_names(names, name_width)
    out = [heading(name_width, bar_width, reach, "blocks" if needed else "")]
    places = chosen([metric.contender for metric in metrics], several, most - 1)
    lines = [*out]
    contender = ""
    for number in places:
        metric = metrics[number]
        if several and metric.contender != contender:
            lines.append([(clip(f"{visible(metric.contender, 200)}:", width), "italic")])
        contender = metric.contender
        lines.append(row(metric, names[number], name_width, bar_width, reach, delta, blocks_left))
    rest = [metric for number, metric in enumerate(metrics) if number not in places]
    if rest:
        lines.append([(clip(left_out(rest), width), "dim")])
    return lines


def chosen(contenders: Sequence[str], several: bool, space: int) -> list[int]:
    """The places of the rows that fit so many lines, in their order; `several` contenders have a line each above their own
    rows, and each has a row before one has two more than another. Rows that do not fit take a line that counts them."""
    groups: dict[str, list[int]] = {}
    for place, contender in enumerate(contenders):
        groups.setdefault(contender, []).append(place)
    heads = len(groups) if several else 0
    if len(contenders) + heads <= space:
        return list(range(len(contenders)))
    found: list[int] = []
    left = space - 1
    for turn in range(max(map(len, groups.values()), default=0)):
        for places in groups.values():
            cost = 2 if several and turn == 0 else 1
            if turn < len(places) and cost <= left:
                found.append(places[turn])
                left -= cost
    return sorted(found)


def left_out(metrics: Sequence[MetricResult]) -> str:
    """`and 12 more: 3 faster, 2 too small to matter, 7 undecided`, counted as the headline counts."""
    counted = Counter(metric.size or metric.word for metric in metrics)
    return f"and {len(metrics)} more: " + ", ".join(f"{number} {word}" for word, number in counted.most_common())


def fit_names(names: Sequence[str], width: int) -> list[str]:
    """Each in at most so many columns, cut at the end, or in the middle where cut names would be equal."""
    ends = [name if len(name) <= width else f"{name[: width - 1]}{CUT}" for name in names]
    for tail in range(1, width):
        if len(set(ends)) == len(set(names)):
            break
        ends = [name if len(name) <= width else f"{name[: width - 1 - tail]}{CUT}{name[-tail:]}" for name in names]
    return [clip(end, width) for end in ends]


def heading(name_width: int, bar_width: int, reach: float, last: str) -> Line:
    """The columns' names, the last one as given, and the axis' ends above the bars, with its zero where there is space."""
    left, right = f"{MINUS}{plain_number(-beginning(reach))} %", f"+{plain_number(reach)} %"
    zero = column(0.0, bar_width, reach) - len(left)
    gap = bar_width - len(left) - len(right)
    between = f"{'0':>{zero + 1}}" if 0 < zero < gap else ""
    middle = f"{left}{between:<{gap}}{right}  " if bar_width else ""
    return [
        (
            f"{'metric':<{name_width}} {'change':>{EFFECT}}  {middle}{'verdict':<{STATE}}{f'{last:>{NEED}}' if last else ''}",
            "dim",
        )
    ]


def row(
    metric: MetricResult,
    name: str,
    name_width: int,
    bar_width: int,
    reach: float,
    delta: float,
    blocks_left: int | None,
) -> Line:
    drawn = f"{bar(metric, bar_width, reach, delta)}  " if bar_width else ""
    state = f"{sign_of(metric)} {'too small' if metric.size else metric.word}"
    needed = need(metric)
    beyond = blocks_left is not None and (metric.blocks_more or 0) > blocks_left
    return [
        (f"{name:<{name_width}} ", "bold"),
        (f"{change(metric):>{EFFECT}}  ", ""),
        (drawn, style(metric)),
        (f"{clip(state, STATE):<{STATE}}", style(metric)),
        (f"{needed:>{NEED}}" if needed else "", "red" if beyond else ""),
    ]


def change(metric: MetricResult) -> str:
    """The effect in few characters: in per cent where it has a ratio, else in the metric's unit."""
    share = pct_of_means(metric) if metric.n == 1 else relative_pct(metric)
    if share is None or not math.isfinite(share):
        text = effect(metric)
        return text if len(text) <= EFFECT else clip(text, EFFECT)
    if abs(share) >= 10_000:
        return f"{signed_number(share / abs(share) * 10_000, 0).replace(',', '')[0]}>9999 %"
    return f"{signed_number(share, min(2, decimals(abs(share), 3))) if share else '0'} %"


def need(metric: MetricResult) -> str:
    """About how many more blocks an undecided metric needs; empty where that is not known."""
    if metric.verdict != "undecided" or not metric.blocks_more:
        return ""
    return f">{HOPELESS}" if metric.blocks_more > HOPELESS else f"~{metric.blocks_more}"


def bounds(metric: MetricResult) -> tuple[float, float, float] | None:
    """(low, effect, high) in per cent of the baseline; None where there is no interval, or no ratio."""
    middle = relative_pct(metric)
    if middle is None:
        return None
    low, high = metric.ci_low_pct, metric.ci_high_pct
    if metric.scale == "exact" and (low is None or high is None):
        low = high = middle
    if low is None or high is None or not all(map(math.isfinite, (low, middle, high))):
        return None
    return low, middle, high


def axis(metrics: Sequence[MetricResult], delta: float) -> float:
    """End of the common axis, in per cent: at a round number that takes in all intervals. Beyond REACH it takes in
    only the tightest one, if that is not cut anyway: one with zero in it that goes beyond a doubling tells nothing there."""
    spans = [one for metric in metrics if (one := bounds(metric)) is not None]
    found = [(max(abs(low), abs(high)), low > 0) for low, _, high in spans]
    most = max((far for far, _ in found), default=0.0)
    tightest = min((far for far, above in found if above or far <= -LEAST_PCT), default=min(most, -LEAST_PCT))
    wanted = min(FARTHEST_PCT, max(2 * delta, tightest, min(most, REACH * delta)))
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(step * power for step in NICE if step * power >= wanted * (1 - 1e-9))


def beginning(reach: float) -> float:
    """Beginning of an axis that ends at `reach` per cent."""
    return max(-reach, LEAST_PCT)


def column(value: float, width: int, reach: float) -> int:
    """The column of a value in per cent on an axis of `width` columns; outside of them what lies beyond its ends."""
    left = beginning(reach)
    return round((value - left) / (reach - left) * (width - 1))


def bar(metric: MetricResult, width: int, reach: float, delta: float) -> str:
    """The interval on an axis of `width` columns (odd): zero and ±delta are marked, what lies beyond is cut."""
    cells = [" "] * width
    left = beginning(reach)
    for place, mark in ((-delta, "┊"), (delta, "┊"), (0.0, "│")):
        cells[column(place, width, reach)] = mark
    span = bounds(metric)
    if span is None:
        return "".join(cells)
    low, middle, high = span
    first, last = (column(max(left, min(reach, value)), width, reach) for value in (low, high))
    for place in range(first, last + 1):
        cells[place] = "┼" if cells[place] in "┊│" else "─"
    if last > first:
        cells[first] = "◂" if low < left else "├"
        cells[last] = "▸" if high > reach else "┤"
    if left <= middle <= reach:
        cells[column(middle, width, reach)] = "●"
    elif last == first:
        cells[first] = "◂" if middle < 0 else "▸"
    return "".join(cells)


NO_INTERVAL = "no interval yet"
TOO_EARLY = "too early"
FEWEST_SHOWN = 4
"""Of fewer blocks an interval wider than ±100 % is no information."""


def too_early(metric: MetricResult) -> bool:
    """True if its interval is no information yet."""
    value, low, high, unit = effect_numbers(metric)
    few = metric.scale != "exact" and unit == "%" and metric.n < FEWEST_SHOWN
    return few and None not in (value, low, high) and max(high or 0.0, -(low or 0.0)) > 100


def interval_words(metric: MetricResult) -> str:
    """`+0.20 to +1.40 %` for plain lines; `no interval yet` where it has no bounds."""
    value, low, high, unit = effect_numbers(metric)
    if metric.scale == "exact" and metric.ci_low_pct is not None and metric.ci_high_pct is not None:
        low, high = metric.ci_low_pct, metric.ci_high_pct
        return (
            f"{signed_number(low, 2)} %" if low == high else f"{signed_number(low, 2)} to {signed_number(high, 2)} %"
        )
    if value is None or low is None or high is None:
        return NO_INTERVAL
    if too_early(metric):
        return TOO_EARLY
    if unit == "%" and high > FARTHEST_PCT:
        return interval_text(metric)
    if low == high:
        return effect(metric)
    places = 0 if metric.scale == "exact" else 2
    return f"{' to '.join(bounds_text(low, high, places))} {unit}".rstrip()


def clip(text: str, width: int) -> str:
    """At most so many columns, the end cut."""
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= width else set_cell_size(text, width - 1) + "…"
