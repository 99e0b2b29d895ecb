"""The summary of a report, once for every format: headline, supported and unsupported statements, notes."""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from kduel.benchmarks.support.schedstat import is_of_level
from kduel.core.format import effect, effect_with_interval, plain_number, relative_pct, shown_unit
from kduel.core.metric_results import COUNTS, MetricResult
from kduel.core.results import Results
from kduel.core.text import list_few, plural, visible
from kduel.judge.verdict.headline import (
    Side,
    compared_pairs,
    headline_of,
    repeated_unit,
    shows_difference,
    side,
    unseen_mode_text,
)
from kduel.judge.verdict.wording import HOPELESS
from kduel.report.content.caveats import caveats, run_facts, sureness
from kduel.report.content.evidence import evidence
from kduel.report.content.factors import FactorGroup, factor_groups
from kduel.report.content.methods import measured_how
from kduel.report.content.notes import Notes, number_notes
from kduel.report.content.provenance import provenance
from kduel.report.content.undecided import by_reason

SIGNS: dict[str, str] = {
    "faster": "▲", "slower": "▼", "higher": "↑", "lower": "↓", "more": "↑", "fewer": "↓", "different": "≠",
    "equivalent": "≈", "equal": "=", "undecided": "?",
}  # fmt: skip
NO_SIGN = "–"
NAMED = 6
"""How many metrics a sentence names before it says how many more there are."""


class ContenderSummary(Struct, kw_only=True):
    baseline: str
    contender: str
    subject: str
    """Of which its conclusions speak: the contender, or the metric whose effects these are."""
    primary: list[MetricResult]
    exploratory: list[MetricResult]
    headline: str
    can: list[str]
    cannot: list[str]
    fits: list[str] = []
    """Over levels that are whole numbers, such as CPUs."""

    @property
    def gating(self) -> list[MetricResult]:
        """The metrics of the headline: the primary ones, or all where the study declared none."""
        return self.primary or self.exploratory

    @property
    def names(self) -> str:
        """`new against old`; the metric for the effects of factors."""
        return f"{self.subject} against {self.baseline}" if self.subject == self.contender else self.subject

    @property
    def conclusion_lists(self) -> list[tuple[str, str, list[str]]]:
        """Heading, mark and sentences of what can and of what cannot be concluded, without what is empty."""
        every = [("What can be concluded", "+", self.can), ("What cannot be concluded", "-", self.cannot)]
        return [one for one in every if one[-1]]

    @property
    def exploratory_note(self) -> str:
        """Worth of the exploratory metrics in words: there is no chance in counts but those of several CPUs."""
        return "hints, no proof" if any(m.hint for m in self.exploratory) else "exact as well"


class Digest(Struct, kw_only=True):
    """The summary of a run that all formats show."""

    title: str
    facts: list[str]
    """Short words about the run: suite, blocks, machine."""
    sure: str
    """Sentence on how sure one can be of the verdicts."""
    measured: list[str]
    """Measured things: kernels, machine, time and program, in a line each."""
    own_caveats: list[str]
    """Caveats of every verdict: the emulator, imported data, void trials."""
    comparisons: list[ContenderSummary]
    notes: Notes
    before: "list[Digest]"
    """Summaries of the run's parts before the rest: of what was counted on one CPU."""
    second: str
    """What the rest is called."""

    @property
    def caveats(self) -> list[str]:
        """Caveats of every verdict, after what the exact part found: for formats that do not show that part itself."""
        counted = [
            f"Counted exactly before the rest (instructions, not time): {comparison.headline}. "
            "That part is a run of its own, in the directory exact of this run."
            for part in self.before
            for comparison in part.comparisons
        ]
        return [*counted, *self.own_caveats]


def sign_of(metric: MetricResult) -> str:
    return SIGNS.get(metric.status, NO_SIGN)


def side_words(metric: MetricResult) -> str:
    return {"higher": "higher is better", "lower": "lower is better", "none": "neither way is better"}[metric.better]


def unit_and_side(metric: MetricResult) -> str:
    """`ms, lower is better`; without the unit where the metric has none."""
    return ", ".join(filter(None, (visible(shown_unit(metric), 40), side_words(metric))))


def digest(results: Results, run: str = "RUN") -> Digest:
    """The digest of a run. `run` is its directory as the user may type it, where that is known."""
    notes = number_notes(results, run)
    return Digest(
        title=visible(results.study.title or results.study.name or "A run of KDuel", 200), facts=run_facts(results),
        sure=sureness(results), measured=[*provenance(results), *measured_how(results)],
        own_caveats=caveats(results, run),
        comparisons=[of_factors(group, notes, results) for group in factor_groups(results)]
        or [compare(results, notes, *pair) for pair in compared_pairs(results)],
        notes=notes, before=[digest(part, run) for part in results.parts[:-1]], second=evidence(results).label,
    )  # fmt: skip


def compare(results: Results, notes: Notes, baseline: str, contender: str) -> ContenderSummary:
    """One contender's metrics, sorted into what can and what cannot be concluded."""
    mine = [m for m in results.metrics if (m.baseline, m.contender) == (baseline, contender)]
    primary = [m for m in mine if m.role == "primary"]
    if not evidence(results).varies and all(m.unit in COUNTS for m in primary):
        primary.sort(key=lambda m: (m.verdict == "undecided", largest_first(m)))
    exploratory = [m for m in mine if m.role != "primary" and not is_of_level(m.group, m.metric)]
    gating = primary or exploratory
    delta = results.study.delta
    return ContenderSummary(
        baseline=visible(baseline, 200), contender=visible(contender, 200), subject=visible(contender, 200),
        primary=primary, exploratory=exploratory, headline=headline_of(results, baseline, contender),
        can=conclusions(gating, notes, delta, repeated_unit(results)),
        cannot=open_questions(results, notes, gating, exploratory if primary else []),
    )  # fmt: skip


