"""For whoever decides: tables with deltas as footprint studies print them, then a summary in plain sentences.

Every sentence rests on a verdict. What was not decided is named as such, and the table's figure next to it means nothing
more than it can.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import ClassVar

from kduel.core.format import MISSING, amount, arms, effect_numbers, interval_text, relative_pct, signed
from kduel.core.results import BYTES, MetricResult, Results
from kduel.core.text import visible
from kduel.judge.verdict.comparison import TIME_UNITS
from kduel.judge.verdict.headline import decided, side, unseen
from kduel.report import Format
from kduel.report.content.digest import ContenderSummary, Digest, digest

WIDTH = 100
RATES = ("/s", "ops", "Hz")


class SummaryFormat(Format):
    """A table for each benchmark, then what follows from the verdicts, and what does not."""

    name: ClassVar[str] = "summary"
    summary: ClassVar[str] = "tables with deltas, and a summary in sentences"
    suffix: ClassVar[str] = ".txt"

    def render(self, results: Results) -> str:
        said = digest(results)
        out = [said.title, "=" * len(said.title), " · ".join(said.facts), ""]
        for comparison in said.comparisons:
            out += comparison_lines(comparison)
        out += heading("Caveats")
        for sentence in caveats(results, said):
            out += wrapped(sentence)
        return "\n".join(line.rstrip() for line in out) + "\n"


PLUGIN = SummaryFormat()


def comparison_lines(comparison: ContenderSummary) -> list[str]:
    """One contender against the baseline."""
    metrics = [*comparison.primary, *comparison.exploratory]
    by_benchmark: dict[str, list[MetricResult]] = {}
    for metric in metrics:
        by_benchmark.setdefault(visible(metric.benchmark, 100), []).append(metric)
    out = []
    for benchmark, chosen in by_benchmark.items():
        out += [*table(benchmark, comparison, chosen), ""]
    out += heading(f"Summary: {comparison.contender} against {comparison.baseline}")
    for sentence in sentences(metrics):
        out += wrapped(sentence)
    return [*out, ""]


def table(benchmark: str, comparison: ContenderSummary, metrics: list[MetricResult]) -> list[str]:
    """Values of both, the delta, and what the delta is worth."""
    rows = [(benchmark, comparison.baseline, comparison.contender, "delta", "")]
    for metric in metrics:
        unit = visible(metric.unit, 20)
        (before, _), (after, _) = arms(metric)
        rows.append(
            (
                f"{visible(metric.metric, 60)} ({unit})",
                before,
                after,
                delta(metric),
                worth(metric),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    rule = "-" * (sum(widths) + 9)
    lines = [
        f"{name:<{widths[0]}} | {one:>{widths[1]}} | {other:>{widths[2]}} | {gap:>{widths[3]}}  {note}"
        for name, one, other, gap, note in rows
    ]
    return [lines[0], rule, *lines[1:]]


def delta(metric: MetricResult) -> str:
    """`+ 31 %`, as such studies print it; in the unit where there is no ratio."""
    share = change_pct(metric)
    if share is None:
        return MISSING
    places = 0 if abs(share) >= 10 else 1 if abs(share) >= 1 else 2
    text = signed(share, places)
    return f"{text[0]} {text[1:]} %" if text[0] in "+−" else f"{text} %"


def change_pct(metric: MetricResult) -> float | None:
    """The change in per cent: the verdict's, or of the two means where nothing was judged."""
    share = relative_pct(metric)
    if share is None and metric.mean is not None and metric.baseline_mean:
        share = 100 * (metric.mean - metric.baseline_mean) / abs(metric.baseline_mean)
    return share


