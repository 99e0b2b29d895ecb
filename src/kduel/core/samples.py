"""Samples: the numbers that a run's raw files hold, one table a metric, by contender and block."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from kduel.core.evidence import Evidence
from kduel.core.experiment import Metric
from kduel.core.slices import SliceValue
from kduel.core.turns import StepTurns

LARGEST = 1e150
"""Squares of larger values overflow."""
SMALLEST = 1e-150
"""Ratios of LARGEST to smaller positive values overflow, and squares of these are 0."""
SECONDS = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "msec": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
"""Units of time."""

REASON = f"a finite number from {SMALLEST:g} to {LARGEST:g} in size, or 0"
"""What is within reason, in words."""


def within_reason(value: float) -> bool:
    """True if squares and ratios of such values can be computed: 0, or SMALLEST to LARGEST in size, not NaN."""
    return value == 0 or SMALLEST <= abs(value) <= LARGEST


class Mode(Struct, frozen=True):
    """A value about which many of the single measurements of a trial lie."""

    value: float
    share: float
    """Of all single measurements, from 0 to 1."""


class Distribution(Struct, frozen=True, kw_only=True):
    """All single measurements of one trial, counted."""

    unit: str
    values: list[float]
    """In rising order: the values, or the upper ends of the buckets that they are counted in."""
    counts: list[int]
    """Parallel to `values`."""
    beyond: int = 0
    """Measurements above all `values`, of which no more is known."""
    largest: float
    floors: list[float] = field(default_factory=list)
    """Parallel to `values`: the lower ends of the buckets; empty where values are not in buckets."""

    @property
    def samples(self) -> int:
        return sum(self.counts) + self.beyond

    @classmethod
    def from_counts(
        cls, counted: Mapping[int, int], unit: str, parts: int = 1, beyond: int = 0, largest: int | None = None
    ) -> "Distribution":
        """A distribution by how often each whole number occurs, in parts of the unit; `largest` where measurements lie beyond these."""
        values = sorted(value for value, count in counted.items() if count)
        return cls(
            unit=unit,
            values=[value / parts for value in values],
            counts=[counted[value] for value in values],
            beyond=beyond,
            largest=(values[-1] if largest is None else largest) / parts,
        )


class Details(Struct, kw_only=True):
    """A trial's report on its metrics beyond one number each."""

    conditions: dict[str, dict[str, float]] = field(default_factory=dict)
    """By metric: its value under each condition that must not matter, by the condition's description."""
    modes: dict[str, list[Mode]] = field(default_factory=dict)
    """By metric: the modes of its single measurements, the most frequent first."""
    work: dict[str, dict[str, float]] = field(default_factory=dict)
    """By metric: how often an operation does a kind of work, such as to sleep, which says whether two contenders do the same."""
    slices: dict[str, list[SliceValue]] = field(default_factory=dict)
    """By metric: its slices, in their order."""
    errors: dict[str, float] = field(default_factory=dict)
    """By metric: the relative standard error of its value by the single measurements behind it."""
    printed: dict[str, float] = field(default_factory=dict)
    """By metric: what the program itself prints, where the value is computed from other figures of its output."""
    distributions: dict[str, Distribution] = field(default_factory=dict)
    """By metric: all single measurements, at their main figure."""


DETAILS_BY_BLOCK: dict[str, Any] = {"conditions": {}, "slices": [], "distributions": None, "printed": None}
"""Fields of Details that Samples have by contender and block, and what stands for a block without."""
DETAILS_ONCE: dict[str, Any] = {"modes": [], "work": {}}
"""Those that Samples have by contender, of the first block that has them, and what stands for a contender without."""


class StepResult(Struct, frozen=True, kw_only=True):
    """A benchmark with its parameters, as a trial ran it."""

    label: str
    benchmark: str
    """The benchmark's name. Of imported results, the label without its numbers."""
    parameters: dict[str, Any] = field(default_factory=dict)
    """All parameters, the defaults included. Of imported results, the numbers in the label."""
    load: str = ""
    """The background load that ran beside it, where that is no parameter of the benchmark."""


