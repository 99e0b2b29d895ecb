"""From what was found of a comparison to the result that reports read."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from kduel.core.results import MetricResult, Scale, Verdict
from kduel.judge.verdict.comparison import Comparison, differences, log_ratios
from kduel.judge.verdict.sample_size import detectable
from kduel.judge.verdict.secondary import beside as shown_beside
from kduel.judge.verdict.spending import Floats
from kduel.judge.verdict.wording import tell

MISSED_MODE = 0.05
"""The chance with which a slow mode of the share that is told would have stayed unseen."""


class Finding(NamedTuple):
    """What was found of one comparison, in the terms of its scale (logarithms for a ratio)."""

    scale: Scale
    verdict: Verdict
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    decided_at: int | None = None
    level: float | None = None
    """Nominal, of the interval."""
    more: int | None = None
    q_value: float | None = None


def write(c: Comparison, finding: Finding, *, beside: bool = True) -> MetricResult:
    """The finding with everything that is told and shown beside it."""
    before, after = c.pairs
    metric = c.table.metric
    ratio = finding.scale == "ratio"
    effect, low, high = shown(finding)
    result = MetricResult(
        benchmark=c.table.benchmark,
        metric=metric.name,
        unit=metric.unit,
        better=metric.better,
        role="primary" if c.table.primary else "exploratory",
        about=metric.about,
        group=metric.group,
        statistic=metric.statistic,
        baseline=c.baseline,
        contender=c.contender,
        n=c.n,
        baseline_mean=mean_of(before),
        baseline_sd=sd_of(before),
        mean=mean_of(after),
        sd=sd_of(after),
        baseline_median=float(np.median(before)) if c.n else None,
        median=float(np.median(after)) if c.n else None,
        scale=finding.scale,
        effect_pct=effect if ratio else None,
        ci_low_pct=low if ratio else None,
        ci_high_pct=high if ratio else None,
        effect=None if ratio else effect,
        ci_low=None if ratio else low,
        ci_high=None if ratio else high,
        verdict=finding.verdict,
        below_delta=below_delta(c, finding),
        decided_at=finding.decided_at,
        blocks_more=finding.more,
        q_value=finding.q_value,
        conditions=c.conditions,
        modes={name: c.table.modes[name] for name in (c.baseline, c.contender) if c.table.modes.get(name)},
        values={name: list(values) for name, values in c.table.values.items()},
    )
    if c.conditions and finding.scale == "exact":
        result.effect_pct, result.ci_low_pct, result.ci_high_pct = range_pct(c)
    if finding.scale != "exact" and finding.level is not None and c.n >= 2:
        sd = float(c.statistics[1][-1])
        least = detectable(sd, c.n, finding.level)
        if least is not None:
            result.mde_pct = bounded(100 * np.expm1(min(least, 700))) if ratio else None
        if beside:
            gaps = log_ratios(before, after) if ratio else differences(before, after)
            result.beside = shown_beside(before, after, gaps, ratio)
            if ratio:
                result.beside["ratio_of_means_pct"] = 100 * float(after.mean() / before.mean() - 1)
            else:
                result.beside["mde"] = least
    if finding.verdict in ("equivalent", "equal") and finding.level is not None:
        result.unseen_mode_pct = 100 * (1 - MISSED_MODE ** (1 / c.n))
    result.told = tell(result, c.rule, int(c.complete.size))
    return result


def shown(finding: Finding) -> tuple[float | None, float | None, float | None]:
    """Effect and interval as they are told: per cent for a ratio; all null where one of them has no bound."""
    if finding.mean is None or finding.low is None or finding.high is None:
        return None, None, None
    values = [finding.mean, finding.low, finding.high]
    if finding.scale == "ratio":
        values = [100 * math.expm1(value) if value < 700 else math.inf for value in values]
    effect, low, high = (bounded(value) for value in values)
    return (effect, low, high) if low is not None and high is not None else (effect, None, None)


def range_pct(c: Comparison) -> tuple[float | None, float | None, float | None]:
    """Median, least and largest difference over the conditions, in per cent of the baseline under the same one; null
    where a baseline is 0."""
    if not all(one.baseline for one in c.conditions):
        return None, None, None
    shares = [100 * one.difference / abs(one.baseline) for one in c.conditions]
    return float(np.median(shares)), min(shares), max(shares)


def bounded(value: float) -> float | None:
    """The value, unless it has no bound."""
    return float(value) if math.isfinite(value) else None


def mean_of(values: Floats) -> float | None:
    return float(values.mean()) if values.size else None


def sd_of(values: Floats) -> float | None:
    """The sample standard deviation (ddof = 1)."""
    return float(values.std(ddof=1)) if values.size > 1 else None


def below_delta(c: Comparison, finding: Finding) -> bool:
    """Whether a difference was called that lies inside the smallest effect of interest."""
    if finding.verdict in ("equivalent", "equal", "undecided") or finding.low is None or finding.high is None:
        return False
    largest = max(abs(finding.low), abs(finding.high))
    if finding.scale == "ratio":
        return largest <= math.log1p(c.rule.delta_pct / 100)
    reference = float(np.abs(c.pairs[0]).min())
    return finding.scale == "exact" and 100 * largest <= c.rule.delta_pct * reference
