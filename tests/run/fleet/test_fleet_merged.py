"""Runs of fleets, merged: their machines keep their names, and two machines of one name stay two."""

from __future__ import annotations

from pathlib import Path

import pytest
from simulated import Clock, Machine, SimulatedFleet, run

from kduel.judge.evaluate import judge_run
from kduel.store.merged import examine, merge, record_of


def fleet_run(path: Path, seed: int, **machines: Machine) -> Path:
    run(SimulatedFleet(machines, Clock()), path, "fixed = 12", seed=seed)
    return path


def strata(path: Path) -> dict[str, int]:
    """Blocks by machine."""
    (metric,) = judge_run(path).metrics
    assert metric.machines is not None
    return {one.machine: one.n for one in metric.machines.effects}


@pytest.mark.slow
def test_machines_of_one_name_are_one_stratum(tmp_path: Path):
    first = fleet_run(tmp_path / "may", 1, a=Machine(void=0.0), b=Machine(void=0.0))
    second = fleet_run(tmp_path / "june", 2, b=Machine(void=0.0), c=Machine(void=0.0))
    merge([first, second], tmp_path / "both")
    assert strata(tmp_path / "both") == {"a": 6, "b": 12, "c": 6}
    results = judge_run(tmp_path / "both")
    assert sorted(part.machine for part in results.study.parts) == ["a, b", "b, c"]
    assert {trial.machine for trial in results.trials} == {"a", "b", "c"} and len(results.blocks) == 24
    assert examine(tmp_path / "both").checked == 48 and not examine(tmp_path / "both").changes
    # A merged run merged again is the sum of its parts.
    third = fleet_run(tmp_path / "july", 3, a=Machine(void=0.0), b=Machine(void=0.0))
    merge([tmp_path / "both", third], tmp_path / "all")
    assert strata(tmp_path / "all") == {"a": 12, "b": 18, "c": 6}


@pytest.mark.slow
def test_different_machines_of_one_name_are_told_apart(tmp_path: Path):
    first = fleet_run(tmp_path / "rack1", 1, a=Machine(void=0.0), b=Machine(void=0.0))
    second = fleet_run(tmp_path / "rack2", 2, a=Machine(void=0.0, cpu="another"), b=Machine(void=0.0))
    merge([first, second], tmp_path / "both")
    assert set(strata(tmp_path / "both")) == {"rack1/a", "rack1/b", "rack2/a", "rack2/b"}
    merge([first, second], tmp_path / "named", ["x", "y"])
    assert set(strata(tmp_path / "named")) == {"x/a", "x/b", "y/a", "y/b"}
    assert [part.machine for part in record_of(tmp_path / "named").parts] == ["x", "y"]


@pytest.mark.slow
def test_a_machine_that_was_out_of_service_is_reported_of_the_merged_run(tmp_path: Path):
    own = {"a": Machine(void=0.0), "b": Machine(void=0.0), "c": Machine(void=0.0, gone_after=1)}
    run(SimulatedFleet(own, Clock()), tmp_path / "one", "fixed = 12", patience=1800.0)
    second = fleet_run(tmp_path / "two", 2, a=Machine(void=0.0), b=Machine(void=0.0))
    merge([tmp_path / "one", second], tmp_path / "both")
    (told,) = [warning.message for warning in judge_run(tmp_path / "both").warnings if warning.code == "machine-out"]
    assert told.startswith("one: c is lost")
