"""A verdict in plain words: what can be concluded from it, and what cannot."""

from kduel.core.format import (
    amount,
    change,
    detectable,
    difference,
    effect_in_words,
    effect_numbers,
    estimate_texts,
    share_text,
    spread_text,
)
from kduel.core.metric_results import (
    CONTRADICTED,
    NO_ONE_VERDICT,
    NOT_JUDGED,
    SET_BY_HARNESS,
    MachinesResult,
    MetricResult,
)
from kduel.core.text import plural
from kduel.judge.verdict.comparison import is_of_time
from kduel.judge.verdict.rule import Rule
from kduel.judge.verdict.strata import FEWEST_OF_CLASS

AS_MEASURED = "if effect and spread stay as measured"
HOPELESS = 1000
"""Blocks that nobody will add."""


def verdict_text(result: MetricResult, rule: Rule, blocks: int) -> str:
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
            f"Their effects differ by {spread_text(found.spread, found.spread_low, found.spread_high, unit)}."
        )
    said += [
        f"{one.machine} contradicts {found.rest}: {estimate_texts(one.effect, one.low, one.high, unit)[0]} there, "
        f"{change(one.others, unit)} elsewhere."
        for one in found.effects
        if one.contradicts and one.others is not None
    ]
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
            f" On these alone: {change(found.pooled, unit)} (interval {change(found.low, unit)} to "
            f"{change(found.high, unit)})."
        )
    return said


def verdict_sentences(result: MetricResult, rule: Rule) -> list[str]:
    """Sentences on what was decided, or why nothing was."""
    if result.verdict == "undecided":
        return undecided_sentences(result, rule)
    if result.verdict == "equivalent" and result.scale == "exact":
        return [
            f"Equivalent: no difference of more than {rule.delta_pct:g} % in any of {len(result.conditions)} conditions, "
            f"{effect_in_words(result)}."
        ]
    if result.verdict == "equivalent":
        return [equivalent_text(result, rule)]
    if result.verdict == "equal":
        if result.within_resolution:
            seen = f" in each of {len(result.conditions)} conditions" if result.conditions[1:] else ""
            known = f"{amount(result.resolution)} {result.unit}{seen}"
            values = f"{amount(result.baseline_mean)} and {amount(result.mean)}"
            return [f"Equal within the machine's resolution of {known}: {values}."]
        if result.sd:
            return ["Equal: in each block both contenders gave the same value."]
        said = f"Equal: {amount(result.mean)} {result.unit} with both"
        return [f"{said}; {unseen_text(result)}." if result.unseen_mode_pct is not None else f"{said}."]
    return difference_sentences(result, rule)


def difference_sentences(result: MetricResult, rule: Rule, each: str = "blocks") -> list[str]:
    """For a difference that was called. `each` is what was repeated."""
    way = "higher" if (effect_numbers(result)[0] or 0) > 0 else "lower"
    aim = f", and {result.better} is better" if result.better != "none" else ""
    name = result.verdict.capitalize()
    if result.conditions:
        number = f"{len(result.conditions)} of {plural(len(result.conditions), 'condition')}"
        sentences = [
            f"{result.word.capitalize()} with {result.contender} in {number}: {effect_in_words(result)}.",
            modes_text(result),
        ]
    elif result.word != result.verdict:
        sentences = [f"{result.word.capitalize()} with {result.contender}: {effect_in_words(result)}."]
    elif name.lower() == way:
        sentences = [f"{name} with {result.contender}: {effect_in_words(result)}."]
    else:
        sentences = [f"{name}: with {result.contender} it is {way}, {effect_in_words(result)}{aim}."]
    if result.below_delta:
        sentences.append(f"The difference is real, but within your ±{rule.delta_pct:g} %.")
    if result.scale == "exact" and result.n > 1 and result.sd == result.baseline_sd == 0:
        sentences.append(f"Neither contender varied in {result.n} {each}.")
    return sentences


def equivalent_text(result: MetricResult, rule: Rule, each: str = "boots") -> str:
    """For no difference that matters, with what so few boots cannot exclude."""
    said = f"Equivalent: no difference of more than {rule.delta_pct:g} %, {effect_in_words(result)}"
    return f"{said}; {unseen_text(result, each)}." if result.unseen_mode_pct is not None else f"{said}."


def unseen_text(result: MetricResult, each: str = "boots") -> str:
    """Sentence on what so few boots cannot exclude."""
    return f"a slow mode in up to {share_text(result.unseen_mode_pct or 0)} of {each} cannot be excluded"


def no_verdict(result: MetricResult) -> str:
    """Sentence on why missing values forbid a verdict."""
    why = (
        "These are the largest, so that a contender with such values cannot be called lower or equivalent"
        if result.beyond
        else "Missing trials may be the slow ones, so the contender that misses more cannot be called better or equivalent"
    )
    return f"No verdict: {result.withheld}. {why}."


