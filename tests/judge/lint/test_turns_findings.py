"""Findings of runs in turns: noticed where they were planted, silent on the same record without the flaw."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from flaws import PLANTED, sensitivity
from lint_runs import linted, noise, said, table
from msgspec import structs
from planted_flaws.carry_over import following
from planted_flaws.share_unequal import held_late
from taken_turns import TURN, change_turns, in_turns, turns_of, with_slices

from kduel.core.samples import Samples
from kduel.judge.lint.turns import seconds_in_common

OLD, NEW = noise(12), noise(12, seed=8)
OF_TURNS = {"overlap", "share-unequal", "out-of-step", "paused-clock", "not-shared"}


def clean() -> Samples:
    return in_turns(table(OLD, NEW))


def test_turns_without_fault_raise_nothing() -> None:
    assert said(clean()) == {}


class TestOverlap:
    def late(self, seconds: float) -> Samples:
        """Each turn of the second contender begins that early, in one of four slices."""
        samples = clean()
        for block in range(12):
            windows = samples.turns["new"][block][0].windows
            change_turns(samples, "new", block, 0, windows=[(begin - 0.001 - seconds, TURN) for begin, _ in windows])
        return samples

    def test_turns_over_each_other_are_noticed_by_their_windows(self) -> None:
        message = said(self.late(0.001))["overlap"]
        assert "ran at the same time for 0.24 of 48 s (0.5 %)" in message

    def test_a_thousandth_is_left_in_peace(self) -> None:
        """0.2 ms of 50 in a quarter of the slices."""
        assert "overlap" not in said(self.late(0.00015))

    def test_what_the_record_counts_is_noticed_without_windows(self) -> None:
        samples = clean()
        for block in range(12):
            change_turns(samples, "old", block, 2, windows=[], overlap_seconds=0.01)
        assert "0.12 of 48 s" in said(samples)["overlap"]

    def test_common_seconds(self) -> None:
        first = [(0.0, 1.0), (2.0, 1.0), (4.0, 1.0)]
        assert seconds_in_common(first, [(1.0, 1.0), (3.0, 1.0)]) == 0
        assert seconds_in_common(first, [(0.5, 2.0), (2.5, 2.0)]) == pytest.approx(0.5 + 0.5 + 0.5 + 0.5)
        assert seconds_in_common([], first) == seconds_in_common(first, []) == 0


class TestShares:
    def run(self, share: float) -> Samples:
        return held_late(share)(np.random.default_rng(2), 12, 3)

    def test_more_running_time_for_a_second_of_the_clock_is_noticed(self) -> None:
        message = said(self.run(0.02))["share-unequal"]
        assert "1.019 s of the host's time" in message and "new" in message

    def test_equal_shares_are_left_in_peace(self) -> None:
        assert "share-unequal" not in said(self.run(0.0))

    def test_a_tenth_of_delta_does_not_matter(self) -> None:
        """Without any noise of the clock: 0.05 % is certain, and small beside a delta of 1 %."""
        for longer, there in ((1.0005, False), (1.0015, True)):
            samples = clean()
            for block in range(12):
                for number in range(4):
                    change_turns(samples, "new", block, number, running_seconds=longer)
            assert ("share-unequal" in said(samples)) is there

    def test_fixed_work_takes_its_own_time(self) -> None:
        """A faster contender runs less, and its clock with it."""
        samples = clean()
        for block in range(12):
            for number in range(4):
                change_turns(samples, "new", block, number, running_seconds=0.8, guest_seconds=0.8)
        assert not OF_TURNS & set(said(samples))

    def test_a_clock_that_nobody_read_shows_nothing(self) -> None:
        samples = self.run(0.02)
        for block in range(12):
            for number in range(4):
                change_turns(samples, "old", block, number, guest_seconds=None)
        assert not OF_TURNS & set(said(samples))


class TestOutOfStep:
    def alone(self, seconds: float, name: str = "new") -> Samples:
        samples = clean()
        for block in range(12):
            for number in range(4):
                change_turns(samples, name, block, number, alone_seconds=seconds)
        return samples

    def test_a_contender_that_goes_on_alone_is_noticed(self) -> None:
        message = said(self.alone(0.2))["out-of-step"]
        assert message.startswith("new ran 7.2 of 48 s of the step alone (15 %)")
        assert said(self.alone(0.2, "old"))["out-of-step"].startswith("old ")

    def test_the_last_turn_is_alone_anyway(self) -> None:
        assert "out-of-step" not in said(self.alone(TURN))
        assert "out-of-step" not in said(self.alone(0.09))
        assert "out-of-step" in said(self.alone(0.12))

    def test_whole_slices_in_turn_are_always_alone(self) -> None:
        samples = self.alone(1.0)
        for name in samples.contenders:
            for block in range(12):
                for number in range(4):
                    change_turns(
                        samples, name, block, number, turns=1, windows=[(block + 0.5 * (name == "new"), 0.4)]
                    )
        assert "out-of-step" not in said(samples)


class TestPausedClock:
    def test_a_clock_that_goes_on_while_the_guest_is_held_is_noticed(self) -> None:
        samples = clean()
        change_turns(samples, "old", 3, 1, guest_seconds=1.28)
        message = said(samples)["paused-clock"]
        assert message.startswith("In 1 of 48 slices of old") and "block 4, slice 2, it went 1.28 s in 1 s" in message

    def test_a_guest_that_runs_on_while_its_clock_stands_is_noticed(self) -> None:
        samples = clean()
        change_turns(samples, "new", 0, 0, guest_seconds=0.9)
        assert "block 1, slice 1" in said(samples)["paused-clock"]

    def test_a_guest_that_somebody_else_stops_is_noticed(self) -> None:
        """An emulated guest's clock goes on while its QEMU is stopped from outside: it agrees with the running time."""
        samples = clean()
        change_turns(samples, "new", 4, 2, guest_seconds=21.0, running_seconds=21.0, longest_stop_seconds=20.0)
        message = said(samples)["paused-clock"]
        assert (
            message.startswith("In 1 of 48 slices of new QEMU did not answer for long")
            and "block 5, slice 3" in message
        )
        assert "20 of 21 s" in message

    def test_a_busy_host_may_answer_late(self) -> None:
        """Half a second, or a twentieth of the step."""
        samples = clean()
        change_turns(samples, "new", 4, 2, longest_stop_seconds=0.4)
        change_turns(samples, "old", 4, 2, guest_seconds=30.0, running_seconds=30.0, longest_stop_seconds=1.0)
        assert "paused-clock" not in said(samples)

    def test_what_stop_costs_and_the_steps_of_the_clock_are_left_in_peace(self) -> None:
        samples = clean()
        for number, seconds in enumerate((1.02, 0.97, 0.95, 1.05)):
            change_turns(samples, "old", 3, number, guest_seconds=seconds)
        assert "paused-clock" not in said(samples)


