"""Sentences about what a difference depends on, one for each metric and each level of the study's first factor."""

from collections.abc import Sequence

from kduel.core.format import MISSING, effect, interval_text, plain_number
from kduel.core.metric_results import EffectResult, MetricResult
from kduel.core.results import Headline, Results
from kduel.core.text import enumerate_names, visible
from kduel.judge.factors.contrasts import level_name
from kduel.judge.verdict.headline import (
    HINT,
    SAME,
    how_it_compares,
    lies_within,
    matters,
    shows_difference,
    undecided_text,
)
from kduel.judge.verdict.rule import Rule, gating_rule

CANNOT_TELL = "this fraction of the design cannot tell which of these it is: "
Group = tuple[str, str]
"""A benchmark, or the family of those that differ in factors alone, and its metric."""


def by_metric(results: Results) -> dict[Group, list[EffectResult]]:
    groups: dict[Group, list[EffectResult]] = {}
    for one in results.effects:
        groups.setdefault((one.result.benchmark, one.result.metric), []).append(one)
    return groups


def factor_headlines(results: Results) -> list[Headline]:
    """A sentence for each metric and each level of the first factor against its reference; none for a study without factors."""
    rule = gating_rule(results)
    found = []
    for (benchmark, metric), group in by_metric(results).items():
        for main in subjects(group):
            hint = f" ({HINT})" if main.result.hint and any(one.result.claimed for one in group) else ""
            text = visible(f"{benchmark}/{metric}: {sentence_of(main, group, rule)}{hint}", 2000)
            found.append(Headline(baseline=main.references[0], contender=main.levels[0], text=text))
    return found


def subjects(group: Sequence[EffectResult]) -> list[EffectResult]:
    """The main effects of the first factor, a level each."""
    return [one for one in group if one.kind == "main" and one.factors == group[0].factors]


def sentence_of(main: EffectResult, group: Sequence[EffectResult], rule: Rule) -> str:
    """Sentence about how one level of the first factor compares, and on what that depends. Only what has a verdict is claimed."""
    subject, level, reference = main.factors[0], main.levels[0], main.references[0]
    others = [
        one for one in group if one.kind == "interaction" and one.factors[0] == subject and one.levels[0] == level
    ]
    pairs = [one for one in others if len(one.factors) == 2]
    factors = list(dict.fromkeys(one.factors[1] for one in pairs))
    pair = level_name(subject, level), level_name(subject, reference)
    depending = [name for name in factors if any(matters(one.result) for one in pairs if one.factors[1] == name)]
    said = with_aliases(compare_in_words(pair, main.result, rule), main)
    if depending:
        parts = [depends_in_words(main, pair, group, pairs, name, rule) for name in depending]
        lead = f"{said} on average; {CANNOT_TELL}"
        if all(part.startswith(lead) for part in parts):
            return lead + "; ".join(part.removeprefix(lead) for part in parts)
        return "; ".join(parts)
    together = [one for one in others if len(one.factors) > 2 and matters(one.result)]
    if together:
        named = ", ".join(f"{or_aliases(one)} ({effect(one.result)})" for one in together)
        return f"{said} on average; factors act together: {named}"
    open_ones = [name for name in factors if not all(is_same(one.result) for one in pairs if one.factors[1] == name)]
    if main.result.verdict == "undecided":
        decided = [one for one in group if one.kind == "simple" and one.levels[0] == level and matters(one.result)]
        where: dict[str, list[str]] = {}
        for one in decided:
            where.setdefault(how_it_compares(one.result), []).append(f"{levels_of(one)} ({effect(one.result)})")
        each = ", ".join(f"{how} at {enumerate_names(levels)}" for how, levels in where.items())
        return f"undecided on average; {pair[0]} {each}" if each else said
    if not factors:
        return said
    if open_ones:
        return f"{said} on average; whether that depends on {enumerate_names(open_ones)} is undecided"
    within = f"within ±{plain_number(rule.delta_pct)} %"
    first = {one.factors[1]: level_name(one.factors[1], one.references[1]) for one in pairs}
    if all(one.result.verdict == "equal" for one in pairs):
        within = ""
    elif all(agree([one for one in pairs if one.factors[1] == name], rule) for name in factors):
        within = f" the same {within}"
    else:
        within = f" {within} of that at {enumerate_names(list(first.values()))}"
    # Two-way interactions alone say nothing of what several factors do together.
    judged = {frozenset(one.factors[1:]) for one in others if is_same(one.result)}
    if len(judged) < 2 ** len(factors) - 1:
        return f"{said},{within} with each of {enumerate_names(factors)} by itself"
    return f"{said},{within} whatever {enumerate_names(factors)} {'is' if len(factors) == 1 else 'are'}"


