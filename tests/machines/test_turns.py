"""Exact CPUs of one speed without a guest: what is refused, and when a trial's turns were uneven."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kduel.core.errors import InputError
from kduel.core.experiment import Contender
from kduel.guest.envelope import LATER
from kduel.machines import machine_kind
from kduel.machines.guests import turns

EVEN: dict[str, Any] = {
    "quantum": 10_000,
    "behind": 30_000,
    "waited": 0,
    "passed_over": 383,
    "over": 538,
    "polls": True,
    "cpus": [[24465, 244650002], [24356, 244640522], [24197, 244640000], [24457, 244650002]],
}
"""As the plug-in wrote it of a trial with four CPUs."""


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"scheduling": True}, "two CPUs"),
        ({"scheduling": True, "cpus": 4, "layouts": 3}, "layouts"),
        ({"cpus": 4, "quantum": 5000}, "quantum belongs to scheduling"),
        ({"cpus": 4, "online": "descending"}, "online belongs to scheduling"),
        ({"scheduling": True, "cpus": 4, "quantum": 10}, "quantum"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        machine_kind("icount").read_all_settings(settings, [Contender(kernel="k")])


def test_contenders_count_with_as_many_cpus_as_the_plug_in_is_for() -> None:
    """One CPU has the plug-in of counts, several that of shared lines; [machine] says which."""
    two, four = (Contender(kernel="k", name=f"{count}", machine={"cpus": count}) for count in (2, 4))
    read = machine_kind("icount").read_all_settings
    with pytest.raises(InputError, match=r"\[machine\] has 1, contenders 2, 4") as error:
        read({}, [two, four])
    assert "icount:cpus=2" in error.value.remedy
    assert [one.cpus for one in read({"cpus": 2}, [two, four])] == [2, 4]
    assert [one.cpus for one in read({"scheduling": True}, [two, four])] == [2, 4]


def test_with_scheduling_nothing_is_counted_per_operation() -> None:
    never = machine_kind("icount").never
    for benchmark in ("sharing", "kbench", "boot-instructions", "lines"):
        why = never({"cpus": 4, "scheduling": True}, benchmark)
        assert all(word in why for word in ("kload:kind=messages", "hackbench", "--suite exact-sharing"))
    assert not never({"cpus": 4, "scheduling": True}, "wakeup")


def test_without_scheduling_nothing_is_timed_on_several_cpus() -> None:
    """A CPU would be the faster the more of the others are idle, and nothing would say so."""
    never = machine_kind("icount").never
    for benchmark in ("wakeup", "tasks", "kload", "hackbench", "kbench"):
        assert "unless scheduling = true" in never({"cpus": 4}, benchmark)
        assert "unless scheduling = true" in never({"topology": "two-llc"}, benchmark)
    assert not never({"cpus": 4}, "sharing") and not never({}, "wakeup")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"behind": 170_001}, "behind by 170,001 instructions"),
        ({"polls": False}, "does not poll"),
        ({"cpus": [[24465, 244650002], [24356, 244640522], [24197, 0], [24457, 244650002]]}, "not all of 4 CPUs"),
        (
            {"cpus": [[24465, 244650002], [24356, 244640522], [24197, 244400000], [24457, 244650002]]},
            "244,400,000 to",
        ),
        ({"quantum": 5000}, "not all of"),
        ({"more": 1}, "no account of turns"),
    ],
)
def test_uneven_turns_are_found(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    (tmp_path / turns.TURNS).write_text(json.dumps(EVEN | change))
    why = turns.why_uneven(tmp_path / turns.TURNS, 4, 10_000)
    assert said in why if said else not why


def test_a_trial_resolves_no_less_than_a_cpu_was_behind(tmp_path: Path) -> None:
    """What a CPU does comes later by what it has still to get: of 16 CPUs that is up to 2.7 ms, not 160 us."""
    file = tmp_path / turns.TURNS
    for cpus, behind, resolved in ((4, 9_000, 40_000), (4, 30_000, 120_000), (16, 170_000, 2_720_000)):
        file.write_text(json.dumps(EVEN | {"behind": behind}))
        assert turns.resolution_of_trial(file, cpus) == resolved


def test_without_an_account_nothing_is_believed(tmp_path: Path) -> None:
    assert "no account" in turns.why_uneven(tmp_path / turns.TURNS, 4, 10_000)


def test_cpus_come_online_in_the_order_that_was_asked_for() -> None:
    assert "for cpu in 1 2 3;" in turns.bring_online(4, descending=False)
    assert "for cpu in 3 2 1;" in turns.bring_online(4, descending=True)


def test_the_plug_in_is_named_by_what_it_needs() -> None:
    assert turns.resolution(4, 10_000) == 40_000 and "40 us" in turns.warning(4, 10_000)


def test_the_account_has_a_name_that_no_other_file_of_a_trial_has() -> None:
    """What a guest leaves under a name that KDuel is yet to write makes its trial void."""
    assert turns.TURNS not in LATER


def test_the_plug_in_lets_a_cpu_be_as_far_behind_as_the_account_allows() -> None:
    source = (Path(turns.__file__).parents[2] / "guest/programs/plugin/turns.c").read_text("utf-8")
    assert re.findall(r"\bLAG = (\d+)", source) == [str(turns.LAG)]
