"""The ranking by aspect: what enters it, that its ranks hold, and that it does not depend on units or names."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from ranked_runs import differing, noisy, simulate, table

from kduel.core.metric_results import AspectRanking, Rank
from kduel.judge.evaluate import judge_run
from kduel.judge.ranking import rankings
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import Rule

RULE = Rule.fixed_blocks(12, edition=2)


def ranks(found: AspectRanking) -> dict[str, tuple[int | None, int | None]]:
    return {rank.contender: (rank.first, rank.last) for rank in found.ranks}


def test_an_aspect_is_the_geometric_mean_of_its_metrics_in_each_boot() -> None:
    rate, time = noisy(1, [0, 0.1, 0.2]), noisy(2, [0, -0.3, 0.1])
    (found,) = rankings([table("rate", rate), table("time", time, better="lower")], RULE)
    assert found.metrics == ["rate/rate", "time/rate"]
    for place, result in enumerate(found.results, 1):
        logs = (np.log(rate[place] / rate[0]) - np.log(time[place] / time[0])) / 2
        assert result.n == 12
        assert result.values[result.contender][0] == pytest.approx(math.sqrt(rate[place, 0] / time[place, 0]))
        assert result.effect_pct == pytest.approx(100 * math.expm1(logs.mean()), abs=0.5)
    assert ranks(found) == {"B": (1, 1), "C": (2, 2), "A": (3, 3)}


def test_a_boot_without_one_of_the_values_gives_none() -> None:
    one, other = table("one", noisy(1, [0, 0.1])), table("other", noisy(2, [0, 0.1]))
    one.values["B"][4] = other.values["A"][7] = None
    (found,) = rankings([one, other], RULE)
    (result,) = found.results
    assert [place for place, value in enumerate(result.values["B"]) if value is None] == [4]
    assert [place for place, value in enumerate(result.values["A"]) if value is None] == [7]
    assert result.n == 10


def test_an_aspect_of_one_metric_has_the_interval_of_that_metric() -> None:
    """One change is one number: the ranking has the verdict's own figures."""
    tables = [table("one", noisy(1, [0, 0.02, 0.05])), table("other", noisy(2, [0, 0, 0]), "scheduling")]
    for found, own in zip(rankings(tables, RULE), (judge(tables[:], RULE)[:2], judge(tables, RULE)[2:]), strict=True):
        for result, verdict in zip(found.results, own, strict=True):
            figures = ("effect_pct", "ci_low_pct", "ci_high_pct", "verdict", "n", "decided_at")
            assert [getattr(result, name) for name in figures] == [getattr(verdict, name) for name in figures]


def test_what_enters() -> None:
    """Primary metrics with a better side, that chance has a part in and the benchmark does not set; ratios only."""
    two = noisy(1, [0, 0.1])
    built = table("built", two, "throughput")
    built.metric = structs.replace(built.metric, exact=True)
    built.values = {name: [column[0]] * 12 for name, column in built.values.items()}
    negative = table("negative", two - 1000)
    tables = [
        table("a", two), table("b", two), table("set", two), negative, built, table("hint", two, primary=False),
        table("no side", two, better="none"), table("alone", two, "boot-time"), table("none", two, ""),
    ]  # fmt: skip
    (found,) = rankings(tables, RULE, {"set/rate"})
    assert found.metrics == ["a/rate", "b/rate"] and found.left_out == ["set/rate", "negative/rate"]


def test_contenders_that_overlap_share_ranks() -> None:
    (found,) = rankings([table("a", noisy(5, [0, 0.001, 0.1, 0.1, -0.1]))], RULE)
    assert ranks(found) == {"C": (1, 2), "D": (1, 2), "A": (3, 4), "B": (3, 4), "E": (5, 5)}


def test_what_differs_by_too_little_shares_a_rank() -> None:
    """0.2 % are shown, and within the 1 % that do not matter; 3 % are beyond them."""
    (found,) = rankings([table("a", noisy(5, [0, 0.002, 0.03], spread=1e-4))], RULE)
    assert found.results[0].below_delta or found.results[0].verdict == "equivalent"
    assert ranks(found) == {"C": (1, 1), "B": (2, 3), "A": (2, 3)}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda one: one.values["B"].__setitem__(slice(0, 9), [None] * 9), "3 complete pairs, and it takes 5"),
        (lambda one: one.values["B"].__setitem__(slice(0, 3), [None] * 3), "3 of 12 trials of B gave no value"),
        (lambda one: one.order.update(A=[0] * 12, B=[1] * 12, C=[2] * 12), "one order"),
        (lambda one: one.values.update(A=[1.0] * 12, B=[2.0] * 12), "do not vary"),
    ],
)
def test_nobody_is_ranked_where_no_verdict_would_be_given(change, words: str) -> None:  # type: ignore[no-untyped-def]
    one = table("a", noisy(1, [0, 0.1, 0.2]))
    change(one)
    (found,) = rankings([one], RULE)
    unranked = {rank.contender: rank.reason for rank in found.ranks if rank.first is None}
    assert words in unranked["B"]
    assert found.ranks[-1].first is None


