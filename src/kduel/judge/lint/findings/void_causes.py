"""Void trials of two contenders that are as many, and have other causes."""

from collections import Counter
from collections.abc import Iterator

from kduel.core.results import Results
from kduel.core.samples import Samples
from kduel.core.text import plural
from kduel.judge.lint.finding import Cause, Finding
from kduel.judge.lint.findings.crashes import void_counts
from kduel.judge.verdict.voids import Missing, depends


def void_causes(results: Results, _samples: list[Samples]) -> Iterator[str]:
    """Codes of void trials that depend on the contender, where the number of void trials does not (`crashes`)."""
    counts = void_counts(results)
    if not results.contenders or results.contenders[0].name not in counts:
        return
    baseline = results.contenders[0].name
    first, total = counts[baseline]
    for name, (second, other) in counts.items():
        if name == baseline or depends(Missing(first.total(), total), Missing(second.total(), other)):
            continue
        if any(depends(Missing(first[code], total), Missing(second[code], other)) for code in first | second):
            listed = "; ".join(f"{words(codes)} of {arm}" for arm, codes in ((baseline, first), (name, second)))
            yield (
                f"The void trials have other causes in each contender: {listed}. As many as they are, one contender may have "
                "lost its slow trials, and the other one any: read the console logs of the void trials."
            )


def words(codes: Counter[str]) -> str:
    """`deadline 1 time, hang 2 times`."""
    return ", ".join(f"{code} {plural(number, 'time')}" for code, number in sorted(codes.items()))


PLUGIN = Finding(
    name="void-causes", cause=Cause.MISSING, weight=88,
    meaning="The numbers of void trials do not depend on the contender, and their causes do: for one code, Fisher's exact test "
    "is below .05, or two or more trials are void by it and all of them belong to one contender. If one contender loses its "
    "slow trials and the other one any, the verdict is biased, and the rule for missing values does not see it.",
    remedy="Read the console logs of the void trials, and remove the causes.",
    check_run=void_causes,
)  # fmt: skip
