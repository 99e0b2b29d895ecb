"""Sentences about factors claim no more than the effects hold."""

from __future__ import annotations

from typing import Any

import pytest

from kduel.core.metric_results import EffectResult, MetricResult
from kduel.judge.factors.headline import sentence_of
from kduel.judge.verdict.rule import Rule


def result(verdict: Any, pct: float = 0.0, width: float = 0.1) -> MetricResult:
    return MetricResult(
        benchmark="b", metric="m", unit="s", better="lower", role="primary", baseline="x", contender="y", n=12,
        baseline_mean=1.0, baseline_sd=0.1, mean=1.0, sd=0.1, effect_pct=pct, ci_low_pct=pct - width, ci_high_pct=pct + width,
        verdict=verdict,
    )  # fmt: skip


def effect(
    names: str, judged: MetricResult, *, levels: str = "", aliases: tuple[str, ...] = (), at: Any = None
) -> EffectResult:
    factors = names.split()
    return EffectResult(
        name=" × ".join(factors), kind="simple" if at else "main" if len(factors) == 1 else "interaction",
        factors=factors, references=["0"] * len(factors), levels=(levels or "1 " * len(factors)).split(), at=at or {},
        aliases=list(aliases), result=judged,
    )  # fmt: skip


def said(*group: EffectResult) -> str:
    return sentence_of(group[0], group, Rule())


SAME = result("equivalent")


def test_an_aliased_interaction_has_no_sentence_by_level() -> None:
    text = said(
        effect("a", SAME),
        effect("a b", result("higher", 8), aliases=("c × d",)),
        effect("a", result("faster", -4), at={"b": "0"}),
        effect("a", result("slower", 4), at={"b": "1"}),
    )
    assert "a × b or c × d" in text and "at b=0" not in text and "depends on b" not in text


def test_a_simple_effect_names_its_aliases() -> None:
    text = said(
        effect("a", SAME),
        effect("a b", result("higher", 8)),
        effect("a", result("faster", -4), at={"b": "0"}, aliases=("c at d=1",)),
        effect("a", result("slower", 4), at={"b": "1"}),
    )
    assert "b=0 (or c at d=1)" in text


@pytest.mark.parametrize(
    ("three", "says"),
    [
        (None, "with each of b and c by itself"),
        (effect("a b c", result("equivalent")), "whatever b and c are"),
        (effect("a b c", result("undecided", 0.5, 3)), "with each of b and c by itself"),
        (effect("a b c", result("lower", -14.8, 3)), "factors act together: a × b × c (-14.8 %)"),
    ],
)
def test_only_all_interactions_say_whatever_the_others_are(three: EffectResult | None, says: str) -> None:
    text = said(effect("a", SAME), effect("a b", SAME), effect("a c", SAME), *([three] if three else []))
    assert says in text.replace("−", "-")
    assert ("whatever" in text) == ("whatever" in says)


def test_one_other_factor_needs_its_interaction_alone() -> None:
    assert said(effect("a", SAME), effect("a b", SAME)).endswith("the same within ±1 % whatever b is")


def test_levels_that_differ_among_themselves_are_not_the_same() -> None:
    text = said(
        effect("a", SAME),
        effect("a b", result("equivalent", 0.75), levels="1 1"),
        effect("a b", result("equivalent", -0.75), levels="1 2"),
    )
    assert "the same" not in text and "within ±1 % of that at b=0" in text
    close = said(
        effect("a", SAME),
        effect("a b", result("equivalent", 0.2), levels="1 1"),
        effect("a b", result("equivalent", -0.2), levels="1 2"),
    )
    assert "the same within ±1 %" in close


def test_equivalent_at_each_level_is_no_dependence() -> None:
    text = said(
        effect("a", SAME),
        effect("a b", result("higher", 1.2)),
        effect("a", SAME, at={"b": "0"}),
        effect("a", SAME, at={"b": "1"}),
    )
    assert "depends" not in text and "equivalent at each level of b" in text


def small(pct: float) -> MetricResult:
    """A difference that was shown and lies within delta: as few blocks can show it, that show no equivalence."""
    found = result("slower", pct)
    found.below_delta = True
    return found


def test_what_is_too_small_to_matter_is_not_called_equivalent() -> None:
    levels = effect("a", small(0.4), at={"b": "0"}), effect("a", result("slower", 5), at={"b": "1"})
    crossed = effect("a b", result("higher", 4.6))
    text = said(effect("a", result("slower", 2.7)), crossed, *levels)
    assert (
        "equivalent" not in text
        and "at b=0 slower (+0.40 %, too small to matter), at b=1 5.000 % slower (+4.900 to +5.100 %)" in text
    )
    text = said(effect("a", small(0.4)), crossed)
    assert "a=1 differs from a=0 by too little to matter on average" in text
    held_back = effect("a", result("undecided", 0.4), at={"b": "0"}), levels[1]
    assert "at b=0 undecided" in said(effect("a", result("slower", 2.7)), crossed, *held_back)


def test_what_a_fraction_cannot_tell_is_said_once() -> None:
    text = said(
        effect("a", SAME),
        effect("a b", result("higher", 8), aliases=("c × d",)),
        effect("a c", result("higher", 4), aliases=("b × d",)),
    )
    assert text.count("on average") == text.count("cannot tell") == 1
    assert text.endswith("a × b or c × d (+8.000 %); a × c or b × d (+4.000 %)")
