"""Description of how the verdicts were reached: for the methods section of whoever writes the run up."""

from kduel.core.format import plain_number
from kduel.core.metric_results import MetricResult
from kduel.core.results import Results, StudyResult
from kduel.core.slices import ALL, KEPT, Reducer, chosen_reducer
from kduel.core.text import plural, visible
from kduel.judge.verdict.rule import Rule, gating_rule
from kduel.judge.verdict.spending import RHO
from kduel.judge.verdict.strata import FEWEST_OF_CLASS
from kduel.report.content.caveats import trial_word
from kduel.report.content.evidence import evidence

REDUCED: dict[Reducer, str] = {"mean": "mean", "median": "median", "better-half": "mean of the better half"}


def methods(results: Results) -> list[str]:
    """Paragraphs, each a thought; only what is true of this run."""
    if said := evidence(results).method(results):
        return [said]
    paragraphs = [
        design(results) if evidence(results).paired else import_sentence(results),
        rule(results),
        "Means come with the sample standard deviation (n - 1). Permutation and Wilcoxon tests, the Hodges-Lehmann shift, Cliff's "
        "delta and a test for equal variances (Brown-Forsythe) are shown for comparison and decide nothing.",
        "A trial that panicked, hung or failed a validity check is void: it is kept, shown and counted, and gives no value. The "
        "rules that void a trial look neither at the contender's name nor at what was measured.",
    ]
    return [paragraph for paragraph in paragraphs if paragraph]


def import_sentence(results: Results) -> str:
    """For results measured elsewhere."""
    names = [one.name for one in results.study.source]
    source = f" ({visible(', '.join(names), 200)})" if names else ""
    return (
        f"The values were measured elsewhere and imported{source}. Nothing is known of the order of the trials, so they count "
        "as neither interleaved nor randomised, and trials of the same number are not taken as pairs."
    )


def design(results: Results) -> str:
    """Sentence on trials and blocks."""
    study = results.study
    seed = f" (seed {study.seed})" if study.seed is not None else ""
    unit = "load of the scheduler" if study.unit == "load" else trial_word(results)
    return (
        f"A trial is one fresh {unit} of one contender, running all benchmarks; it gives one number a metric, however many "
        f"samples were taken inside. A block holds one trial of every contender in random order{seed}"
        f"{', which every second block reverses' if study.edition == 1 else ''}, so that whatever drifts "
        f"touches all of them alike.{turns(study)} This run has {plural(len(results.blocks), 'block')}."
        f"{slices(study.slices, study.reduce)}"
    )


def turns(study: StudyResult) -> str:
    """Sentences on how the contenders of a block shared the host's time; empty where one came after the other."""
    if not isinstance(taken := study.turns, int):
        return ""
    if study.unit == "load":
        return (
            " The contenders of a block shared a boot and took turns of whole slices, in balanced rounds: each set what is its own "
            "for a slice and took it back. So changes of the machine's speed hit all of them alike and cancel in the ratio."
        )
    length = f"turns of {taken} ms, and steps that cannot be held ran" if taken else "turns: each step or slice ran"
    return (
        " The contenders of a block were all alive at once and one of them ran at any moment, the others held with their "
        f"clocks: they took {length} whole, one contender after the other. The order of turns was drawn in balanced "
        "rounds, in which each contender comes first equally often. So disturbances of the host hit all of them "
        "alike and cancel in the ratio; caches pass from one to the next."
    )


def slices(count: int, reducer: Reducer) -> str:
    """Sentence on how slices were taken and reduced; empty for steps in one piece."""
    if count == 1:
        return ""
    return (
        f" Steps that stop by the clock were measured in up to {count} slices, spread over the trial in an order drawn from the "
        f"seed; a trial's value is the {REDUCED[reducer]} of its slices."
    )


def measured_how(results: Results) -> list[str]:
    """Sentences on turns and on the value of metrics in slices, for reports without a description of the methods."""
    said = ["The contenders of a block ran in turns (docs/turns.md)."] if results.study.in_turns else []
    if not any(metric.slices for metric in results.metrics):
        return said
    return [
        *said,
        f"A trial's value of a metric in slices is the {REDUCED[results.study.reduce]} of them (docs/slices.md).",
    ]