class Samples(Struct, kw_only=True):
    """All values of one metric of one step. Lists run parallel to `blocks`; None is a missing value, never 0.

    `order` is the position in time of the trial that gave the value (0 for the run's first trial), for drift,
    warm-up and interleaving."""

    benchmark: str
    """The step's label."""
    metric: Metric
    step: StepResult | None = None
    """What produced the values; None where that does not matter, as in a simulation."""
    primary: bool = False
    paired: bool = True
    """Whether the values of one block belong together; not so for an import, whose blocks only number trials."""
    counted: bool = False
    """Whether an exact machine counted the values: a repetition gives the same, and one pair is enough."""
    scheduled: bool = False
    """Whether a scheduler decided what exact CPUs do: the least cause then changes the values, and conditions may agree by chance."""
    blocks: list[int]
    values: dict[str, list[float | None]]
    """By contender, the baseline first."""
    machines: list[str] = field(default_factory=list)
    """Parallel to `blocks`: the machine, or the part of a merged run, of each block; empty where there is one."""
    parts: list[str] = field(default_factory=list)
    """Parallel to `blocks`: the part of a merged run; empty where it is not merged."""
    order: dict[str, list[int | None]] = field(default_factory=dict)
    places: list[int] = field(default_factory=list)
    """Parallel to `blocks`: the step's place among the steps of its trials; empty where it is not known."""
    absent: dict[str, list[bool]] = field(default_factory=dict)
    """By contender, parallel to `blocks`: whether the trial never began because its machine was not there, so that the
    missing value is no sign of the contender's. Of an import: whether nothing shows that there was such a trial. Empty
    where every trial began."""
    beyond: dict[str, list[int]] = field(default_factory=dict)
    """By contender, the blocks in which the value lies beyond a histogram: it is missing because it is large. Of an effect of factors:
    in which a cell does that would raise this arm against the other."""
    resolution: float = 0.0
    """Of the machine's clock, in the metric's unit: a difference that is not larger is none."""
    conditions: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    """By contender, parallel to `blocks`: the values under each condition, where the benchmark counts under several."""
    modes: dict[str, list[Mode]] = field(default_factory=dict)
    """By contender, of the first block that has them."""
    work: dict[str, dict[str, float]] = field(default_factory=dict)
    """By contender, of the first block that has it."""
    slices: dict[str, list[list[SliceValue]]] = field(default_factory=dict)
    """By contender, parallel to `blocks`: the slices that a value was reduced from; empty where there were none."""
    turns: dict[str, list[list[StepTurns]]] = field(default_factory=dict)
    """By contender, parallel to `blocks`: the turns of the step, or of each of its slices; empty where none were taken."""
    distributions: dict[str, list[Distribution | None]] = field(default_factory=dict)
    """By contender, parallel to `blocks`: all single measurements, at the metric that is their main figure."""
    printed: dict[str, list[float | None]] = field(default_factory=dict)
    """By contender, parallel to `blocks`: what the program prints, where the values are computed from other figures."""
    covariates: dict[str, dict[str, list[float | None]]] = field(default_factory=dict)
    """What was measured on the host during each trial, where the guest cannot influence it: by name and contender,
    parallel to `blocks`. Only those that the rule declares enter a verdict."""

    @property
    def contenders(self) -> list[str]:
        """Names, the baseline first."""
        return list(self.values)

    def repeats(self, other: "Samples") -> bool:
        """True if all values are those of the other, under each condition."""
        return (self.values, self.conditions) == (other.values, other.conditions)

    @property
    def evidence(self) -> Evidence:
        """The part of chance in the values: none in counts, nor in what is always the same, until a repetition differs."""
        if self.counted:
            return Evidence.COUNTED
        if not self.metric.exact:
            return Evidence.SAMPLED
        alike = all(len({one for one in values if one is not None}) <= 1 for values in self.values.values())
        return Evidence.COUNTED if alike else Evidence.VARYING

    @property
    def key(self) -> str:
        return f"{self.benchmark}/{self.metric.name}"


def steps_of(samples: list[Samples]) -> list[StepResult]:
    return list({table.benchmark: table.step for table in samples if table.step is not None}.values())
