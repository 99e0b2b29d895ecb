"""Metrics without chance: what is built has the same size in every build, and one pair decides."""

from __future__ import annotations

import msgspec
import pytest
from verdict_tables import table

from kduel.core.samples import Samples
from kduel.judge.verdict.interim import is_finished
from kduel.judge.verdict.judge import judge, judge_primary
from kduel.judge.verdict.rule import Rule


def size(*arms: list[float | None], primary: bool = True) -> Samples:
    """A metric in bytes, lower is better, without chance."""
    made = table(*arms, better="lower", unit="B", name="text", primary=primary)
    return msgspec.structs.replace(made, metric=msgspec.structs.replace(made.metric, exact=True))


@pytest.mark.parametrize(
    ("other", "verdict", "effect"), [(120.0, "different", 20), (90.0, "different", -10), (100.0, "equal", 0)]
)
def test_one_pair_decides(other: float, verdict: str, effect: float) -> None:
    for primary in (True, False):
        (found,) = judge([size([100.0], [other], primary=primary)], Rule.of_edition(2))
        assert (found.verdict, found.scale, found.effect, found.decided_at) == (verdict, "exact", effect, 1)
        assert found.q_value is None
    assert is_finished([size([100.0], [other])], Rule.of_edition(2))


def test_the_same_values_in_a_time_decide_nothing() -> None:
    (found,) = judge([table([100.0], [120.0], better="lower", unit="s")], Rule.of_edition(2))
    assert found.verdict == "undecided"


def test_builds_that_are_not_reproducible_are_judged_like_times() -> None:
    varying = size([100.0, 101.0, 100.0], [120.0, 120.0, 120.0])
    (found,) = judge([varying], Rule.of_edition(2))
    assert found.verdict == "undecided" and found.scale == "ratio"


def test_a_pair_that_is_missing_decides_nothing() -> None:
    (found,) = judge([size([100.0], [None])], Rule.of_edition(2))
    assert found.verdict == "undecided" and found.n == 0
    assert not is_finished([size([100.0], [None])], Rule.of_edition(2))


def test_sizes_take_nothing_of_the_alpha_of_times() -> None:
    times = table([100.0 + i for i in range(8)], [110.0 + 1.1 * i for i in range(8)], better="lower", unit="s")
    sizes = size([100.0] * 8, [120.0] * 8)
    alone, beside = judge([times], Rule.of_edition(2))[0], judge([times, sizes], Rule.of_edition(2))[0]
    assert (alone.ci_low_pct, alone.ci_high_pct) == (beside.ci_low_pct, beside.ci_high_pct)


def test_a_run_does_not_wait_for_a_contender_that_is_left_out() -> None:
    sizes = size([100.0], [120.0], [None])
    assert not is_finished([sizes], Rule.of_edition(2))
    assert is_finished([sizes], Rule.of_edition(2), without={"C"})
    assert [one.verdict for one in judge_primary([sizes], Rule.of_edition(2))] == ["different", "undecided"]
