"""Guests that take turns, with real QEMU and kernels of a few bytes whose steps last by the guest's clock."""

from __future__ import annotations

import errno
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
import tiny_kernels as tiny
from test_guest_launch import boot, guests, machine, named
from waiting import wait_for

from kduel.core.errors import HostError
from kduel.guest.console import read_console
from kduel.guest.launch import Launch, Run, run
from kduel.guest.turns import BlockTurns, Seat, run_in_turns

pytestmark = pytest.mark.guest

SHORT, LONG = 4, 12
"""Lengths of steps in 2^28 ticks of the guest's TSC, about a tenth of a second."""


def work(ticks: int) -> bytes:
    """Code that waits until the TSC has advanced by so many times 2^28."""
    start = b"\x0f\x31\x89\xc3\x89\xd1"  # rdtsc; mov ebx, eax; mov ecx, edx
    loop = b"\x0f\x31\x29\xd8\x19\xca\x0f\xac\xd0\x1c\x3d" + struct.pack("<I", ticks)  # rdtsc; sub, sbb; shrd 28; cmp
    return start + loop + b"\x72" + struct.pack("b", -len(loop) - 2)  # jb


def step(name: str, ticks: int) -> bytes:
    return tiny.say(f"kduel: step {name}\n".encode()) + work(ticks) + tiny.say(f"kduel: step {name} ended\n".encode())


END = work(2) + tiny.POWER_OFF
ORDINARY = step("01-a", LONG) + step("02-b", SHORT) + END
LENGTHS = {"01-a": 0.05, "02-b": 0.0}


def block(
    directory: Path,
    *codes: bytes,
    deadlines: Sequence[float] = (120.0,) * 3,
    turns: BlockTurns | None = None,
    pin: Sequence[int] = (),
) -> list[Run]:
    turns = turns or BlockTurns(len(codes), LENGTHS, "1")

    def boot_one(number: int, seat: Seat) -> Run:
        place, deadline = directory / str(number), deadlines[number]
        place.mkdir()
        given = machine(place, codes[number], cpus=max(1, len(pin)))
        how = Launch(boot_deadline=deadline, deadline=deadline, seat=seat, pin=pin)
        return run(given, place / "console.log", how)

    return run_in_turns([partial(boot_one, number) for number in range(len(codes))], turns, cpus=len(codes))


@pytest.mark.parametrize("count", [2, 3])
def test_one_guest_runs_at_any_moment_and_its_clock_stands_while_it_is_held(tmp_path, count):
    turns = BlockTurns(count, LENGTHS, "1")
    done = block(tmp_path, *[ORDINARY] * count, turns=turns)
    assert [one.ended for one in done] == ["off"] * count
    shares = [seat.steps["01-a"] for seat in turns.seats]
    assert all(one.turns == len(one.windows) > 2 for one in shares)
    pieces = sorted(
        (begin, begin + length)
        for seat in turns.seats
        for one in seat.steps.values()
        for begin, length in one.windows
    )
    assert all(end <= begin for (_, end), (begin, _) in pairwise(pieces))
    # What the step takes by the guest's clock it takes of its own running time, though it lasts several times as long.
    running = [one.running_seconds for one in shares]
    (tmp_path / "alone").mkdir()
    alone = boot(tmp_path / "alone", ORDINARY).host[0][1].seconds
    assert all(0.75 * alone < one for one in running)
    for one, seconds in zip(shares, running, strict=True):
        assert one.held_seconds > 0.3 * alone
        assert one.alone_seconds < seconds
    assert all(one.overlap_seconds < 0.01 * one.running_seconds for one in shares)
    # Whole steps come one after the other, in one piece.
    assert [seat.steps["02-b"].turns for seat in turns.seats] == [1] * count
    assert all(seat.steps["02-b"].alone_seconds == 0 for seat in turns.seats)
    for seat, one in zip(turns.seats, done, strict=True):
        assert [name for name, _ in one.host] == ["01-a", "02-b"]
        for name, record in one.host:
            assert abs(record.seconds - seat.steps[name].running_seconds) < 0.3 * alone
            # On CPUs that all partners use, they are nobody's own.
            assert record.interrupts is None
        # Times of a guest leave out those in which it was held.
        assert one.timings["off"] < sum(other.timings["off"] for other in done)


