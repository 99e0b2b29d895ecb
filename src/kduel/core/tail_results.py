"""Results about tails: quantiles over boots, a bound, a return level, the shift of a distribution."""

from typing import Literal

from msgspec import Struct, field

from kduel.core.metric_results import Verdict


class QuantileResult(Struct, kw_only=True):
    """The value that a share of all measurements does not exceed: of the mean distribution over boots. null: the data do not reach so
    far."""

    share: float
    value: float | None
    low: float | None
    high: float | None


class BoundResult(Struct, kw_only=True):
    """Verdict on a bound, by the share of measurements that exceed it; the largest one decides nothing."""

    limit: float
    """In the unit of the measurements."""
    share: float
    """Of the measurements, how many may exceed it."""
    exceeding: int
    """Measurements that are known to exceed it."""
    hidden: int = 0
    """Further ones that may: in a step of the histogram that has the limit, or beyond its end, as the limit is. `high` counts them,
    `low` does not."""
    samples: int
    verdict: Literal["holds", "violated", "undecided"]
    level: float
    """1 less the coverage of the interval: over all contenders and benchmarks that the bound is about, and all looks, together."""
    estimate: float | None = None
    """The share that exceeds it: the mean over boots."""
    low: float | None = None
    high: float | None = None
    reason: str = ""
    """Of undecided, where it is known."""


class ReturnLevelResult(Struct, kw_only=True):
    """A model of the tail: the level that a share of all measurements exceeds. null where there is none, for a `reason`."""

    share: float
    threshold: float | None = None
    """Above it excesses are fitted by a generalised Pareto distribution."""
    excesses: int | None = None
    shape: float | None = None
    scale: float | None = None
    level: float | None = None
    low: float | None = None
    high: float | None = None
    distance: float | None = None
    """The largest distance between the fitted and the counted distribution of the excesses."""
    other_level: float | None = None
    """The level by a fit to the upper half of the excesses."""
    reason: str = ""


class TailResult(Struct, kw_only=True):
    """The single measurements of one contender over its boots."""

    benchmark: str
    metric: str
    unit: str
    contender: str
    boots: int
    samples: int
    largest: float | None
    level: float
    """1 less the coverage of each interval."""
    quantiles: list[QuantileResult] = field(default_factory=list)
    survival: list[tuple[float, float]] = field(default_factory=list)
    """Values, and the share of measurements above each."""
    bound: BoundResult | None = None
    return_level: ReturnLevelResult | None = None


class ShiftPoint(Struct, kw_only=True):
    """The change of one quantile."""

    share: float
    effect_pct: float | None
    low_pct: float | None
    high_pct: float | None
    verdict: Verdict


class ShiftResult(Struct, kw_only=True):
    """Change of a contender's quantiles within boots against the baseline's; intervals hold for all points together."""

    benchmark: str
    metric: str
    baseline: str
    contender: str
    points: list[ShiftPoint] = field(default_factory=list)
