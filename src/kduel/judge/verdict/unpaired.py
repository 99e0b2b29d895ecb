"""Verdicts where nothing pairs the values, as of imported results: Welch's interval on logarithms, a single look.
Arms not measured in turn may differ by all that changed meanwhile, which a finding states."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from kduel.core.format import detectable, effect_in_words, percent
from kduel.core.metric_results import MetricResult, Scale
from kduel.core.samples import Samples
from kduel.core.text import plural
from kduel.judge.verdict.classify import UNDECIDED, WITHIN, benjamini_hochberg, classify, deciding_half, verdict
from kduel.judge.verdict.comparison import check, differences, is_of_time, margin
from kduel.judge.verdict.result import Assessment, build, show_shares
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.sample_size import POWER, fewest
from kduel.judge.verdict.secondary import brown_forsythe, cliffs_delta, mann_whitney
from kduel.judge.verdict.spending import Floats, critical_t
from kduel.judge.verdict.voids import forbidden, missing_in
from kduel.judge.verdict.wording import difference_sentences, equivalent_text, needed_text, no_verdict

UNPAIRED_EDITION = 1
"""There is one look, and no order: of an edition only `fewest_pairs` and `equivalent_from` matter. By the first, five values
are the fewest, however many comparisons there are. Published data are seldom more, and nobody can add to them."""


class Estimate(NamedTuple):
    """The difference of two means (of logarithms for a ratio), after Welch."""

    scale: Scale
    mean: float
    error: float
    freedom: float
    fewest: int
    """Values of the arm that has fewer."""

    @property
    def p(self) -> float | None:
        """Two-sided p; None where nothing varies."""
        return None if self.scale == "exact" else float(2 * stdtr(self.freedom, -abs(self.mean) / self.error))

    def half(self, alpha: float) -> float:
        """Half the interval at 1 - alpha."""
        return 0.0 if self.scale == "exact" else float(critical_t(alpha, self.freedom)) * self.error


class Match(NamedTuple):
    """One contender's metric against the baseline's; missing values left out."""

    table: Samples
    contender: str
    before: Floats
    after: Floats
    estimate: Estimate | None
    """None where the arms have no estimate of their variation."""

    @property
    def p(self) -> float | None:
        """Two-sided p; None where there is no estimate or nothing varies."""
        return None if self.estimate is None else self.estimate.p


def judge_unpaired(samples: Sequence[Samples], rule: Rule) -> list[MetricResult]:
    """Every metric of every contender against the baseline; `n` is that of the smaller arm. All alpha goes to this
    one look, split over the primary comparisons; others go by Benjamini and Hochberg. Raises InputError."""
    check(samples)
    matches = [match(table, contender) for table in samples for contender in table.contenders[1:]]
    primary = sum(m.table.primary and m.estimate is not None for m in matches)
    discoveries = benjamini_hochberg([None if m.table.primary else m.p for m in matches], rule.alpha)
    gating = rule.for_comparisons(primary)
    exploring = gating.for_exploring()
    return [
        write(m, assess_unpaired(m, gating, rule.alpha / max(1, primary), None), gating)
        if m.table.primary
        else write(m, assess_unpaired(m, exploring, discoveries.level, q_value), exploring)
        for m, q_value in zip(matches, discoveries.q_values, strict=True)
    ]


def match(table: Samples, contender: str) -> Match:
    before, after = (
        np.array([value for value in table.values[name] if value is not None], dtype=float)
        for name in (table.contenders[0], contender)
    )
    found = estimate(before, after)
    if found is not None and found.scale == "exact" and is_of_time(table.metric.unit):
        found = None
    return Match(table, contender, before, after, found)


def estimate(before: Floats, after: Floats) -> Estimate | None:
    """The difference of the arms' means, with its standard error; None where an arm has fewer than two values."""
    least = min(before.size, after.size)
    if least < 2:
        return None
    if np.ptp(before) == 0 and np.ptp(after) == 0:
        return Estimate("exact", float(differences(before[:1], after[:1])[0]), 0.0, math.inf, least)
    scale: Scale = "ratio" if (before > 0).all() and (after > 0).all() else "difference"
    arms = [np.log(values) if scale == "ratio" else values for values in (before, after)]
    parts = np.array([arm.var(ddof=1) / arm.size for arm in arms])
    total = float(parts.sum())
    if not total > 0:
        return None  # The spread is too small for its square to be a number.
    freedom = 1 / ((parts / total) ** 2 / (np.array([before.size, after.size]) - 1)).sum()
    return Estimate(scale, float(arms[1].mean() - arms[0].mean()), math.sqrt(total), float(freedom), least)


