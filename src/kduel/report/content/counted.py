"""The terminal's page for counted instructions: a line for each operation, the largest differences first.

What holds under every condition comes first, by subsystem; then what is the same, and what depends on conditions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from msgspec import Struct

from kduel.core.format import amount, effect, percent, signed
from kduel.core.results import COUNTED, MetricResult, Results
from kduel.core.text import visible
from kduel.report.content.digest import ContenderSummary, decided, largest_first, side

Line = list[tuple[str, str]]
"""Pieces of text, each with its style (rich's names)."""
OTHER = "other"
OUTSIDE_PCT = 5.0
"""How far from the usual range a situation's difference must lie to be shown."""


def is_counted(results: Results) -> bool:
    """Whether a run's primary metrics are counts of instructions on a deterministic machine."""
    primary = [metric for metric in results.metrics if metric.role == "primary"]
    return bool(results.machine.exact and primary) and all(metric.unit == COUNTED for metric in primary)


def counted_lines(comparison: ContenderSummary) -> Iterator[Line]:
    """All primary metrics of a comparison, then those of the others that differ in another way."""
    measured = [metric for metric in comparison.primary if metric.n]
    large = sorted((m for m in measured if decided(m) and not m.below_delta), key=largest_first)
    small = sorted((m for m in measured if decided(m) and m.below_delta), key=largest_first)
    same = [m for m in measured if m.verdict in ("equal", "equivalent")]
    open_ones = sorted((m for m in measured if m.verdict == "undecided"), key=largest_first)
    columns = Columns.of(measured)
    yield columns.heading()
    for group in dict.fromkeys(m.group or OTHER for m in large):
        yield [(visible(group, 40), "italic")]
        yield from (columns.line(m) for m in large if (m.group or OTHER) == group)
    if small:
        yield [("smaller than delta", "italic")]
        yield from (columns.line(m) for m in small)
    if open_ones:
        yield [("depends on conditions that should not matter", "italic")]
        yield from (columns.line(m) for m in open_ones)
    if same:
        yield [("the same: ", "italic"), (", ".join(name(m) for m in same), "")]
    missing = [m for m in comparison.primary if not m.n]
    if missing:
        yield [("not measured in both: ", "italic"), (", ".join(name(m) for m in missing), "")]
    yield from situation_lines(comparison)


def name(metric: MetricResult) -> str:
    """The operation, which distinguishes the metrics of such a run."""
    return visible(metric.benchmark, 60)


class Columns(Struct, frozen=True):
    """The columns of the page, as wide as what stands in them: most fit into 80 characters."""

    name: int
    change: int
    span: int
    counts: int

    HEADINGS: ClassVar = ("change", "over conditions", "at this change")

    @classmethod
    def of(cls, metrics: Sequence[MetricResult]) -> Columns:
        """Wide enough for these."""
        cells = [cls.HEADINGS, *((effect(m), span(m), counts(m)) for m in metrics)]
        change, over, at = (max(len(row[column]) for row in cells) for column in range(3))
        return cls(max((len(name(m)) for m in metrics), default=0), change, over, at)

    def heading(self) -> Line:
        """The headings of the figures."""
        return [(f"{'':{self.name + 9}}{self.figures(*self.HEADINGS)}", "dim")]

    def figures(self, change: str, over: str, at: str) -> str:
        """The figures of a line."""
        return f"  {change:>{self.change}}  {over:>{self.span}}  {at:>{self.counts}}"

    def line(self, metric: MetricResult) -> Line:
        """` more    fork-exit  +37,301 (+12.4 %)  +11.9 to +13.0 %  301,203 → 338,504`."""
        return [
            (f" {metric.word:<7}", style(metric)),
            (f" {name(metric):<{self.name}}", "bold"),
            (self.figures(effect(metric), span(metric), counts(metric)), ""),
            (f"  {agreement(metric)}".rstrip(), "dim"),
        ]


def counts(metric: MetricResult) -> str:
    """Before and after, under the condition of the median change."""
    return f"{amount(metric.baseline_mean)} → {amount(metric.mean)}"


def span(metric: MetricResult) -> str:
    """The range in per cent; empty where all conditions give the same."""
    low, high = metric.ci_low_pct, metric.ci_high_pct
    if low is None or high is None or metric.ci_low == metric.ci_high:
        return ""
    places = 1 if max(abs(low), abs(high)) >= 10 else 2
    return f"{signed(low, places)} to {signed(high, places)} %"


def agreement(metric: MetricResult) -> str:
    """In how many of the conditions the difference has this sign; empty where it is all of them."""
    agreeing, every = len(metric.agreeing), len(metric.conditions)
    return f"{agreeing} of {every}" if agreeing < every else ""


def situation_lines(comparison: ContenderSummary) -> Iterator[Line]:
    """Where the situation of the tasks changes which way an operation goes, or by how much."""
    usual = {m.benchmark: m for m in comparison.primary}
    found = [
        m
        for m in comparison.exploratory
        if m.metric.startswith(f"{COUNTED}-") and not m.conditions and m.benchmark in usual and m.effect is not None
    ]
    other = [m for m in found if m.baseline_mean and differs_from(m, usual[m.benchmark])]
    if not other:
        return
    yield [("otherwise in another situation of the tasks", "italic")]
    width = max(len(f"{name(m)}, {m.metric.partition('-')[2]}") for m in other)
    for m in sorted(other, key=largest_first):
        what = f"{name(m)}, {m.metric.partition('-')[2]}"
        share = 100 * (m.effect or 0) / (m.baseline_mean or 1)
        values = f"{amount(m.baseline_mean)} → {amount(m.mean)}"
        yield [
            (f" {m.word:<7}", style(m)),
            (f" {what:<{width}}", "bold"),
            (f"{percent(share):>9}  {values:>25}", ""),
        ]


def differs_from(metric: MetricResult, usual: MetricResult) -> bool:
    """Whether its difference lies outside the usual one's range by more than OUTSIDE_PCT."""
    if not metric.baseline_mean or usual.ci_low_pct is None or usual.ci_high_pct is None:
        return False
    share = 100 * (metric.effect or 0) / metric.baseline_mean
    return share < usual.ci_low_pct - OUTSIDE_PCT or share > usual.ci_high_pct + OUTSIDE_PCT


def style(metric: MetricResult) -> str:
    """Colour only repeats what the word next to it states."""
    if decided(metric):
        return {"better": "bold green", "worse": "bold red", "neutral": "bold magenta"}[side(metric)]
    return "yellow"


def next_command(results: Results, run: str) -> str:
    """What to type to see where the largest robust difference comes from; empty where there is none."""
    found = [m for m in results.metrics if m.role == "primary" and m.counted and not m.below_delta]
    if not found:
        return ""
    largest = min(found, key=largest_first)
    of = f" --contender {largest.contender}" if len({m.contender for m in results.metrics}) > 1 else ""
    return f"kduel explain {run} -b {largest.benchmark}{of}"
