"""Machines that fail, by simulation: what the controller does with each, and what stays true."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import simulated
from simulated import TWIN, Clock, Machine, SimulatedFleet, run

from kduel.core.errors import HostError, InputError, NotMeasuredError
from kduel.core.experiment import Contender
from kduel.fleets import FleetSettings
from kduel.judge.evaluate import judge_run
from kduel.run.fleet.controller import Controller
from kduel.run.fleet.quarantine import FEWEST_PEERS, LEVEL, Conduct, difference_reason, equal_pairs, find_misbehaving
from kduel.store.fleet_state import read_state
from kduel.store.rundir import RunDir
from kduel.study.plan import make_plan


def fleet(**machines: Machine) -> SimulatedFleet:
    return SimulatedFleet(machines, Clock())


def blocks_of(path: Path, host: str) -> set[int]:
    return {record.block for record in RunDir.open(path).records() if record.member == host}


def once(own: SimulatedFleet) -> bool:
    return set(own.runs.values()) == {1}


@pytest.mark.slow
def test_a_large_fleet_with_failures_comes_to_its_end(tmp_path: Path):
    draw = random.Random(5)
    machines = {
        f"m{number:02d}": Machine(seconds=draw.uniform(30, 90), crash=0.1, void=0.02) for number in range(1, 25)
    }
    own = SimulatedFleet(machines, Clock())
    run(own, tmp_path / "run", "fixed = 96")
    assert once(own) and len(own.runs) == 2 * 96
    assert len(RunDir.open(tmp_path / "run").records()) == 2 * 96


def test_orders_are_those_of_the_machine_whoever_else_takes_part(tmp_path: Path):
    from simulated import study

    made = study("fixed = 40")
    alone = [one.contender for one in make_plan(made, 7, hosts=["x"])][:20]
    among = [one.contender for one in make_plan(made, 7, hosts=["y", "x", "z", "v"]) if one.host == "x"]
    assert alone == among != [one.contender for one in make_plan(made, 7, hosts=["y"])][:20]
    for trials in (make_plan(made, 7, hosts=["x", "y", "z"]),):
        assert all(len({one.host for one in trials if one.block == block}) == 1 for block in range(1, 41))


@pytest.mark.slow
def test_the_verdict_does_not_depend_on_which_machine_was_faster(tmp_path: Path):
    told = []
    for number, seconds in enumerate(((60, 61, 59), (20, 90, 40), (90, 20, 85))):
        machines = {name: Machine(seconds=s, gain=1.05) for name, s in zip("abc", seconds, strict=True)}
        path = tmp_path / str(number)
        run(SimulatedFleet(machines, Clock()), path, "max = 60", ahead=0)
        metric = judge_run(path).metrics[0]
        told.append((metric.verdict, metric.decided_at, metric.effect_pct, metric.n))
    assert told[0] == told[1] == told[2] and told[0][0] == "faster" and told[0][3] < 60


@pytest.mark.slow
def test_blocks_of_machines_that_are_ahead_end_no_run(tmp_path: Path):
    """Else the verdict would rest on the fast machines alone."""
    rounds = []
    for number, seconds in enumerate(((60, 60, 60), (20, 21, 100))):
        machines = {name: Machine(seconds=s, gain=1.02) for name, s in zip("abc", seconds, strict=True)}
        run(SimulatedFleet(machines, Clock()), tmp_path / str(number), "max = 90", ahead=8)
        rounds.append(len(blocks_of(tmp_path / str(number), "c")))
    assert rounds[0] == rounds[1]


@pytest.mark.slow
def test_a_machine_that_never_returns_is_lost_and_the_rest_goes_on(tmp_path: Path):
    own = fleet(a=Machine(), b=Machine(gone_after=3), c=Machine())
    heard = run(own, tmp_path / "run", "fixed = 30", patience=1800.0)
    out = read_state(tmp_path / "run").out
    assert {name: one.why for name, one in out.items()} == {"b": "lost"} and "no trial for 1800 s" in out["b"].message
    assert any("b is lost" in text and "it does not answer" in text for text in heard.warnings)
    assert len(blocks_of(tmp_path / "run", "a")) == len(blocks_of(tmp_path / "run", "c")) == 10
    assert blocks_of(tmp_path / "run", "b") == {2, 5, 8} and once(own)
    assert out["b"].round == 3, "as many as it ended"
    # It is back, but the analyses have counted on its absence.
    own.machines["b"].gone_after = 10**9
    run(own, tmp_path / "run", "fixed = 30")
    assert blocks_of(tmp_path / "run", "b") == {2, 5, 8}


@pytest.mark.slow
def test_where_all_machines_are_away_nothing_is_decided_and_the_run_goes_on_later(tmp_path: Path):
    own = fleet(a=Machine(gone_after=2), b=Machine(gone_after=2))
    with pytest.raises(HostError, match="no machine of the fleet makes progress"):
        run(own, tmp_path / "run", "fixed = 12", patience=1800.0)
    assert read_state(tmp_path / "run").out == {}
    for machine in own.machines.values():
        machine.gone_after = 10**9
    run(own, tmp_path / "run", "fixed = 12", patience=1800.0)
    assert once(own) and len(own.runs) == 24


@pytest.mark.slow
def test_a_machine_that_fails_each_time_is_lost(tmp_path: Path):
    own = fleet(a=Machine(), b=Machine(), full=Machine(crash=1.0))
    heard = run(own, tmp_path / "run", "fixed = 30")
    out = read_state(tmp_path / "run").out
    assert out["full"].why == "lost" and "3 failures in a row: the worker crashed" in out["full"].message
    assert sum("It is tried again" in text for text in heard.warnings) >= 2
    assert once(own)


@pytest.mark.slow
@pytest.mark.parametrize(("flaw", "why"), [({"void": 0.6}, "trials are void"), ({"seconds": 900.0}, "blocks took")])
def test_a_machine_unlike_its_peers_is_quarantined(tmp_path: Path, flaw: dict[str, float], why: str):
    own = fleet(a=Machine(), b=Machine(), c=Machine(), odd=Machine(**flaw), e=Machine())  # type: ignore[arg-type]
    run(own, tmp_path / "run", "fixed = 100")
    out = read_state(tmp_path / "run").out
    assert list(out) == ["odd"] and out["odd"].why == "quarantined" and why in out["odd"].message
    # By then it was some blocks ahead of the slowest at most.
    assert 0 <= len(blocks_of(tmp_path / "run", "odd")) - out["odd"].round <= FleetSettings().ahead + 1
    assert out["odd"].round > 2
    assert all(len(blocks_of(tmp_path / "run", name)) == 20 for name in "abce")
    told = [warning.message for warning in judge_run(tmp_path / "run").warnings if warning.code == "machine-out"]
    assert len(told) == 1 and told[0].startswith("odd is quarantined") and why in told[0]


@pytest.mark.slow
def test_values_never_quarantine_a_machine(tmp_path: Path):
    own = fleet(a=Machine(), b=Machine(), c=Machine(level=10.0, gain=0.5), d=Machine())
    run(own, tmp_path / "run", "fixed = 40")
    assert read_state(tmp_path / "run").out == {}


@pytest.mark.slow
def test_a_machine_that_tells_equal_contenders_apart_is_quarantined(tmp_path: Path):
    own = fleet(a=Machine(), b=Machine(), c=Machine(), odd=Machine(apart=1.05), e=Machine())
    run(own, tmp_path / "run", "fixed = 60", also=TWIN)
    out = read_state(tmp_path / "run").out
    assert list(out) == ["odd"] and out["odd"].why == "quarantined"
    assert out["odd"].message.startswith("a and twin in value/value, which are the same, differ on it by +")
    # All contenders alike: a test of the method, in which nothing is left out for its values.
    alike = fleet(a=Machine(), b=Machine(), c=Machine(), odd=Machine(apart=1.05), e=Machine())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulated, "STUDY", simulated.STUDY.replace('kernel = "b"', 'kernel = "a"\nname = "again"'))
        run(alike, tmp_path / "aa", "fixed = 60", also=TWIN)
    assert read_state(tmp_path / "aa").out == {}


def test_equal_contenders_are_those_that_differ_in_their_names_alone():
    one, other = Contender(name="one", kernel="k"), Contender(name="other", kernel="k")
    word = Contender(name="word", kernel="k", cmdline="nohz=off")
    assert equal_pairs([one, word, other], ["s", "s", "s"]) == [("one", "other")]
    assert equal_pairs([one, word, other], ["s", "s", "t"]) == []
    assert equal_pairs([one, other], ["s", "s"]) == []


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["normal", "two modes", "few values"])
def test_machines_that_tell_nothing_apart_are_rarely_quarantined_for_it(noise: str):
    draw = random.Random(13)
    values = {
        "normal": lambda scale: draw.gauss(0, scale),
        "two modes": lambda scale: draw.choice((0.0, scale)) - draw.choice((0.0, scale)),
        "few values": lambda scale: round(draw.gauss(0, 0.6)) * scale,
    }[noise]
    alarms = 0
    for _ in range(300):
        scale = {str(number): draw.choice((0.002, 0.01, 0.02)) for number in range(6)}
        conduct = {name: Conduct() for name in scale}
        for _ in range(20):
            for name, own in conduct.items():
                own.apart.setdefault("a and twin", []).append(values(scale[name]))
            if find_misbehaving(conduct):
                alarms += 1
                break
    assert alarms <= 6


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.05, 0.3])
def test_machines_that_are_alike_are_rarely_quarantined(share: float):
    draw = random.Random(11)
    alarms = 0
    for _ in range(150):
        conduct = {str(number): Conduct() for number in range(8)}
        for _ in range(15):
            for own in conduct.values():
                void = sum(draw.random() < share for _ in range(2))
                own.trials, own.void = own.trials + 2, own.void + void
                own.blocks += [] if void else [draw.lognormvariate(4, 0.3)]
            if find_misbehaving(conduct):
                alarms += 1
                break
    # The level is 0.001 a round for all machines together; 15 rounds of data that overlap.
    assert alarms <= 3


def test_never_are_all_but_one_quarantined():
    conduct = {str(number): Conduct(trials=60, void=50 if number else 0) for number in range(4)}
    left = len(conduct) - len(find_misbehaving(conduct))
    assert left >= FEWEST_PEERS


def test_members_that_differ_in_what_must_be_the_same_are_refused(tmp_path: Path):
    for odd, what in (
        (Machine(architecture="aarch64"), "architecture: x86_64 on a, aarch64 on odd"),
        (Machine(accelerator="kvm"), "machine.facts.accelerator: tcg on a, kvm on odd"),
    ):
        with pytest.raises(InputError, match=what):
            run(fleet(a=Machine(), odd=odd), tmp_path / "run", "fixed = 12")
        assert not (tmp_path / "run").exists() and not list(tmp_path.iterdir())


def test_exact_machines_with_two_versions_of_qemu_are_refused(tmp_path: Path):
    """Their counts differ, by little."""
    with pytest.raises(InputError, match=r"machine\.facts\.qemu: 7\.2\.22 on a, 10\.0\.13 on odd"):
        run(fleet(a=Machine(qemu="7.2.22"), odd=Machine(qemu="10.0.13")), tmp_path / "run", "fixed = 12")
    assert not list(tmp_path.iterdir())


def test_a_fleet_with_another_version_of_kduel_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match=r"a has KDuel 0\.0\.9, and this is"):
        run(fleet(a=Machine(kduel="0.0.9"), b=Machine(kduel="0.0.9")), tmp_path / "run", "fixed = 12")
    assert not list(tmp_path.iterdir())


def test_a_clock_one_hour_off_is_told_and_harmless(tmp_path: Path):
    own = fleet(a=Machine(), late=Machine(clock=-3600.0))
    heard = run(own, tmp_path / "run", "fixed = 12")
    assert any("the clock of late is 3600 s behind" in text for text in heard.warnings)
    lock = RunDir.open(tmp_path / "run").lock()
    assert lock.fleet is not None and [one.clock_ahead for one in lock.fleet.members] == [0.0, -3600.0]
    assert once(own) and len(own.runs) == 24


def test_a_contender_that_is_void_on_every_machine_ends_the_run(tmp_path: Path):
    own = fleet(a=Machine(void=1.0), b=Machine(void=1.0), c=Machine(void=1.0))
    with pytest.raises(NotMeasuredError, match="could not be measured"):
        run(own, tmp_path / "run", "fixed = 30")
    assert len(own.runs) <= 18


@pytest.mark.slow
@pytest.mark.parametrize(("code", "condemned"), [("no-node", False), ("unreachable", False), ("panic", True)])
def test_a_machine_that_is_not_there_condemns_no_contender(tmp_path: Path, code: str, condemned: bool):
    own = fleet(**{name: Machine(void=1.0, void_code=code) for name in "abc"})
    if condemned:
        with pytest.raises(NotMeasuredError, match="could not be measured"):
            run(own, tmp_path / "run", "fixed = 6")
    else:
        run(own, tmp_path / "run", "fixed = 6")
        assert len(own.runs) == 12


def test_a_trial_that_was_damaged_on_its_way_does_not_count(tmp_path: Path):
    own = fleet(a=Machine(void=0.0), b=Machine(void=0.0))
    keep = RunDir.keep

    def damaged(self: RunDir, staged: Path, record: object) -> None:
        keep(self, staged, record)  # type: ignore[arg-type]
        if record.block == 2:  # type: ignore[attr-defined]
            path = self.directory(record.id) / "01-value" / "stdout"  # type: ignore[attr-defined]
            path.write_text("value: 999\n")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunDir, "keep", damaged)
        with pytest.raises(InputError, match="did not arrive completely: 01-value/stdout was changed"):
            run(own, tmp_path / "run", "fixed = 12")
    assert all(record.block != 2 for record in RunDir.open(tmp_path / "run").records())


@pytest.mark.parametrize(("slow", "out"), [((12, 15, 18), []), ((9, 12, 15), []), ((3, 6, 9), ["c"])])
def test_blocks_of_a_round_that_is_not_complete_quarantine_no_machine(slow: tuple[int, ...], out: list[str]):
    """Three machines, three rounds; c is ahead of the others by three blocks."""
    blocks = [(block, "abc"[(block - 1) % 3]) for block in (*range(1, 10), 12, 15, 18)]
    records = {
        f"{block}": SimpleNamespace(member=host, block=block, status="ok", seconds=6000.0 if block in slow else 60.0)
        for block, host in blocks
    }
    taken: list[str] = []
    controller: Any = SimpleNamespace(
        lock=SimpleNamespace(hosts=["a", "b", "c"]),
        state=SimpleNamespace(out={}),
        complete_rounds=lambda: 3,
        records=SimpleNamespace(by_id=records),
        decision=SimpleNamespace(samples=lambda _: []),
        twins=[],
        take_out=lambda name, _: taken.append(name),
    )
    Controller.quarantine(controller)
    assert taken == out


@pytest.mark.parametrize(("machines", "pairs", "out"), [(1, 1, True), (4, 1, False), (1, 2, False)])
def test_the_level_of_a_difference_is_shared_by_machines_and_pairs(machines: int, pairs: int, out: bool):
    """One that chance explains half as often as the level allows for one machine and pair."""
    from scipy.special import stdtrit

    distance = -float(stdtrit(7, LEVEL / 2 / 2)) * 0.01 / 8**0.5
    values = [distance + 0.01 * (7 / 8) ** 0.5 * sign for sign in (1, -1) * 4]
    own = Conduct(trials=16, apart={f"pair {number}": values for number in range(pairs)})
    spread = {"pair 0": 0.01**2}
    assert bool(difference_reason(own, spread, [spread] * FEWEST_PEERS, machines)) is out
