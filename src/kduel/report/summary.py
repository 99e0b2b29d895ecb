"""Tables with deltas as footprint studies print them, then a summary in sentences that rest on verdicts."""

import textwrap
from collections.abc import Iterable, Iterator
from typing import ClassVar

from kduel.core.format import (
    arms,
    effect,
    effect_numbers,
    exact_effect,
    interval_text,
    pct_of_means,
    percent,
    shown_unit,
)
from kduel.core.metric_results import NO_ONE_VERDICT, SET_BY_HARNESS, MetricResult
from kduel.core.results import Results
from kduel.core.text import plural, visible
from kduel.judge.verdict import headline
from kduel.report import DEFAULTS, Format, ReportOptions
from kduel.report.content.answer import answer, change_words
from kduel.report.content.closing import with_command
from kduel.report.content.digest import ContenderSummary, Digest, digest
from kduel.report.content.notes import key
from kduel.report.content.ranking import ranking_lines

WIDTH = 100


class SummaryFormat(Format):
    name: ClassVar[str] = "summary"
    summary: ClassVar[str] = "tables with deltas, and a summary in sentences"
    suffix: ClassVar[str] = ".txt"

    def render(self, results: Results, options: ReportOptions = DEFAULTS) -> str:
        said = digest(results)
        out = [said.title, "=" * len(said.title), " · ".join(said.facts), ""]
        found = answer(results)
        out += [*textwrap.wrap(found.text, WIDTH), *with_command(found.step, found.command, WIDTH), ""]
        for comparison in said.comparisons:
            out += comparison_lines(comparison, headline.repeated_unit(results))
        if lines := ranking_lines(results):
            out += [*heading("Ranking"), *lines[:-1], *textwrap.wrap(lines[-1], WIDTH), ""]
        out += [*heading("Measured"), *wrap_items(said.measured), "", *heading("Caveats")]
        out += wrap_items(caveats(results, said))
        return "\n".join(line.rstrip() for line in out) + "\n"


PLUGIN = SummaryFormat()


def comparison_lines(comparison: ContenderSummary, each: str) -> list[str]:
    metrics = [*comparison.primary, *comparison.exploratory]
    by_benchmark: dict[str, list[MetricResult]] = {}
    for metric in metrics:
        by_benchmark.setdefault(visible(metric.benchmark, 100), []).append(metric)
    out = []
    for benchmark, chosen in by_benchmark.items():
        out += [*table(benchmark, comparison, chosen), ""]
    out += heading(f"Summary: {comparison.contender} against {comparison.baseline}")
    out += wrap_items(sentences(comparison.gating, each))
    hints = sentences(comparison.exploratory if comparison.primary else [], each)
    return [*out, *wrap_items(f"Exploratory ({comparison.exploratory_note}): {hint}" for hint in hints), ""]


def table(benchmark: str, comparison: ContenderSummary, metrics: list[MetricResult]) -> list[str]:
    """Values of both, the delta, and what the delta is worth."""
    rows = [(benchmark, comparison.baseline, comparison.contender, "delta", "")]
    for metric in metrics:
        unit = visible(shown_unit(metric), 20)
        (before, _), (after, _) = arms(metric)
        worthy = worth(metric) + (", exploratory" if comparison.primary and metric.role != "primary" else "")
        rows.append((f"{visible(metric.metric, 60)} ({unit})", before, after, delta(metric), worthy))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    rule = "-" * (sum(widths) + 9)
    lines = []
    for name, one, other, gap, note in rows:
        figures = f"{name:<{widths[0]}} | {one:>{widths[1]}} | {other:>{widths[2]}} | {gap:>{widths[3]}}"
        lines += [f"{figures}  {note}"] if len(figures) + 2 + len(note) <= WIDTH else [figures, f"    {note}"]
    return [lines[0], rule, *lines[1:]]


def delta(metric: MetricResult) -> str:
    """`+31.2 %`, with the digits of every other report; in the unit where there is no ratio."""
    judged = metric.scale == "difference" or (metric.scale == "ratio" and metric.effect_pct is not None)
    share = None if judged else pct_of_means(metric)
    return effect(metric) if share is None else percent(share)