def test_no_rank_between_two_analyses() -> None:
    one = table("a", noisy(1, [0, 0.1, 0.2], blocks=11))
    (found,) = rankings([one], RULE)
    assert [rank.reason for rank in found.ranks[1:]] == ["no analysis is planned after 11 blocks"] * 2
    assert found.ranks[0].first is None, "the baseline alone is the first of nobody"


@pytest.mark.slow
def test_equal_contenders_seldom_have_different_ranks() -> None:
    """5 % are allowed, over two aspects, two contenders and three looks; of 120 runs more than 12 have a chance of 1 %."""
    assert sum(map(differing, simulate(120, [0, 0, 0], (6, 9, 12)))) <= 12


def test_the_ranks_hold_the_true_order() -> None:
    """B is best, then A, then C: each within its ranks in 95 % of runs at least; 6 of 60 outside have a chance of 8 %. The true
    order is shown where the noise is small against the differences."""
    truth = {"B": 1, "A": 2, "C": 3}
    runs = simulate(60, [0, 0.011, -0.009], (12,))
    outside = [
        any(not rank.first <= truth[rank.contender] <= rank.last for one in run for rank in one.ranks) for run in runs
    ]
    assert sum(outside) <= 6
    shown = [ranks(run[0]) == {"B": (1, 1), "A": (2, 2), "C": (3, 3)} for run in runs]
    assert sum(shown) >= 10


def test_a_kept_run_has_the_geometric_means_of_its_raw_values(unpack: Callable[[str], Path]) -> None:
    """Two real kernels in two blocks: values, and no rank as it takes five."""
    run = judge_run(unpack("qemu"))
    (found,) = run.rankings
    assert found.aspect == "operation-time" and len(found.metrics) == 2
    one, other = (metric for metric in run.metrics if f"{metric.benchmark}/{metric.metric}" in found.metrics)
    (result,) = found.results
    for name, means in result.values.items():
        expected = [(a * b) ** -0.5 for a, b in zip(one.values[name], other.values[name], strict=True)]  # type: ignore[operator]
        assert means == pytest.approx(expected)
    assert [(rank.first, rank.reason) for rank in found.ranks] == [
        (None, "nothing to compare with"),
        (None, "2 complete pairs, and it takes 5"),
    ]


effects = st.lists(st.floats(-0.1, 0.1), min_size=3, max_size=5)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(effects, st.integers(0, 2**16), st.sampled_from([1e-3, 0.01, 0.1]), st.floats(1e-3, 1e3), st.randoms())
def test_ranks_know_neither_units_nor_directions_nor_names(logs, seed, spread, unit, random) -> None:  # type: ignore[no-untyped-def]
    arms, others = noisy(seed, logs, spread), noisy(seed + 1, logs, spread)
    (plain,) = rankings([table("a", arms), table("b", others)], RULE)
    (scaled,) = rankings([table("a", unit / arms, better="lower"), table("b", others)], RULE)
    assert ranks(scaled) == ranks(plain)
    order = [0, *random.sample(range(1, len(logs)), len(logs) - 1)]
    (renamed,) = rankings([table("a", arms[order]), table("b", others[order])], RULE)
    names = {chr(ord("A") + new): chr(ord("A") + old) for new, old in enumerate(order)}
    assert {names[name]: rank for name, rank in ranks(renamed).items()} == ranks(plain)
    ends = {"A": (0.0, 0.0)} | {one.contender: (one.ci_low_pct, one.ci_high_pct) for one in plain.results}
    by_name: dict[str, Rank] = {rank.contender: rank for rank in plain.ranks}
    for (one, (low, high)), (other, (least, most)) in combinations(ends.items(), 2):
        ahead, behind = by_name[one], by_name[other]
        assert None not in (low, high, least, most, ahead.first, behind.first)
        if low <= most and least <= high:  # type: ignore[operator]
            assert max(ahead.first, behind.first) <= min(ahead.last, behind.last)  # type: ignore[operator, type-var]
