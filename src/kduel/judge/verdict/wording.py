"""A verdict in plain words: what can be concluded from it, and what cannot."""

from __future__ import annotations

from kduel.core.format import decimals, exact_change, relative_pct, share_text, signed, with_minus
from kduel.core.results import MachinesResult, MetricResult
from kduel.core.text import plural
from kduel.judge.verdict.comparison import TIME_UNITS
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.strata import FEWEST_OF_CLASS

HOPELESS = 1000
"""Blocks that nobody will add."""


def tell(result: MetricResult, rule: Rule, blocks: int) -> str:
    """One short paragraph. `blocks` is how many blocks of the run count."""
    if result.n == 0:
        return f"Cannot decide: none of {plural(blocks, 'block')} gave a value for both contenders."
    sentences = verdict_sentences(result, rule)
    if result.decided_at is not None and result.decided_at < blocks:
        sentences.append(f"Decided after {plural(result.decided_at, 'block')}; the figures are of all {blocks}.")
    if result.n < blocks:
        sentences.append(f"{plural(blocks - result.n, 'block')} of {blocks} gave no complete pair.")
    later = max(map(len, result.values.values()), default=0) - blocks
    if blocks == rule.max_blocks and later > 0:
        sentences.append(f"The rule ends at {plural(blocks, 'block')}; {later} later ones do not count.")
    if result.scale == "difference":
        sentences.append(
            "Values are zero or negative, so the contenders are compared by difference, not by ratio, "
            "and nothing counts as equivalent."
        )
    sentences.append(about_machines(result))
    if result.role == "exploratory" and result.q_value is not None:
        sentences.append(f"Exploratory: q = {result.q_value:.2g} over all exploratory metrics.")
    return " ".join(sentence for sentence in sentences if sentence)


def about_machines(result: MetricResult) -> str:
    """The joint result of several machines, and which of them contradicts the others; empty for one machine."""
    found = result.machines
    if found is None:
        return ""
    count = len(found.effects)
    unit = "%" if result.scale == "ratio" else result.unit
    said = [about_class(found, unit) if found.scope == "class" else f"This is about these {count} machines alone."]
    if found.spread is not None and found.spread_low is not None and found.spread_high is not None and count > 1:
        said.append(
            f"Their effects differ by {shown(found.spread, unit)} (standard deviation, interval "
            f"{shown(found.spread_low, unit)} to {shown(found.spread_high, unit)})."
        )
    for one in found.effects:
        if one.contradicts and one.others is not None:
            said.append(
                f"{one.machine} contradicts the others: {shown(one.effect, unit, True)} there, "
                f"{shown(one.others, unit, True)} elsewhere."
            )
    return " ".join(said)


def about_class(found: MachinesResult, unit: str) -> str:
    """A verdict about a class of machines, and what holds on those measured."""
    count = len(found.effects)
    if count < FEWEST_OF_CLASS:
        said = f"A verdict about a class of machines takes {FEWEST_OF_CLASS} machines at least, and {count} measured."
    else:
        said = f"This is about machines like these {count}, if they are a random sample of their class."
    if found.low is not None and found.high is not None:
        said += (
            f" On these alone: {shown(found.pooled, unit, True)} (interval {shown(found.low, unit, True)} to "
            f"{shown(found.high, unit, True)})."
        )
    return said


def shown(value: float, unit: str, sign: bool = False) -> str:
    """A number of MachinesResult with its unit."""
    return percent(value, sign) if unit == "%" else f"{number(value, sign)} {unit}".rstrip()


def verdict_sentences(result: MetricResult, rule: Rule) -> list[str]:
    """What was decided, or why nothing was."""
    if result.verdict == "undecided":
        return undecided(result, rule)
    if result.verdict == "equivalent" and result.scale == "exact":
        return [
            f"Equivalent: no difference of {rule.delta_pct:g} % or more in any of {len(result.conditions)} conditions, "
            f"{amount(result)}."
        ]
    if result.verdict == "equivalent":
        return [equivalent(result, rule)]
    if result.verdict == "equal":
        return equal(result)
    return differs(result, rule)


