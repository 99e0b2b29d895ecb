"""Functions that a timed difference comes from, paired over blocks: each profiled trial gives CPU time per unit of
work and samples; a function's time is its share of samples, so that rows add up to the whole."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec import Struct, field, structs
from scipy.special import stdtr

from kduel.core.experiment import Metric
from kduel.core.samples import StepResult
from kduel.explain.profile import IDLE, Stack
from kduel.explain.samples import CLOCK, SAMPLED_CONTEXTS, SampledProfile
from kduel.judge.verdict.adjust import plain_means
from kduel.judge.verdict.classify import benjamini_hochberg
from kduel.judge.verdict.spending import Floats, critical_t

FEWEST = 5.0
"""Mean samples per trial of both contenders; rarer functions are pooled, whatever the difference."""
PROFILE_SCHEMA = 1
NANOSECONDS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
NO_WORK = frozenset(
    ("wakeup-latency", "realtime-latency", "frame-latency", "request-latency", "storage-latency", "fairness")
)
"""Aspects of metrics whose value is a time, but not the time that a unit of work takes."""
WHOLE_STATISTICS = frozenset(("value", "mean", "median", "total"))


class CostChange(Struct, frozen=True, kw_only=True):
    """CPU nanoseconds per unit of work: means over blocks, and the paired difference."""

    baseline: float
    contender: float
    difference: float
    low: float | None = None
    """The interval of the difference; None with fewer than two blocks."""
    high: float | None = None
    p: float | None = None


class ProfileRow(Struct, frozen=True, kw_only=True):
    """A function in one context, or several that are too rare to be tested (then without `q`)."""

    context: str
    function: str
    cost: CostChange
    """In the function itself."""
    inclusive: CostChange | None = None
    """With all that it calls; None for several functions."""
    q: float | None = None
    """The p-value after Benjamini and Hochberg's procedure over all rows."""
    called: bool = False
    """Whether the difference is significant: q is at most alpha."""
    only: str = ""
    """`baseline` or `contender` where the other kernel has no function of that name."""
    moved_within: str = ""
    """A caller whose time with all that it calls does not differ: the time moved, it was not added."""


class Overhead(Struct, frozen=True, kw_only=True):
    """The value of the metric in profiled trials against the run's own: how much profiling slows the benchmark."""

    contender: str
    profiled: float
    unprofiled: float
    slower_pct: float


class TimedProfile(Struct, kw_only=True):
    """The explanation of a timed difference."""

    schema: int = PROFILE_SCHEMA
    benchmark: str
    metric: str
    unit: str
    """Of work: `operation`, `event`, ..."""
    baseline: str
    contender: str
    releases: tuple[str, str] = ("", "")
    blocks: int
    cpus: int
    event: str
    frequency: int
    samples: tuple[int, int]
    """Over all blocks."""
    alpha: float
    level: float
    """Of the intervals of functions: 1 - level, after Benjamini and Yekutieli (2005)."""
    whole: CostChange
    contexts: dict[str, CostChange]
    rows: list[ProfileRow]
    """By absolute difference, the largest first. They add up to `whole`."""
    overhead: list[Overhead] = field(default_factory=list)
    stacks: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Call chains, `context;outer;...;inner`, to picoseconds per unit in baseline and contender."""
    exact: str = ""
    """The command that counts the same operation exactly, where there is one."""
    counts: tuple[float, float] | None = None
    """Instructions per operation, from the run's exact part."""


class ProfiledTrial(Struct, frozen=True, kw_only=True):
    time: float
    """Nanoseconds per unit of work."""
    cpus: int
    idle: float
    """The share of CPU time without work, from /proc/stat; used where the event does not sample idle CPUs."""
    sampled: SampledProfile

    def costs(self) -> dict[Stack, float]:
        """CPU nanoseconds per unit of work, by call chain."""
        whole = self.time * self.cpus
        if self.sampled.event == CLOCK:
            return {stack: whole * weight / self.sampled.weight for stack, weight in self.sampled.stacks.items()}
        busy = {stack: weight for stack, weight in self.sampled.stacks.items() if stack[0] != IDLE}
        total = sum(busy.values()) or 1
        found = {stack: whole * (1 - self.idle) * weight / total for stack, weight in busy.items()}
        return {**found, (IDLE, "(idle)"): whole * self.idle}


def unit_of(metric: Metric) -> str | None:
    """The unit of work that a metric's value is about; None where it is no time or rate of work."""
    if metric.aspect in NO_WORK or metric.statistic not in WHOLE_STATISTICS:
        return None
    if metric.unit in NANOSECONDS and metric.better == "lower":
        return "operation" if metric.statistic in ("mean", "median") else "run"
    if metric.unit.endswith("/s") and metric.better == "higher":
        unit = metric.unit.removesuffix("/s")
        return "operation" if unit in ("1", "ops") else unit.removesuffix("s") if unit.islower() else unit
    return None


