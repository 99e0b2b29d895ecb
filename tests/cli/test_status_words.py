"""`kduel status` says whether a number of blocks is the plan's or the most."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from kduel.cli.status import as_text, read_status
from kduel.store.rundir import RunDir


@pytest.mark.parametrize(("fixed", "said"), [(True, ", {} of {} blocks, "), (False, ", {} of up to {} blocks, ")])
def test_only_a_run_that_may_end_sooner_has_up_to_so_many_blocks(
    unpack: Callable[[str], Path], fixed: bool, said: str
) -> None:
    found = structs.replace(read_status(unpack("qemu")), fixed=fixed)
    assert said.format(found.blocks, found.planned) in as_text(found)


def test_it_is_known_from_the_lock(unpack: Callable[[str], Path]) -> None:
    run = unpack("qemu")
    assert read_status(run).fixed is ('"fixed": null' not in (run / "lock.json").read_text())


def test_a_boot_that_trials_share_takes_its_time_once(unpack: Callable[[str], Path]) -> None:
    """By it the time left is estimated."""
    run = unpack("local")
    records = RunDir.open(run).records()
    boots = {record.boot: record.seconds for record in records}
    assert len(boots) < len(records)
    (machine,) = read_status(run).machines
    assert machine.seconds == pytest.approx(2 * sum(boots.values()) / len(records))
