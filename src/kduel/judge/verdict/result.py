"""From the assessment of a comparison to the result that reports read."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kduel.core.format import relative_pct
from kduel.core.metric_results import COUNTS, MachineEffect, MachinesResult, MetricResult, Scale, Verdict
from kduel.core.samples import Samples
from kduel.judge.verdict import strata
from kduel.judge.verdict.classify import ROUNDED
from kduel.judge.verdict.comparison import Comparison, differences, log_ratios, margin
from kduel.judge.verdict.components import components
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.sample_size import detectable
from kduel.judge.verdict.secondary import secondary_statistics
from kduel.judge.verdict.spending import Floats, critical_t
from kduel.judge.verdict.wording import verdict_text

MISSED_MODE = 0.05
"""The probability with which a slow mode of the reported share would not have occurred."""


class Assessment(NamedTuple):
    """Estimate, interval and verdict of one comparison, on its scale (logarithms for a ratio)."""

    scale: Scale
    verdict: Verdict
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    error: float | None = None
    """Standard error of the mean."""
    freedom: float | None = None
    """Degrees of freedom of the error."""
    level: float | None = None
    """Nominal, of the interval."""
    decided_at: int | None = None
    more: int | None = None
    q_value: float | None = None
    former: Verdict | None = None
    """What an earlier look decided and the present interval does not show any more."""
    former_at: int | None = None
    contradicted: bool = False
    """Whether the present interval shows another verdict than that."""
    withheld: str = ""
    """Why a verdict that the interval shows is not given."""
    confounded: bool = False
    """Whether all pairs had one order, so that contender and place are confounded."""
    insufficient: bool = False
    """Whether several machines have too few pairs each."""


def write(c: Comparison, finding: Assessment, *, beside: bool = True) -> MetricResult:
    """The result of paired values, with its secondary statistics and its wording."""
    before, after = c.pairs
    result = build(c.table, c.contender, (before, after), c.n, finding, c.rule)
    result.conditions = c.conditions
    if finding.scale == "exact":
        pairs = result.pairs
        if pairs:
            show_range(result)
        else:
            pairs = list(zip(before.tolist(), after.tolist(), strict=True))
            show_shares(result, pairs)
        result.below_delta = below_delta(before, finding, c.rule, pairs)
    if finding.scale != "exact" and finding.level is not None and beside:
        ratio = finding.scale == "ratio"
        gaps = log_ratios(before, after) if ratio else differences(before, after)
        result.beside = secondary_statistics(before, after, gaps, ratio)
        if ratio:
            result.beside["ratio_of_means_pct"] = 100 * float(after.mean() / before.mean() - 1)
        else:
            result.beside["mde"] = least_effect(finding)
    if finding.scale != "exact" and finding.level is not None and c.machines is not None:
        result.machines = machines_result(c, finding.scale, finding.level)
    result.told = verdict_text(result, c.rule, int(c.complete.size))
    return result


def build(
    table: Samples, contender: str, arms: tuple[Floats, Floats], n: int, finding: Assessment, rule: Rule
) -> MetricResult:
    """The result of an assessment; the caller adds secondary statistics and wording. `arms` are the values that
    count, of the baseline and of the contender; `n` is how many there are of both."""
    before, after = arms
    metric = table.metric
    ratio = finding.scale == "ratio"
    effect, low, high = reported_interval(finding)
    least = least_effect(finding)
    same = finding.verdict in ("equivalent", "equal")
    own_slices = {name: table.slices[name] for name in (table.contenders[0], contender) if table.slices.get(name)}
    called = finding.verdict
    # Everywhere more is worse then: of what has no better side, or the other one, an import has counts in such units, too.
    counted = finding.scale == "exact" and metric.unit in COUNTS and metric.better == "lower"
    if counted and called in ("faster", "slower", "different"):
        called = "more" if (finding.mean or 0) > 0 else "fewer"
    return MetricResult(
        benchmark=table.benchmark, metric=metric.name, unit=metric.unit, better=metric.better,
        role="primary" if table.primary else "exploratory", about=metric.about, group=metric.group,
        statistic=metric.statistic, aspect=metric.aspect, words=metric.words, baseline=table.contenders[0],
        contender=contender, n=n, baseline_mean=mean_of(before), baseline_sd=sd_of(before), mean=mean_of(after),
        sd=sd_of(after), baseline_median=float(np.median(before)) if before.size else None,
        median=float(np.median(after)) if after.size else None, scale=finding.scale, resolution=table.resolution,
        scheduled=table.scheduled,
        effect_pct=effect if ratio else None, ci_low_pct=low if ratio else None, ci_high_pct=high if ratio else None,
        effect=None if ratio else effect, ci_low=None if ratio else low, ci_high=None if ratio else high,
        verdict=called, below_delta=below_delta(before, finding, rule), decided_at=finding.decided_at,
        former_verdict=finding.former, former_at=finding.former_at, contradicted=finding.contradicted,
        withheld=finding.withheld, confounded=finding.confounded,
        blocks_more=None if metric.statistic == "max" and not table.primary else finding.more,
        mde_pct=finite_or_none(100 * np.expm1(min(least, 700))) if ratio and least is not None else None,
        unseen_mode_pct=unseen_mode_pct(n) if same and finding.level is not None else None, q_value=finding.q_value,
        modes={name: table.modes[name] for name in (table.contenders[0], contender) if table.modes.get(name)},
        values={name: list(values) for name, values in table.values.items()}, beyond=table.beyond, slices=own_slices,
        components=components(table, contender),
    )  # fmt: skip


def machines_result(c: Comparison, scale: Scale, level: float) -> MachinesResult:
    """The effect on each machine and on all of them, and how much they differ."""
    assert c.machines is not None
    before, after = c.pairs
    adjusting = c.rule.adjusts_from is not None and c.n >= c.rule.adjusts_from
    gaps = log_ratios(before, after) if scale == "ratio" else differences(before, after)
    found = strata.fit(gaps, c.covariates if adjusting else [], c.machines)
    pooled, alone = strata.on_these(found), strata.effects_by_machine(found, level)
    half = critical_t(np.asarray(level), pooled.freedom) * pooled.error
    compared = found.counts.size > 1 and np.isfinite(pooled.error)
    between = strata.heterogeneity(found, c.rule.alpha) if compared else None
    border = margin(scale, c.rule)

    def as_reported(value: ArrayLike) -> float:
        number = float(np.asarray(value))
        return 100 * math.expm1(min(number, 700)) if scale == "ratio" else number

    def bound(value: ArrayLike) -> float | None:
        return as_reported(value) if np.isfinite(value) else None

    named = strata.differing(found, level)

    def others(one: int) -> float:
        rest = [place for place in range(found.counts.size) if place != one]
        agreeing = [place for place in rest if place not in named]
        return float(strata.on_these(strata.fit_of(found, agreeing or rest)).mean) if rest else math.nan

    def contradicts(one: int) -> bool:
        own, other = float(found.effects[one]), others(one)
        within = abs(own) <= border, abs(other) <= border
        return one in named and not all(within) and (any(within) or own * other < 0)

    return MachinesResult(
        scope=c.rule.scope,
        effects=[
            MachineEffect(
                machine=c.machine_names[name],
                n=int(found.counts[one]),
                effect=as_reported(found.effects[one]),
                low=bound(alone.low[one]),
                high=bound(alone.high[one]),
                others=bound(others(one)),
                differs=one in named,
                contradicts=contradicts(one),
            )
            for one, name in enumerate(np.unique(c.machines))
        ],
        pooled=as_reported(pooled.mean),
        low=bound(pooled.mean - half),
        high=bound(pooled.mean + half),
        spread=as_reported(between.sd) if between else None,
        spread_low=as_reported(between.low) if between else None,
        spread_high=as_reported(between.high) if between else None,
    )


def unseen_mode_pct(n: int) -> float:
    """The largest share of boots in a slow mode that n boots may all have missed, in per cent."""
    return float(100 * (1 - MISSED_MODE ** (1 / n)))


def least_effect(finding: Assessment) -> float | None:
    """The mean difference that the finding's test had a good chance to show, on its scale; None without a test."""
    if finding.scale == "exact" or finding.level is None or finding.error is None or finding.freedom is None:
        return None
    return detectable(finding.error, finding.freedom, finding.level)


