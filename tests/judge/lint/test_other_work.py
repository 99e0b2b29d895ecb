"""An operation that sleeps in one kernel only, as its benchmark counts it, or as the run's explanations have it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

sys.path.append(str(Path(__file__).parents[2] / "support"))
from examples import exact

from kduel.benchmarks import Raw, benchmark
from kduel.core.experiment import Metric
from kduel.core.samples import Samples
from kduel.explain.compare import Explanation, Row
from kduel.explain.profile import IDLE, OPERATION
from kduel.judge.lint.examine import findings_of_run

DATA = Path(__file__).parent / "data"


def found(*explanations: dict[str, Any], samples: list[Samples] | None = None) -> list[str]:
    results = exact()
    results.explanations = list(explanations)
    return [warning.message for warning in findings_of_run(results, samples or []) if warning.code == "other-work"]


def printed_work(operation: str, kernel: str) -> dict[str, float]:
    """What kbench said of an operation in a kernel."""
    kbench = benchmark("kbench")
    parameters = kbench.read_parameters({"operation": operation, "mode": "exact", "conditions": 0})
    raw = Raw(stdout=(DATA / f"{operation}-{kernel}.stdout").read_text(), stderr="", exit_status=0)
    return kbench.details(raw, parameters).work["instructions"]


def table(work: dict[str, dict[str, float]]) -> Samples:
    metric = Metric("instructions", "instructions", "lower")
    return Samples(benchmark="timer", metric=metric, blocks=[1], values={name: [1.0] for name in work}, work=work)


def test_a_timer_that_is_found_expired_is_a_finding_without_any_explanation() -> None:
    before, after = (printed_work("timer", kernel) for kernel in ("6.18", "7.2"))
    (message,) = found(samples=[table({"old": before, "new": after})])
    assert message.startswith("timer: The operation switches tasks in old, and not in new: its meaning has changed")
    assert not found(samples=[table({"old": before, "new": before})])
    # A kept explanation says the same once more.
    row = Row(context=OPERATION, function="finish_task_switch.isra.0", baseline=50, contender=0)
    explained = explanation(slept=900) | {"rows": [msgspec.to_builtins(row)]}
    assert found(explained) == found(explained, samples=[table({"old": before, "new": after})]) == [message]


def test_a_task_that_is_preempted_where_it_slept_before_does_the_same_work() -> None:
    before, after = (printed_work("pipe", kernel) for kernel in ("6.18", "7.2"))
    assert before["switches tasks"] == after["switches tasks"] == 1
    assert not found(samples=[table({"old": before, "new": after})])


def test_what_is_rare_in_both_or_not_said_by_an_older_program_is_no_finding() -> None:
    assert len(found(samples=[table({"old": {"switches tasks": 0.6}, "new": {"switches tasks": 0.02}})])) == 1
    assert not found(samples=[table({"old": {"switches tasks": 0.6}, "new": {"switches tasks": 0.04}})])
    assert not found(samples=[table({"old": {"switches tasks": 0.4}, "new": {"switches tasks": 0.0}})])
    assert not found(samples=[table({"old": {"switches tasks": 1.0}, "new": {}})])
    assert not found(samples=[table({"old": {}, "new": {"switches tasks": 1.0}, "newer": {"switches tasks": 0.0}})])


def test_each_contender_is_held_against_the_baseline() -> None:
    both = found(
        samples=[
            table(
                {"old": {"takes page faults": 0.0}, "a": {"takes page faults": 1.0}, "b": {"takes page faults": 0.0}}
            )
        ]
    )
    assert [message.partition(":")[2][:46] for message in both] == [" The operation takes page faults in a, and not"]


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
