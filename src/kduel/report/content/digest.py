"""The summary of a report, once for every format: headline, supported and unsupported statements, notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from kduel.core.format import effect, effect_with_interval, plain_number, relative_pct
from kduel.core.results import COUNTED, MetricResult, Results, Verdict
from kduel.core.text import plural, visible
from kduel.explain.compare import UNSEEN
from kduel.judge.verdict.headline import Side, compared, decided, headline_of, side, unseen
from kduel.judge.verdict.wording import HOPELESS
from kduel.report.content.caveats import caveats, run_facts, sureness
from kduel.report.content.notes import Notes, numbered
from kduel.report.content.undecided import by_reason

SIGNS: dict[str, str] = {
    "faster": "▲",
    "slower": "▼",
    "higher": "↑",
    "lower": "↓",
    "different": "≠",
    "equivalent": "≈",
    "equal": "=",
    "undecided": "?",
}
NAMED = 6
"""How many metrics a sentence names before it says how many more there are."""


class Statement(Struct, kw_only=True):
    """A line below the headline."""

    verdict: Verdict
    word: str
    """The verdict as it is shown."""
    side: Side = "neutral"
    text: str


class ContenderSummary(Struct, kw_only=True):
    """One contender against the baseline."""

    baseline: str
    contender: str
    primary: list[MetricResult]
    exploratory: list[MetricResult]
    headline: str
    points: list[Statement]
    can: list[str]
    cannot: list[str]

    @property
    def gating(self) -> list[MetricResult]:
        """The metrics of the headline: the primary ones, or all where the study declared none."""
        return self.primary or self.exploratory

    @property
    def beside(self) -> str:
        """What the exploratory metrics are worth: there is no chance in counts."""
        return "exact as well" if all(m.scale == "exact" for m in self.exploratory) else "hints, no proof"


class Digest(Struct, kw_only=True):
    """The summary of a run that all formats show."""

    title: str
    facts: list[str]
    """Short words about the run: suite, blocks, machine."""
    sure: str
    """How sure one can be of the verdicts."""
    caveats: list[str]
    """What touches every verdict: the emulator, imported data, void trials."""
    comparisons: list[ContenderSummary]
    notes: Notes


def sided(metric: MetricResult) -> str:
    """Which way is good, in words."""
    return {"higher": "higher is better", "lower": "lower is better", "none": "neither way is better"}[metric.better]


def digest(results: Results) -> Digest:
    """The digest of a run."""
    notes = numbered(results)
    return Digest(
        title=visible(results.study.title or results.study.name or "A run of KDuel", 200),
        facts=run_facts(results),
        sure=sureness(results),
        caveats=[*exact_words(results), *caveats(results)],
        comparisons=[compare(results, notes, *pair) for pair in compared(results)],
        notes=notes,
    )


def exact_words(results: Results) -> list[str]:
    """What the run's exact part found, a sentence for each contender; [] where it has none."""
    if results.exact is None:
        return []
    return [
        f"Counted exactly before anything was timed (instructions, not time): {comparison.headline}. "
        "That part is a run of its own, in the directory exact of this run."
        for comparison in digest(results.exact).comparisons
    ]


def compare(results: Results, notes: Notes, baseline: str, contender: str) -> ContenderSummary:
    """One contender's metrics, sorted into what can and what cannot be concluded."""
    mine = [m for m in results.metrics if (m.baseline, m.contender) == (baseline, contender)]
    primary = [m for m in mine if m.role == "primary"]
    if results.machine.exact and all(m.unit == COUNTED for m in primary):
        primary.sort(key=lambda m: (m.verdict == "undecided", largest_first(m)))
    exploratory = [m for m in mine if m.role != "primary"]
    gating = primary or exploratory
    delta = results.study.delta
    return ContenderSummary(
        baseline=visible(baseline, 200),
        contender=visible(contender, 200),
        primary=primary,
        exploratory=exploratory,
        headline=headline_of(results, baseline, contender),
        points=points(gating, notes, delta),
        can=conclusions(gating, notes, delta),
        cannot=open_questions(results, notes, gating, exploratory if primary else []),
    )


def points(metrics: list[MetricResult], notes: Notes, delta: float | None) -> list[Statement]:
    """The decided metrics with their effects, largest first; the others by group."""
    different = [m for m in metrics if decided(m)]
    found = [
        Statement(
            verdict=m.verdict,
            word=m.word,
            side=side(m),
            text=f"{notes.marked(m)}: {effect_with_interval(m)}, {sided(m)}"
            + (", below delta" if m.below_delta else ""),
        )
        for m in foremost(different)
    ]
    if len(different) > NAMED:
        named_ones = {id(m) for m in foremost(different)}
        small = sum(m.below_delta for m in different if id(m) not in named_ones)
        which = f", {small} of them by too little to matter" if small else ""
        text = f"{len(different) - NAMED} more differ{which}: see the table"
        found.append(Statement(verdict="different", word="different", text=text))
    for verdict, words in (
        ("equivalent", f"{bounds(delta).strip()}: "),
        ("equal", "exactly: "),
        ("undecided", ""),
    ):
        chosen = [m for m in metrics if m.verdict == verdict]
        for word in dict.fromkeys(m.word for m in chosen):
            those = [m for m in chosen if m.word == word]
            found.append(Statement(verdict=chosen[0].verdict, word=word, text=f"{words}{named(those, notes)}"))
    return found