def reported_interval(finding: Assessment) -> tuple[float | None, float | None, float | None]:
    """Effect and interval as they are reported: per cent for a ratio; all null where one of them has no bound."""
    values = [math.nan if value is None else value for value in (finding.mean, finding.low, finding.high)]
    if finding.scale == "ratio":
        values = [100 * math.expm1(value) if value < 700 else math.inf for value in values]
    effect, low, high = (finite_or_none(value) for value in values)
    return (effect, low, high) if low is not None and high is not None else (effect, None, None)


def show_range(result: MetricResult) -> None:
    """Show counts of the condition with the median difference, and the range of the difference in per cent."""
    ranked = sorted(result.conditions, key=lambda one: one.difference)
    middle = ranked[(len(ranked) - 1) // 2 : len(ranked) // 2 + 1]
    before, after = (float(np.mean([getattr(one, arm) for one in middle])) for arm in ("baseline", "contender"))
    result.baseline_mean = result.baseline_median = before
    result.mean = result.median = after
    show_shares(result, result.pairs)


def show_shares(result: MetricResult, pairs: Sequence[tuple[float, float]]) -> None:
    """Show an exact change in per cent of the baseline, and its range over pairs (conditions, blocks), each in per cent of its
    own baseline; no per cent where a value of the baseline is 0, or where nothing was measured."""
    result.effect_pct = result.ci_low_pct = result.ci_high_pct = None
    if pairs and all(before for before, _ in pairs):
        result.effect_pct = relative_pct(result)
        shares = [100 * (after - before) / abs(before) for before, after in pairs]
        result.ci_low_pct, result.ci_high_pct = min(shares), max(shares)
        if len(set(pairs)) == 1:
            result.ci_low_pct = result.ci_high_pct = result.effect_pct


def finite_or_none(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def mean_of(values: Floats) -> float | None:
    return float(values.mean()) if values.size else None


def sd_of(values: Floats) -> float | None:
    """The sample standard deviation (ddof = 1)."""
    return float(values.std(ddof=1)) if values.size > 1 else None


def below_delta(before: Floats, finding: Assessment, rule: Rule, pairs: Sequence[tuple[float, float]] = ()) -> bool:
    """True if a called difference lies inside the smallest effect of interest; an exact one in each of the pairs."""
    if finding.verdict in ("equivalent", "equal", "undecided") or finding.low is None or finding.high is None:
        return False
    largest = max(abs(finding.low), abs(finding.high))
    if finding.scale == "ratio":
        return largest <= margin("ratio", rule) * ROUNDED
    if pairs:
        return all(one and 100 * abs(other - one) <= rule.delta_pct * abs(one) * ROUNDED for one, other in pairs)
    return finding.scale == "exact" and 100 * largest <= rule.delta_pct * float(np.abs(before).min())
