"""Each of our programs under each kind of policy on the machine `local`."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from local_machine import RELEASE, LocalMachine
from program_steps import LAUNCHED, OWN_TASKS

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the machine local needs root")
POLICIES = {
    "other": "SCHED_OTHER",
    "nice:5": "SCHED_OTHER",
    "batch": "SCHED_BATCH",
    "idle": "SCHED_IDLE",
    "rr:10": "SCHED_RR",
    "fifo:10": "SCHED_FIFO",
}


def measure(fixture: LocalMachine, policies: Sequence[str], benchmarks: str) -> None:
    """Run a study with a contender for each policy: each trial is valid, and nothing of it is left."""
    contenders = "".join(
        f'[[contender]]\nkernel = "installed:{RELEASE}"\nname = "c{number}"\npolicy = "{policy}"\n'
        for number, policy in enumerate(policies)
    )
    path = fixture.place / "policies.toml"
    path.write_text(
        f'[study]\nname = "policies"\n{contenders}[machine]\nkind = "local"\nfree_mib = 1\n'
        f'directory = "{fixture.place}/work"\n[settle]\nmode = "fixed"\nseconds = 0\n'
        f'[blocks]\nfixed = 1\nunit = "load"\n{benchmarks}'
    )
    process = fixture.kduel("run", str(path), "--out", str(fixture.run), timeout=600)
    assert process.returncode == 0, fixture.said
    records = fixture.records()
    assert len(records) == len(policies)
    for record in records:
        assert (record["status"], record["failed_steps"]) == ("ok", {}), record
    assert list((fixture.place / "work").iterdir()) == []


@pytest.mark.slow
def test_each_program_runs_under_each_policy(fixture: LocalMachine) -> None:
    measure(fixture, list(POLICIES), LAUNCHED + OWN_TASKS)
    wanted = {f"c{number}": said for number, said in enumerate(POLICIES.values())}
    for record in fixture.records():
        (said,) = (fixture.run / "trials" / str(record["id"])).glob("*-policy/stdout")
        assert wanted[record["contender"]] in said.read_text()


@pytest.mark.slow
def test_deadline_tasks_run(fixture: LocalMachine) -> None:
    measure(fixture, ["other", "deadline:2ms,10ms,10ms"], OWN_TASKS)
