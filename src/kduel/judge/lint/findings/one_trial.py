"""One trial that carries the conclusion alone: without it the sign of the effect, or the verdict, is another."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kduel.core.evidence import Evidence
from kduel.core.format import amount, change, effect, percent, quantity
from kduel.judge.lint.case import Case, Floats
from kduel.judge.lint.finding import Cause, Finding
from kduel.judge.lint.statistics import TAIL, chance_of_gap, outlier
from kduel.judge.verdict.classify import UNDECIDED, classify, verdict
from kduel.judge.verdict.comparison import margin

LEVEL = 0.05
"""Of imported data: the chance that clean ones have a trial that counts as standing out at all. They are few and
already published, so that one look too many costs little; a run has its share of the lint's level instead."""
FEWEST_FOR_OUTLIER = 5
"""Fewer values do not show that one of them stands out; the rule decides when a verdict is possible."""
APART = 6.0
"""How many times as far out as any other difference the suspect's must lie."""
OFF = 0.25
"""By how much of its width a result's interval may be off the plain mean: farther off it rests on other values."""
LEAST_MOVED = 0.1
"""In per cent of the baseline: a smaller change of the effect is not worth a finding."""


class Suspect(NamedTuple):
    """A trial that stands out: its place in the arms' values, and how to name it."""

    drop_baseline: int | None
    drop_contender: int | None
    words: str


def one_trial(case: Case) -> Iterator[str]:
    """Leave-one-out, applied only to trials that stand out: near a threshold any trial could tip the balance."""
    if any(arm.values.size < FEWEST_FOR_OUTLIER for arm in case.arms):
        return
    for suspect in paired_suspects(case) if case.paired else suspects(case):
        told = without(case, suspect)
        if told:
            yield (
                f"One trial carries the conclusion: without {suspect.words} {told}. Find out what happened in it; "
                "repeat the run, or use a metric that one trial cannot carry (a median or a percentile)."
            )
            return


def suspects(case: Case) -> Iterator[Suspect]:
    """For arms measured apart: each arm's outlier."""
    for index, arm in enumerate(case.arms):
        place, chance = outlier(arm.values)
        if chance < LEVEL / 2:
            words = f"trial {arm.blocks[place]} of {arm.name} ({quantity(arm.values[place], case.metric.unit)})"
            yield Suspect(place if index == 0 else None, place if index == 1 else None, words)


def paired_suspects(case: Case) -> Iterator[Suspect]:
    """For blocks: the outlier among the differences, and in each arm; its whole block is left out."""
    before, after, blocks = case.counterpart
    if before.size < FEWEST_FOR_OUTLIER:
        return
    views = [before, after]
    if case.result.scale == "ratio" and (before > 0).all() and (after > 0).all():
        views.append(np.log(after / before))
    else:
        views.append(after - before)
    seen = set()
    for values in views:
        place, chance = outlier(values)
        # A long tail of each arm's own values is no outlier of the differences, which alone carry the conclusion.
        apart = chance_of_gap(np.abs(views[-1] - np.median(views[-1])), place) <= APART**-TAIL
        if chance < 2 * case.level / len(views) and apart and place not in seen:
            seen.add(place)
            words = (
                f"block {blocks[place]} ({amount(before[place])} against {quantity(after[place], case.metric.unit)})"
            )
            yield Suspect(place, place, words)


def without(case: Case, suspect: Suspect) -> str:
    """The changed verdict when the suspect is left out; empty where it is unchanged."""
    if case.paired:
        before, after, _ = case.counterpart
    else:
        before, after = case.baseline.values, case.contender.values
    left = drop_one(before, suspect.drop_baseline), drop_one(after, suspect.drop_contender)
    said = []
    if told := other_sign(case, (before, after), left):
        said.append(told)
    verdict = other_verdict(case, (before, after), left)
    if verdict:
        said.append(f"the verdict would be {verdict} instead of {case.result.verdict}")
    return ", and ".join(said)


def drop_one(values: Floats, place: int | None) -> Floats:
    return values if place is None else np.delete(values, place)


def other_sign(case: Case, whole: tuple[Floats, Floats], left: tuple[Floats, Floats]) -> str:
    """The change without the trial, if it has the other sign; empty if not. The adjustment for order stays."""
    result, before = case.result, float(whole[0].mean())
    present = result.effect_pct if result.scale == "ratio" else result.effect
    if present is None or before <= 0 or (case.logarithmic and present <= -100):
        return ""
    if case.logarithmic:
        plain, rest = (float(np.log(after).mean() - np.log(before).mean()) for before, after in (whole, left))
        other = 100 * math.expm1(rest + math.log1p(present / 100) - plain)
        moved, words = abs(present - other), percent(other)
    elif result.scale == "difference":
        plain, rest = (float(after.mean() - before.mean()) for before, after in (whole, left))
        other = rest + present - plain
        moved, words = 100 * abs(present - other) / before, change(other, result.unit)
    else:
        return ""
    if present * other >= 0 or moved <= LEAST_MOVED:
        return ""
    return f"the change of {result.contender} is {words} instead of {effect(result)}"


def other_verdict(case: Case, whole: tuple[Floats, Floats], left: tuple[Floats, Floats]) -> str:
    """The verdict without the trial, as far as it is another. The interval's width in standard errors is that of the
    result, so that alpha, looks and the number of primary metrics stay."""
    result = case.result
    if result.verdict != "undecided":
        return ""  # A trial far out widens the interval: it hides a decision, and never makes one.
    if result.scale == "ratio":
        if result.ci_low_pct is None or result.ci_high_pct is None or result.ci_low_pct <= -100:
            return ""
        low, high = math.log1p(result.ci_low_pct / 100), math.log1p(result.ci_high_pct / 100)
        if any((values <= 0).any() for values in whole):
            return ""
        whole, left = (np.log(whole[0]), np.log(whole[1])), (np.log(left[0]), np.log(left[1]))
    elif result.scale == "difference":
        if result.ci_low is None or result.ci_high is None:
            return ""
        low, high = result.ci_low, result.ci_high
    else:
        return ""
    centre, error = estimate(*whole, case.paired)
    if error == 0 or not math.isfinite(error) or abs((low + high) / 2 - centre) > OFF * (high - low):
        return ""
    errors, adjustment = (high - low) / 2 / error, (low + high) / 2 - centre
    centre, error = estimate(*left, case.paired)
    centre += adjustment
    border = margin(result.scale, case.rule)
    low, high = centre - errors * error, centre + errors * error
    side = int(classify(low, high, border, result.n, case.rule.fewest, case.rule.equivalent_from))
    return "" if side == UNDECIDED else verdict(result.scale, side, result.better)


def estimate(before: Floats, after: Floats, paired: bool) -> tuple[float, float]:
    """The mean difference and its standard error."""
    if paired:
        gaps = after - before
        return float(gaps.mean()), float(gaps.std(ddof=1) / math.sqrt(gaps.size))
    error = math.sqrt(before.var(ddof=1) / before.size + after.var(ddof=1) / after.size)
    return float(after.mean() - before.mean()), error


PLUGIN = Finding(
    name="one-trial", cause=Cause.OUTLIERS, weight=84,
    meaning="One trial lies far from all others, and without it the effect would have the other sign, or another verdict.",
    remedy="Find out what happened in that trial; repeat the run, or use a median or a percentile.",
    chance=True, check=one_trial, least=Evidence.VARYING, levelled=True,
    undecided="a few outlying trials hide the answer: read their logs, then repeat",
)  # fmt: skip
