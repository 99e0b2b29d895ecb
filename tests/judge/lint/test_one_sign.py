"""Differences on exact CPUs under few conditions: what chance would show as often is a finding."""

from __future__ import annotations

import pytest
from lint_runs import linted, table
from msgspec import structs

from kduel.core.experiment import RESOLUTION
from kduel.judge.lint.case import cases
from kduel.judge.lint.findings.one_sign import chance_of_one_sign, one_sign


def told(before: list[float], after: list[float], *, cpus: bool = True) -> list[str]:
    """What the finding says of a primary metric under conditions; with one pair, of one that has none."""
    found = table([before[0]], [after[0]], unit="count", better="lower")
    if len(before) > 1:
        found = structs.replace(
            found,
            conditions={
                name: [{f"c{number}": value for number, value in enumerate(values)}]
                for name, values in (("old", before), ("new", after))
            },
        )
    results = linted(found, exact=True)
    results.machine.facts = {RESOLUTION: 40_000} if cpus else {}
    (case,) = cases(results, [found])
    return list(one_sign(case))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ([100], [200], "No conditions: any "),
        (
            [100, 300, 200],
            [110, 400, 240],
            "3 conditions: a difference without any cause would have one sign in one of 4 ",
        ),
        ([100, 110, 120], [200, 210, 220], "ranges that do not overlap in one of 10 "),
        ([100, 110, 120, 130], [200, 210, 220, 230], ""),
        ([100, 300, 200, 150, 170], [110, 400, 240, 190, 200], "one of 16 "),
        ([100, 300, 200, 150, 170, 90], [110, 400, 240, 190, 200, 100], ""),
        ([100, 300, 200], [110, 200, 240], ""),
        ([100, 300, 200], [100, 300, 200], ""),
    ],
)
def test_one_sign_under_few_conditions_is_a_finding(before: list[float], after: list[float], said: str) -> None:
    found = told(before, after)
    assert said in found[0] if said else not found


def test_counts_of_instructions_do_not_depend_on_the_scheduler() -> None:
    assert told([100, 300, 200], [110, 400, 240]) and not told([100, 300, 200], [110, 400, 240], cpus=False)


def test_the_chance_is_that_of_the_sign_test_or_of_the_rank_sum() -> None:
    assert chance_of_one_sign([(1, 2)]) == 1
    assert chance_of_one_sign([(1, 9), (10, 12)] * 4) == 2.0**-7
    assert chance_of_one_sign([(1, 9)] * 4) == pytest.approx(2 / 70)