def undecided_sentences(result: MetricResult, rule: Rule) -> list[str]:
    """Sentences on why there is no decision, what can be excluded, and what would help."""
    if result.depends and result.conditions:
        return dependence_sentences(result)
    if result.few:
        return [f"Undecided, {effect_in_words(result)}: {result.withheld}."]
    if result.scale == "exact" and result.ci_low != result.ci_high:
        return [f"Undecided: the difference has no constant sign, {effect_in_words(result)}."]
    if result.n == 1:
        return ["Cannot decide: one complete pair cannot distinguish a difference from chance."]
    sentences = []
    if result.n < rule.fewest:
        sentences.append(
            f"Too early: {plural(result.n, 'value')} of each contender can be compared, and a verdict takes {rule.fewest} at least."
        )
    elif result.confounded:
        sentences.append(
            f"Cannot decide: in all {result.n} complete pairs the contenders had the same order, so that an effect of the order "
            f"cannot be distinguished from an effect of the kernel; {effect_in_words(result)}."
        )
    elif result.scale == "exact":
        sentences.append(
            f"Undecided: neither contender varied in {plural(result.n, 'block')}, {effect_in_words(result)}."
        )
        if is_of_time(result.unit) and not result.effect:
            sentences.append("The resolution of the clock may hide a difference.")
    else:
        sentences.append(f"Undecided: {effect_in_words(result)}.")
    if result.was:
        sentences.append(
            f"It {result.was}; the interval over all blocks contradicts that, and a new run must tell."
            if result.contradicted
            else f"It {result.was}; the interval over all blocks no longer shows that."
        )
    if result.withheld:
        sentences.append(no_verdict(result))
    if result.mde_pct is not None and result.n >= rule.fewest:
        sentences.append(f"These {result.n} pairs had a chance of 80 % to show a difference of {detectable(result)}.")
    if result.blocks_more is not None and result.n >= rule.fewest:
        sentences.append(needed_text(result.blocks_more, rule))
    return sentences


NAMED_CONDITIONS = 2
"""Of the conditions that flip a sign, how many are described."""


def dependence_sentences(result: MetricResult) -> list[str]:
    """For a difference whose sign conditions decide that must not matter: which, and by how much."""
    agreeing = result.agreeing
    against = [one for one in result.conditions if one not in agreeing]
    if not result.effect:
        # The usual difference is none: what is told is where there is one.
        against = [one for one in against if abs(one.difference) > result.resolution]
    against.sort(key=lambda one: -abs(one.difference))
    way, other = ("more", "fewer") if (result.effect or 0) > 0 else ("fewer", "more")
    described = "; ".join(f"{one.name} ({difference(one)[2]})" for one in against[:NAMED_CONDITIONS])
    rest = len(against) - NAMED_CONDITIONS
    more, many = f"; and {rest} more." if rest > 0 else ".", len(result.conditions)
    if not result.effect:
        return [f"Depends on conditions: equal in {many - len(against)} of {many}; otherwise with: {described}{more}"]
    return [
        f"Depends on conditions: {way} in {len(agreeing)} of {many}, {effect_in_words(result)};",
        f"{other} or equal with: {described}{more}",
        modes_text(result),
    ]


def modes_text(result: MetricResult) -> str:
    """The modes of single calls, where an arm has several."""
    if max((len(found) for found in result.modes.values()), default=0) < 2:
        return ""

    def modes_of(name: str) -> str:
        return ", ".join(
            f"{amount(mode.value)} ({share_text(100 * mode.share)})" for mode in result.modes.get(name, [])[:4]
        )

    return f"Modes of single calls: {modes_of(result.baseline)} against {modes_of(result.contender)}."


def needed_text(blocks: int, rule: Rule, unit: str = "block", of: str = "") -> str:
    """Sentence on how much more it takes, or that it is hopeless; `of` stands behind the number."""
    if blocks > HOPELESS:
        return (
            f"It varies too much for {rule.delta_pct:g} %: to decide it would take {more_blocks(blocks, unit)}{of}."
        )
    return f"{more_blocks(blocks, unit).capitalize()}{of} would decide it {AS_MEASURED}."


def more_blocks(blocks: int, unit: str = "block") -> str:
    """`about 655 more blocks`, the same number wherever it is stated; or that it is more than anybody will measure."""
    if blocks > HOPELESS:
        return f"more {unit}s than anybody measures (over {HOPELESS:,})"
    return f"about {plural(blocks, f'more {unit}')}"


def withhold(result: MetricResult) -> None:
    """Take back the verdict on what the benchmark's settings determine, and a common verdict of machines that contradict each
    other, in this one place: whatever reads a result then finds no claim. How many blocks decided it stays: the run has ended."""
    torn = result.decided and result.machines is not None and bool(result.machines.contradicting)
    if not (result.by_harness or torn):
        return
    result.verdict, result.withheld = "undecided", SET_BY_HARNESS if result.by_harness else CONTRADICTED
    result.below_delta = result.contradicted = False
    result.blocks_more = result.unseen_mode_pct = result.former_verdict = result.former_at = None
    if result.by_harness:
        seen = f": {effect_in_words(result)}" if result.n else ""
        result.told = f"{NOT_JUDGED.capitalize()}, as it is {SET_BY_HARNESS}{seen}."
    else:
        means = effect_in_words(result)
        result.told = f"{NO_ONE_VERDICT.capitalize()}: {means} on the mean. {about_machines(result)}"
