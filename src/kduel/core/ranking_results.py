"""Results of a ranking: the contenders by the geometric mean of an aspect's primary metrics."""

from __future__ import annotations

from msgspec import Struct, field

from kduel.core.experiment import Aspect
from kduel.core.metric_results import MetricResult


class Rank(Struct, frozen=True, kw_only=True):
    """The ranks that the intervals leave to a contender: 1 and more than the number of those shown to be better, up to the
    number of those not shown to be worse."""

    contender: str
    first: int | None
    last: int | None
    """Both null where the contender cannot be ranked, for a `reason`."""
    reason: str = ""


class AspectRanking(Struct, kw_only=True):
    """One aspect. Its value of a boot is the geometric mean of the metrics in that boot; times and sizes enter as their inverse, so
    that higher is better."""

    aspect: Aspect
    metrics: list[str]
    """BENCHMARK/METRIC of each primary metric that enters."""
    left_out: list[str] = field(default_factory=list)
    """The aspect's other primary metrics: set by the benchmark itself, or without ratios."""
    ranks: list[Rank]
    """All contenders with the baseline, the best first; last those without a rank."""
    results: list[MetricResult]
    """Each contender against the baseline, in the order of the contenders. Shown beside the primary metrics, never deciding."""
