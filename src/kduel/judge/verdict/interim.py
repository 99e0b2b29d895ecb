"""A run in progress: its primary metrics so far, and whether it may stop. Light to import: the rest waits for a trial."""

from collections.abc import Collection, Sequence

from kduel.core.metric_results import MetricResult
from kduel.core.samples import Samples
from kduel.judge.verdict.rule import Rule


def primary_results(samples: Sequence[Samples], rule: Rule) -> list[MetricResult]:
    """Every primary metric of every contender so far. Raises InputError where a table is not usable."""
    from kduel.judge.verdict.judge import judge_primary

    return judge_primary(samples, rule)


def is_finished(samples: Sequence[Samples], rule: Rule, *, without: Collection[str] = ()) -> bool:
    """True if the run may stop: every primary metric is decided, or all blocks are there, but for `without`."""
    from kduel.judge.verdict.comparison import finished_blocks

    if finished_blocks(samples) >= rule.max_blocks:
        return True
    found = [one for one in primary_results(samples, rule) if one.contender not in without]
    return bool(found) and all(one.decided for one in found)