def bounds(delta: float | None) -> str:
    """`within ±1 %` with a space before it."""
    return f" within ±{plain_number(delta)} %" if delta is not None else ""


def largest_first(metric: MetricResult) -> tuple[int, float]:
    """Sort key: those that matter before those too small to, then by size."""
    return int(metric.below_delta), -abs(relative_pct(metric) or 0.0)


def foremost(different: list[MetricResult]) -> list[MetricResult]:
    """The few to name: of both the better and the worse the largest, then what has no side."""
    sides: dict[Side, list[MetricResult]] = {"better": [], "worse": [], "neutral": []}
    for metric in sorted(different, key=largest_first):
        sides[side(metric)].append(metric)
    better, worse, neutral = sides.values()
    half = NAMED // 2
    taken = max(half, NAMED - len(worse))
    named_better = better[:taken]
    named_worse = worse[: NAMED - len(named_better)]
    return [*named_better, *named_worse, *neutral[: NAMED - len(named_better) - len(named_worse)]]


def conclusions(metrics: list[MetricResult], notes: Notes, delta: float | None) -> list[str]:
    """What can be concluded: every decided metric in its own words, the equivalent ones in one sentence."""
    metrics = [m for m in metrics if not m.by_harness]
    different = [m for m in metrics if decided(m)]
    said = [f"{notes.marked(m)}: {told(m)}" for m in foremost(different)]
    if len(different) > NAMED:
        said.append(f"{len(different) - NAMED} more metrics differ; the table has them.")
    for verdict, words in (("equivalent", f"Equivalent{bounds(delta)}"), ("equal", "Exactly equal")):
        chosen = [m for m in metrics if m.verdict == verdict]
        if not chosen:
            continue
        said.append(f"{words}: {named(chosen, notes)}{unseen(chosen)}.")
    return said


def told(metric: MetricResult) -> str:
    """The verdict in plain words: the judge's own, or put together here."""
    return visible(metric.told) or f"{metric.verdict}, {effect_with_interval(metric)}; {sided(metric)}."


def open_questions(
    results: Results, notes: Notes, metrics: list[MetricResult], exploratory: list[MetricResult]
) -> list[str]:
    """What cannot be concluded."""
    said = []
    said += [f"{notes.marked(m)}: {told(m)}" for m in metrics if m.depends and m.conditions]
    undecided = [m for m in metrics if m.verdict == "undecided" and not m.by_harness and not m.conditions]
    for number, (why, chosen) in enumerate(by_reason(undecided, results.study.delta).items()):
        lead = "Undecided, which is not the same as equal" if number == 0 else "Also undecided"
        said.append(f"{lead}: {named(chosen, notes, with_need=True)}. The reason: {why}.")
    harness = [m for m in metrics if m.by_harness]
    if harness:
        said.append(
            f"Anything about the kernel from {named(harness, notes)}: the benchmark's settings determine these values."
        )
    if results.machine.exact:
        said.append(
            f"How long it takes on a real processor: instructions are counted, not time; {UNSEEN} do not count."
        )
    # What is larger in every build is no hint.
    differing = (
        []
        if results.machine.exact
        else [m for m in exploratory if decided(m) and (m.verdict != "different" or m.better == "none")]
    )
    if differing:
        said.append(
            f"Exploratory, so a hint and no proof: {named(sorted(differing, key=largest_first), notes, with_effect=True)}."
        )
    confounds = [d for d in results.differences if not d.declared]
    if confounds and all(warning.code != "confounds" for warning in results.warnings):
        groups = Counter(visible(d.group, 40) for d in confounds)
        listed = ", ".join(f"{group} ({number})" for group, number in groups.most_common())
        said.append(
            f"Which part of the change is the cause: the contenders differ in more than the study declares: {listed}."
        )
    return said


def named(metrics: Iterable[MetricResult], notes: Notes, with_need: bool = False, with_effect: bool = False) -> str:
    """`a/b, c/d and 5 more`, each with the blocks it still needs or with its effect on request."""

    def words(metric: MetricResult) -> str:
        if with_effect:
            return f"{notes.marked(metric)} {effect(metric)}"
        few_more = metric.blocks_more if (metric.blocks_more or 0) <= HOPELESS else None
        if with_need and (few_more or metric.was):
            more = f"about {plural(few_more, 'more block', 'more blocks')}" if few_more else ""
            return f"{notes.marked(metric)} ({'; '.join(part for part in (metric.was, more) if part)})"
        return notes.marked(metric)

    chosen = list(metrics)
    listed = ", ".join(words(m) for m in chosen[:NAMED])
    return listed if len(chosen) <= NAMED else f"{listed} and {len(chosen) - NAMED} more"
