"""The outcome of a search under noise as text for a mail (72 columns of ASCII), as a page, and as a plot."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from kduel.core.experiment import Better
from kduel.core.format import MINUS, MISSING, with_sign
from kduel.core.text import ascii_only, plural, printable
from kduel.report.campaigns.page import CampaignPage, CampaignTable, PageSection
from kduel.report.plots.engine import drawing
from kduel.run.bisect.outcome import Interval, Level, SearchOutcome

WIDTH = 72
SHORT = 12
MOST_LISTED = 20
"""Commits of a set, and rows of the table, that the text names."""


class MeasurementNotes(Struct, frozen=True, kw_only=True):
    """Notes on the measurement for readers who were not there."""

    subject: str
    """Such as: the command './bench', run in a checkout of each commit."""
    host: str
    reproduce: str
    """A command line."""
    subjects: Mapping[str, str]
    """The first line of each commit's message."""
    what: str = ""
    """What was measured, in words, with its unit; else the metric's name."""
    better: Better = "none"


def as_text(outcome: SearchOutcome, about: MeasurementNotes) -> str:
    said = answer_section(outcome, about)
    lines = wrap(said.lead)
    lines += [line for one in said.bullets[:MOST_LISTED] for line in wrap(one, "  ")]
    if more := len(said.bullets[MOST_LISTED:]):
        lines.append(f"  and {more} more (--format json lists all)")
    for sentence in (*said.sure, f"{said.step} {said.command}", *said.sentences):
        lines += wrap(sentence)
    lines += ["", *wrap(search_clause(outcome)), "", *_table_lines(outcome.levels)]
    skipped = [level for level in outcome.levels if level.status.startswith("skipped")]
    for level in skipped[:MOST_LISTED]:
        lines += wrap(f"{level.commit[:SHORT]} {level.status}", "  ")
    lines += ["", *(line for sentence in how_measured(outcome, about) for line in wrap(sentence))]
    # A command line is not folded: it shall be pasted.
    lines += ["Reproduce:", f"  {printable(about.reproduce)}"]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def name_commit(commit: str, about: MeasurementNotes) -> str:
    """The commit as people name it: a short name and the first line of its message."""
    subject = about.subjects.get(commit, "")
    return f"{commit[:SHORT]} ({subject})" if subject else commit[:SHORT]


CONFIRMED = {
    True: "The commits before and after it, measured again in fresh blocks, confirm it.",
    False: "In fresh blocks, the commits before and after did NOT differ clearly.",
    None: "Not measured again in fresh blocks.",
}


def answer_section(outcome: SearchOutcome, about: MeasurementNotes) -> PageSection:
    """Section on what changed the value and by how much, how sure that is, what to do next, and which other changes there are."""
    change = outcome.effect
    if not outcome.set:
        size = [f"Between the ends: {format_change(change)}."] if change else []
        return PageSection(heading="", lead=f"Nothing found: {outcome.why}.", sentences=size)
    commits = [name_commit(commit, about) for commit in outcome.set]
    many = len(commits) > 1
    who = f"One of {len(commits)} commits" if many else f"Commit {commits[0]}"
    doubt = ", probably but not confirmed," if outcome.confirmed is False else ""
    what = about.what or outcome.metric
    how = f"made {what} {size_words(outcome, change, about.better)}" if change else f"changed {what}"
    probability = format_probability(100 * (outcome.probability or 0))
    again = ["To be surer, search anew: the same command with another --seed."] if outcome.confirmed is False else []
    return PageSection(
        heading="", lead=f"{who}{doubt} {how}.", sure=[f"How sure: with a probability of {probability} it is {who.lower() if many else 'this commit'}.", CONFIRMED[outcome.confirmed]],
        step="Read each of these, which the measurements cannot tell apart." if many else "What it changes:",
        command="" if many else f"git show {outcome.set[0][:SHORT]}", sentences=[*other_changes(outcome), *again],
        bullets=commits if many else [],
    )  # fmt: skip


