"""Trouble that the kernels' own logs report in trials that gave values."""

from collections.abc import Iterator

from kduel.core.results import Results
from kduel.core.samples import Samples
from kduel.judge.lint.finding import Finding


def kernel_reports(results: Results, _samples: list[Samples]) -> Iterator[str]:
    good = [trial for trial in results.trials if trial.status != "void"]
    totals = {
        name: sum(trial.contender == name for trial in good) for name in dict.fromkeys(t.contender for t in good)
    }
    for kind in dict.fromkeys(kind for trial in good for kind in trial.findings):
        having = [trial for trial in good if kind in trial.findings]
        counts = {name: sum(trial.contender == name for trial in having) for name in totals}
        if all(counts.values()):
            continue
        told = ", ".join(f"{counts[name]} of {total} trials of {name}" for name, total in totals.items())
        yield (
            f"The kernel reported trouble ({kind}) in {told}: the contenders differ in more than their speed. "
            f"First in {having[0].id}: {having[0].findings[kind]}. Read the consoles, and repair or declare it."
        )


PLUGIN = Finding(
    name="kernel-log", cause="A kernel reported trouble of its own", weight=92,
    meaning="The console of valid trials holds a sign of trouble (a warning, an oops, a stall) for one contender and "
    "not, or less often, for another.",
    remedy="Read the console logs; repair the cause, or declare it as a part of what is compared.",
    check_run=kernel_reports,
)  # fmt: skip
