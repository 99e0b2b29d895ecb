"""The page's picture: effects of the metrics that decide on one axis whose better side is marked, gains first, then losses, then the rest."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from kduel.core.format import count_ranged, plain_number
from kduel.core.metric_results import NO_ONE_VERDICT, MetricResult
from kduel.core.results import Results
from kduel.judge.verdict.headline import lies_within
from kduel.judge.verdict.rule import Rule, gating_rule
from kduel.report.content.answer import change_size, operation_words
from kduel.report.content.digest import SIGNS, ContenderSummary, Digest, largest_first, largest_of, sign_of
from kduel.report.content.machines import by_machine
from kduel.report.content.overview import TOO_EARLY, bounds, too_early
from kduel.report.plots.effects import tone
from kduel.report.plots.intervals import Intervals, cell, drawn_span, intervals

MOST_ROWS = 12
"""Of the whole picture; each of several comparisons has FEWEST_ROWS at least."""
FEWEST_ROWS = 4
MOST_COMPARISONS = 4
DIRECTIONS = "▲▼↑↓"
NEUTRAL, INTERACTIONS = "Neither way is better", "Interactions: how far a change differs from level to level"
"""Heading of metrics without a better side beside those with one."""
SIDES, AMOUNTS = ("worse", "better"), ("less", "more")
"""What the ends of the axis are."""
ORDER = ("better", "worse", "neutral", "same", "undecided")


class PictureRow(Struct, frozen=True):
    """One effect: its metric in words and by its code name, the sign of its verdict, the change, and where it lies."""

    words: str
    code: str
    tone: str
    sign: str
    """Empty where a side is shown."""
    change: str
    side: str
    """`better` or `worse`, empty for neither: a sign and a colour do not say what is good."""
    drawn: Markup


class PictureGroup(Struct, frozen=True):
    heading: str
    rows: list[PictureRow]
    ends: tuple[str, str] | None
    """What the ends of the axis are, below these rows; None where more rows follow for which they are the same."""
    more: str
    """How many effects are not drawn; empty for none."""


class Picture(Struct, frozen=True):
    """The whole."""

    groups: list[PictureGroup]
    axis: Markup
    told: str


def picture_part(results: Results, said: Digest) -> Picture | None:
    """The picture of a run, or None where no effect has a ratio."""
    compared = [
        ("Counted exactly", one, part.study.delta)
        for part, counted in zip(results.parts, said.before, strict=False)
        for one in counted.comparisons
    ]
    compared += [(said.second if compared else "", one, results.study.delta) for one in said.comparisons]
    found = [(how, one, delta or 0.0, drawn) for how, one, delta in compared if (drawn := drawn_metrics(one))]
    if not found:
        return None
    found = found[:MOST_COMPARISONS]
    most = max(FEWEST_ROWS, MOST_ROWS // len(found))
    chosen = largest_of if results.effects else foremost_rows
    kept = [(how, one, delta, chosen(drawn, most)) for how, one, delta, drawn in found]
    everything = [metric for *_, drawn in kept for metric in drawn]
    common = intervals(everything, max(delta for *_, delta, _ in kept), "")
    assert common is not None
    groups: list[PictureGroup] = []
    backgrounds = Markup()
    for number, (how, one, delta, drawn) in enumerate(kept):
        hidden = last = 0
        axis = replace(common, delta=delta, name=f"picture{len(groups)}")
        backgrounds += axis.background()
        title = heading(how, one) if len(kept) > 1 else ""
        for ends, those in (
            (SIDES, [m for m in drawn if m.better != "none"]),
            (AMOUNTS, [m for m in drawn if m.better == "none"]),
        ):
            hidden += sum((m.better == "none") == (ends is AMOUNTS) for m in found[number][3]) - len(those)
            if rows := [picture_row(m, axis) for m in those]:
                without = INTERACTIONS if results.effects else NEUTRAL
                heads = (title, without if ends is AMOUNTS and common.better_right else "")
                if groups and groups[-1].ends == ends:
                    groups[-1] = replace(groups[-1], ends=None)
                more = f"{hidden} more in the table" if hidden else ""
                groups.append(PictureGroup(heading=". ".join(filter(None, heads)), rows=rows, ends=ends, more=more))
                title, hidden, last = "", 0, hidden
        if hidden:
            groups[-1] = replace(groups[-1], more=f"{last + hidden} more in the table")
    return Picture(
        groups=groups,
        axis=cell(backgrounds + common.labels()),
        told=caption(
            everything,
            [row for group in groups for row in group.rows],
            common,
            {how: delta for how, _, delta, _ in kept},
            gating_rule(results),
        ),
    )


def heading(how: str, comparison: ContenderSummary) -> str:
    """`Counted exactly under 5 conditions: new against old`."""
    over = count_ranged(comparison.gating)
    how += f" under {over} conditions" if how and over > 1 else ""
    return f"{how}: {comparison.names}" if how else comparison.names


def caption(
    metrics: Sequence[MetricResult],
    rows: Sequence[PictureRow],
    axis: Intervals,
    deltas: Mapping[str, float],
    rule: Rule,
) -> str:
    """Meaning of the marks that there are. `deltas` has the band of each part of the run, by what the part is called."""
    alike = len(set(deltas.values())) == 1
    bands = ", ".join(
        dict.fromkeys(f"±{plain_number(one)} %{'' if alike else f' ({how.lower()})'}" for how, one in deltas.items())
    )
    sampled = any(metric.scale != "exact" and bounds(metric) is not None for metric in metrics)
    lines = "Lines are intervals. " if sampled else ""
    many = "A count has a mark for each condition, and the middle one's number. "
    marks = many if count_ranged(metrics) > 1 else ""
    torn = any(metric.torn for metric in metrics)
    of_one = "Each is of one machine. " if torn else ""
    few = any(m.status == "undecided" and m.n < rule.equivalent_from and lies_within(m, rule) for m in metrics)
    within = f" (equivalence takes {rule.equivalent_from} values of each)" if few else ""
    tones = {row.tone for row in rows}
    same = f" ({SIGNS['equivalent']})" if "same" in tones else ""
    grey = NO_ONE_VERDICT if all(m.torn for m in metrics) else f"undecided{within}"
    undecided = f"; grey and hollow: {grey}" if "undecided" in tones else ""
    outside = "the interval goes on" if sampled else "the value lies farther out"
    beyond = f"; an arrow at an end: {outside}" if any("beyond" in row.drawn for row in rows) else ""
    return (
        f"Change, {axis.unit}. {lines}{of_one}{marks}In the shaded band, {bands}, a difference does not matter{same}"
        f"{undecided}{beyond}."
    )


def drawn_metrics(comparison: ContenderSummary) -> list[MetricResult]:
    """The metrics that decide and have a change in per cent."""
    found = [one for metric in comparison.gating if not metric.by_harness for one in by_machine(metric)]
    return [metric for metric in found if drawn_span(metric) is not None]


def foremost_rows(metrics: Sequence[MetricResult], most: int) -> list[MetricResult]:
    """At most so many: gains, the largest first, then losses, then what differs without a better side, is the same, is open; of more
    than `most` the largest of each kind that shows a difference."""
    return sorted(largest_of(metrics, most), key=lambda metric: (ORDER.index(tone(metric)), *largest_first(metric)))


def picture_row(metric: MetricResult, axis: Intervals) -> PictureRow:
    """One row. The size of a change whose interval is too wide is no information; a side is a claim, which a row without a verdict has not."""
    words, code = operation_words(metric)
    kind, sign = tone(metric), SIGNS["equivalent"] if metric.below_delta else sign_of(metric)
    size = change_size(metric) if not too_early(metric) else TOO_EARLY
    return PictureRow(
        words=words,
        code=code,
        tone=kind,
        sign="" if sign in DIRECTIONS or metric.torn else sign,
        change=size,
        side=kind if kind in SIDES else "",
        drawn=axis.row(metric, kind),
    )