class TestNotShared:
    def run(self, own: float, shared: float, blocks: int = 40) -> Samples:
        wide = noise(blocks, cv=0.03), noise(blocks, cv=0.03, seed=9)
        return with_slices(table(*wide), np.random.default_rng(4), own=own, shared=shared)

    def test_slices_that_move_each_for_itself_are_noticed(self) -> None:
        message = said(self.run(0.02, 0.0))["not-shared"]
        assert "within 40 blocks" in message

    def test_slices_that_move_together_are_left_in_peace(self) -> None:
        assert "not-shared" not in said(self.run(0.01, 0.05))
        assert "not-shared" not in said(self.run(0.02, 0.02)), "a correlation of one half is useful"

    def test_a_level_that_both_boots_share_is_no_slice_that_moves(self) -> None:
        """Blocks differ by 30 %, which both contenders have in common; their slices share nothing."""
        samples = self.run(0.02, 0.0)
        for number in range(40):
            for name in samples.contenders:
                row = samples.slices[name][number]
                row[:] = [msgspec.structs.replace(one, value=one.value * (1 + 0.3 * (number % 2))) for one in row]
        assert "not-shared" in said(samples)

    def test_a_decided_metric_needs_no_advice(self) -> None:
        apart = with_slices(table(noise(40), noise(40) * 1.2), np.random.default_rng(4), own=0.02, shared=0.0)
        assert linted(apart).metrics[0].verdict == "faster"
        assert "not-shared" not in said(apart)

    def test_one_boot_after_the_other_shares_nothing_and_is_no_finding(self) -> None:
        assert "not-shared" not in said(msgspec.structs.replace(self.run(0.02, 0.0), turns={}))


