"""The machine `local` in earnest: KDuel on a machine that it reboots itself, trial after trial, by the unit that goes on.

With `./run-tests --all`; test_local.py has what needs no machine.
"""

from __future__ import annotations

import json

import pytest
from own_machine import Own

pytestmark = pytest.mark.guest
MACHINE = Own
SEEN = "cat /proc/sys/kernel/random/boot_id; uname -r; grep -o kduel_test=1 /proc/cmdline || true; cat /proc/sys/vm/swappiness"


def test_a_run_across_reboots(real: Own) -> None:
    """As a user would: install, run, look at the report when all is over, remove."""
    first = real.ssh("cat /proc/sys/kernel/random/boot_id").strip()
    study, run = real.study(SEEN, 1), "/root/run"
    status, said = real.kduel("local", "install", run)
    assert status == 0, said
    status, said = real.kduel("run", study, "--out", run)
    assert status in (130, 255), said
    real.wait_for_the_end(run)

    records = real.records(run)
    planned = [json.loads(line)["id"] for line in real.ssh(f"cat {run}/plan.jsonl").splitlines()]
    assert [record["id"] for record in records] == planned
    assert [record["status"] for record in records] == ["ok", "ok"], [(r["void"], r["failed_steps"]) for r in records]
    boots = [record["facts"]["boot_id"] for record in records]
    assert len({first, *boots}) == 3, "each in a boot of its own"
    old, new = real.releases
    for record, boot in zip(records, boots, strict=True):
        seen = real.ssh(f"cat {run}/trials/{record['id']}/01-seen/stdout").split()
        assert seen == [boot, *([old, "60"] if record["contender"] == "old" else [new, "kduel_test=1", "7"])]
    results = json.loads(real.ssh(f"cat {run}/results.json"))
    assert [trial["status"] for trial in results["trials"]] == ["ok", "ok"]
    assert {metric["verdict"] for metric in results["metrics"]} == {"undecided"}, "two trials decide nothing"

    # In the boot of the last trial, and after `remove`: nothing of ours is left.
    assert real.ssh("cat /proc/sys/kernel/random/boot_id").strip() == boots[-1]
    assert real.ssh("cat /proc/sys/vm/swappiness") == "60\n"
    status, said = real.kduel("local", "remove")
    assert (status, said) == (0, "removed /etc/systemd/system/kduel-resume.service\n")
    left = real.ssh(
        "find /etc/systemd /run/systemd -name '*kduel-resume*'; ls /boot/grub /var/lib /var/tmp; cat /boot/grub/grubenv; "
        "systemctl list-units --all --no-legend | grep kduel-resume; systemctl --failed --no-legend"
    )
    assert "kduel" not in left and "custom.cfg" not in left and "next_entry=\n" in left, left
    assert real.kduel("local", "remove") == (0, "there was nothing to remove\n")
