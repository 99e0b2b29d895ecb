"""The machine `local` loses its power in mid-trial: nothing of the run is lost. With `./run-tests --all`."""

from __future__ import annotations

import json

import pytest
from own_machine import Own

pytestmark = pytest.mark.guest
MACHINE = Own
ONCE = "cat /proc/sys/vm/swappiness; [ -e /root/cut ] || { : >/root/cut; sync; sleep 600; }"
"""The first trial waits for the cut, and those after it find that it was."""


def test_a_power_cut_in_mid_trial(real: Own) -> None:
    study, run = real.study(ONCE, 2), "/root/run"
    status, said = real.kduel("local", "install", run)
    assert status == 0, said
    real.kduel("run", study, "--out", run)
    real.wait_until("[ -e /root/cut ]")
    real.switch_off()
    real.switch_on()
    real.wait_for_the_end(run)
    records = real.records(run)
    assert [record["id"] for record in records] == [
        json.loads(line)["id"] for line in real.ssh(f"cat {run}/plan.jsonl").splitlines()
    ]
    assert records[0]["status"] == "void" and records[0]["void"]["code"] == "rebooted", records[0]
    assert [record["status"] for record in records[1:]] == ["ok"] * 3
    assert len({record["facts"]["boot_id"] for record in records}) == 4
    assert "status of 1 trial" in real.ssh(f"cat {run}/results.json") or json.loads(
        real.ssh(f"cat {run}/results.json")
    )
    left = real.ssh("ls /var/tmp /var/lib")
    assert "kduel" not in left, left
