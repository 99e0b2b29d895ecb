"""Facts that a reader must know before any verdict: what was run, how sure it is, what went wrong."""

from collections import Counter

from kduel.core.experiment import HOST_DISTURBED
from kduel.core.format import MINUS, arms, effect, percent, plain_number
from kduel.core.metric_results import MetricResult
from kduel.core.results import Results, TrialResult
from kduel.core.text import list_few, plural, visible
from kduel.judge.verdict.rule import gating_rule
from kduel.judge.verdict.unfinished import find_unfinished, may_continue
from kduel.report.content.evidence import evidence
from kduel.report.content.host import host_line
from kduel.report.content.notes import NAMED, key

PEEKING = (
    "Decide before the first run how many to merge: merging one more each time that the result is undecided is peeking, and "
    "false positives grow from 5 % to 6.5, 7.9 and 8.8 % with one, two and three further runs."
)
"""What merging again costs; the figures are those of docs/statistics.md."""
LONGEST_WHY = 300
"""Characters of why a contender could not be measured: a panic's line and where it happened, not its whole call trace."""


def run_facts(results: Results) -> list[str]:
    """Few words on what was run: how many blocks, on what."""
    blocks, trials = len(results.blocks), len(results.trials)
    # What was imported has trials that nothing pairs: its caveats and tables say how many.
    paired = evidence(results).paired
    facts = [plural(blocks, "block")] if blocks and paired else []
    if unfinished := find_unfinished(results):
        facts = [unfinished.blocks]
    if trials:
        facts.append(plural(trials, "trial"))
    words = (results.machine.kind, results.machine.facts.get("accelerator"))
    machine = " ".join(visible(word, 60) for word in words if word)
    return [*facts, *filter(None, [machine if paired else "imported data"])]


def sureness(results: Results) -> str:
    """Sentence on the trust that the intervals deserve."""
    if said := evidence(results).sureness(results):
        return said
    if not any(m.n > 1 for m in results.metrics):
        if any(m.scale == "exact" and m.verdict != "undecided" for m in results.metrics):
            return (
                "One trial each is enough for sizes, which every build reproduces; it is too few for an interval, so that "
                "no difference in time can be distinguished from chance."
            )
        return "Too few trials for any interval: no difference can be distinguished from chance."
    confidence = f"{plain_number(round(100 * (1 - results.study.alpha), 3))} % confidence"
    count_primary = len({(m.benchmark, m.metric) for m in results.gating if m.role == "primary"})
    contenders = len({m.contender for m in results.gating})
    if results.effects:
        confidence += f" over the {len(results.gating)} effects together" if len(results.gating) > 1 else ""
    elif count_primary * contenders > 1:
        of = f" of {plural(contenders, 'contender')}" if contenders > 1 else ""
        confidence += f" over the {plural(count_primary, 'primary metric')}{of} together"
    if not evidence(results).paired:
        return f"{confidence}, if the trials did not influence each other; for imported data KDuel cannot check that."
    unit = "load of its contender, not a fresh boot" if results.study.unit == "load" else trial_word(results)
    if len(gating_rule(results).looks()) > 1:
        confidence += ", adjusted for interim analyses"
    return f"{confidence}; each trial is a fresh {unit}, in random order within its block."


def trial_word(results: Results) -> str:
    return "clean build" if results.machine.kind == "build" else "boot"


def caveats(results: Results, run: str = "RUN") -> list[str]:
    """Sentences that the reader must know before any verdict. `run` is the directory as the user may type it."""
    said = []
    if results.machine.timing_warning:
        said.append(visible(results.machine.timing_warning))
    if line := host_line(results):
        said.append(line)
    if results.study.parts and any(metric.scale != "exact" for metric in results.metrics):
        said.append(PEEKING)
    broken: Counter[tuple[str, str]] = Counter(
        (trial.contender, trial.status) for trial in results.trials if trial.status != "ok"
    )
    total = Counter(trial.contender for trial in results.trials)
    said += kernel_findings(results)
    for (contender, status), number in broken.items():
        if status == "void" and number == total[contender]:
            why = next(trial.reason for trial in results.trials if trial.contender == contender)
            said.append(
                f"{visible(contender, 200)} could not be measured. {visible(' '.join(why.split()).rstrip(':'), LONGEST_WHY)}"
            )
            continue
        what = "void: nothing of them is used" if status == "void" else "partial"
        said.append(f"{visible(contender, 200)}: {number} of {plural(total[contender], 'trial')} {what}.")
        if status == "partial":
            said[-1] += without_numbers([trial for trial in results.trials if trial.contender == contender])
    return [*said, *repetitions(results), *other_signs(results), *unfinished_sentences(results, run)]


