"""Verdicts where nothing pairs the values: Welch's interval on logarithms, a single look.

For imported results: trial i of one contender has nothing to do with trial i of another. Arms that were not measured
in turn may differ by all that changed meanwhile; no interval knows of that, and the lint says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import nctdtrinc, stdtr, stdtrit

from kduel.core.results import MetricResult, Scale
from kduel.core.samples import Samples
from kduel.judge.verdict.comparison import TIME_UNITS, check, differences, margin, verdict
from kduel.judge.verdict.judge import q_of
from kduel.judge.verdict.looks import ABOVE, BELOW, WITHIN
from kduel.judge.verdict.result import MISSED_MODE, bounded, mean_of, sd_of
from kduel.judge.verdict.rule import FEWEST_PAIRS, Rule
from kduel.judge.verdict.sample_size import POWER, fewest
from kduel.judge.verdict.secondary import brown_forsythe, cliffs_delta, mann_whitney
from kduel.judge.verdict.spending import Floats
from kduel.judge.verdict.wording import amount, differs, percent, plural


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
        return 0.0 if self.scale == "exact" else float(-stdtrit(self.freedom, alpha / 2)) * self.error


class Match(NamedTuple):
    """One contender's metric against the baseline's; missing values left out."""

    table: Samples
    contender: str
    before: Floats
    after: Floats
    estimate: Estimate | None
    """None where the arms do not say how much they vary."""


def judge_unpaired(samples: Sequence[Samples], rule: Rule) -> list[MetricResult]:
    """Every metric of every contender against the baseline, in the order of `samples`. `n` is that of the smaller arm.

    All of alpha goes to this one look; it is split evenly over the primary comparisons that can be made, and
    the exploratory ones go by Benjamini and Hochberg. Of `rule` delta, alpha and `equivalent_from` count.
    Raises InputError naming the metric where a table is not usable.
    """
    check(samples)
    matches = [match(table, contender) for table in samples for contender in table.contenders[1:]]
    primary = [m for m in matches if m.table.primary and m.estimate]
    share = rule.alpha / max(1, len(primary))
    explored = [m for m in matches if not m.table.primary and m.estimate and m.estimate.p is not None]
    ranked = sorted(m.estimate.p or 0.0 for m in explored if m.estimate)
    called = max((place for place, p in enumerate(ranked, 1) if p <= rule.alpha * place / len(ranked)), default=0)
    level = rule.alpha * max(called, 1) / max(len(ranked), 1)
    q_values = q_of(ranked)
    return [write(m, rule, share, None) if m.table.primary else write(m, rule, level, q_values) for m in matches]


def match(table: Samples, contender: str) -> Match:
    """The arms' values and what they say."""
    before, after = (
        np.array([value for value in table.values[name] if value is not None], dtype=float)
        for name in (table.contenders[0], contender)
    )
    found = estimate(before, after)
    if found is not None and found.scale == "exact" and table.metric.unit in TIME_UNITS:
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


def write(m: Match, rule: Rule, alpha: float, q_values: dict[float, float] | None) -> MetricResult:
    """The verdict with all that is told and shown beside it."""
    metric = m.table.metric
    result = MetricResult(
        benchmark=m.table.benchmark,
        metric=metric.name,
        unit=metric.unit,
        better=metric.better,
        role="primary" if m.table.primary else "exploratory",
        about=metric.about,
        statistic=metric.statistic,
        baseline=m.table.contenders[0],
        contender=m.contender,
        n=min(m.before.size, m.after.size),
        baseline_mean=mean_of(m.before),
        baseline_sd=sd_of(m.before),
        mean=mean_of(m.after),
        sd=sd_of(m.after),
        baseline_median=float(np.median(m.before)) if m.before.size else None,
        median=float(np.median(m.after)) if m.after.size else None,
        effect_pct=None,
        ci_low_pct=None,
        ci_high_pct=None,
        verdict="undecided",
        values={name: list(values) for name, values in m.table.values.items()},
    )
    if m.estimate is None:
        effect_alone(m, result)
    else:
        judge_estimate(m.estimate, result, rule, alpha)
        p = m.estimate.p
        result.q_value = None if q_values is None or p is None else q_values[p]
        delta = cliffs_delta(m.before, m.after)
        result.beside = {
            "p_welch": p,
            "p_mann_whitney": mann_whitney(m.before, m.after),
            "p_brown_forsythe": brown_forsythe(m.before, m.after),
            "cliffs_delta": delta,
            "a12": None if delta is None else (delta + 1) / 2,
        }
    result.told = told(result, rule)
    return result


