"""An operation that sleeps in one kernel only, as the run's explanations have it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

sys.path.append(str(Path(__file__).parents[2] / "support"))
from examples import exact

from kduel.explain.compare import Explanation, Row
from kduel.explain.profile import IDLE, OPERATION
from kduel.judge.lint.examine import findings_of_run


def found(*explanations: dict[str, Any]) -> list[str]:
    results = exact()
    results.explanations = list(explanations)
    return [warning.message for warning in findings_of_run(results, []) if warning.code == "other-work"]


def explanation(slept: int) -> dict[str, Any]:
    """Of an operation that sleeps in the baseline, and so much in the contender."""
    rows = [Row(context=IDLE, function="default_idle", baseline=900, contender=slept)]
    rows += [Row(context=OPERATION, function="vfs_read", baseline=500, contender=500)]
    one = Explanation(benchmark="timer", baseline="old", contender="new", operations=10, rows=rows)
    built: dict[str, Any] = msgspec.to_builtins(one)
    return built


def test_an_operation_that_no_longer_sleeps_is_a_finding() -> None:
    (message,) = found(explanation(slept=0))
    assert message.startswith("timer: The operation sleeps in old, and not in new: its meaning has changed")
    assert not found(explanation(slept=800))


def test_explanations_of_another_kind_and_damaged_ones_are_none() -> None:
    assert not found({"benchmark": "pipe", "kernels": [], "rows": []}, {"rows": "none"})
    assert len(found({"rows": "none"}, explanation(slept=0))) == 1