def test_cpu_time_of_a_guest_that_is_not_held_is_overlap(tmp_path, monkeypatch):
    """QEMU is never told to stop a guest."""
    ask = Seat._ask
    monkeypatch.setattr(
        Seat, "_ask", lambda seat, command: ask(seat, command) if command == "cont" else time.monotonic()
    )
    turns = BlockTurns(2, LENGTHS, "1")
    block(tmp_path, ORDINARY, ORDINARY, turns=turns)
    shares = [seat.steps["01-a"] for seat in turns.seats]
    assert max(one.overlap_seconds for one in shares) > 0.2 * min(one.running_seconds for one in shares)


def test_a_held_guest_s_deadline_does_not_come_nearer(tmp_path):
    """The second waits for the whole first one, longer than its own deadline; the first one hangs and is void alone."""
    done = block(tmp_path, tiny.say(b"first\n") + tiny.SPIN, ORDINARY, deadlines=(20, 15))
    assert [one.ended for one in done] == ["deadline", "off"]
    assert done[0].stuck and named(tmp_path / "0", done[0]) == "hang"
    assert [name for name, _ in done[1].host] == ["01-a", "02-b"]
    assert done[1].timings["off"] < 15


def test_a_guest_that_ends_in_a_step_leaves_its_partners_to_their_end(tmp_path):
    turns = BlockTurns(3, LENGTHS, "1")
    broken = tiny.say(b"kduel: step 01-a\n") + work(SHORT) + tiny.say(b"Kernel panic - not syncing: x\n")
    done = block(tmp_path, ORDINARY, broken + tiny.TRIPLE_FAULT, ORDINARY, turns=turns)
    assert [one.ended for one in done] == ["off"] * 3
    assert named(tmp_path / "1", done[1]) == "panic"
    assert [list(seat.steps) for seat in turns.seats] == [["01-a", "02-b"], ["01-a"], ["01-a", "02-b"]]
    assert done[0].host[0][0] == done[2].host[0][0] == "01-a"


def test_the_last_piece_is_run_alone_and_recorded(tmp_path):
    turns = BlockTurns(2, LENGTHS, "1")
    short = step("01-a", SHORT) + step("02-b", SHORT) + END
    block(tmp_path, ORDINARY, short, turns=turns)
    long, brief = (seat.steps["01-a"] for seat in turns.seats)
    assert brief.alone_seconds == 0
    assert long.running_seconds / 3 < long.alone_seconds < long.running_seconds
    assert long.windows[-1][1] == pytest.approx(long.alone_seconds, abs=1e-3)


def test_a_step_that_is_refused_says_no_end(tmp_path):
    turns = BlockTurns(2, LENGTHS, "1")
    refused = tiny.say(b"kduel: step 01-a\n") + step("02-b", SHORT) + END
    done = block(tmp_path, ORDINARY, refused, turns=turns)
    assert [one.ended for one in done] == ["off", "off"]
    assert [list(seat.steps) for seat in turns.seats] == [["01-a", "02-b"]] * 2


def test_marks_of_steps_that_are_not_planned_are_ignored(tmp_path):
    turns = BlockTurns(2, LENGTHS, "1")
    liar = step("99-x", 1) + tiny.say(b"kduel: step 02-b ended\n") + ORDINARY
    done = block(tmp_path, ORDINARY, liar, turns=turns)
    assert [one.ended for one in done] == ["off", "off"]
    assert [list(seat.steps) for seat in turns.seats] == [["01-a", "02-b"]] * 2


def test_a_guest_that_floods_its_console_while_it_takes_turns_is_not_waited_for(tmp_path):
    turns = BlockTurns(2, LENGTHS, "1")
    flooding = tiny.say(b"kduel: step 01-a\n") + tiny.flood()
    done = block(tmp_path, ORDINARY, flooding, deadlines=(120, 8), turns=turns)
    assert [one.ended for one in done] == ["off", "deadline"]
    assert list(turns.seats[0].steps) == ["01-a", "02-b"]


