"""Contenders with as many void trials, for other causes."""

from __future__ import annotations

from kduel.core.experiment import LEFT_OUT, MachineRecord, Void
from kduel.core.results import ContenderResult, Results, StudyResult, TrialResult
from kduel.judge.lint.examine import findings_of_run


def found(*voids: list[str], trials: int = 20) -> dict[str, str]:
    """The messages about contenders whose first trials are void by these codes, by finding."""
    names = "abc"[: len(voids)]
    results = Results(
        study=StudyResult(),
        machine=MachineRecord(kind="qemu"),
        contenders=[ContenderResult(name=name, kernel=name) for name in names],
        trials=[
            TrialResult(
                id=f"{block}-{name}", block=block, position=block, contender=name,
                status="void" if code else "ok", void=Void(code=code) if code else None,
            )
            for name, codes in zip(names, voids, strict=True)
            for block, code in enumerate([*codes, *[""] * (trials - len(codes))], 1)
        ],
        metrics=[],
    )  # fmt: skip
    said = findings_of_run(results, [])
    return {one.code: one.message for one in said if one.code in ("crashes", "void-causes")}


def test_as_many_void_trials_of_other_causes_are_found() -> None:
    told = found(["panic"] * 2, ["deadline"] * 2)
    assert list(told) == ["void-causes"]
    assert "panic 2 times of a; deadline 2 times of b" in told["void-causes"]
    assert "panic 2 times of a; deadline 1 time, hang 2 times of c" in found(
        ["panic"] * 2, ["panic"], ["deadline", "hang", "hang"]
    )["void-causes"]  # fmt: skip


def test_the_same_causes_or_one_of_each_are_none() -> None:
    assert not found(["panic"] * 3, ["panic"] * 3)
    assert not found(["panic", "hang"], ["panic", "deadline"])
    assert not found([], ["deadline"])


def test_numbers_that_differ_are_told_once() -> None:
    assert list(found([], ["deadline"] * 3)) == ["crashes"]


def test_what_is_no_contenders_fault_is_not_compared() -> None:
    assert not found(["host-disturbed"] * 3, ["emulator-fault"] * 3)
    assert not found([LEFT_OUT] * 3, [])