def assess_unpaired(m: Match, rule: Rule, alpha: float, q_value: float | None) -> Assessment:
    """Interval and verdict; the effect alone where its error cannot be estimated."""
    found = m.estimate
    if found is None:
        if not (m.before.size and m.after.size):
            return Assessment(scale="ratio", verdict="undecided")
        if m.before.min() > 0 and m.after.min() > 0:
            mean = float(np.log(m.after).mean() - np.log(m.before).mean())
            return Assessment(scale="ratio", verdict="undecided", mean=mean)
        return Assessment(scale="difference", verdict="undecided", mean=float(m.after.mean() - m.before.mean()))
    half = found.half(alpha)
    low, high = found.mean - half, found.mean + half
    border = margin(found.scale, rule)
    side = int(classify(low, high, border, found.fewest, rule.fewest, rule.equivalent_from))
    withheld = ""
    if side != UNDECIDED:
        counts = missing_in(m.table, m.table.contenders[0]), missing_in(m.table, m.contender)
        withheld = forbidden(m.table, m.contender, counts, side, m.table.blocks)
    undecided = side == UNDECIDED or bool(withheld)
    return Assessment(
        scale=found.scale, verdict=verdict(found.scale, UNDECIDED if undecided else side, m.table.metric.better),
        mean=found.mean, low=low, high=high, error=found.error, freedom=found.freedom, level=alpha,
        decided_at=None if undecided else found.fewest,
        more=trials_more(found, border, rule, alpha)
        if undecided and not withheld and found.scale != "exact"
        else None,
        withheld=withheld, q_value=q_value,
    )  # fmt: skip


def write(m: Match, finding: Assessment, rule: Rule) -> MetricResult:
    """The result with its secondary statistics and its wording."""
    n = min(m.before.size, m.after.size)
    result = build(m.table, m.contender, (m.before, m.after), n, finding, rule)
    if finding.scale == "exact":
        show_shares(result, [(float(m.before[0]), float(m.after[0]))])  # no arm varies
    if m.estimate is not None:
        delta = cliffs_delta(m.before, m.after)
        result.beside = {
            "p_welch": m.p,
            "p_mann_whitney": mann_whitney(m.before, m.after),
            "p_brown_forsythe": brown_forsythe(m.before, m.after),
            "cliffs_delta": delta,
            "a12": None if delta is None else (delta + 1) / 2,
        }
    result.told = verdict_text(result, rule)
    return result


def trials_more(found: Estimate, border: float, rule: Rule, alpha: float) -> int | None:
    """About how many more trials of each arm would decide, if mean and spread are as measured."""
    distance, side = deciding_half(found.mean, border)
    if not distance > 0:
        return None

    def enough(count: int) -> bool:
        error = found.error * math.sqrt(found.fewest / count)
        return float(stdtrit(2 * count - 2, POWER) - stdtrit(2 * count - 2, alpha / 2)) * error <= distance

    floor = rule.equivalent_from if side == WITHIN else rule.fewest
    total = fewest(enough, max(floor, found.fewest + 1))
    return None if total is None else total - found.fewest


def verdict_text(result: MetricResult, rule: Rule) -> str:
    each = f"{plural(result.n, 'trial')} of {fewer_values(result)}"
    match result.verdict:
        case "undecided":
            return undecided_text(result, rule, each)
        case "equivalent":
            said = equivalent_text(result, rule, "trials")
        case "equal":
            said = f"Equal in all trials, {each} at least."
        case _:
            said = " ".join(difference_sentences(result, rule, "trials"))
    if result.q_value is not None:
        said += f" Exploratory: q = {result.q_value:.2g} over all exploratory metrics."
    return said


EACH = "each contender"


def fewer_values(result: MetricResult) -> str:
    """The contender that has fewer values, or that both have as many."""
    before, after = (
        sum(value is not None for value in result.values.get(name, []))
        for name in (result.baseline, result.contender)
    )
    return EACH if before == after else result.baseline if before < after else result.contender


def undecided_text(result: MetricResult, rule: Rule, each: str) -> str:
    """For no decision: why, and what would help."""
    if result.n == 0:
        arm = result.contender if result.mean is None else result.baseline
        return f"Cannot decide: {arm} has no value of this metric."
    if result.n == 1:
        seen = "" if result.effect_pct is None else f" The values differ by {percent(result.effect_pct)}."
        return f"Cannot decide: a contender was measured once, so the part of chance is unknown.{seen}"
    if result.n < rule.fewest:
        return f"Cannot decide: there are {each}, and a verdict takes {rule.fewest} at least."
    if result.ci_low_pct is None and result.ci_low is None:
        return "Cannot decide: no value varies, so the step of the clock hides how much is chance."
    said = f"Undecided: {effect_in_words(result)}."
    if result.withheld:
        return f"{said} {no_verdict(result)}"
    if result.mde_pct is not None:
        shown = each.capitalize() if fewer_values(result) == EACH else "These trials"
        said += f" {shown} would probably have shown a difference of {detectable(result)}."
    if result.blocks_more is not None:
        said += f" {needed_text(result.blocks_more, rule, 'trial', ' of each contender')}"
    return said
