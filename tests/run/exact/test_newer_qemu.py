"""The exact machine with Debian 13's QEMU, as a user has it, and beside Debian 12's: both in bare systems, made here.

What the network gives (kernels) is carried in by a bundle. `./run-tests --all` runs these tests; they take root, and some
minutes for the two systems.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from counting import count_both, ready_pair
from planted import COMMITS, CULPRIT, FUNCTION, UNBUILDABLE, history, planted

from kduel.benchmarks.support.operations import ASKED_FOR, OPERATIONS
from kduel.core.errors import InputError
from kduel.fleets import Member
from kduel.guest.programs import plugin_recipe
from kduel.run.fleet.gather import check_alike
from kduel.run.fleet.worker import MemberDescription
from kduel.store.rundir import RunDir

pytestmark = [
    pytest.mark.guest,
    pytest.mark.network,
    pytest.mark.skipif(os.geteuid() != 0, reason="a bare system takes root"),
]

ROOT = Path(__file__).parents[3]
KERNELS = ("debian:6.1-cloud", "debian:6.12-cloud")
POINTS = 0.5
"""Percentage points by which two versions of QEMU may find different differences between kernels. Where the difference
depends on conditions by more than that, its ranges overlap."""


class Difference(NamedTuple):
    """Of 6.12 against 6.1, in per cent."""

    effect: float
    low: float
    high: float
    verdict: str

    def agrees(self, other: Difference) -> bool:
        return abs(self.effect - other.effect) <= POINTS or (self.low <= other.high and other.low <= self.high)


class System(NamedTuple):
    """What a bare Debian left in the shared directory."""

    place: Path

    @property
    def run(self) -> Path:
        return self.place / "run"

    @property
    def qemu(self) -> str:
        return str(RunDir.open(self.run).lock().machine.facts["qemu"])

    @property
    def differences(self) -> dict[str, Difference]:
        """By operation."""
        metrics = json.loads((self.run / "results.json").read_bytes())["metrics"]
        return {
            one["benchmark"]: Difference(
                one["effect_pct"], one["ci_low_pct"], one["ci_high_pct"], "small" if small(one) else one["verdict"]
            )
            for one in metrics
            if one["role"] == "primary" and one["metric"] == "instructions"
        }


def small(metric: dict[str, Any]) -> bool:
    """Whether a difference is too small to matter; that its sign is the same under all conditions may be chance."""
    return metric["verdict"] == "equivalent" or bool(metric["below_delta"])


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory that the systems share: the kernels, and a history of which one commit has a regression."""
    place = tmp_path_factory.mktemp("share")
    words = ["bundle", *KERNELS, "--suite", "exact", "--output", place / "kernels.tar"]
    subprocess.run([ROOT / "kduel", *words], check=True)
    difference = subprocess.run(["git", "-C", ROOT, "diff", "--binary", "HEAD"], check=True, capture_output=True)
    (place / "uncommitted").write_bytes(difference.stdout)
    counted = count_both(ready_pair([KERNELS[1]] * 2, "null-call"))
    symbols = (counted[0].directory / "trial" / "kallsyms").read_text()
    history(place / "linux", planted(KERNELS[1], symbols, place))
    return place


def bare(release: str, share: Path, *commands: str) -> System:
    """Count the suite on a bare Debian of that release, then run the commands there, in the clone of this checkout."""
    system = System(share / release)
    system.place.mkdir()
    first = (
        f"[ ! -s {share}/uncommitted ] || git apply {share}/uncommitted",
        f"./kduel bundle --unpack {share}/kernels.tar",
        f"./kduel run {' '.join(KERNELS)} --suite exact --offline --quiet --out {system.run}",
    )
    script = [ROOT / "scripts/bare-debian", "--release", release, "--share", share]
    subprocess.run([*script, *first, *commands], check=True)
    return system


@pytest.fixture(scope="module")
def older(share: Path) -> System:
    return bare("bookworm", share)


@pytest.fixture(scope="module")
def newer(share: Path, older: System) -> System:
    place = share / "trixie"
    bisect = f"./kduel bisect HEAD~{COMMITS - 1} HEAD --tree {share}/linux -b null-call"
    return bare(
        "trixie",
        share,
        f"./kduel explain {place}/run -b pipe --offline --format json --output {place}/pipe.json",
        f"{bisect} --build-dir {place}/work --build-command 'sh recipe' --image kernel >{place}/bisect 2>{place}/log",
        f"ls ~/.cache/kduel/programs >{place}/programs",
        f"cp -r {older.run} {place}/older; rm -r {place}/older/trials/0002*",
        f"./kduel resume {place}/older --offline >{place}/resumed 2>&1 || echo status $? >>{place}/resumed",
    )


def test_each_release_has_its_own_qemu_and_the_plug_in_for_it(older: System, newer: System) -> None:
    assert older.qemu.startswith("7.2.")
    assert tuple(map(int, newer.qemu.split(".")[:2])) >= (9, 1)
    there = (newer.place / "programs").read_text().split()
    assert {plugin_recipe(name, api=3, host="x86_64").entry for name in ("counter", "guard")} <= set(there)


def test_both_find_the_same_difference_between_two_kernels(older: System, newer: System) -> None:
    ones, others = older.differences, newer.differences
    assert set(ones) == set(others) == set(OPERATIONS) - {"empty", *ASKED_FOR}
    assert {name: one.verdict for name, one in ones.items()} == {name: one.verdict for name, one in others.items()}
    assert not [(name, ones[name], others[name]) for name in ones if not ones[name].agrees(others[name])]
    # What varies with conditions is the exception.
    assert sum(abs(ones[name].effect - others[name].effect) <= POINTS for name in ones) >= 0.95 * len(ones)
    # Two kernels: not a table of zeros.
    assert max(abs(one.effect) for one in others.values()) > 10


def test_the_newer_one_explains_a_difference_and_its_clock_agrees(newer: System) -> None:
    found: dict[str, Any] = json.loads((newer.place / "pipe.json").read_bytes())
    assert newer.qemu.startswith(found["qemu"])
    functions = {row["function"] for row in found["rows"] if row["baseline"] != row["contender"]}
    assert {"try_to_wake_up", "psi_group_change", "pick_eevdf"} <= functions
    for arm in ("baseline", "contender"):
        # Reading the clock takes three instructions.
        assert sum(row[arm] for row in found["rows"]) - found["clock"][arm] == 3 * found["operations"]


def test_the_newer_one_finds_the_commit_past_one_that_does_not_build(newer: System) -> None:
    said = (newer.place / "bisect").read_text()
    assert CULPRIT in said and "(+3 per operation)" in said and FUNCTION in said
    assert f"does not build: {UNBUILDABLE}" in (newer.place / "log").read_text()


def test_two_versions_are_not_mixed_in_one_run(older: System, newer: System) -> None:
    said = (newer.place / "resumed").read_text()
    assert "machine.facts.qemu: 7.2." in said and "status 2" in said
    members = (Member(name="older"), Member(name="newer"))
    locks = {name: RunDir.open(one.run).lock() for name, one in (("older", older), ("newer", newer))}
    with pytest.raises(InputError, match=r"machine\.facts\.qemu: 7\.2\..* on older, .* on newer"):
        check_alike(members, {name: MemberDescription(lock=lock, clock=0.0) for name, lock in locks.items()})