def other_signs(results: Results) -> list[str]:
    """Sentence on the rows of tables whose two means differ the other way than their change."""
    rows = [(visible(one.name, 200), one.result) for one in results.effects]
    found = [name for name, metric in rows or [(key(m), m) for m in results.metrics] if has_other_sign(metric)]
    pairs = " and compares within blocks" if evidence(results).paired else ""
    far = [
        f"{key(m)} ({percent(gap)} by the means)"
        for m in results.gating
        if (gap := means_gap(m, results.study.delta)) is not None and not has_other_sign(m)
    ]
    said = [(list_few(found, NAMED), "differ the other way")] if found else []
    said += [(list_few(far, NAMED), "differ by another size")] if far else []
    return [
        f"{names}: the means beside the change {how}, as they are arithmetic and the change is geometric{pairs}. The verdict is on "
        "the change."
        for names, how in said
    ]


def means_gap(metric: MetricResult, delta: float | None) -> float | None:
    """The change of the two means in per cent, where it is quite another size than the table's change; else None."""
    if metric.scale != "ratio" or metric.mean is None or not metric.baseline_mean or metric.effect_pct is None:
        return None
    found = 100 * (metric.mean / metric.baseline_mean - 1)
    return found if abs(found - metric.effect_pct) > max(delta or 0.0, abs(metric.effect_pct) / 2) else None


def has_other_sign(metric: MetricResult) -> bool:
    """True if a ratio's two means, as they are shown, differ the other way than its change."""
    if metric.scale != "ratio" or metric.mean is None or metric.baseline_mean is None:
        return False
    before, after = (mean for mean, _ in arms(metric))
    sign = effect(metric)[0]
    return before != after and sign == (MINUS if metric.mean > metric.baseline_mean else "+")


def unfinished_sentences(results: Results, run: str) -> list[str]:
    """Sentences on a run that was interrupted, or continues: the part of its plan that is there, and incomplete blocks."""
    if not evidence(results).paired:
        return []
    if not results.trials:
        return [f"No trial has ended yet; kduel resume {run} continues an interrupted run."]
    said = []
    if unfinished := find_unfinished(results):
        are = "is" if unfinished.complete == 1 else "are"
        again = f"; kduel resume {run} continues it" if may_continue(results) else ""
        said = [f"The run is not finished: {unfinished.blocks} {are} complete{again}."]
    return [*said, *incomplete_blocks_sentence(results, yet=" yet" if unfinished else "")]


def incomplete_blocks_sentence(results: Results, yet: str) -> list[str]:
    """The blocks in which not every contender has been run yet, in a sentence."""
    names = {contender.name for contender in results.contenders}
    run: dict[tuple[str, int], set[str]] = {}
    for trial in results.trials:
        run.setdefault((trial.part, trial.block), set()).add(trial.contender)
    lacking = {block: names - there for (_, block), there in run.items() if names - there}
    if not lacking:
        return []
    if len(lacking) == 1:
        ((block, gone),) = lacking.items()
        absent = " and ".join(visible(one.name, 200) for one in results.contenders if one.name in gone)
        said = f"Block {block} is not complete: it has no trial of {absent}{yet}."
    else:
        numbers = ", ".join(map(str, sorted(lacking)))
        said = f"Blocks {numbers} are not complete: each lacks the trial of a contender."
    return [f"{said} Contenders are compared only in blocks that have both."]


def repetitions(results: Results) -> list[str]:
    """Boots made again for a fault that is not their contender's, a sentence for each kind, but for the host's."""
    counts: dict[str, Counter[str]] = {}
    for trial in results.repeated:
        if trial.void and trial.void.code != HOST_DISTURBED:
            counts.setdefault(trial.void.code, Counter())[trial.contender] += 1
    return [
        f"{plural(sum(by.values()), 'boot')} made again ({visible(code, 40)}): "
        + ", ".join(f"{n} of {visible(arm, 200)}" for arm, n in by.items())
        + ". That is no fault of the kernels, and nothing of these boots is used."
        for code, by in counts.items()
    ]


def kernel_findings(results: Results) -> list[str]:
    """Trouble that the kernels reported in trials whose values count, a sentence for each kind."""
    lines: dict[str, str] = {}
    counts: dict[str, Counter[str]] = {}
    total = Counter(trial.contender for trial in results.trials if trial.status != "void")
    for trial in results.trials:
        for name, line in trial.findings.items() if trial.status != "void" else ():
            lines.setdefault(name, line)
            counts.setdefault(name, Counter())[trial.contender] += 1
    return [
        f"The kernel's log has trouble ({visible(name, 40)}) in "
        + ", ".join(f"{n} of {plural(total[arm], 'trial')} of {visible(arm, 200)}" for arm, n in counts[name].items())
        + f", such as: {visible(line, 200)}"
        for name, line in lines.items()
    ]


def without_numbers(trials: list[TrialResult]) -> str:
    """Benchmarks of these trials that gave no number, and the first reason of each."""
    reasons: dict[str, str] = {}
    for trial in trials:
        for label, why in trial.failed_steps.items():
            reasons.setdefault(label, why)
    return "".join(f" No number from {visible(label, 100)}: {visible(why, 300)}." for label, why in reasons.items())
