"""Values of one contender that occur again in another, in another order."""

from collections import Counter
from collections.abc import Iterator

from kduel.core.evidence import Evidence
from kduel.judge.lint.case import Case, Floats
from kduel.judge.lint.finding import Cause, Finding
from kduel.judge.lint.findings.repeated_values import repeated_values

FEWEST = 3
UNSEEN = 2
"""Equal pairs within the arms that are allowed for beyond those seen: few values hardly show how coarse they are."""


def shuffled_copies(case: Case) -> Iterator[str]:
    """More values in common than equal values within the arms explain; in one order they are `repeated-values`."""
    from scipy.special import pdtrc

    first, second = (arm.values for arm in case.arms)
    common = (Counter(first.tolist()) & Counter(second.tolist())).total()
    if common < FEWEST:
        return
    equal, pairs = map(sum, zip(equal_pairs(first), equal_pairs(second), strict=True))
    expected = first.size * second.size * (equal + UNSEEN) / max(pairs, 1)
    if pdtrc(common - 1, expected) >= case.level or any(repeated_values(case)):
        return
    yield (
        f"{common} of {first.size} values of {case.baseline.name} occur in {case.contender.name} too, in another order. "
        "Measured values do not: check whether files were copied."
    )


def equal_pairs(values: Floats) -> tuple[int, int]:
    """Pairs of equal values, and all pairs."""
    counts = Counter(values.tolist()).values()
    return sum(count * (count - 1) // 2 for count in counts), values.size * (values.size - 1) // 2


PLUGIN = Finding(
    name="shuffled-copies", cause=Cause.COPIED, weight=94,
    meaning="Two contenders have many values in common, in different orders: more than the equal values within each contender "
    "explain.",
    remedy="Check whether files were copied, or whether the benchmark printed cached results.",
    chance=True, check=shuffled_copies, least=Evidence.SAMPLED,
)  # fmt: skip
