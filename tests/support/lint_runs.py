"""Small runs with a known flaw, and what the lint says of them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from msgspec import structs

from kduel.core.experiment import Aspect, Better, Contender, MachineRecord, Metric, Statistic
from kduel.core.metric_results import MetricResult
from kduel.core.results import ContenderResult, Results, StudyResult, TrialResult
from kduel.core.samples import Samples
from kduel.judge.lint import examine
from kduel.judge.verdict.judge import judge, judge_primary
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.unpaired import judge_unpaired

Column = Sequence[float | None] | np.ndarray


def table(
    old: Column,
    new: Column,
    *,
    unit: str = "events/s",
    better: Better = "higher",
    statistic: Statistic = "value",
    fixed_at: float | None = None,
    paired: bool = True,
    primary: bool = True,
    benchmark: str = "bench",
    seed: int = 1,
    aspect: Aspect = "",
) -> Samples:
    """Two arms; paired ones in randomised blocks of two."""
    rng = np.random.default_rng(seed)
    places = [rng.permutation(2) + 2 * block for block in range(len(old))]
    return Samples(
        benchmark=benchmark,
        metric=Metric(name="metric", unit=unit, better=better, statistic=statistic, fixed_at=fixed_at, aspect=aspect),
        primary=primary,
        paired=paired,
        blocks=list(range(1, len(old) + 1)),
        values={
            name: [None if value is None else float(value) for value in column]
            for name, column in (("old", old), ("new", new))
        },
        order={name: [int(place[arm]) for place in places] for arm, name in enumerate(("old", "new"))}
        if paired
        else {},
    )


def linted(
    *tables: Samples,
    imported: bool = False,
    exact: bool = False,
    quick: bool = False,
    carry_over: bool = False,
    trials: Sequence[TrialResult] = (),
) -> Results:
    """The run of these metrics, judged and examined."""
    samples = tables[0]
    turns = 50 if any(one.turns for one in tables) else None
    if samples.paired:
        how = judge_primary if quick else judge
        rule = Rule.of_edition(2, max_blocks=len(samples.blocks), in_turns=turns is not None, carry_over=carry_over)
        metrics = how([structs.replace(table, counted=exact) for table in tables], rule)
    else:
        metrics = judge_unpaired(tables, Rule.of_edition(2))
    results = Results(
        study=StudyResult(imported=imported, edition=2, turns=turns, carry_over=carry_over),
        machine=MachineRecord(exact=exact),
        contenders=[ContenderResult(name=name, kernel=name) for name in samples.contenders],
        trials=list(trials),
        metrics=metrics,
    )
    examine(results, list(tables), {}, [Contender(kernel=name, name=name) for name in samples.contenders])
    return results


def said(samples: Samples, **how: bool) -> dict[str, str]:
    """By code, what the lint says of the metric."""
    (metric,) = linted(samples, **how).metrics
    assert len({warning.code for warning in metric.warnings}) == len(metric.warnings), "a finding is told once"
    return {warning.code: warning.message for warning in metric.warnings}


def noise(count: int, level: float = 1000.0, cv: float = 0.005, seed: int = 7) -> np.ndarray:
    """Clean normal values whose sample is exactly of that level and spread, so that nothing depends on luck."""
    drawn = np.random.default_rng(seed).normal(size=count)
    standard: np.ndarray = (drawn - drawn.mean()) / drawn.std(ddof=1)
    return level * (1 + cv * standard)


def result_of(samples: Samples) -> MetricResult:
    """The verdict alone; what the judges warn of on absurd values is theirs to test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        judged = (
            judge([samples], Rule.of_edition(2)) if samples.paired else judge_unpaired([samples], Rule.of_edition(2))
        )
    return judged[0]