def worth(metric: MetricResult) -> str:
    """What a delta may be taken for."""
    if metric.n == 0:
        return "not measured on both"
    if metric.by_harness:
        return "set by the benchmark itself"
    if metric.verdict != "undecided":
        return {"equal": "exactly equal", "equivalent": "equivalent"}.get(
            metric.verdict, "exact" if metric.scale == "exact" else f"{metric.word}, {interval_text(metric)}"
        ) + (f", {metric.size}" if metric.size else "")
    if metric.n == 1:
        return "n = 1: may be chance"
    was = f", {metric.was}" if metric.was else ""
    return f"undecided{was}, n = {metric.n}: {interval_text(metric)}"


def sentences(metrics: list[MetricResult]) -> Iterator[str]:
    """The verdicts, the worse first, since that is the price of a change."""
    judged = [m for m in metrics if not m.by_harness]
    different = [m for m in judged if decided(m) and not m.below_delta]
    for kind, word in (("worse", "Costs"), ("better", "Gains"), ("neutral", "Differs")):
        for metric in sorted(different, key=lambda m: -abs(change_pct(m) or 0.0)):
            if side(metric) == kind:
                yield f"{word}: {phrase(metric)}."
    small = [m for m in judged if decided(m) and m.below_delta]
    if small:
        yield f"Differs by too little to matter: {listed(small)}."
    same = [m for m in judged if m.verdict in ("equal", "equivalent")]
    if same:
        yield f"The same in both: {listed(same)}{unseen(same)}."
    undecided = [m for m in judged if m.verdict == "undecided" and m.n]
    if undecided:
        single = all(m.n == 1 for m in undecided)
        why = (
            "measured once each, so that no difference can be distinguished from chance" if single else "not decided"
        )
        yield f"No verdict on {listed(undecided)}: {why}. A delta in the table is not a result."
    missing = [m for m in judged if not m.n]
    if missing:
        yield f"Not measurable in both: {listed(missing)}."


def phrase(metric: MetricResult) -> str:
    """`build/real takes 31 % longer (28 to 35 %)`."""
    name = f"{visible(metric.benchmark, 100)}/{visible(metric.metric, 60)}"
    share = change_pct(metric)
    value, low, high, unit = effect_numbers(metric)
    up = (value or 0) > 0
    if share is None:
        what = "" if unit == "count" else f" {visible(unit, 20)}"
        return f"{name} is {'higher' if up else 'lower'} by {amount(abs(value or 0))}{what}"
    size = f"{abs(share):.{0 if abs(share) >= 10 else 1 if abs(share) >= 1 else 2}f} %"
    if metric.unit in TIME_UNITS:
        said = f"takes {size} {'longer' if up else 'less time'}"
    elif metric.unit in BYTES:
        said = f"is {size} {'larger' if up else 'smaller'}"
    elif any(word in metric.unit for word in RATES):
        said = f"does {size} {'more' if up else 'less'}"
    else:
        said = f"is {size} {'higher' if up else 'lower'}"
    if metric.scale == "exact":
        return f"{name} {said} ({signed(value or 0, 0)} {visible(unit, 20)})"
    return f"{name} {said}" + ("" if low is None or high is None else f" ({interval_text(metric)})")


def listed(metrics: list[MetricResult]) -> str:
    """All of them, because readers need the complete list."""
    return ", ".join(f"{visible(m.benchmark, 100)}/{visible(m.metric, 60)}" for m in metrics)


def caveats(results: Results, said: Digest) -> Iterator[str]:
    """What a study should report about itself: repetitions, system, and other differences."""
    numbers = sorted({m.n for m in results.metrics if m.n})
    if numbers:
        span = " to ".join(f"{number}" for number in dict.fromkeys((numbers[0], numbers[-1])))
        yield "Each contender was measured " + ("once." if span == "1" else f"{span} times.")
    yield from (sentence for sentence in [said.sure, *said.caveats] if sentence)
    for warning in results.warnings:
        yield visible(warning.message)


def heading(text: str) -> list[str]:
    """A line with a rule below."""
    return [text, "-" * len(text)]


def wrapped(sentence: str) -> list[str]:
    """A list's item in lines."""
    return textwrap.wrap(sentence, WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)