def value_words(metric: MetricResult, reducer: Reducer) -> str:
    """Clause on how a trial's value comes from what was measured; empty where it is measured as such or described."""
    inner = "" if metric.statistic == "value" else f"the {metric.statistic} within a "
    if not metric.slices or metric.statistic in KEPT:
        return f"{inner}trial" if inner else ""
    if metric.metric.endswith(ALL):
        return f"{inner}slice" if inner else ""
    return (
        f"{f'{inner}slice, and of these values ' if inner else ''}the {REDUCED[chosen_reducer(metric.better, reducer)]} of a "
        "trial's slices"
    )


def rule(results: Results) -> str:
    """Sentences on how values become a verdict: all numbers are those of the rule that judged."""
    paired = evidence(results).paired
    primary = sum(m.role == "primary" and m.scale != "exact" for m in results.gating)
    judged = gating_rule(results)
    return " ".join(
        sentence
        for sentence in (
            effect(paired),
            f"The error of {plain_number(round(100 * judged.alpha, 3))} % is divided evenly over the "
            f"{plural(primary, 'primary comparison')} (Bonferroni)."
            if primary > 1
            else f"The error is {plain_number(round(100 * judged.alpha, 3))} %.",
            looks(judged) if paired else "",
            adjustment(judged) if paired else "",
            machines(results),
            f"A metric is equivalent when its whole interval lies within ±{plain_number(judged.delta_pct)} % (from "
            f"{judged.equivalent_from} {'complete blocks' if paired else 'trials of each contender'} on), faster or slower (higher or "
            f"lower where neither side is better) when the interval excludes 0 (from {judged.fewest} on; too small to matter where the "
            f"interval lies within ±{plain_number(judged.delta_pct)} %), and undecided otherwise: undecided never means equal.",
            "A verdict that an interim analysis reached is given only if the last interval still shows it."
            if paired and len(judged.looks()) > 1
            else "",
            "Exploratory metrics are held to a false discovery rate (Benjamini-Hochberg) and count as hints.",
        )
        if sentence
    )


def effect(paired: bool) -> str:
    """Sentence on what is estimated."""
    what = (
        "the mean over the blocks of the logarithm of contender over baseline"
        if paired
        else "the difference of the mean logarithms"
    )
    return (
        f"The effect is {what}, as a change in per cent; values that can be zero or negative are compared by their "
        "difference instead."
    )


def looks(judged: Rule) -> str:
    """Sentence on when the values are analysed, and what pays for it."""
    when = judged.looks()
    if len(when) == 1:
        return f"The values are analysed once, after {plural(when[0], 'block')}."
    every = "every block" if judged.look_every == 1 else f"every {plural(judged.look_every, 'block')}"
    return (
        f"The values are analysed after {every} from the {ordinal(when[0])} on, up to {when[-1]}, with repeated t intervals: the "
        f"error spent by the fraction t of the blocks is its t^{RHO:g} part (Kim and DeMets), so that interim analyses cost nothing."
    )


def adjustment(judged: Rule) -> str:
    """Covariates of the interval."""
    if judged.adjusts_from is None or judged.max_blocks < judged.adjusts_from:
        return ""
    names = [f"{visible(name, 60)} measured on the host" for name in judged.covariates]
    names += ["the contender of the trial before"] * judged.carry_over
    return (
        f"From {judged.adjusts_from} complete blocks on, the place of a trial within its block{''.join(f' and {name}' for name in names)} "
        "enters the interval as a covariate, at the price of a degree of freedom each."
    )


def machines(results: Results) -> str:
    """Sentences on how several machines enter the verdict; empty where there is one."""
    if not any(metric.machines for metric in results.metrics):
        return ""
    merged = "The blocks of the merged runs follow one another. " if results.study.parts else ""
    said = (
        f"{merged}The blocks of each machine are a stratum: the effect is the mean over all blocks, and its error comes from "
        "what varies within machines (pooled variance, degrees of freedom after Satterthwaite). How much the machines' true "
        "effects differ is a Q-profile interval; a machine is named where its effect differs from the others' at the "
        "verdict's level, shared among the machines."
    )
    if results.study.machines == "class":
        said += (
            " The study takes the machines as a sample of a class: the verdict rests on Student's t over the machines' "
            f"effects, each counted once, from {FEWEST_OF_CLASS} machines on."
        )
    return said


def ordinal(number: int) -> str:
    return {4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth"}.get(number, f"{number}th")