def differs(result: MetricResult, rule: Rule, each: str = "blocks") -> list[str]:
    """For a difference that was called. `each` is what was repeated."""
    effect = result.effect_pct if result.scale == "ratio" else result.effect
    way = "higher" if (effect or 0) > 0 else "lower"
    aim = f", and {result.better} is better" if result.better != "none" else ""
    name = result.verdict.capitalize()
    if result.conditions:
        number = f"{len(result.conditions)} of {plural(len(result.conditions), 'condition')}"
        sentences = [
            f"{result.word.capitalize()} with {result.contender} in {number}: {amount(result)}.",
            modes(result),
        ]
    elif result.word != result.verdict:
        sentences = [f"{result.word.capitalize()} with {result.contender}: {amount(result)}."]
    elif name.lower() == way:
        sentences = [f"{name} with {result.contender}: {amount(result)}."]
    else:
        sentences = [f"{name}: with {result.contender} it is {way}, {amount(result)}{aim}."]
    if result.below_delta:
        sentences.append(f"The difference is real, but below your {rule.delta_pct:g} %.")
    if result.scale == "exact" and result.n > 1 and result.sd == result.baseline_sd == 0:
        sentences.append(f"Neither contender varied in {result.n} {each}.")
    return sentences


def equivalent(result: MetricResult, rule: Rule, each: str = "boots") -> str:
    """For no difference that matters, with what so few boots cannot exclude."""
    said = f"Equivalent: no difference of {rule.delta_pct:g} % or more, {amount(result)}"
    return f"{said}; {unseen(result, each)}." if result.unseen_mode_pct is not None else f"{said}."


def equal(result: MetricResult) -> list[str]:
    """For values that are the same."""
    if result.sd:
        return ["Equal: in each block both contenders gave the same value."]
    said = f"Equal: {number(result.mean)} {result.unit} with both"
    return [f"{said}; {unseen(result)}." if result.unseen_mode_pct is not None else f"{said}."]


def unseen(result: MetricResult, each: str = "boots") -> str:
    """What so few boots cannot exclude."""
    return f"a slow mode in up to {share_text(result.unseen_mode_pct or 0)} of {each} cannot be excluded"


def no_verdict(result: MetricResult) -> str:
    """Why missing values forbid a verdict."""
    return (
        f"No verdict: {result.withheld}. Missing trials may be the slow ones, so the contender that misses more "
        "cannot be called better or equivalent."
    )


def undecided(result: MetricResult, rule: Rule) -> list[str]:
    """Why there is no decision, what can be excluded, and what would help."""
    if result.depends and result.conditions:
        return depends(result)
    if result.scale == "exact" and result.ci_low != result.ci_high:
        return [f"Undecided: the difference has no constant sign, {amount(result)}."]
    if result.n == 1:
        return ["Cannot decide: one complete pair cannot distinguish a difference from chance."]
    sentences = []
    if result.n < rule.fewest:
        sentences.append(
            f"Cannot decide: {result.n} values of each contender can be compared, and a verdict takes {rule.fewest} at least."
        )
    elif result.confounded:
        sentences.append(
            f"Cannot decide: in all {result.n} complete pairs the contenders had the same order, so that an effect of the order "
            f"cannot be distinguished from an effect of the kernel; {amount(result)}."
        )
    elif result.scale == "exact":
        sentences.append(f"Undecided: neither contender varied in {result.n} blocks, {amount(result)}.")
        if result.unit in TIME_UNITS and not result.effect:
            sentences.append("The resolution of the clock may hide a difference.")
    else:
        sentences.append(f"Undecided: {amount(result)}.")
    if result.was:
        sentences.append(f"It {result.was}; the interval over all blocks no longer shows that.")
    if result.withheld:
        sentences.append(no_verdict(result))
    if result.mde_pct is not None and result.n >= rule.fewest:
        sentences.append(
            f"These {result.n} pairs had a chance of 80 % to show a difference of {percent(result.mde_pct)}."
        )
    if result.blocks_more is not None:
        sentences.append(needed(result.blocks_more, rule))
    return sentences


