"""From the distributions of a run to what its reports state of tails: quantiles, shift, bound, return level."""

import math
from collections.abc import Sequence

import numpy as np
from msgspec import structs

from kduel.core.experiment import Bound
from kduel.core.samples import Distribution, Samples
from kduel.core.tail_results import BoundResult, ShiftPoint, ShiftResult, TailResult
from kduel.judge.tails.extremes import return_level
from kduel.judge.tails.shares import FEWEST_BOOTS, pool, quantiles, share_interval
from kduel.judge.verdict.comparison import counted_blocks
from kduel.judge.verdict.judge import judge_primary
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.spending import student_levels

QUANTILES = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)
SHIFTED = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 0.999)
FEWEST_ABOVE = 5
"""Samples of every boot that must lie above a quantile for its shift to be estimated."""
MOST_POINTS = 200
"""Points of a survival curve that are kept."""


def distribution_name(metric: str) -> str:
    """Name of the measurements that a metric is a figure of: `latency` of `latency-p99`."""
    return metric.rpartition("-")[0] or metric


def tail_results(samples: Sequence[Samples], rule: Rule, bound: Bound | None) -> list[TailResult]:
    """The tails of every contender in every table that keeps its distributions."""
    counted = counted_blocks(samples, rule)
    tables = [table for table in samples if table.distributions]
    level = present_level(rule, len(counted), rule.alpha)
    matching = [table for table in tables if bound is not None and bounds(bound, table)]
    share = rule.alpha / max(1, sum(len(table.values) for table in matching))
    own_level = present_level(rule, len(counted), share)
    return [
        tail_result(
            table, name, boots_of(table, name, counted), level, own_level, bound if table in matching else None
        )
        for table in tables
        for name in table.contenders
    ]


def bounds(bound: Bound, table: Samples) -> bool:
    """True where a bound is about this table's measurements."""
    label, _, name = bound.metric.rpartition("/")
    return name == distribution_name(table.metric.name) and label in ("", table.benchmark)


def present_level(rule: Rule, blocks: int, alpha: float) -> float:
    """The nominal level of an interval after so many blocks, of a run that may have stopped at any of its looks."""
    looks = [look for look in rule.looks() if look < blocks] + ([blocks] if blocks else [])
    if len(rule.looks()) == 1 or len(looks) < 2:
        return alpha
    return float(student_levels(alpha, looks, looks, max(rule.max_blocks, blocks))[-1])


def boots_of(table: Samples, contender: str, counted: Sequence[int]) -> list[Distribution]:
    held = dict(zip(table.blocks, table.distributions.get(contender, ()), strict=False))
    return [found for block in counted if (found := held.get(block)) is not None and found.samples]


def tail_result(
    table: Samples, contender: str, boots: list[Distribution], level: float, own_level: float, bound: Bound | None
) -> TailResult:
    total = sum(boot.samples for boot in boots)
    found = TailResult(
        benchmark=table.benchmark, metric=distribution_name(table.metric.name),
        unit=boots[0].unit if boots else table.metric.unit, contender=contender, boots=len(boots), samples=total,
        largest=max((boot.largest for boot in boots), default=None), level=level,
    )  # fmt: skip
    if not boots:
        return found
    pooled = pool(boots)
    found.survival = survival_points(pooled.values, pooled.above.mean(axis=0))
    found.quantiles = quantiles(pooled, QUANTILES, level)
    if bound is not None:
        found.bound = bound_result(boots, bound, own_level)
    rare = bound.share if bound is not None else 10.0 ** math.floor(-math.log10(total))
    found.return_level = return_level(boots, rare, level)
    return found


def survival_points(values: np.ndarray, above: np.ndarray) -> list[tuple[float, float]]:
    """Values with the share of samples above them; of many points those at even distances on the logarithm of the share."""
    there = above > 0
    values, above = values[there], above[there]
    if values.size > MOST_POINTS:
        wanted = np.geomspace(above[0], above[-1], MOST_POINTS)
        chosen = np.unique(np.searchsorted(-above, -wanted).clip(0, values.size - 1))
        values, above = values[chosen], above[chosen]
    return list(zip(values.tolist(), above.tolist(), strict=True))


