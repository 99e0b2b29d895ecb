"""Contenders with different numbers of values."""

from collections.abc import Iterator

from kduel.core.text import plural
from kduel.judge.lint.case import Case
from kduel.judge.lint.finding import Cause, Finding
from kduel.judge.verdict.voids import depends


def unequal_n(case: Case) -> Iterator[str]:
    """Contenders with different numbers of values, unless `missing-by-arm` says it."""
    before, after = case.sizes
    if before != after and not depends(*case.absent):
        yield (
            f"{case.baseline.name} has {plural(before, 'value')} and {case.contender.name} {after}. If trials are missing "
            "because they were bad, the rest looks better than the contender is: find the cause."
        )


PLUGIN = Finding(
    name="unequal-n", cause=Cause.MISSING, weight=36,
    meaning="The contenders have different numbers of values; which ones are missing does not depend on the contender "
    "as far as is known.",
    remedy="Find out why values are missing.",
    check=unequal_n,
)  # fmt: skip
