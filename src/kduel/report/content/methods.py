"""How the verdicts were reached, in words: for the methods section of whoever writes the run up."""

from __future__ import annotations

from kduel.core.format import plain_number
from kduel.core.results import Results
from kduel.core.text import visible
from kduel.report.content.digest import count, delta_of, trial_word


def methods(results: Results) -> list[str]:
    """Paragraphs, each a thought; only what is true of this run."""
    if results.machine.get("exact"):
        return [exact(), records(results)]
    said = [imported(results) if results.study.get("imported") else design(results), rule(results), beside(), void()]
    return [paragraph for paragraph in [*said, records(results)] if paragraph]


def exact() -> str:
    """For a deterministic machine."""
    return (
        "The machine is deterministic: time in it advances with executed instructions, so one trial of each contender gives "
        "the number that every repetition would give. Values are compared as they are. They count work; they do not say how "
        "long a real processor takes for it."
    )


def imported(results: Results) -> str:
    """For results measured elsewhere."""
    sources = results.study.get("source") or []
    names = [
        one.get("name") if isinstance(one, dict) else one
        for one in (sources if isinstance(sources, list) else [sources])
    ]
    source = f" ({visible(', '.join(map(str, names)), 200)})" if names else ""
    return (
        f"The values were measured elsewhere and imported{source}. Nothing is known of the order of the trials, so they count "
        "as neither interleaved nor randomised, and trials of the same number are not taken as pairs."
    )


def design(results: Results) -> str:
    """What a trial and a block are."""
    study = results.study
    seed = f" (seed {visible(study['seed'], 40)})" if study.get("seed") is not None else ""
    unit = "load of the scheduler" if study.get("unit") == "load" else trial_word(results)
    return (
        f"A trial is one fresh {unit} of one contender, running all benchmarks; it gives one number a metric, however many "
        f"samples were taken inside. A block holds one trial of every contender in random order{seed}, so that whatever drifts "
        f"touches all of them alike. This run has {count(len(results.blocks), 'block')}."
    )


def rule(results: Results) -> str:
    """How values become a verdict."""
    study = results.study
    delta = delta_of(results)
    within = f"±{plain_number(delta)} %" if delta is not None else "the smallest effect of interest"
    alpha = study.get("alpha")
    level = f"{plain_number(round(100 * alpha, 3))} %" if isinstance(alpha, int | float) else "the declared alpha"
    compared = (
        "The effect is the difference of the mean logarithms, as a change in per cent of the baseline"
        if study.get("imported")
        else "The effect is the mean over the blocks of the logarithm of contender over baseline, as a change in per cent"
    )
    looks = (
        ""
        if study.get("imported") or study.get("fixed")
        else " Looking after each block costs nothing: the intervals are repeated ones, with the error spent over the looks."
    )
    return (
        f"{compared}; values that can be zero or negative are compared by their difference instead. The error of {level} is "
        f"divided over the primary metrics.{looks} A metric is equivalent when its whole interval lies within {within} (from 10 "
        "blocks on), faster or slower (higher or lower where neither side is better) when the interval excludes 0, and undecided "
        "otherwise: undecided never means equal. Exploratory metrics are held to a false discovery rate (Benjamini-Hochberg) "
        "and count as hints."
    )


def beside() -> str:
    """What is shown without deciding."""
    return (
        "Means come with the sample standard deviation (n - 1). Permutation and Wilcoxon tests, the Hodges-Lehmann shift, Cliff's "
        "delta and a test for equal variances (Brown-Forsythe) are shown beside and decide nothing."
    )


def void() -> str:
    """What becomes of trials that failed."""
    return (
        "A trial that panicked, hung or failed a validity check is void: it is kept, shown and counted, and gives no value. The "
        "rules that void a trial look neither at the contender's name nor at what was measured."
    )


def records(results: Results) -> str:
    """What program made this."""
    version = results.study.get("kduel") or results.machine.get("kduel")
    return f"Measured with KDuel {visible(version, 40)}." if version else ""