def effect_alone(m: Match, result: MetricResult) -> None:
    """The effect without any interval: nobody can say how much of it is chance."""
    if m.before.size and m.after.size and m.before.min() > 0 and m.after.min() > 0:
        logs = float(np.log(m.after).mean() - np.log(m.before).mean())
        result.effect_pct = bounded(100 * math.expm1(logs)) if logs < 700 else None


def judge_estimate(found: Estimate, result: MetricResult, rule: Rule, alpha: float) -> None:
    """Interval and verdict."""
    half = found.half(alpha)
    low, high = found.mean - half, found.mean + half
    result.scale = found.scale
    if found.scale == "ratio":
        shown = [bounded(100 * math.expm1(value)) if value < 700 else None for value in (found.mean, low, high)]
        result.effect_pct, result.ci_low_pct, result.ci_high_pct = shown
    else:
        result.effect, result.ci_low, result.ci_high = found.mean, low, high
    border = margin(found.scale, rule)
    side = settled(found, half, rule)
    if side is not None:
        result.verdict = verdict(found.scale, side, result.better)
        result.decided_at = found.fewest
    if side == WITHIN:
        result.unseen_mode_pct = 100 * (1 - MISSED_MODE ** (1 / found.fewest))
    elif side is not None and found.scale == "ratio":
        result.below_delta = max(-low, high) <= border
    if found.scale != "exact":
        shift = float(nctdtrinc(found.freedom, 1 - POWER, -stdtrit(found.freedom, alpha / 2))) * found.error
        if found.scale == "ratio" and shift < 700:
            result.mde_pct = bounded(100 * math.expm1(shift))
        if side is None:
            result.blocks_more = trials_more(found, border, rule, alpha)


def settled(found: Estimate, half: float, rule: Rule) -> int | None:
    """The side to which the interval decides, or None."""
    if found.fewest >= rule.equivalent_from and abs(found.mean) + half <= margin(found.scale, rule):
        return WITHIN
    if found.fewest >= FEWEST_PAIRS and abs(found.mean) > half:
        return ABOVE if found.mean > 0 else BELOW
    return None


def trials_more(found: Estimate, border: float, rule: Rule, alpha: float) -> int | None:
    """About how many more trials of each arm would decide, if mean and spread are as seen."""
    distance = max(abs(found.mean), border - abs(found.mean))
    if not distance > 0:
        return None

    def enough(count: int) -> bool:
        error = found.error * math.sqrt(found.fewest / count)
        return float(stdtrit(2 * count - 2, POWER) - stdtrit(2 * count - 2, alpha / 2)) * error <= distance

    floor = FEWEST_PAIRS if abs(found.mean) >= border - abs(found.mean) else rule.equivalent_from
    total = fewest(enough, max(floor, found.fewest + 1))
    return None if total is None else total - found.fewest


def told(result: MetricResult, rule: Rule) -> str:
    """The verdict in plain words."""
    each = f"{plural(result.n, 'trial')} of each arm"
    match result.verdict:
        case "undecided":
            return undecided(result, each)
        case "equivalent":
            said = f"Equivalent: no difference of {rule.delta_pct:g} % or more, {amount(result)}."
            if result.unseen_mode_pct is not None:
                said += f" A slow mode in fewer than {result.unseen_mode_pct:.0f} % of trials could have gone unseen."
        case "equal":
            said = f"Equal in all trials, {each} at least."
        case _:
            said = " ".join(differs(result, rule, "trials"))
    if result.q_value is not None:
        said += f" Exploratory: q = {result.q_value:.2g} over all exploratory metrics."
    return said


def undecided(result: MetricResult, each: str) -> str:
    """For no decision: why, and what would help."""
    if result.n == 0:
        arm = result.contender if result.mean is None else result.baseline
        return f"Cannot decide: {arm} has no value of this metric."
    if result.n == 1:
        seen = "" if result.effect_pct is None else f" The values differ by {percent(result.effect_pct, sign=True)}."
        return f"Cannot decide: an arm was measured once, and that says nothing of how much is chance.{seen}"
    if result.n < FEWEST_PAIRS:
        return f"Cannot decide: there are {each}, and a verdict takes {FEWEST_PAIRS} at least."
    if result.ci_low_pct is None and result.ci_low is None:
        return "Cannot decide: no value varies, so the step of the clock hides how much is chance."
    said = f"Undecided: {amount(result)}."
    if result.mde_pct is not None:
        said += f" {each.capitalize()} would probably have shown a difference of {percent(result.mde_pct)}."
    if result.blocks_more is not None:
        said += f" About {plural(result.blocks_more, 'more trial')} of each arm would decide it at the spread seen."
    return said
