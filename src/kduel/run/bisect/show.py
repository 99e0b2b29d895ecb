"""The outcome of a search under noise as text for a mail (72 columns of ASCII), as a page, and as a plot."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from kduel.core.format import MISSING, with_sign
from kduel.core.text import ascii_only, plural, printable
from kduel.report.campaigns.page import CampaignPage, CampaignTable, PageSection
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


def as_text(outcome: SearchOutcome, about: MeasurementNotes) -> str:
    """The whole text."""
    lines = [
        *(_found_lines(outcome, about) if outcome.set else _not_found_lines(outcome)),
        "",
        *wrap(search_clause(outcome)),
    ]
    lines += ["", *_table_lines(outcome.levels)]
    skipped = [level for level in outcome.levels if level.status.startswith("skipped")]
    for level in skipped[:MOST_LISTED]:
        lines += wrap(f"{level.commit[:SHORT]} {level.status}", "  ")
    lines += ["", *(line for sentence in how_measured(outcome, about) for line in wrap(sentence))]
    # A command line is not folded: it shall be pasted.
    lines += ["Reproduce:", f"  {printable(about.reproduce)}"]
    return "\n".join(line.rstrip() for line in lines) + "\n"


CONFIRMED = {
    True: "Confirmed: the commits before and after were measured again in fresh blocks.",
    False: "In fresh blocks, the commits before and after did not differ clearly.",
    None: "Not measured again in fresh blocks.",
}


def search_clause(outcome: SearchOutcome) -> str:
    """Clause on what was searched."""
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
    """The outcome as a page: the commit, by how much, how sure, and what to do next; then the levels."""
    commits = [f"{commit[:SHORT]} {about.subjects.get(commit, '')}".strip() for commit in outcome.set]
    change = f"Difference between the ends: {format_change(outcome.effect)}" if outcome.effect else ""
    lead, sentences = f"Nothing found: {outcome.why}.", [f"{change}."] if change else []
    if commits:
        doubt = "Probably, but not confirmed, " if outcome.confirmed is False else ""
        size = f" by {format_change(outcome.effect)}" if outcome.effect else ""
        which = f"commit {commits[0]}" if len(commits) == 1 else f"one of {len(commits)} commits"
        lead = f"{doubt}{outcome.metric} changed{size} with {which}."
        sure = f"Probability {format_probability(100 * (outcome.probability or 0))}. {CONFIRMED[outcome.confirmed]}"
        sentences = [
            sure,
            f"Next: git show {outcome.set[0][:SHORT]}" if len(commits) == 1 else "They cannot be distinguished.",
            *other_changes(outcome),
        ]
        if outcome.confirmed is False:
            sentences.append("To be surer, search anew: the same command with another --seed.")
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
        PageSection(
            heading="What changed", lead=lead, sentences=sentences, bullets=commits if len(commits) > 1 else []
        ),
        PageSection(
            heading="Commits measured", table=CampaignTable(head=head, rows=rows, numbers_from=3), bullets=skipped
        ),
        PageSection(
            heading="How",
            sentences=[f"{search_clause(outcome)}.", *how_measured(outcome, about), f"Reproduce: {about.reproduce}"],
            folded=True,
        ),
    ]
    return CampaignPage(title=f"Bisection of {outcome.metric}", sections=sections)


def _found_lines(outcome: SearchOutcome, about: MeasurementNotes) -> list[str]:
    probability = 100 * (outcome.probability or 0)
    many = len(outcome.set)
    doubt = ", which fresh blocks did NOT confirm" * (outcome.confirmed is False)
    if many == 1:
        lines = [
            *wrap(f"The change came with this commit (probability {format_probability(probability)}){doubt}:"),
            "",
        ]
    else:
        lines = wrap(
            f"The change came with one of these {many} commits (together {format_probability(probability)}){doubt}; they cannot be "
            "distinguished by these measurements:"
        )
        lines.append("")
    for commit in outcome.set[:MOST_LISTED]:
        lines += wrap(f"{commit[:SHORT]} {about.subjects.get(commit, '')}", "  ")
    if many > MOST_LISTED:
        lines.append(f"  and {many - MOST_LISTED} more (--format json lists all)")
    lines.append("")
    if outcome.effect is not None:
        lines += wrap(f"Effect: {format_change(outcome.effect)}.")
    lines += wrap(CONFIRMED[outcome.confirmed])
    if many == 1:
        lines.append(f"To see it: git show {outcome.set[0][:SHORT]}")
    return [*lines, *(line for sentence in other_changes(outcome) for line in wrap(sentence))]


def _not_found_lines(outcome: SearchOutcome) -> list[str]:
    lines = wrap(f"Nothing found: {outcome.why}.")
    if outcome.effect is not None:
        lines += wrap(f"Difference between the ends: {format_change(outcome.effect)}.")
    return lines


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
    import vl_convert

    found = specification(outcome, NARROW if page else 640)
    svg: str = vl_convert.vegalite_to_svg(found | {"title": ""} if page else found)
    return svg