def nanoseconds(metric: Metric, value: float) -> float:
    """Time per unit of work. Raises ValueError for what is not positive."""
    if not value > 0:
        raise ValueError(f"{metric.name} is {value:g}")
    return value * NANOSECONDS[metric.unit] if metric.unit in NANOSECONDS else 1e9 / value


class ProfiledArm(Struct, frozen=True, kw_only=True):
    """One contender's profiled trials, in the order of blocks."""

    name: str
    release: str
    trials: list[ProfiledTrial]


class CostTable:
    """Costs by key and block of both arms, as arrays of shape (keys, blocks)."""

    def __init__(self, arms: Sequence[Sequence[Mapping[Stack, float]]]) -> None:
        self.keys = sorted({key for arm in arms for block in arm for key in block})
        self.before, self.after = (
            np.array([[block.get(key, 0.0) for block in arm] for key in self.keys]).reshape(len(self.keys), -1)
            for arm in arms
        )

    def costs(self, level: float) -> list[CostChange]:
        """Each key's cost, with an interval at 1 - level."""
        return [cost(one, other, level) for one, other in zip(self.before, self.after, strict=True)]


def cost(before: Floats, after: Floats, level: float) -> CostChange:
    """Means, and the paired difference with its interval by Student's t."""
    count = before.size
    baseline, contender = float(before.mean()), float(after.mean())
    if count < 2:
        return CostChange(baseline=baseline, contender=contender, difference=contender - baseline)
    mean, error, freedom = (float(values[-1]) for values in plain_means(after - before, [count]))
    half = float(critical_t(level, freedom)) * error
    p = float(2 * stdtr(freedom, -abs(mean) / error)) if error else 0.0 if mean else 1.0
    return CostChange(baseline=baseline, contender=contender, difference=mean, low=mean - half, high=mean + half, p=p)


def profile(
    step: StepResult, metric: Metric, arms: tuple[ProfiledArm, ProfiledArm], *, alpha: float, frequency: int
) -> TimedProfile:
    """Compare two arms' trials, block by block. Raises ValueError where they cannot be compared."""
    trials = [trial for arm in arms for trial in arm.trials]
    events, cpus = {trial.sampled.event for trial in trials}, {trial.cpus for trial in trials}
    if len(events) > 1 or len(cpus) > 1:
        raise ValueError(f"not all trials are alike: events {sorted(events)}, CPUs {sorted(cpus)}")
    unit = unit_of(metric)
    assert unit is not None
    stacks = [[trial.costs() for trial in arm.trials] for arm in arms]
    own = [[sum_by_key(block, innermost) for block in arm] for arm in stacks]
    # The context with each function of the chain: what the time is charged to with all that they call.
    within = [
        [sum_by_key(block, lambda stack: {(stack[0], name) for name in stack[1:]}) for block in arm] for arm in stacks
    ]
    rows, level = rows_of(own, within, arms, alpha)
    rows = [
        structs.replace(row, moved_within=moved_into(row, stacks, within, alpha)) if row.called else row
        for row in rows
    ]
    table = CostTable([[sum_by_key(block, lambda stack: {(stack[0],)}) for block in arm] for arm in stacks])
    found = {key[0]: one for key, one in zip(table.keys, table.costs(alpha), strict=True)}
    return TimedProfile(
        benchmark=step.label, metric=metric.name, unit=unit, baseline=arms[0].name, contender=arms[1].name,
        releases=(arms[0].release, arms[1].release), blocks=len(arms[0].trials), cpus=cpus.pop(), event=events.pop(),
        frequency=frequency, samples=(samples_of(arms[0]), samples_of(arms[1])), alpha=alpha, level=level,
        whole=CostTable([[{(): sum(block.values())} for block in arm] for arm in stacks]).costs(alpha)[0],
        contexts={name: found[name] for name in SAMPLED_CONTEXTS if name in found}, rows=rows,
        stacks=picoseconds(stacks),
    )  # fmt: skip


def samples_of(arm: ProfiledArm) -> int:
    return sum(trial.sampled.samples for trial in arm.trials)


def innermost(stack: Stack) -> set[Stack]:
    """The context and function that the time was spent in."""
    return {(stack[0], stack[-1])}