def of_factors(group: FactorGroup, notes: Notes, results: Results) -> ContenderSummary:
    """One metric's effects of factors, as rows of a comparison."""
    rows = group.rows
    delta = results.study.delta
    primary = [row for row in rows if row.role == "primary"]
    vague = [fit.sentence for fit in group.fits if not fit.side]
    return ContenderSummary(
        baseline="first level", contender="other level", subject=visible("/".join(group.group), 200), primary=primary,
        exploratory=[row for row in rows if row.role != "primary"], headline=visible(group.headline, 2000),
        can=[*conclusions(primary or rows, notes, delta), *(f"{line}." for line in group.told if line not in vague)],
        cannot=[*open_questions(results, notes, primary or rows, []), *(f"{line}." for line in vague)],
        fits=[fit.sentence for fit in group.fits],
    )  # fmt: skip


def bounds(delta: float | None) -> str:
    """`within ±1 %` with a space before it."""
    return f" within ±{plain_number(delta)} %" if delta is not None else ""


def largest_first(metric: MetricResult) -> tuple[int, float]:
    """Sort key: those that matter before those too small to, then by size."""
    return int(metric.below_delta), -abs(relative_pct(metric) or 0.0)


def largest_of(metrics: Sequence[MetricResult], most: int) -> list[MetricResult]:
    """At most so many metrics, in their order: those that show a difference first, then by size."""
    ordered = sorted(metrics, key=lambda one: (not shows_difference(one), largest_first(one)))
    kept = set(map(id, ordered[:most]))
    return [one for one in metrics if id(one) in kept]


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


def conclusions(metrics: list[MetricResult], notes: Notes, delta: float | None, each: str = "boots") -> list[str]:
    """Conclusions: every decided metric in its own words, the equivalent ones in one sentence. `each` is what was repeated."""
    metrics = [m for m in metrics if not m.by_harness]
    different = [m for m in metrics if shows_difference(m)]
    said = [f"{notes.with_marks(m)}: {verdict_sentence(m)}" for m in foremost(different)]
    if len(different) > NAMED:
        more = len(different) - NAMED
        said.append(
            f"{plural(more, 'more metric')} differ{'s' * (more == 1)}; the table has {'it' if more == 1 else 'them'}."
        )
    same = [m for m in metrics if m.verdict == "equal"]
    for words, chosen in (
        (f"Equivalent{bounds(delta)}", [m for m in metrics if m.verdict == "equivalent"]),
        ("Exactly equal", [m for m in same if not m.within_resolution]),
        ("Equal within the machine's resolution", [m for m in same if m.within_resolution]),
    ):
        if not chosen:
            continue
        said.append(f"{words}: {list_metrics(chosen, notes)}{unseen_mode_text(chosen, each)}.")
    return said


def verdict_sentence(metric: MetricResult) -> str:
    """The verdict in plain words: the judge's own, or put together here."""
    return visible(metric.told) or f"{metric.verdict}, {effect_with_interval(metric)}; {side_words(metric)}."


def open_questions(
    results: Results, notes: Notes, metrics: list[MetricResult], exploratory: list[MetricResult]
) -> list[str]:
    said = []
    said += [f"{notes.with_marks(m)}: {verdict_sentence(m)}" for m in metrics if m.depends and m.conditions]
    undecided = [m for m in metrics if m.open]
    for number, (why, chosen) in enumerate(by_reason(undecided, results).items()):
        lead = "Undecided, which is not the same as equal" if number == 0 else "Also undecided"
        said.append(f"{lead}: {list_metrics(chosen, notes, need=evidence(results).needs)}. The reason: {why}.")
    harness = [m for m in metrics if m.by_harness]
    if harness:
        said.append(
            f"Anything about the kernel from {list_metrics(harness, notes)}: the benchmark's settings determine these values."
        )
    said += evidence(results).silence(results, metrics)
    # What is larger in every build is no hint.
    differing = [m for m in exploratory if shows_difference(m) and (m.verdict != "different" or m.better == "none")]
    if differing and evidence(results).varies:
        said.append(
            f"Exploratory, so a hint and no proof: {list_metrics(sorted(differing, key=largest_first), notes, with_effect=True)}."
        )
    confounds = [d for d in results.differences if not d.declared]
    if confounds and all(warning.code != "confounds" for warning in results.warnings):
        groups = Counter(visible(d.group, 40) for d in confounds)
        listed = ", ".join(f"{group} ({number})" for group, number in groups.most_common())
        said.append(
            f"Which part of the change is the cause: the contenders differ in more than the study declares: {listed}."
        )
    return said


def list_metrics(
    metrics: Iterable[MetricResult], notes: Notes, need: tuple[str, str] | None = None, with_effect: bool = False
) -> str:
    """`a/b, c/d and 5 more`, each with what it still needs, in that unit, or with its effect on request."""

    def words(metric: MetricResult) -> str:
        if with_effect:
            return f"{notes.with_marks(metric)} {effect(metric)}"
        few_more = metric.blocks_more if (metric.blocks_more or 0) <= HOPELESS else None
        if need and (few_more or metric.was):
            more = f"about {plural(few_more, *need)}" if few_more else ""
            return f"{notes.with_marks(metric)} ({'; '.join(part for part in (metric.was, more) if part)})"
        return notes.with_marks(metric)

    return list_few([*map(words, metrics)], NAMED)
