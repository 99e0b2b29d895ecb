"""What must hold of any table whatever."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from verdict_tables import table

from kduel.core.metric_results import MetricResult
from kduel.core.samples import Samples, within_reason
from kduel.judge.verdict.interim import primary_results
from kduel.judge.verdict.judge import judge
from kduel.judge.verdict.rule import Rule

pytestmark = pytest.mark.filterwarnings("error")

MIRRORED = {"faster": "slower", "slower": "faster", "higher": "lower", "lower": "higher"}

positive = st.floats(0.5, 2000).map(lambda value: round(value, 3))
anything = st.one_of(st.floats(-1e6, 1e6).filter(within_reason), st.integers(-5, 5).map(float), positive)
rules = st.sampled_from(
    [
        Rule.of_edition(2),
        Rule.of_edition(2, look_every=1),
        Rule.fixed_blocks(8, edition=2),
        Rule.fixed_blocks(12, edition=2),
        Rule.of_edition(2, max_blocks=30, delta_pct=5),
    ]
)


@st.composite
def tables(draw: st.DrawFn, values: st.SearchStrategy[float] = positive, gaps: bool = True) -> Samples:
    """Arms with a common level, an effect and noise of any size; or any values at all; some missing."""
    blocks = draw(st.integers(0, 22))
    if draw(st.booleans()):
        effect, spread = draw(st.floats(-0.3, 0.3)), draw(st.sampled_from([0.0, 1e-4, 0.003, 0.03, 0.3]))
        generator = np.random.default_rng(draw(st.integers(0, 2**16)))
        arms = [
            [1000 * (1 + place * effect) * math.exp(generator.normal(0, spread)) for _ in range(blocks)]
            for place in (0, 1)
        ]
    else:
        arms = [draw(st.lists(values, min_size=blocks, max_size=blocks)) for _ in (0, 1)]
    if gaps:
        lost = draw(st.sets(st.tuples(st.integers(0, 1), st.integers(0, 21)), max_size=5))
        arms = [[None if (a, b) in lost else v for b, v in enumerate(arm)] for a, arm in enumerate(arms)]
    return table(*arms, better=draw(st.sampled_from(["higher", "lower", "none"])), primary=draw(st.booleans()))


def one(samples: Samples, rule: Rule) -> MetricResult:
    return judge([samples], rule)[0]


def logs(*per_cents: float | None) -> list[float | None]:
    return [None if value is None else math.log1p(value / 100) if value > -100 else -math.inf for value in per_cents]


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(tables(anything), rules)
def test_a_result_is_always_told_and_never_a_number_from_nothing(samples: Samples, rule: Rule) -> None:
    result = one(samples, rule)
    pairs = sum(
        a is not None and b is not None for a, b in zip(samples.values["A"], samples.values["B"], strict=True)
    )
    assert result.n == min(pairs, result.n) and (result.n == pairs or len(samples.blocks) > rule.max_blocks)
    assert result.told
    document = msgspec.json.decode(msgspec.json.encode(result))
    assert not {math.inf, -math.inf} & {v for v in document.values() if isinstance(v, float)}
    if result.n < 2:
        assert result.verdict == "undecided"
        assert all(
            document[name] is None for name in ("effect_pct", "ci_low_pct", "ci_high_pct", "ci_low", "ci_high")
        )
    if result.ci_low_pct is not None and result.ci_high_pct is not None and result.effect_pct is not None:
        assert result.ci_low_pct <= result.effect_pct + 1e-9 and result.effect_pct <= result.ci_high_pct + 1e-9
    if result.verdict == "undecided":
        assert result.decided_at is None and not result.below_delta
    else:
        assert result.decided_at is not None and result.n >= rule.fewest
        assert result.blocks_more is None
    for name, p in result.beside.items():
        if name.startswith("p_") and p is not None:
            assert 0 <= p <= 1


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(tables(anything), rules)
def test_swapping_the_arms_mirrors_everything(samples: Samples, rule: Rule) -> None:
    turned = msgspec.structs.replace(samples, values={"A": samples.values["B"], "B": samples.values["A"]})
    there, back = one(samples, rule), one(turned, rule)
    assert back.verdict == MIRRORED.get(there.verdict, there.verdict)
    assert (back.decided_at, back.scale, back.blocks_more) == (there.decided_at, there.scale, there.blocks_more)
    if there.scale == "ratio":
        expected = [None if v is None else -v for v in logs(there.effect_pct, there.ci_high_pct, there.ci_low_pct)]
        found = logs(back.effect_pct, back.ci_low_pct, back.ci_high_pct)
        if all(v is not None and abs(v) < 20 for v in expected):
            assert found == pytest.approx(expected, abs=1e-9)
    elif there.effect is not None:
        assert (back.effect, back.ci_low) == pytest.approx((-there.effect, -(there.ci_high or 0)), abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(tables(), rules, st.sampled_from([1e-9, 0.001, 1024.0, 1e6]))
def test_units_change_nothing_on_the_ratio_scale(samples: Samples, rule: Rule, factor: float) -> None:
    scaled = msgspec.structs.replace(
        samples, values={k: [None if v is None else v * factor for v in arm] for k, arm in samples.values.items()}
    )
    one_way, other = one(samples, rule), one(scaled, rule)
    if one_way.scale != "ratio" or other.scale != "ratio":
        return
    assert (one_way.verdict, one_way.decided_at) == (other.verdict, other.decided_at)
    for name in ("effect_pct", "ci_low_pct", "ci_high_pct", "mde_pct"):
        here, there = getattr(one_way, name), getattr(other, name)
        assert (here is None) == (there is None)
        if here is not None and abs(here) < 1e6:
            assert here == pytest.approx(there, rel=1e-6, abs=1e-7)


@settings(max_examples=60, deadline=None)
@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_blocks_within_a_single_look_does_not_matter(samples: Samples, random: object) -> None:
    places = list(range(len(samples.blocks)))
    random.shuffle(places)  # type: ignore[attr-defined]
    mixed = msgspec.structs.replace(
        samples, values={k: [arm[p] for p in places] for k, arm in samples.values.items()}
    )
    rule = Rule.fixed_blocks(max(1, len(samples.blocks)), edition=2)
    one_way, other = one(samples, rule), one(mixed, rule)
    assert one_way.verdict == other.verdict
    for name in ("effect_pct", "ci_low_pct", "ci_high_pct", "baseline_sd"):
        if getattr(one_way, name) is not None and abs(getattr(one_way, name)) < 1e6:
            assert getattr(one_way, name) == pytest.approx(getattr(other, name), rel=1e-6, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(tables(gaps=False), st.integers(0, 21), st.booleans())
def test_a_pair_with_a_missing_value_counts_as_no_pair(samples: Samples, place: int, arm: bool) -> None:
    if place >= len(samples.blocks):
        return
    half = {k: list(values) for k, values in samples.values.items()}
    half["AB"[arm]][place] = None
    none = {k: list(values) for k, values in half.items()}
    none["BA"[arm]][place] = None
    rule = Rule.of_edition(2)
    with_half = one(msgspec.structs.replace(samples, values=half), rule)
    with_none = one(msgspec.structs.replace(samples, values=none), rule)
    for name in ("n", "verdict", "effect_pct", "ci_low_pct", "ci_high_pct", "baseline_mean", "decided_at", "told"):
        assert getattr(with_half, name) == getattr(with_none, name)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(tables(anything), rules)
def test_judging_is_pure_and_leaves_its_input_alone(samples: Samples, rule: Rule) -> None:
    before = msgspec.json.encode(samples)
    first, again = judge([samples], rule), judge([samples], rule)
    assert msgspec.json.encode(first) == msgspec.json.encode(again)
    assert msgspec.json.encode(samples) == before


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(tables(), min_size=1, max_size=4), rules)
def test_standing_follows_judge(several: list[Samples], rule: Rule) -> None:
    named = [msgspec.structs.replace(samples, benchmark=f"b{place}") for place, samples in enumerate(several)]
    length = min(len(samples.blocks) for samples in named)
    cut = [
        msgspec.structs.replace(t, blocks=t.blocks[:length], values={k: v[:length] for k, v in t.values.items()})
        for t in named
    ]
    primary = [result for result in judge(cut, rule) if result.role == "primary"]
    assert [(s.verdict, s.told) for s in primary_results(cut, rule)] == [(r.verdict, r.told) for r in primary]


@settings(max_examples=40, deadline=None)
@given(positive, positive, st.integers(5, 15))
def test_arms_that_do_not_vary(before: float, after: float, blocks: int) -> None:
    result = one(table([before] * blocks, [after] * blocks, unit="modules"), Rule.fixed_blocks(blocks, edition=2))
    assert result.scale == "exact"
    if before == after:
        assert result.verdict == ("equal" if blocks >= 10 else "undecided")
    else:
        assert result.verdict == ("faster" if after > before else "slower")
        assert result.effect == result.ci_low == result.ci_high == pytest.approx(after - before)