def test_a_qemu_that_does_not_answer_is_killed_and_its_partner_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(Seat.join, "__defaults__", (2.0,))
    log = tmp_path / "1/console.log"

    def stop_it() -> None:
        wait_for(lambda: log.exists() and "01-a" in log.read_text(), "step")
        os.kill(guests(tmp_path / "1")[0], signal.SIGSTOP)

    stopper = threading.Thread(target=stop_it)
    stopper.start()
    done = block(tmp_path, ORDINARY, ORDINARY.replace(work(LONG), work(10 * LONG)))
    stopper.join()
    assert [one.ended for one in done] == ["off", "hung"]
    assert named(tmp_path / "1", done[1]) == "qemu-hung"
    assert [name for name, _ in done[0].host] == ["01-a", "02-b"]


def test_a_qemu_that_stands_for_a_while_is_waited_for(tmp_path, monkeypatch):
    """Whoever stops and continues it; the host may also be that busy."""
    turns = BlockTurns(2, LENGTHS, "1")
    log, asking = tmp_path / "1/console.log", threading.Event()
    ask = Seat._ask

    def note(seat: Seat, command: str) -> float:
        if seat is turns.seats[0]:
            return ask(seat, command)
        asking.set()
        try:
            return ask(seat, command)
        finally:
            asking.clear()

    def stop_it() -> None:
        wait_for(lambda: log.exists() and "01-a" in log.read_text(), "step")
        (pid,) = guests(tmp_path / "1")
        os.kill(pid, signal.SIGSTOP)
        asking.wait(600)
        os.kill(pid, signal.SIGCONT)

    monkeypatch.setattr(Seat, "_ask", note)
    stopper = threading.Thread(target=stop_it)
    stopper.start()
    done = block(tmp_path, *[ORDINARY.replace(work(LONG), work(5 * LONG))] * 2, turns=turns)
    stopper.join()
    assert [one.ended for one in done] == ["off", "off"]
    assert [list(seat.steps) for seat in turns.seats] == [["01-a", "02-b"]] * 2


def test_a_qemu_that_somebody_stops_in_its_turn_is_recorded(tmp_path, monkeypatch):
    """Two seconds in which the guest stands and its clock goes on: the finding `paused-clock` tells them."""
    turns = BlockTurns(2, LENGTHS, "1")
    hold, held = Seat.hold, []

    def stop_in_second_turn(seat: Seat) -> float:
        # The first time it is held at the begin of its step.
        if seat is turns.seats[1] and not held.append(1) and len(held) == 3:
            (pid,) = guests(tmp_path / "1")
            os.kill(pid, signal.SIGSTOP)
            threading.Timer(2, os.kill, (pid, signal.SIGCONT)).start()
        return hold(seat)

    monkeypatch.setattr(Seat, "hold", stop_in_second_turn)
    done = block(tmp_path, *[ORDINARY.replace(work(LONG), work(5 * LONG))] * 2, turns=turns)
    assert [one.ended for one in done] == ["off", "off"]
    assert turns.seats[1].steps["01-a"].longest_stop_seconds > 1.5 > turns.seats[0].steps["01-a"].longest_stop_seconds


def test_a_guest_that_does_not_start_ends_the_others(tmp_path):
    turns = BlockTurns(2, LENGTHS, "1")

    def missing(seat: Seat) -> Run:
        given = machine(tmp_path, ORDINARY, memory_mib=1 << 26)
        return run(given, tmp_path / "console.log", Launch(boot_deadline=60, deadline=60, seat=seat))

    (tmp_path / "other").mkdir()
    log = tmp_path / "other/console.log"
    with pytest.raises(HostError, match="QEMU does not start"):
        run_in_turns(
            [
                lambda seat: run(
                    machine(tmp_path / "other", tiny.SPIN), log, Launch(boot_deadline=600, deadline=600, seat=seat)
                ),
                missing,
            ],
            turns,
        )
    assert not guests(tmp_path / "other")


