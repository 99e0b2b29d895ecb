"""Contenders whose values differ by the same factor, or the same amount, in every block."""

from collections.abc import Iterator

import numpy as np

from kduel.core.evidence import Evidence
from kduel.core.format import change, percent
from kduel.judge.lint.case import Case
from kduel.judge.lint.finding import Cause, Finding

FEWEST = 5
"""Pairs; of independent values their differences vary so little with a chance of about SHARE to the power of pairs - 1."""
SHARE = 0.003
"""Of the arms' own spread; rounding leaves so much of a computed value."""


def constant_ratio(case: Case) -> Iterator[str]:
    before, after, _ = case.counterpart
    if before.size < FEWEST or min(map(len, map(set, (before, after)))) < FEWEST:
        return
    if (before > 0).all() and (after > 0).all() and hardly_varies(np.log(before), np.log(after)):
        said = percent(100 * (float(np.median(after / before)) - 1))
    elif hardly_varies(before, after):
        said = change(float(np.median(after - before)), case.metric.unit)
    else:
        return
    yield (
        f"All {before.size} pairs of {case.baseline.name} and {case.contender.name} differ by the same {said}. Values that are "
        "measured apart do not: check whether one was computed from the other."
    )


def hardly_varies(before: np.ndarray, after: np.ndarray) -> bool:
    """True if the differences vary by less than SHARE of what either arm does."""
    return bool((after - before).std() < SHARE * min(before.std(), after.std()))


PLUGIN = Finding(
    name="constant-ratio", cause=Cause.COPIED, weight=93,
    meaning="The values of two contenders vary, but their ratio or their difference does not: it varies by less than 0.3 % of "
    "what the values do. One is probably computed from the other.",
    remedy="Find out where the values come from, and measure both contenders.",
    chance=True, check=constant_ratio, least=Evidence.SAMPLED,
)  # fmt: skip
