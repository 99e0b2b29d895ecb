"""Two contenders that are one kernel, whatever they are called."""

from __future__ import annotations

from msgspec import structs

from kduel.core.experiment import MachineRecord
from kduel.core.results import ContenderResult, Results, StudyResult
from kduel.judge.lint.examine import findings_of_run

ONE = ContenderResult(name="a", kernel="./link", sha256="5134", cmdline="quiet", facts={"modules": "none"})


def found(**changes: object) -> list[str]:
    """The messages about `ONE` and another that differs in these."""
    other = structs.replace(ONE, **{"name": "b", "kernel": "./hard"} | changes)
    results = Results(
        study=StudyResult(), machine=MachineRecord(kind="qemu"), contenders=[ONE, other], trials=[], metrics=[]
    )
    return [warning.message for warning in findings_of_run(results, []) if warning.code == "one-kernel"]


def test_two_names_of_one_kernel_are_found() -> None:
    assert found() == ["a and b are one kernel with the same settings: only chance can make a difference."]


def test_what_can_differ_is_no_such_pair() -> None:
    assert not found(kernel="./link"), "a comparison with itself on purpose"
    for changes in ({"sha256": "99"}, {"cmdline": ""}, {"policy": "batch"}, {"facts": {"modules": "12"}}):
        assert not found(**changes), changes
    assert not found(facts={"modules": "none", "sysctl": {"vm.swappiness": 1}})
    assert not found(facts={"modules": "none", "machine": {"cpus": 4}})
