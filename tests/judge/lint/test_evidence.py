"""The part of chance in a case's values, and the findings that are about it."""

from __future__ import annotations

import pytest
from lint_runs import linted, noise, table
from msgspec import structs

from kduel.core.evidence import Evidence
from kduel.core.samples import Samples
from kduel.judge.lint.case import cases
from kduel.judge.lint.finding import catalogue

FEW = [5.0, 5.0], [6.0, 6.0]
VARIES = noise(20), noise(20, seed=8)


def size(*arms: object) -> Samples:
    made = table(*arms, unit="B")  # type: ignore[arg-type]
    return structs.replace(made, metric=structs.replace(made.metric, exact=True))


@pytest.mark.parametrize(
    ("samples", "exact", "kind"),
    [
        (table(*VARIES), True, Evidence.COUNTED),
        (size(*FEW), False, Evidence.COUNTED),
        (table(*FEW), False, Evidence.CONSTANT),
        (size(*VARIES), False, Evidence.VARYING),
        (table(*VARIES), False, Evidence.SAMPLED),
        # One arm that varies is enough.
        (table([5.0] * 20, noise(20)), False, Evidence.SAMPLED),
    ],
)
def test_the_kind_follows_from_machine_metric_and_values(samples: Samples, exact: bool, kind: Evidence) -> None:
    results = linted(samples, exact=exact)
    (case,) = cases(results, [samples])
    assert case.evidence is kind
    told = {warning.code for warning in results.metrics[0].warnings}
    assert not [code for code in told if catalogue()[code].least > kind]


def test_two_trials_that_differ_are_too_few_and_two_equal_ones_are_not() -> None:
    def codes(samples: Samples) -> set[str]:
        return {warning.code for warning in linted(samples).metrics[0].warnings}

    assert "too-few" in codes(table([5.0, 5.1], [6.0, 6.1]))
    assert "too-few" not in codes(table(*FEW)) | codes(size(*FEW))
    assert "too-few" in codes(size([5.0, 5.1], [6.0, 6.1])), "it should not vary, and does"
