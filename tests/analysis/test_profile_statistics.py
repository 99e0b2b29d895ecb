"""From samples to differences by function: sums, intervals and false discoveries, on simulated profiles."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from kduel.analysis.profile import (
    ProfiledArm,
    ProfiledTrial,
    TimedProfile,
    nanoseconds,
    overhead,
    profile,
    unit_of,
)
from kduel.core.experiment import Metric
from kduel.core.samples import StepResult
from kduel.explain.profile import IDLE, OPERATION, USER, USER_FUNCTION, Stack
from kduel.explain.samples import CLOCK, SampledProfile
from kduel.report.content.profiled import as_svg, as_text

TIME = Metric("time", "ns", "lower", "", "mean", aspect="operation-time")
PERIOD = 1_001_001
FUNCTIONS = [f"function_{number}" for number in range(40)]


def trial(
    costs: dict[Stack, float], draw: np.random.Generator, samples: int = 3000, event: str = CLOCK, idle: float = 0.0
) -> ProfiledTrial:
    """A trial whose true costs, in ns per unit on one CPU, are these."""
    shares = np.array(list(costs.values()))
    counts = draw.multinomial(samples, shares / shares.sum())
    time = float(shares.sum() * math.exp(draw.normal(0, 0.01)))
    stacks = {stack: int(count) * PERIOD for stack, count in zip(costs, counts, strict=True) if count}
    known = frozenset(name for stack in costs for name in stack[1:])
    return ProfiledTrial(
        time=time, cpus=1, idle=idle, sampled=SampledProfile(event=event, stacks=stacks, samples=samples, known=known)
    )


def compared(
    one: dict[Stack, float], other: dict[Stack, float], seed: int, blocks: int = 8, **more: object
) -> TimedProfile:
    """A profile of two arms with these true costs."""
    draw = np.random.default_rng(seed)
    arms = [
        ProfiledArm(name=name, release="6", trials=[trial(costs, draw, **more) for _ in range(blocks)])  # type: ignore[arg-type]
        for name, costs in (("A", one), ("B", other))
    ]
    step = StepResult(label="pipe", benchmark="kbench")
    return profile(step, TIME, (arms[0], arms[1]), alpha=0.05, frequency=999)


def base() -> dict[Stack, float]:
    costs: dict[Stack, float] = {
        (OPERATION, "entry", "middle", name): 400.0 / (1 + number) for number, name in enumerate(FUNCTIONS)
    }
    return {**costs, (USER, USER_FUNCTION): 300.0, (IDLE, "do_idle"): 500.0}


def adds_up(found: TimedProfile) -> None:
    for parts in (found.contexts.values(), [row.cost for row in found.rows]):
        for which in ("baseline", "contender", "difference"):
            assert math.fsum(getattr(one, which) for one in parts) == pytest.approx(
                getattr(found.whole, which), abs=1e-6
            )
    assert found.whole.difference == pytest.approx(found.whole.contender - found.whole.baseline)


@pytest.mark.parametrize("event", [CLOCK, "cycles"])
def test_rows_and_contexts_add_up_to_the_whole(event: str) -> None:
    found = compared(base(), {**base(), (OPERATION, "entry", "new"): 90.0}, 3, event=event, idle=0.2)
    adds_up(found)
    assert sum(one for one, _ in found.stacks.values()) == pytest.approx(1000 * found.whole.baseline, rel=1e-4)


def test_a_planted_cost_is_found_and_its_interval_excludes_zero() -> None:
    found = compared(base(), {**base(), (OPERATION, "entry", "middle", "planted"): 60.0}, 1)
    first = found.rows[0]
    assert (first.function, first.only, first.called) == ("planted", "contender", True)
    assert first.cost.low is not None and 0 < first.cost.low < 60 < (first.cost.high or 0)
    assert "planted*" in as_text(found) and "contender only" in as_text(found)
    assert not first.moved_within


def test_a_table_fits_the_terminal_and_its_command_is_whole() -> None:
    name = "planted_by_somebody_who_likes_long_names_of_functions_and_has_time_to_type_them"
    found = compared(base(), {**base(), (OPERATION, "entry", "middle", name): 60.0}, 1)
    found.exact = f"kduel explain kduel-runs/{'x' * 60} kduel-runs/{'y' * 40} -b pipe"
    for width in (80, 100, 120):
        *page, command = as_text(found, 0, width).splitlines()
        assert command.strip() == found.exact
        assert max(map(len, page)) <= width and any("contender only" in line for line in page)
        # Below its figures it is whole; beside them it is cut in the middle.
        assert any(f"{name}*" in line if width == 80 else "…" in line for line in page)


def test_a_name_is_readable_in_a_narrow_terminal() -> None:
    """Beside five columns of figures there are fewer than 20 left of 80."""
    name = "sched_balance_update_blocked_averages"
    found = compared(base(), {**base(), (OPERATION, "entry", "middle", name): 60.0}, 1)
    for width in (80, 100):
        text = as_text(found, 0, width)
        assert f"{name}*" in text and "contender only" in text and "…" not in text


@pytest.mark.slow
def test_false_discoveries_are_rare_without_a_difference() -> None:
    called = sum(any(row.called for row in compared(base(), base(), seed).rows) for seed in range(120))
    # 5 % of 120 are 6; more than 13 occur with a probability below 0.3 %.
    assert called <= 13


@pytest.mark.slow
def test_intervals_cover_the_true_difference() -> None:
    inside = 0
    for seed in range(120):
        found = compared(base(), {**base(), (USER, USER_FUNCTION): 400.0}, 1000 + seed)
        user = found.contexts[USER]
        assert user.low is not None and user.high is not None
        inside += user.low <= 100 <= user.high
    # 95 % of 120 are 114; fewer than 107 occur with a probability below 0.3 %.
    assert inside >= 107


def test_time_that_moves_between_a_caller_and_what_it_calls_is_marked() -> None:
    before = {**base(), (OPERATION, "entry", "caller"): 200.0}
    split = {**base(), (OPERATION, "entry", "caller"): 80.0, (OPERATION, "entry", "caller", "piece"): 120.0}
    rows = {row.function: row for row in compared(before, split, 5).rows}
    assert rows["piece"].called and rows["piece"].moved_within == "caller"
    added = {**base(), (OPERATION, "entry", "caller"): 200.0, (OPERATION, "entry", "caller", "piece"): 120.0}
    rows = {row.function: row for row in compared(before, added, 5).rows}
    assert rows["piece"].called and not rows["piece"].moved_within


def test_rare_functions_are_pooled_and_not_tested() -> None:
    rare = {(OPERATION, "entry", f"rare_{number}"): 0.5 for number in range(30)}
    found = compared({**base(), **rare}, {**base(), **rare}, 7)
    assert not [row for row in found.rows if row.function.startswith("rare_")]
    pooled = [row for row in found.rows if row.function.endswith("rarer functions)")]
    assert pooled and all(row.q is None and not row.called for row in pooled)
    adds_up(found)


def test_one_block_has_no_interval() -> None:
    found = compared(base(), base(), 2, blocks=1)
    assert all(row.cost.low is None and not row.called for row in found.rows)
    assert as_text(found) and as_svg(found).startswith("<svg")


def test_trials_with_different_events_are_not_compared() -> None:
    draw = np.random.default_rng(1)
    arms = [
        ProfiledArm(name=name, release="", trials=[trial(base(), draw, event=event)])
        for name, event in (("A", CLOCK), ("B", "cycles"))
    ]
    with pytest.raises(ValueError, match="not all trials are alike"):
        profile(StepResult(label="x", benchmark="x"), TIME, (arms[0], arms[1]), alpha=0.05, frequency=999)


@pytest.mark.parametrize(
    ("metric", "unit", "value", "time"),
    [
        (TIME, "operation", 5.0, 5.0),
        (Metric("t", "us", "lower", "", "mean"), "operation", 5.0, 5000.0),
        (Metric("t", "s", "lower"), "run", 2.0, 2e9),
        (Metric("e", "events/s", "higher"), "event", 1000.0, 1e6),
        (Metric("e", "1/s", "higher"), "operation", 1000.0, 1e6),
        (Metric("e", "MiB/s", "higher"), "MiB", 1000.0, 1e6),
    ],
)
def test_times_and_rates_become_time_per_unit(metric: Metric, unit: str, value: float, time: float) -> None:
    assert unit_of(metric) == unit
    assert nanoseconds(metric, value) == pytest.approx(time)


@pytest.mark.parametrize(
    "metric",
    [
        Metric("latency", "us", "lower", "", "p99"),
        Metric("latency", "us", "lower", "", "mean", aspect="wakeup-latency"),
        Metric("size", "KiB", "lower"),
        Metric("context-switches", "switches/s", "none"),
    ],
)
def test_what_is_no_time_of_work_is_refused(metric: Metric) -> None:
    assert unit_of(metric) is None


def test_the_overhead_is_relative_to_the_unprofiled_trials() -> None:
    def slower(metric: Metric, profiled: Sequence[float], own: Sequence[float]) -> float:
        found = overhead("A", metric, profiled, own)
        assert found is not None
        return found.slower_pct

    assert slower(TIME, [110.0, 110.0], [100.0]) == pytest.approx(10)
    assert slower(Metric("e", "events/s", "higher"), [80.0], [100.0]) == pytest.approx(25)
    assert overhead("A", TIME, [], [100.0]) is None
