"""What a run's judgement keeps in memory."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from kduel.core.errors import InputError
from kduel.core.experiment import Contender
from kduel.judge.evaluate import environments_of
from kduel.store.documents import TrialRecord
from kduel.store.rundir import RunDir


def records(run: RunDir, environments: list[dict]) -> list[TrialRecord]:
    found = []
    for position, environment in enumerate(environments):
        record = TrialRecord(id=f"{position:04d}", block=1, position=position, contender="a", status="ok")
        run.directory(record.id).mkdir(parents=True)
        (run.directory(record.id) / "environment.json").write_text(json.dumps(environment))
        found.append(record)
    return found


LOCK = SimpleNamespace(contenders=[Contender(kernel="a", name="a")])


def test_what_trials_have_in_common_is_held_once(tmp_path: Path):
    run = RunDir(tmp_path)
    config = {f"CONFIG_{n}": "y" for n in range(100)}
    given = [{"config": config, "cpus": 2}, {"config": config, "cpus": 4}, {"config": config | {"CONFIG_7": "m"}}]
    read = environments_of(run, LOCK, records(run, given))["a"]
    assert read == given
    assert read[0]["config"] is read[1]["config"]
    assert read[2]["config"] is not read[0]["config"]


def test_a_damaged_environment_is_named(tmp_path: Path):
    run = RunDir(tmp_path)
    kept = records(run, [{"cpus": 2}])
    (run.directory("0000") / "environment.json").write_text('{"cpus": 2')
    with pytest.raises(InputError, match=r"environment\.json"):
        environments_of(run, LOCK, kept)