def sum_by_key(costs: Mapping[Stack, float], keys: Callable[[Stack], set[Stack]]) -> dict[Stack, float]:
    found: dict[Stack, float] = defaultdict(float)
    for stack, value in costs.items():
        for key in keys(stack):
            found[key] += value
    return dict(found)


def rows_of(
    own: list[list[dict[Stack, float]]],
    within: list[list[dict[Stack, float]]],
    arms: tuple[ProfiledArm, ProfiledArm],
    alpha: float,
) -> tuple[list[ProfileRow], float]:
    """A row for each function that is frequent enough, one for the others of each context; and the intervals' level."""
    table = CostTable(own)
    total = table.before.sum() + table.after.sum()
    samples = sum(map(samples_of, arms))
    trials = sum(len(arm.trials) for arm in arms)
    frequent = (table.before.sum(axis=1) + table.after.sum(axis=1)) / total * samples / trials >= FEWEST
    chosen = [key for key, often in zip(table.keys, frequent, strict=True) if often]
    tested = dict(zip(table.keys, table.costs(alpha), strict=True))
    discoveries = benjamini_hochberg([tested[key].p for key in chosen], alpha)
    final = dict(zip(table.keys, table.costs(discoveries.level), strict=True))
    inclusive = CostTable(within)
    whole = dict(zip(inclusive.keys, inclusive.costs(discoveries.level), strict=True))
    known = [frozenset().union(*(trial.sampled.known for trial in arm.trials)) for arm in arms]
    rows = []
    for key, q in zip(chosen, discoveries.q_values, strict=True):
        named = [key[1] in names and not key[1].startswith("(") for names in known]
        only = "" if named[0] == named[1] else "baseline" if named[0] else "contender"
        called = q is not None and q <= alpha
        row = ProfileRow(
            context=key[0], function=key[1], cost=final[key], inclusive=whole.get(key), q=q, called=called, only=only
        )
        rows.append(row)
    for context in SAMPLED_CONTEXTS:
        rare = np.array([not often and key[0] == context for key, often in zip(table.keys, frequent, strict=True)])
        if rare.any():
            pooled = cost(table.before[rare].sum(axis=0), table.after[rare].sum(axis=0), alpha)
            rows.append(ProfileRow(context=context, function=f"({int(rare.sum())} rarer functions)", cost=pooled))
    rows.sort(key=lambda row: (-abs(row.cost.difference), row.context, row.function))
    return rows, discoveries.level


def moved_into(
    row: ProfileRow, stacks: list[list[dict[Stack, float]]], within: list[list[dict[Stack, float]]], alpha: float
) -> str:
    """The nearest usual caller of a called row whose time, with all that it calls, does not differ: what the compiler
    inlined, or a patch split or renamed, moves time between functions without adding any. Empty where there is none."""
    key = (row.context, row.function)
    callers: dict[str, float] = defaultdict(float)
    total = 0.0
    for arm in stacks:
        for block in arm:
            for stack, value in block.items():
                if (stack[0], stack[-1]) == key:
                    total += value
                    for name in set(stack[1:-1]) - {row.function}:
                        callers[name] += value
    nearest = [name for name, value in callers.items() if value >= 0.8 * total]
    arms = {
        name: [np.array([block.get((row.context, name), 0.0) for block in arm]) for arm in within] for name in nearest
    }
    for name in sorted(nearest, key=lambda one: (float(arms[one][0].sum() + arms[one][1].sum()), one)):
        found = cost(arms[name][0], arms[name][1], alpha)
        if found.p is not None and found.p > alpha and abs(found.difference) < abs(row.cost.difference) / 2:
            return name
    return ""


def picoseconds(stacks: list[list[dict[Stack, float]]]) -> dict[str, tuple[int, int]]:
    """Call chains to their mean cost in both arms, as whole picoseconds."""
    table = CostTable(stacks)
    means = (
        np.rint(1000 * np.stack([table.before.mean(axis=1), table.after.mean(axis=1)], axis=1)).astype(int).tolist()
    )
    return {
        ";".join(name.replace(";", ":") for name in stack): (one, other)
        for stack, (one, other) in zip(table.keys, means, strict=True)
    }


def overhead(
    contender: str, metric: Metric, profiled: Sequence[float], unprofiled: Sequence[float]
) -> Overhead | None:
    """Additional time of a unit of work in profiled trials; None where a side has no value."""
    if not profiled or not unprofiled:
        return None
    one, other = (math.fsum(values) / len(values) for values in (profiled, unprofiled))
    if not one > 0 or not other > 0:
        return None
    ratio = nanoseconds(metric, one) / nanoseconds(metric, other)
    return Overhead(contender=contender, profiled=one, unprofiled=other, slower_pct=100 * (ratio - 1))