def worth(metric: MetricResult) -> str:
    """Words for what a delta may be taken for."""
    if metric.n == 0:
        return "not measured on both"
    if metric.by_harness:
        return SET_BY_HARNESS
    if metric.verdict != "undecided":
        return {"equal": "exactly equal", "equivalent": "equivalent"}.get(
            metric.verdict, "exact" if metric.scale == "exact" else f"{metric.word}, {interval_text(metric)}"
        ) + (f", {metric.size}" if metric.size else "")
    if metric.depends:
        return f"depends on {headline.CONDITIONS}, {interval_text(metric)}"
    if metric.few:
        return f"{plural(max(1, len(metric.conditions)), 'condition')}: may be chance"
    if metric.n == 1:
        return "n = 1: may be chance"
    was = f", {metric.was}" if metric.was else ""
    return f"undecided{was}, n = {metric.n}: {interval_text(metric)}"


def sentences(metrics: list[MetricResult], each: str) -> Iterator[str]:
    """The verdicts, the worse first, since that is the price of a change."""
    judged = [m for m in metrics if not m.by_harness]
    different = [m for m in judged if headline.matters(m)]
    for kind, word in (("worse", "Costs"), ("better", "Gains"), ("neutral", "Differs")):
        for metric in sorted(different, key=lambda m: -abs(pct_of_means(m) or 0.0)):
            if headline.side(metric) == kind:
                yield f"{word}: {phrase(metric)}."
    small = [m for m in judged if m.below_delta]
    if small:
        yield f"Differs by too little to matter: {list_metrics(small)}."
    same = [m for m in judged if m.verdict in ("equal", "equivalent")]
    if same:
        yield f"Equivalent: {list_metrics(same)}{headline.unseen_mode_text(same, each)}."
    if depending := [m for m in judged if m.depends]:
        yield f"The sign depends on {headline.CONDITIONS}: {list_metrics(depending)}."
    undecided = [m for m in judged if m.verdict == "undecided" and m.n and not m.depends and not m.torn]
    if undecided:
        single = all(m.n == 1 and not m.few for m in undecided)
        why = (
            "measured once each, so that no difference can be distinguished from chance" if single else "not decided"
        )
        why = undecided[0].withheld if len({m.withheld for m in undecided if m.few}) == 1 else why
        yield f"No verdict on {list_metrics(undecided)}: {why}. A delta in the table is not a result."
    missing = [m for m in judged if not m.n]
    if missing:
        yield f"Not measurable in both: {list_metrics(missing)}."
    if torn := headline.torn_metrics(judged):
        yield f"{NO_ONE_VERDICT.capitalize()} in {list_metrics(torn)}: they contradict each other."
    harness = [m for m in metrics if m.by_harness]
    if harness:
        yield f"Nothing about the kernel follows from {list_metrics(harness)}: the benchmark's settings determine these values."


def phrase(metric: MetricResult) -> str:
    """`build/real takes 31.2 % longer (+28.1 to +34.5 %)`."""
    name = key(metric)
    _, low, high, unit = effect_numbers(metric)
    said = change_words(metric, delta(metric))
    if metric.scale == "exact":
        return f"{name} {said} ({exact_effect(metric)} {visible(unit, 20)})"
    return f"{name} {said}" + ("" if low is None or high is None else f" ({interval_text(metric)})")


def list_metrics(metrics: list[MetricResult]) -> str:
    """All of them, because readers need the complete list."""
    return ", ".join(map(key, metrics))


def caveats(results: Results, said: Digest) -> Iterator[str]:
    """Facts that a study should report about itself: repetitions, system, and other differences."""
    said_of: dict[str, list[str]] = {}
    for name, counts in count_values(results).items():
        span = " to ".join(f"{number}" for number in dict.fromkeys((min(counts), max(counts))))
        said_of.setdefault({"0": "never", "1": "once"}.get(span, f"{span} times"), []).append(visible(name, 200))
    if len(said_of) == 1:
        yield f"Each contender was measured {next(iter(said_of))}."
    elif said_of:
        yield f"Measured: {'; '.join(f'{span}: ' + ', '.join(names) for span, names in said_of.items())}."
    yield from (sentence for sentence in [said.sure, *said.caveats] if sentence)
    for warning in results.warnings:
        yield visible(warning.message)


def count_values(results: Results) -> dict[str, set[int]]:
    """By contender, how many values its metrics have; without the metrics that have none, where it has any."""
    found: dict[str, set[int]] = {}
    for metric in results.metrics:
        for name, values in metric.values.items():
            if count := sum(value is not None for value in values):
                found.setdefault(name, set()).add(count)
    return {contender.name: found.get(contender.name, {0}) for contender in results.contenders} if found else {}


def heading(text: str) -> list[str]:
    return [text, "-" * len(text)]


def wrap_items(sentences: Iterable[str]) -> list[str]:
    item = textwrap.TextWrapper(WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)
    return [line for sentence in sentences for line in item.wrap(sentence)]
