"""Kernels built from source whose functions are not aligned, where times are compared."""

from __future__ import annotations

from typing import Any

import pytest

from kduel.core.experiment import MachineRecord
from kduel.core.results import ContenderResult, Results, StudyResult
from kduel.judge.lint.examine import findings_of_run

ALIGNED = "tinyconfig+guest+EXPERT=y+DEBUG_FORCE_FUNCTION_ALIGN_64B=y"
CONFIG = {"DEBUG_FORCE_FUNCTION_ALIGN_64B": "y", "CC_OPTIMIZE_FOR_PERFORMANCE": "y"}


def found(
    *recipes: str, kind: str = "qemu", exact: bool = False, configs: dict[str, dict[str, str]] | None = None
) -> list[str]:
    """The messages about kernels of these recipes, called a, b, ...; none for an empty one, which was not built here."""
    contenders = [
        ContenderResult(
            name=name,
            kernel=f"git:.#{name}",
            sha256=name,
            facts={"provenance": {"recipe": recipe} if recipe else {"packages": []}},
        )
        for name, recipe in zip("abc", recipes, strict=False)
    ]
    environment: dict[str, dict[str, Any]] = {name: {"config": config} for name, config in (configs or {}).items()}
    results = Results(
        study=StudyResult(), machine=MachineRecord(kind=kind, exact=exact), contenders=contenders, trials=[],
        metrics=[], environment=environment,
    )  # fmt: skip
    return [warning.message for warning in findings_of_run(results, []) if warning.code == "alignment"]


def test_functions_that_are_not_aligned_are_a_finding() -> None:
    (message,) = found("defconfig+guest", "defconfig+guest")
    assert message.startswith("a and b are built from source without functions aligned to 64 bytes")
    (message,) = found(ALIGNED, "tinyconfig+guest")
    assert message.startswith("b is built from source")
    assert not found(ALIGNED, ALIGNED)


@pytest.mark.parametrize(
    ("recipes", "more"),
    [
        (("defconfig+guest", ""), {}),
        (("", ""), {}),
        (("defconfig", "defconfig"), {"exact": True}),
        (("defconfig", "defconfig"), {"kind": "build"}),
    ],
)
def test_one_kernel_from_source_and_counts_and_builds_are_none(
    recipes: tuple[str, ...], more: dict[str, Any]
) -> None:
    assert not found(*recipes, **more)


def test_the_configuration_that_ran_counts_for_more_than_the_recipe() -> None:
    same = ("kernel.config", "kernel.config")
    assert not found(*same, configs={"a": CONFIG, "b": CONFIG})
    assert found(ALIGNED, ALIGNED, configs={"a": CONFIG, "b": {"CC_OPTIMIZE_FOR_PERFORMANCE": "y"}})
    # gcc aligns no function that it optimises for size.
    assert found(ALIGNED, ALIGNED, configs={"a": CONFIG, "b": CONFIG | {"CC_OPTIMIZE_FOR_SIZE": "y"}})


def test_two_names_of_one_built_kernel_are_none() -> None:
    one = ContenderResult(name="a", kernel="git:.#a", sha256="1", facts={"provenance": {"recipe": "defconfig"}})
    other = ContenderResult(name="b", kernel="git:.#b", sha256="1", facts={"provenance": {"recipe": "defconfig"}})
    results = Results(
        study=StudyResult(), machine=MachineRecord(kind="qemu"), contenders=[one, other], trials=[], metrics=[]
    )
    assert not [warning for warning in findings_of_run(results, []) if warning.code == "alignment"]