def size_words(outcome: SearchOutcome, change: Interval, better: Better) -> str:
    """Such as: 4.1 % higher (95 % interval +3.8 % to +4.4 %), which is worse; where no better side is known, which end is so, too."""
    side, sign = ("higher", 1) if change.mean > 0 else ("lower", -1)
    ends = {one.status: one.mean for one in outcome.levels if one.mean is not None}
    towards = sign * (ends.get("bad", 0.0) - ends.get("good", 0.0)) > 0
    judged = f"; {side} is the bad side of this search" if towards else ""
    if better != "none":
        judged = f", which is {'better' if side == better else 'worse'}"
    size, _, interval = format_change(change).partition(" %")
    return f"{size.lstrip(f'+{MINUS}')} % {side}{interval}{judged}"


def search_clause(outcome: SearchOutcome) -> str:
    commits = plural(len(outcome.posterior), "commit")
    return f"{outcome.metric}: {commits} searched, {outcome.good[:SHORT]} (good) to {outcome.bad[:SHORT]} (bad)"


def how_measured(outcome: SearchOutcome, about: MeasurementNotes) -> list[str]:
    """Sentences on what was measured, and how."""
    return [
        f"Measured: {about.subject}, on {about.host}.",
        f"How: {plural(outcome.measurements, 'measurement')} in {plural(outcome.blocks, 'block')}, each with both ends in random order; "
        "probabilistic bisection (a posterior over all commits; unknown effect, noise and drift between blocks).",
    ]


def other_changes(outcome: SearchOutcome) -> list[str]:
    """Sentences on further changes, beside the one that was found, and where they lie."""
    least = 0.1 * abs(outcome.effect.mean if outcome.effect else 0.0)
    return [
        f"Another change, {format_change(one.change)}, lies between {one.low[:SHORT]} and {one.high[:SHORT]}: search there for it."
        for one in outcome.segments
        if one.change.is_beyond(least)
    ]


def page_of(outcome: SearchOutcome, about: MeasurementNotes) -> CampaignPage:
    """The outcome as a page: the answer, then the levels."""
    rows = [
        [
            level.commit[:SHORT],
            about.subjects.get(level.commit, ""),
            level.status,
            f"{level.mean:.6g}",
            MISSING if level.ci_low is None else f"{level.ci_low:.6g} to {level.ci_high:.6g}",
            str(level.n),
        ]
        for level in outcome.levels
        if level.mean is not None
    ]
    head = ["commit", "subject", "level", "mean", "95 % interval", "n"]
    skipped = [f"{one.commit[:SHORT]} {one.status}" for one in outcome.levels if one.status.startswith("skipped")]
    sections = [
        answer_section(outcome, about),
        PageSection(
            heading="Commits measured", table=CampaignTable(head=head, rows=rows, numbers_from=3), bullets=skipped
        ),
        PageSection(
            heading="How",
            sentences=[f"{search_clause(outcome)}.", *how_measured(outcome, about), f"Reproduce: {about.reproduce}"],
            folded=True,
        ),
    ]
    return CampaignPage(title=f"Bisection of {about.what or outcome.metric}", sections=sections)


def _table_lines(levels: Sequence[Level]) -> list[str]:
    shown = [level for level in levels if level.mean is not None]
    lines = [f"{'commit':<{SHORT}} {'n':>4} {'mean':>11}  {'95 % interval':<23} level"]
    if len(shown) > MOST_LISTED:
        lines[0] += f" ({MOST_LISTED} of {len(shown)})"
        shown = sorted(sorted(shown, key=lambda level: -level.n)[:MOST_LISTED], key=shown.index)
    for level in shown:
        ends = f"{level.ci_low:.6g} to {level.ci_high:.6g}" if level.ci_low is not None else "-"
        lines.append(f"{level.commit[:SHORT]:<{SHORT}} {level.n:>4} {level.mean:>11.6g}  {ends:<23} {level.status}")
    return lines