class TestFindingsOfTime:
    """What changes with time is common to a block: the findings are about the difference of the contenders."""

    ramp = np.linspace(0, 1, 12)
    wave = np.sin(np.arange(24) / 2)

    def test_a_drift_of_the_host_is_none_of_the_difference(self) -> None:
        arms = OLD * (1 + 0.3 * self.ramp), NEW * (1 + 0.3 * self.ramp)
        assert "drift" in said(table(*arms)) and said(in_turns(table(*arms))) == {}

    def test_a_drift_of_the_difference_is_noticed(self) -> None:
        assert (
            "difference of the contenders drifts" in said(in_turns(table(OLD, NEW * (1 + 0.1 * self.ramp))))["drift"]
        )

    def test_spells_of_the_host_are_no_autocorrelation(self) -> None:
        old, new, speed = noise(24), noise(24, seed=8), 1 + 0.02 * self.wave
        assert "autocorrelation" in said(table(old * speed, new * speed))
        assert "autocorrelation" not in said(in_turns(table(old * speed, new * speed)))
        assert "differences of successive blocks" in said(in_turns(table(old, new * speed)))["autocorrelation"]

    def test_a_first_block_that_is_slow_for_both_is_none(self) -> None:
        """Of trials one after the other the first alone would be a finding."""
        slow = np.r_[0.7, np.ones(11)]
        alone = table(OLD, NEW)
        first = next(name for name, order in alone.order.items() if order[0] == 0)
        alone.values[first][0] = 700.0
        assert "first-trial" in said(alone)
        assert "first-trial" not in said(in_turns(table(OLD * slow, NEW * slow)))
        assert "differ by -3" in said(in_turns(table(OLD, NEW * slow)))["first-trial"].replace("−", "-")

    def test_the_order_of_starts_is_no_place_in_time(self) -> None:
        samples = table(OLD, NEW)
        for name in samples.contenders:
            samples.values[name] = [
                (value or 0) * (1.02 if (place or 0) % 2 else 1)
                for value, place in zip(samples.values[name], samples.order[name], strict=True)
            ]
        assert "place in its block" in said(samples)["order-effect"]
        found = said(in_turns(samples))
        assert "started first" in found["order-effect"] and "carry-over" not in found

    def test_nothing_is_left_behind_for_the_next(self) -> None:
        """Of trials one after the other a finding; in turns all of a block ran at the same time."""
        samples = following(9)(np.random.default_rng(3), 12, 3)
        assert "counts against another one" in said(samples)["carry-over"]
        assert "no verdict counts that against another one" in said(samples, carry_over=True)["carry-over"]
        assert "carry-over" not in said(in_turns(samples))


def test_a_trial_follows_the_last_one_of_its_own_machine() -> None:
    """The trial before in the run is one of the other machine, which takes turns with it."""
    found = following(9)(np.random.default_rng(3), 24, 3)
    halves = {
        name: [
            2 * (place or 0) if place is not None and place < 24 else 2 * ((place or 0) - 24) + 1 for place in places
        ]
        for name, places in found.order.items()
    }
    both = structs.replace(found, order=halves, machines=["m1"] * 12 + ["m2"] * 12)
    (metric,) = linted(both).metrics
    assert "carry-over" in {warning.code for warning in metric.warnings}


@pytest.mark.parametrize("code", ["share-unequal", "not-shared"])
def test_no_flaw_no_finding(code: str) -> None:
    """The planted runs without their flaws."""
    flaw = {"share-unequal": held_late(0.0)}.get(code)
    quiet = 0
    for seed in range(20):
        draw = np.random.default_rng(seed)
        samples = (
            flaw(draw, 12, seed)
            if flaw
            else with_slices(table(noise(40, cv=0.03), noise(40, cv=0.03, seed=9)), draw, own=0.02, shared=0.02)
        )
        quiet += code not in said(samples, quick=True)
    assert quiet >= 19
    assert sensitivity(code, PLANTED[code][0], 10) >= 80


def test_a_record_is_made_as_the_guests_take_turns() -> None:
    first, second = turns_of(0, 0.0), turns_of(1, 0.0)
    assert seconds_in_common(first.windows, second.windows) == 0


def test_contenders_without_a_common_block_raise_nothing(recwarn: pytest.WarningsRecorder) -> None:
    """Every second trial of each is void: there is no pair, and numpy has nothing to say of it."""
    columns = [[value if (number + arm) % 2 else None for number, value in enumerate(OLD)] for arm in (0, 1)]
    results = linted(in_turns(table(*columns)), quick=True)
    assert not {str(one.code) for one in results.metrics[0].warnings} & (OF_TURNS | {"drift", "first-trial"})
    assert [str(one.message) for one in recwarn] == []
