"""The studies that come with KDuel are studies, and say what they claim to."""

from __future__ import annotations

from pathlib import Path

import pytest

from kduel.study.file import read_study
from kduel.study.load import assemble
from kduel.study.plan import make_plan

STUDIES = Path(__file__).parents[2] / "studies"


@pytest.mark.parametrize("name", ["policies", "policies-emulator", "policies-exact", "sched-ext", "eevdf", "knobs"])
def test_it_is_a_study(name: str) -> None:
    path = STUDIES / f"{name}.toml"
    text, file = read_study(path)
    made = assemble(file, text, str(path))
    assert made.about.name == name
    assert make_plan(made, 1)


@pytest.mark.parametrize("name", ["policies", "policies-emulator"])
def test_policies_has_27_cells_on_each_kernel(name: str) -> None:
    text, file = read_study(STUDIES / f"{name}.toml")
    made = assemble(file, text, "policies")
    assert len(made.contenders) * len(made.steps) == 54
    assert made.contenders[0].policy == "other"
    plan = make_plan(made, 1)
    # One boot a kernel and block, three policies in it, the cells in an order of the block's own.
    assert len({trial.boot for trial in plan}) == 2 * 7
    assert len({tuple(trial.steps) for trial in plan}) > 1
