"""Values that are not known because they lie beyond a benchmark's histogram."""

from collections.abc import Iterator

from kduel.core.text import plural
from kduel.judge.lint.case import Case
from kduel.judge.lint.finding import Cause, Finding


def beyond_histogram(case: Case) -> Iterator[str]:
    names = case.baseline.name, case.contender.name
    counts = [len(case.table.beyond.get(name, ())) for name in names]
    if any(counts):
        found = " and ".join(
            f"{plural(count, 'trial')} of {name}" for name, count in zip(names, counts, strict=True) if count
        )
        yield (
            f"In {found} the value lies beyond the histogram: it is larger than those that are shown, and left out of means and "
            "intervals. Raise `histogram`, and repeat the run."
        )


PLUGIN = Finding(
    name="beyond-histogram", cause=Cause.MISSING, weight=97,
    meaning="Measurements above the largest value that a benchmark distinguishes (`histogram`) are counted, not known. A trial in "
    "which a percentile lies there has no such value: the slowest trials are left out. A contender with such a trial is never called "
    "lower or equivalent; called higher, it differs by more than the interval says.",
    remedy="Raise `histogram`, and repeat the run.",
    check=beyond_histogram,
    undecided="values lie beyond the histogram, which hides the slowest trials: raise `histogram`",
)  # fmt: skip
