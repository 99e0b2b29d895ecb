"""Samples: the numbers that a run's raw files hold, one table a metric, by contender and block."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from kduel.core.experiment import Metric

LARGEST = 1e150
"""Squares of larger values overflow."""
SMALLEST = 1e-150
"""Ratios of LARGEST to smaller positive values overflow, and squares of these are 0."""


REASON = f"a finite number from {SMALLEST:g} to {LARGEST:g} in size, or 0"
"""What is within reason, in words."""


def within_reason(value: float) -> bool:
    """Whether squares of the value, and its ratio to any other such value, can be computed: it is 0, or from SMALLEST
    to LARGEST in size. NaN is not."""
    return value == 0 or SMALLEST <= abs(value) <= LARGEST


class Mode(Struct, frozen=True):
    """A value about which many of the single measurements of a trial lie."""

    value: float
    share: float
    """Of all single measurements, from 0 to 1."""


class Details(Struct, kw_only=True):
    """What a trial reports of its metrics beyond one number each."""

    conditions: dict[str, dict[str, float]] = field(default_factory=dict)
    """By metric: its value under each condition that must not matter, by the condition's description."""
    modes: dict[str, list[Mode]] = field(default_factory=dict)
    """By metric: the modes of its single measurements, the most frequent first."""


class StepResult(Struct, frozen=True, kw_only=True):
    """A benchmark with its parameters, as a trial ran it."""

    label: str
    benchmark: str
    """The benchmark's name. Of imported results, the label without its numbers."""
    parameters: dict[str, Any] = field(default_factory=dict)
    """All parameters, the defaults included. Of imported results, the numbers in the label."""


class Samples(Struct, kw_only=True):
    """All values of one metric of one step. Lists run parallel to `blocks`; None is a missing value, never 0.

    `order` is the position in time of the trial that gave the value (0 for the run's first trial), for drift,
    warm-up and interleaving.
    """

    benchmark: str
    """The step's label."""
    metric: Metric
    step: StepResult | None = None
    """What produced the values; None where that does not matter, as in a simulation."""
    primary: bool = False
    paired: bool = True
    """Whether the values of one block belong together. Not so for imported results: there block i only holds each
    contender's trial number i, and nothing may be compared by it."""
    blocks: list[int]
    values: dict[str, list[float | None]]
    """By contender, the baseline first."""
    machines: list[str] = field(default_factory=list)
    """Parallel to `blocks`: the machine, or the part of a merged run, that carried the block out; empty where there is
    one."""
    order: dict[str, list[int | None]] = field(default_factory=dict)
    absent: dict[str, list[bool]] = field(default_factory=dict)
    """By contender, parallel to `blocks`: whether the trial never began because its machine was not there, so that the
    missing value is no sign of the contender's. Of an import: whether nothing shows that there was such a trial. Empty
    where every trial began."""
    conditions: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    """By contender, parallel to `blocks`: the values under each condition, where the benchmark counts under several."""
    modes: dict[str, list[Mode]] = field(default_factory=dict)
    """By contender, of the first block that has them."""
    covariates: dict[str, dict[str, list[float | None]]] = field(default_factory=dict)
    """What was measured on the host during each trial, where the guest cannot influence it: by name and contender,
    parallel to `blocks`. Only those that the rule declares enter a verdict."""

    @property
    def contenders(self) -> list[str]:
        """Names, the baseline first."""
        return list(self.values)

    @property
    def key(self) -> str:
        """How a metric is named in full."""
        return f"{self.benchmark}/{self.metric.name}"


def steps_of(samples: list[Samples]) -> list[StepResult]:
    """The steps that gave the samples, in their order."""
    return list({table.benchmark: table.step for table in samples if table.step is not None}.values())
