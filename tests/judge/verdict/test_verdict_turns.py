"""The rule of a run in turns: neither place nor other work enters, and nothing is said of what the contenders share."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from taken_turns import with_slices
from verdict_tables import noisy

from kduel.core.host import OTHER_WORK
from kduel.core.results import StudyResult
from kduel.core.samples import Samples
from kduel.core.turns import Turns
from kduel.judge.verdict.components import components
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.looks import orders_vary
from kduel.judge.verdict.rule import planned_rule


def placed(blocks: int = 14) -> Samples:
    """A run whose second place is 2 % slower, with other work beside its first contender."""
    samples = noisy(5, 0.03, 0.002, blocks)
    first = np.random.default_rng(6).random(blocks) < 0.5
    for arm, own in (("A", first), ("B", ~first)):
        values = [float(value or 0) for value in samples.values[arm]]
        samples.values[arm] = [value * (1 if one else 0.98) for value, one in zip(values, own, strict=True)]
        samples.order[arm] = [2 * block + (not one) for block, one in enumerate(own)]
    work: list[float | None] = [0.1 * (block % 3) for block in range(blocks)]
    samples.covariates[OTHER_WORK] = {"A": work, "B": work[::-1]}
    return samples


def half_width(turns: Turns | None) -> float:
    (found,) = judge([placed()], planned_rule(StudyResult(turns=turns, covariates=[OTHER_WORK])))
    assert found.ci_high_pct is not None and found.ci_low_pct is not None
    return found.ci_high_pct - found.ci_low_pct


def test_neither_place_nor_other_work_enters_the_interval_in_turns() -> None:
    """One boot after the other the place explains most of this spread."""
    assert half_width("off") == half_width(None) < 0.7 * half_width(50)
    assert half_width(50) == half_width(0)


def test_the_numbers_of_blocks_are_those_of_any_run() -> None:
    turns, whole = (planned_rule(StudyResult(turns=turns)) for turns in (50, None))
    for count in (1, 7, 60, 61):
        assert turns.for_comparisons(count).fewest == whole.for_comparisons(count).fewest
    assert turns.equivalent_from == whole.equivalent_from
    assert turns.looks() == whole.looks()


def test_one_order_confounds_nothing_in_turns() -> None:
    """Who is started first does not run first."""
    order = np.ones(8)
    assert all(orders_vary(order, [4, 8], planned_rule(StudyResult(turns=50))))
    assert not any(orders_vary(order, [4, 8], planned_rule(StudyResult())))


@pytest.mark.parametrize("aspect", ["power", "energy", "efficiency", "clock", "temperature"])
def test_what_contenders_share_gets_no_verdict_in_turns(aspect: str) -> None:
    samples = noisy(3, 0.05, 0.005, 12)
    samples.metric = msgspec.structs.replace(samples.metric, aspect=aspect)
    (alone,) = judge([samples], planned_rule(StudyResult()))
    (shared,) = judge([samples], planned_rule(StudyResult(turns=50)))
    assert alone.verdict == "faster" and not alone.withheld
    assert shared.verdict == "undecided" and "took turns" in shared.withheld and "took turns" in shared.told
    assert shared.ci_low_pct and shared.ci_low_pct > 0, "the interval is shown"


def test_other_metrics_are_judged_in_turns() -> None:
    (found,) = judge([noisy(3, 0.05, 0.005, 12)], planned_rule(StudyResult(turns=50)))
    assert (found.verdict, found.decided_at) == ("faster", 4)


def test_what_both_contenders_share_in_a_slice_is_no_component_in_turns() -> None:
    """Own noise of 1 % a slice and 2 % a boot, beside 20 % a slice that both share."""
    draw = np.random.default_rng(8)
    samples = with_slices(noisy(3, 0.0, 0.02 * np.sqrt(2), 400), draw, own=0.01, shared=0.2)
    found = components(samples, "B")
    assert found and found.slices_pct == pytest.approx(1.0, rel=0.05)
    assert found.boots_pct == pytest.approx(2.0, rel=0.15) and found.advice == "more-blocks"
    apart = components(msgspec.structs.replace(samples, turns={}), "B")
    assert apart and apart.slices_pct and apart.slices_pct > 15