def test_a_guest_whose_files_cannot_be_made_ends_the_others(tmp_path):
    """Nobody waits for one that never comes to QEMU."""

    def full(seat: Seat) -> Run:
        raise OSError(errno.ENOSPC, "No space left on device")

    def other(seat: Seat) -> Run:
        place = tmp_path / "other"
        place.mkdir()
        how = Launch(boot_deadline=600, deadline=600, seat=seat)
        return run(machine(place, tiny.SPIN), place / "console.log", how)

    with pytest.raises(OSError, match="No space"):
        run_in_turns([other, full], BlockTurns(2, LENGTHS, "1"))
    assert not guests(tmp_path / "other")


KILLED = """
import sys
sys.path[:0] = [{here!r}]
from pathlib import Path
import tiny_kernels as tiny
from test_guests_in_turns import block
block(Path({directory!r}), tiny.say(b"kduel: step 01-a\\n") + tiny.SPIN, tiny.say(b"kduel: step 01-a\\n") + tiny.SPIN, deadlines=(300, 300))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_no_guest_stays_held_when_the_controller_is_killed(how, tmp_path):
    program = KILLED.format(here=str(Path(__file__).parent), directory=str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, stderr=-1
    ) as parent:
        logs = [tmp_path / place / "console.log" for place in "01"]
        wait_for(lambda: all(log.exists() and "01-a" in log.read_text() for log in logs), "steps")
        assert guests(tmp_path / "0") and guests(tmp_path / "1")
        parent.send_signal(how)
        parent.wait(600)
        wait_for(lambda: not guests(tmp_path / "0") and not guests(tmp_path / "1"), "end")


def test_the_console_leaves_out_the_time_of_partners(tmp_path):
    """A line's time is that of the guest's own running, so that a boot lasts as long as it does alone."""
    block(tmp_path, ORDINARY, ORDINARY)
    first, second = ((tmp_path / place / "console.log").read_text().splitlines() for place in "01")
    assert read_console(tmp_path / "1/console.log")[0] == "kduel: step 01-a"
    own = float(second[2].split()[0])
    assert own < float(second[-1].split()[0]) < 0.75 * (float(first[-1].split()[0]) + float(second[-1].split()[0]))


@pytest.mark.parametrize(
    ("together", "asked"), [(False, ["cont", "stop", "cont", "stop"]), (True, ["cont", "cont", "stop", "stop"])]
)
def test_guests_boot_one_after_the_other_or_together_up_to_their_first_step(tmp_path, monkeypatch, together, asked):
    ask, seen = Seat._ask, []
    monkeypatch.setattr(Seat, "_ask", lambda seat, command: seen.append(command) or ask(seat, command))
    turns = BlockTurns(2, LENGTHS, "1", boot_together=together)
    done = block(tmp_path, work(LONG) + ORDINARY, work(LONG) + ORDINARY, turns=turns)
    assert [one.ended for one in done] == ["off"] * 2
    assert seen[:4] == asked
    steps = [step for seat in turns.seats for step in seat.steps.values()]
    assert len(steps) == 4 and all(one.overlap_seconds < 0.01 * one.running_seconds for one in steps)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_kernels_that_boot_together_have_another_cpu_each_until_their_first_step(tmp_path, monkeypatch):
    """A kernel boots on its first CPU; what is measured runs on the same one in both guests."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    ask, seen = Seat._ask, {}

    def look(seat: Seat, command: str) -> float:
        """Affinities of both guests when one is let go first, to boot and to be measured."""
        if command == "cont" and (measured := any(one.step for one in turns.seats)) not in seen:
            threads = [list(one.vcpus) for one in turns.seats]
            seen[measured] = [[cpu for one in own for cpu in os.sched_getaffinity(one)] for own in threads]
        return ask(seat, command)

    monkeypatch.setattr(Seat, "_ask", look)
    turns = BlockTurns(2, LENGTHS, "1", boot_together=True)
    done = block(tmp_path, work(LONG) + ORDINARY, work(LONG) + ORDINARY, turns=turns, pin=cpus)
    assert [one.ended for one in done] == ["off"] * 2
    assert seen == {False: [cpus, cpus[::-1]], True: [cpus, cpus]}
    assert [one.pinned for one in done] == [cpus, cpus]
