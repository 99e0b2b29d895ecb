"""Other work on a machine, beside contenders of which some have a real-time policy."""

from __future__ import annotations

import pytest

from kduel.core.experiment import MachineRecord
from kduel.core.results import ContenderResult, Results, StudyResult
from kduel.judge.lint.examine import findings_of_run


def found(policies: tuple[str, ...], loads: tuple[str | None, ...]) -> list[str]:
    """The messages about contenders of these policies, with these loads before their first trials."""
    names = "abc"[: len(policies)]
    results = Results(
        study=StudyResult(),
        machine=MachineRecord(kind="local"),
        contenders=[
            ContenderResult(name=name, kernel="host", policy=policy)
            for name, policy in zip(names, policies, strict=True)
        ],
        trials=[],
        metrics=[],
        environment={
            name: {"temperatures": {} if load is None else {"load": load}}
            for name, load in zip(names, loads, strict=True)
        },
    )
    return [one.message for one in findings_of_run(results, []) if one.code == "busy-machine"]


def test_work_that_only_ordinary_tasks_wait_for_is_found() -> None:
    (said,) = found(("", "fifo:50", "batch"), ("1.70", "2.50", "9.1"))
    assert "a load of 1.7 before" in said and "from a, c, and hardly from b," in said
    assert found(("other", "deadline:2ms,10ms,10ms"), ("0.5", "3")) and found(("nice:5", "rr:1"), ("1", "1"))


@pytest.mark.parametrize(
    ("policies", "loads"),
    [
        (("", "fifo:50"), ("0.49", "8")),
        (("", "batch"), ("5", "5")),
        (("rr:1", "fifo:50"), ("5", "5")),
        (("", "fifo:50"), (None, None)),
        (("", "fifo:50"), ("unknown", None)),
    ],
)
def test_a_quiet_machine_or_one_sort_of_policies_is_none(policies: tuple[str, ...], loads: tuple[str, ...]) -> None:
    assert not found(policies, loads)