def format_change(effect: Interval) -> str:
    """Such as: +4.1 % (95 % interval +3.8 % to +4.4 %)."""
    if effect.low is None or effect.high is None:
        return f"{with_sign(effect.mean, '.3g')} %"
    return f"{with_sign(effect.mean, '.3g')} % (95 % interval {with_sign(effect.low, '.3g')} % to {with_sign(effect.high, '.3g')} %)"


def format_probability(value: float) -> str:
    """A probability that never reads 100 %."""
    return f"{value:.1f} %" if value < 99.9 else "above 99.9 %"


def wrap(text: str, indent: str = "") -> list[str]:
    """Lines of at most WIDTH."""
    return textwrap.wrap(
        ascii_only(printable(text)), WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


NARROW = 400
COLOURS = {"good": "#3b6fb6", "before": "#3b6fb6", "between": "#5f6b7a", "after": "#d9731a", "bad": "#d9731a"}
"""Of a commit, by the side of the change that it is on."""


def specification(outcome: SearchOutcome, width: int = 640) -> dict[str, Any]:
    """The plot for Vega-Lite: the level of each measured commit with its interval, the posterior below it."""
    order = {commit: number for number, commit in enumerate((outcome.good, *outcome.posterior))}
    order.setdefault(outcome.bad, len(outcome.posterior))
    measured = [
        {
            "place": order[level.commit],
            "commit": level.commit[:SHORT],
            "mean": level.mean,
            "low": level.ci_low,
            "high": level.ci_high,
            "status": level.status,
        }
        for level in outcome.levels
        if level.mean is not None
    ]
    posterior = [
        {"place": order[commit], "commit": commit[:SHORT], "probability": probability}
        for commit, probability in outcome.posterior.items()
    ]
    place = {
        "field": "place",
        "type": "quantitative",
        "title": "commit, from good to bad",
        "scale": {"domain": [0, len(outcome.posterior)], "nice": False, "padding": 10},
    }
    shown = [status for status in COLOURS if any(level["status"] == status for level in measured)]
    colour = {
        "field": "status",
        "type": "nominal",
        "title": None,
        "legend": {"orient": "top"},
        "scale": {"domain": shown, "range": [COLOURS[status] for status in shown]},
    }
    level = {"type": "quantitative", "scale": {"zero": False}, "title": outcome.metric}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": ascii_only(printable(title(outcome))),
        "vconcat": [
            {
                "width": width,
                "height": 220,
                "data": {"values": measured},
                "encoding": {"x": place, "color": colour},
                "layer": [
                    {
                        "mark": "rule",
                        "transform": [{"filter": "isValid(datum.low)"}],
                        "encoding": {"y": {**level, "field": "low"}, "y2": {"field": "high"}},
                    },
                    {
                        "mark": {"type": "point", "filled": True, "size": 50},
                        "encoding": {"y": {**level, "field": "mean"}},
                    },
                ],
            },
            {
                "width": width,
                "height": 120,
                "data": {"values": posterior},
                "mark": {"type": "rule", "strokeWidth": 3},
                "encoding": {
                    "x": place,
                    "y": {"field": "probability", "type": "quantitative", "scale": {"domain": [0, 1]}},
                    "y2": {"datum": 0},
                },
            },
        ],
    }


def title(outcome: SearchOutcome) -> str:
    if not outcome.set:
        return f"{outcome.metric}: nothing found"
    first, *others = outcome.set
    commits = f"one of {len(outcome.set)} commits" if others else first[:SHORT]
    size = f" by {format_change(outcome.effect)}" if outcome.effect else ""
    sure = format_probability(100 * (outcome.probability or 0)) + ", not confirmed" * (outcome.confirmed is False)
    return f"{outcome.metric}: changed{size} by {commits} ({sure})"


def as_svg(outcome: SearchOutcome, *, page: bool = False) -> str:
    """The plot; for a page, which says the outcome itself, without a title and as narrow as a telephone."""
    found = specification(outcome, NARROW if page else 640)
    svg: str = drawing().vegalite_to_svg(found | {"title": ""} if page else found)
    return svg