def bound_result(boots: Sequence[Distribution], bound: Bound, level: float) -> BoundResult:
    """Verdict on a bound: holds or violated where the share of samples above it is shown to be below or above the one allowed."""
    limit = bound.in_unit(boots[0].unit)
    least, most = (np.array(ends, dtype=float) for ends in zip(*(count_above(b, limit) for b in boots), strict=True))
    samples = np.array([boot.samples for boot in boots], dtype=float)
    found = BoundResult(
        limit=limit, share=bound.share, exceeding=int(least.sum()), hidden=int((most - least).sum()),
        samples=int(samples.sum()), verdict="undecided", level=level,
    )  # fmt: skip
    if len(boots) < FEWEST_BOOTS:
        found.reason = f"it takes {FEWEST_BOOTS} boots, and there {'is' if len(boots) == 1 else 'are'} {len(boots)}"
        return found
    (mean,), _, (high,) = share_interval((most / samples)[:, None], samples, level)
    _, (low,), _ = share_interval((least / samples)[:, None], samples, level)
    found.estimate, found.low, found.high = float(mean), float(low), float(high)
    found.verdict = "holds" if high < bound.share else "violated" if low > bound.share else "undecided"
    if found.verdict == "undecided" and not most.any():
        found.reason = f"none of {found.samples:,} samples exceeds it, which shows no less than {high:.2g}"
    return found


def count_above(boot: Distribution, limit: float) -> tuple[int, int]:
    """Least and largest number of samples that may be above a limit: those of a bucket may be anywhere in it; of those beyond the
    histogram no more is known than that they are above all values within it, and the largest of them."""
    if limit >= boot.largest:
        return 0, 0
    values, counts = np.asarray(boot.values), np.asarray(boot.counts)
    known = boot.beyond if values.size and limit < values[-1] else min(boot.beyond, 1)
    least = int(counts[np.asarray(boot.floors or boot.values) > limit].sum()) + known
    return least, int(counts[values > limit].sum()) + boot.beyond


def shift_results(samples: Sequence[Samples], rule: Rule) -> list[ShiftResult]:
    """By contender, the change of each quantile of a boot against the baseline's, within blocks, with intervals that hold for all
    quantiles and contenders of a benchmark together: tables of quantiles, judged by the rule."""
    found: dict[tuple[str, str, str], ShiftResult] = {}
    for table in samples:
        if not table.distributions:
            continue
        boots = {name: table.distributions[name] for name in table.contenders}
        every = [boot for column in boots.values() for boot in column if boot is not None and boot.samples]
        # A quantile that lies beyond the histogram in some boots has no fair shift: those are the slowest ones.
        shares = [
            share
            for share in SHIFTED
            if every
            and min(boot.samples for boot in every) * (1 - share) >= FEWEST_ABOVE
            and all(quantile_of(boot, share) is not None for boot in every)
        ]
        tables = [
            structs.replace(
                table,
                metric=structs.replace(table.metric, name=f"{share:g}", exact=False),
                primary=True,
                counted=False,
                distributions={},
                values={name: [quantile_of(boot, share) for boot in column] for name, column in boots.items()},
            )
            for share in shares
        ]
        for result in judge_primary(tables, rule):
            key = table.benchmark, distribution_name(table.metric.name), result.contender
            one = found.setdefault(
                key,
                ShiftResult(benchmark=key[0], metric=key[1], baseline=result.baseline, contender=result.contender),
            )
            if None not in (result.effect_pct, result.ci_low_pct, result.ci_high_pct):
                one.points.append(
                    ShiftPoint(
                        share=float(result.metric),
                        effect_pct=result.effect_pct,
                        low_pct=result.ci_low_pct,
                        high_pct=result.ci_high_pct,
                        verdict=result.verdict,
                    )
                )
    return [one for one in found.values() if one.points]


def quantile_of(boot: Distribution | None, share: float) -> float | None:
    """The value that this share of a boot's samples does not exceed, by nearest rank; None where it is not known."""
    if boot is None or not boot.samples:
        return None
    reached = np.cumsum(boot.counts)
    place = int(np.searchsorted(reached, share * boot.samples * (1 - 1e-12)))
    return boot.values[place] if place < len(boot.values) else None