NAMED_CONDITIONS = 2
"""Of the conditions that flip a sign, how many are described."""


def depends(result: MetricResult) -> list[str]:
    """For a difference whose sign conditions decide that must not matter: which, and by how much."""
    agreeing = result.agreeing
    against = [one for one in result.conditions if one not in agreeing]
    against.sort(key=lambda one: -abs(one.difference))
    way, other = ("more", "fewer") if (result.effect or 0) > 0 else ("fewer", "more")
    described = "; ".join(f"{one.name} ({number(one.difference, True)})" for one in against[:NAMED_CONDITIONS])
    rest = len(against) - NAMED_CONDITIONS
    return [
        f"Depends on conditions: {way} in {len(agreeing)} of {len(result.conditions)}, {amount(result)};",
        f"{other} or equal with: {described}" + (f"; and {rest} more." if rest > 0 else "."),
        modes(result),
    ]


def modes(result: MetricResult) -> str:
    """The modes of single calls, where an arm has several."""
    if max((len(found) for found in result.modes.values()), default=0) < 2:
        return ""

    def listed(name: str) -> str:
        return ", ".join(
            f"{number(mode.value)} ({100 * mode.share:.0f} %)" for mode in result.modes.get(name, [])[:4]
        )

    return f"Modes of single calls: {listed(result.baseline)} against {listed(result.contender)}."


def needed(blocks: int, rule: Rule) -> str:
    """How much more it takes, or that it is hopeless."""
    if blocks > HOPELESS:
        return f"It varies too much for {rule.delta_pct:g} %: more than {HOPELESS:,} more blocks would be needed."
    rounded = blocks if blocks < 100 else round(blocks, -1)
    return f"About {plural(rounded, 'more block')} would decide it at the measured spread."


def bounds_of(result: MetricResult) -> tuple[float | None, float | None]:
    """In per cent for a ratio, else in the unit."""
    if result.scale == "ratio":
        return result.ci_low_pct, result.ci_high_pct
    return result.ci_low, result.ci_high


def amount(result: MetricResult) -> str:
    """Effect and interval, in per cent or in the unit."""
    low, high = bounds_of(result)
    if result.scale == "ratio":
        if result.effect_pct is None or low is None or high is None:
            return "with an interval that has no bound"
        return f"{percent(result.effect_pct, True)} (interval {percent(low, True)} to {percent(high, True)})"
    exact = result.scale == "exact" and result.effect is not None
    change = signed(*exact_change(result.effect or 0, result)) if exact else number(result.effect, True)
    said = f"{change} {result.unit}".rstrip()
    if exact and (share := relative_pct(result)) is not None:
        said += f" ({percent(share, True)})"
    if low is not None and high is not None and low != high:
        kind = "range" if result.scale == "exact" else "interval"
        said += f" ({kind} {number(low, True)} to {number(high, True)})"
    return said


def percent(value: float, sign: bool = False) -> str:
    """With the digits that matter."""
    size = abs(value)
    digits = 3 if 0 < size < 0.1 else 2 if size < 10 else 1 if size < 1000 else 0
    if 0 < size < 0.0005:
        digits = decimals(size, 1)
    return with_minus(f"{value:{'+' if sign else ''}.{digits}f} %")


def number(value: float | None, sign: bool = False) -> str:
    """A value in the metric's unit: whole numbers whole, others to six digits, or to a decimal."""
    if value is None:
        return "none"
    plus = "+" if sign else ""
    if value == int(value) and abs(value) < 1e15:
        return with_minus(f"{int(value):{plus},}")
    size = abs(value)
    if 1e3 <= size < 1e15:
        places = 2 if size < 1e4 else 1
        return with_minus(f"{value:{plus},.{places}f}".rstrip("0").rstrip("."))
    return with_minus(f"{value:{plus}.6g}")