def depends_in_words(
    main: EffectResult,
    pair: tuple[str, str],
    group: Sequence[EffectResult],
    pairs: Sequence[EffectResult],
    name: str,
    rule: Rule,
) -> str:
    """Sentence on how the comparison depends on a factor, by level where the design tells that it is this factor."""
    shown = [one for one in pairs if one.factors[1] == name and matters(one.result)]
    average = with_aliases(compare_in_words(pair, main.result, rule), main)
    if aliased := [one for one in shown if one.aliases]:
        named = ", ".join(f"{or_aliases(one)} ({effect(one.result)})" for one in aliased)
        return f"{average} on average; {CANNOT_TELL}{named}"
    simple = [one for one in group if one.kind == "simple" and one.levels[0] == main.levels[0] and name in one.at]
    if any(matters(one.result) for one in simple):
        return by_level(pair, simple, name, rule)
    if simple and all(is_same(one.result) for one in simple):
        same = "too small to matter" if any(one.result.below_delta for one in simple) else "equivalent"
        return f"{average}; {same} at each level of {name}, between which it differs by {effect(shown[0].result)}"
    return f"{average} on average; it depends on {name} ({effect(shown[0].result)}), and at which level is undecided"


def or_aliases(one: EffectResult) -> str:
    """The name of an effect, with those that it cannot be told from."""
    return " or ".join([one.name, *one.aliases])


def is_same(result: MetricResult) -> bool:
    """True where it was shown that there is no difference that matters."""
    return result.claimed and (result.verdict in SAME or result.below_delta)


def agree(interactions: Sequence[EffectResult], rule: Rule) -> bool:
    """True where the comparison is shown to differ by less than delta between any two levels of a factor, by the intervals of its
    interactions, each of which has the factor's first level as its reference."""
    ends = [(one.result.ci_low_pct, one.result.ci_high_pct) for one in interactions]
    if len(ends) == 1:
        return is_same(interactions[0].result)
    known = [(low, high) for low, high in ends if low is not None and high is not None and low > -100]
    low, high = min((low for low, _ in known), default=0.0), max((high for _, high in known), default=0.0)
    return len(known) == len(ends) and 100 * ((100 + high) / (100 + low) - 1) <= rule.delta_pct


def by_level(pair: tuple[str, str], simple: Sequence[EffectResult], factor: str, rule: Rule) -> str:
    """The comparison at each level of a factor that it depends on."""
    differing = [one for one in simple if matters(one.result)]
    rest = [one for one in simple if not matters(one.result)]
    if len(differing) == 1 and rest and all(one.result.claimed and one.result.verdict in SAME for one in rest):
        where = enumerate_names([level_name(factor, one.at[factor]) for one in rest])
        return f"{compare_in_words(pair, differing[0].result, rule)} only at {level_name(factor, differing[0].at[factor])}; at {where}, equivalent"
    levels = ", ".join(at_levels(one, rule) for one in simple)
    return f"{pair[0]} against {pair[1]} depends on {factor}: {levels}"


def at_levels(one: EffectResult, rule: Rule) -> str:
    """`at thp=never 4.1 % slower (+3.0 to +5.2 %)`, `at thp=always undecided (−0.2 to +0.9 % so far)`."""
    bounds = interval_text(one.result)
    word = verdict_word(one.result)
    if matters(one.result) and one.result.verdict in ("faster", "slower") and bounds not in (MISSING, "exact"):
        word = f"{effect(one.result).lstrip('+−')} {one.result.word} ({bounds})"
    return f"at {levels_of(one)} {word}{so_far(one.result, rule)}"


def so_far(result: MetricResult, rule: Rule) -> str:
    """` (−0.2 to +0.9 % so far)`, of an interval that is so narrow before enough blocks for that verdict; else empty."""
    early = result.status == "undecided" and rule.fewest <= result.n < rule.equivalent_from
    return f" ({interval_text(result)} so far)" if early and lies_within(result, rule) else ""


def levels_of(one: EffectResult) -> str:
    """`thp=never`: where a simple effect was measured, with the effects that it cannot be told from."""
    return with_aliases(", ".join(level_name(factor, at) for factor, at in one.at.items()), one)


def with_aliases(text: str, one: EffectResult) -> str:
    """`thp=never (or c × d)`: words for an effect, with the effects that it cannot be told from."""
    return f"{text} (or {' or '.join(one.aliases)})" if one.aliases else text


def verdict_word(result: MetricResult) -> str:
    """`slower (+4.1 %)`, `slower (+0.4 %, too small to matter)`, `equivalent`, `undecided`."""
    if shows_difference(result):
        return f"{result.word} ({', '.join(filter(None, (effect(result), result.size)))})"
    return "equivalent" if is_same(result) else "undecided"


def compare_in_words(pair: tuple[str, str], result: MetricResult, rule: Rule) -> str:
    """`debian-6.12 is slower than debian-6.1 (+4.1 %)`."""
    if not result.n:
        return f"nothing was measured on all cells of {pair[0]} and {pair[1]}"
    if result.by_harness:
        return f"nothing follows on {pair[0]} and {pair[1]}: the benchmark's settings determine what was measured"
    if result.verdict == "undecided":
        return f"undecided: {undecided_text([result], pair[1], pair[0], rule.fewest)}{so_far(result, rule)}"
    if result.below_delta:
        return f"{pair[0]} differs from {pair[1]} by too little to matter"
    if not matters(result):
        return f"{pair[0]} and {pair[1]} are equivalent"
    if result.verdict == "different":
        return f"{pair[0]} differs from {pair[1]} ({effect(result)})"
    return f"{pair[0]} {how_it_compares(result)} than {pair[1]} ({effect(result)})"
