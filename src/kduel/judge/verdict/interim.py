"""How a run stands: what the runner shows after each block, and whether it may stop."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from kduel.core.results import MetricResult, Scale, Verdict
from kduel.core.samples import Samples
from kduel.judge.verdict.rule import Rule


class Standing(Struct, kw_only=True):
    """A primary metric of one contender so far. Effect and interval are in per cent on the ratio scale, else in
    the metric's unit; null where there is none yet."""

    benchmark: str
    metric: str
    contender: str
    n: int
    """Complete pairs."""
    scale: Scale
    effect: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    decided: bool
    blocks_more: int | None
    """About how many blocks it still needs; 0 when decided, null while that cannot be estimated."""
    told: str
    """The verdict in plain words."""


def standing(samples: Sequence[Samples], rule: Rule, *, exact: bool = False) -> list[Standing]:
    """Every primary metric of every contender. Raises InputError where a table is not usable."""
    from kduel.judge.verdict.judge import judge_primary

    return [stand(result) for result in judge_primary(samples, rule, exact=exact)]


def finished(samples: Sequence[Samples], rule: Rule, *, exact: bool = False, without: Collection[str] = ()) -> bool:
    """Whether the run may stop: every primary metric is decided, or the blocks are all there.

    Without a primary metric a run continues to its last block. It does not wait for the contenders in `without`, which
    cannot be measured.
    """
    from kduel.judge.verdict.comparison import finished_blocks

    if finished_blocks(samples) >= rule.max_blocks:
        return True
    standings = [one for one in standing(samples, rule, exact=exact) if one.contender not in without]
    return bool(standings) and all(one.decided for one in standings)


def stand(result: MetricResult) -> Standing:
    """The part of a result that is shown while the run continues."""
    ratio = result.scale == "ratio"
    decided = result.verdict != "undecided"
    return Standing(
        benchmark=result.benchmark,
        metric=result.metric,
        contender=result.contender,
        n=result.n,
        scale=result.scale,
        effect=result.effect_pct if ratio else result.effect,
        low=result.ci_low_pct if ratio else result.ci_low,
        high=result.ci_high_pct if ratio else result.ci_high,
        verdict=result.verdict,
        decided=decided,
        blocks_more=0 if decided else result.blocks_more,
        told=result.told,
    )
