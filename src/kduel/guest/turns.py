"""Guests of a block, all alive at once, of which one runs at any moment of a step.

One thread lets guests go and holds them, by `cont` and `stop` of QEMU's machine protocol: under emulation a guest's clocks
stand still while it is held. Guests boot one after the other, or together where the host has a CPU for each and nobody
measures the boot. At the begin of its first step each is held until the others have come so far. Then they take turns until
each has ended the step, and so on.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import as_completed
from contextlib import nullcontext, suppress
from itertools import repeat
from subprocess import Popen
from typing import TypeVar

from msgspec import Struct, convert, json, structs

from kduel.core.orders import Order
from kduel.core.turns import StepTurns, draw_rounds
from kduel.guest import boots, priority
from kduel.guest.hostrecord import HostRecorder, Scheduling
from kduel.guest.hosttotals import HostSnapshot
from kduel.guest.monitor import ANSWER_SECONDS, MonitorError, UnansweredError

Outcome = TypeVar("Outcome")


def turns_words(descriptor: int) -> list[str]:
    """QEMU's arguments for the monitor by which a guest is let go and held."""
    return ["-chardev", f"socket,id=turns,fd={descriptor}", "-mon", "chardev=turns,mode=control"]


class Mark(Struct, frozen=True):
    """A guest's word that a step begins, or has ended, and when it came."""

    step: str
    ended: bool
    at: float


class Switch:
    """QEMU's monitor of one guest, for `cont` and `stop` alone; a call gives the time at which QEMU did it, by its event, as the
    answer may wait for a CPU that the guest has taken. A `Monitor` starts a loop of events for each answer, which takes longer
    than QEMU does. Raises MonitorError."""

    def __init__(self, connection: socket.socket, seconds: float = ANSWER_SECONDS) -> None:
        self._connection, self._said = connection, b""
        connection.settimeout(seconds)
        self._next_line()
        self("qmp_capabilities")

    def __call__(self, command: str) -> float:
        done: float | None = None
        asked = time.monotonic()
        try:
            self._connection.sendall(b'{"execute": "%s"}\n' % command.encode())
        except OSError as error:
            raise MonitorError(str(error)) from error
        while not {"return", "error"} & (answer := self._next_line()).keys():
            if answer.get("event") in ("RESUME", "STOP"):
                # Not before it was asked, as by a calendar's clock that is set at this moment.
                done = max(asked, _moment(answer))
        if "error" in answer:
            raise MonitorError(f"QEMU does not {command}: {answer['error']}")
        return time.monotonic() if done is None else done

    def _next_line(self) -> dict[str, object]:
        while b"\n" not in self._said:
            try:
                data = self._connection.recv(1 << 16)
            except TimeoutError as error:
                raise UnansweredError(f"no answer within {self._connection.gettimeout():g} s") from error
            except OSError as error:
                raise MonitorError(str(error)) from error
            if not data:
                raise MonitorError("QEMU has closed its monitor")
            self._said += data
        line, _, self._said = self._said.partition(b"\n")
        return json.decode(line, type=dict[str, object])


def _moment(event: dict[str, object]) -> float:
    """The time of an event (QEMU's docs/interop/qmp-spec) by this process's monotonic clock."""
    stamp = convert(event.get("timestamp"), Stamp)
    return time.monotonic() - max(0.0, time.time() - stamp.seconds - stamp.microseconds / 1e6)


class Stamp(Struct, frozen=True):
    """Time of an event, since 1970."""

    seconds: int
    microseconds: int


class Seat:
    """One guest's place in a block. The guest's own thread joins, tells marks and leaves; all else is the turns' thread's."""

    def __init__(self, turns: BlockTurns) -> None:
        self.turns, self.changed = turns, turns.changed
        self.steps: dict[str, StepTurns] = {}
        """Its record, by the step's directory."""
        self.step: str | None = None
        """The step at whose begin it stands, or that it is in."""
        self.marks: deque[Mark] = deque()
        self.known = self.gone = self.ending = self.unanswered = False
        """True once it has been started, has left, is being looked at before its end, and if QEMU did not answer."""
        self._process: Popen[bytes] | None = None
        self._switch: Switch | None = None
        self.came_at = 0.0
        """When it told the begin of that step."""
        self.held_before = 0.0
        """Seconds that it was held, up to the last time that it was let go."""
        self.held_since: float | None = None
        """Since when it is held; None while it runs."""
        self.ran_before = self.ran_held = 0.0
        """Seconds that its CPUs had run when it was held last, and those that they ran while it was held, together."""
        self.vcpus: Sequence[int] = ()
        """Its threads that are pinned, each to one of `cpus`."""
        self.cpus: Sequence[int] = ()
        self.scheduling: Scheduling | None = None
        self.recorder: TurnsRecorder | None = None

    def recorder_for(self, process: int, vcpus: Sequence[int], cpus: Sequence[int]) -> TurnsRecorder:
        """The recorder of the host under this guest."""
        self.vcpus, self.cpus = vcpus, cpus
        self.scheduling = Scheduling(process, vcpus)
        self.recorder = TurnsRecorder(process, vcpus, cpus, self)
        return self.recorder

    def join(self, process: Popen[bytes], connection: socket.socket, seconds: float = ANSWER_SECONDS) -> None:
        """The guest has been started, and waits. Raises MonitorError."""
        switch = Switch(connection, seconds)
        with self.changed:
            self._process, self._switch, self.held_since = process, switch, time.monotonic()
            self.known = True
            self.changed.notify_all()

    def tell(self, step: str, *, ended: bool) -> None:
        """The guest has said on its console that a step begins, or has ended. One that is not in the plan is ignored."""
        if step in self.turns.lengths:
            with self.changed:
                self.marks.append(Mark(step, ended, time.monotonic()))
                self.changed.notify_all()

    def leave(self) -> None:
        """The guest is gone, or was not started."""
        with self.changed:
            self.gone = True
            self.changed.notify_all()

    def pin(self, shift: int) -> None:
        """Pin its CPUs to those of the host, moved on by `shift`."""
        for place, thread in enumerate(self.vcpus if self.cpus else ()):
            # It may have ended.
            with suppress(ProcessLookupError):
                priority.set_affinity(thread, {self.cpus[(place + shift) % len(self.cpus)]})

    def held_seconds(self) -> float:
        """Seconds that it was held so far."""
        with self.changed:
            return self.held_before + (time.monotonic() - self.held_since if self.held_since is not None else 0.0)

    def run_of_partners(self) -> float:
        """CPU seconds that the other guests' QEMU took so far."""
        times = (
            found
            for seat in self.turns.seats
            if seat is not self and seat.scheduling
            for found in seat.scheduling.look()
        )
        return sum(one.run for one in times if one is not None)

    def has_come(self) -> bool:
        """True if it stands at the begin of a step."""
        while self.marks and self.step is None:
            mark = self.marks.popleft()
            if not mark.ended:
                self.step = mark.step
                self.came_at = mark.at
        return self.step is not None

    def end_of_step(self) -> float | None:
        """The time when it ended the step that it is in; None while it has not. A step that is refused says no end: the next begins."""
        if self.marks:
            mark = self.marks[0]
            if mark.ended:
                self.marks.popleft()
            if mark.step == self.step or not mark.ended:
                return mark.at
        return None

    def go(self) -> float:
        """Let it run; gives the time when it does."""
        if self.scheduling is not None and self.ran_before:
            self.ran_held += max(0.0, self.scheduling.vcpu_seconds() - self.ran_before)
        return self._note_time(self._ask("cont"), running=True)

    def hold(self) -> float:
        """Hold it; gives the time when it is."""
        at = self._note_time(self._ask("stop"), running=False)
        if self.scheduling is not None:
            self.ran_before = self.scheduling.vcpu_seconds()
        return at

    def _note_time(self, at: float, *, running: bool) -> float:
        with self.changed:
            if running and self.held_since is not None:
                self.held_before += at - self.held_since
                self.held_since = None
            elif not running and not self.gone:
                self.held_since = at
        return at

    def _ask(self, command: str) -> float:
        """The time at which QEMU did it. A QEMU that has ended is gone in a moment; one that does not answer is killed."""
        assert self._process is not None and self._switch is not None
        if self.gone:
            return time.monotonic()
        try:
            return self._switch(command)
        except MonitorError as error:
            self.unanswered = isinstance(error, UnansweredError)
            with self.changed:
                if self.unanswered or not self.changed.wait_for(lambda: self.gone, ANSWER_SECONDS):
                    self._process.kill()
                    self.changed.wait_for(lambda: self.gone)
            return time.monotonic()


class BlockTurns:
    """The turns of a block's guests. `lengths` has, by the directory of each step, the seconds of its turns: 0 for a step that is
    run whole, one guest at a time; in the order of the steps, after the last of which a guest goes on to its end. Orders are drawn
    from `seed`. `boot_together`: all come to the first step at once, where nothing is measured before it."""

    def __init__(self, guests: int, lengths: dict[str, float], seed: str, *, boot_together: bool = False) -> None:
        self.lengths, self.seed, self.last = lengths, seed, next(reversed(lengths), None)
        self.boot_together = boot_together
        self.changed = threading.Condition(threading.RLock())
        self.seats = [Seat(self) for _ in range(guests)]
        self.began = 0.0
        self._whole = self._draw("whole")

    def run(self, cpus: int) -> bool:
        """Let the guests run until all have left, each with a CPU for itself where there are so many. False, and at once, where one
        of them did not start."""
        self._wait(lambda: all(seat.known or seat.gone for seat in self.seats))
        if not all(seat.known for seat in self.seats):
            return False
        self.began = time.monotonic()
        if self.boot_together and len(self.seats) <= cpus:
            self._boot_together()
        while left := [seat for seat in self.seats if not seat.gone]:
            for seat in left:
                self._run_to_steps([seat])
            if at := [seat for seat in left if not seat.gone]:
                # All have the same steps in the same order; one that skips some has them later, alone.
                self._take_turns([seat for seat in at if seat.step == at[0].step])
        return True

    def _draw(self, label: str) -> Iterator[Order]:
        """The order of rounds; a guest whose partners are not booted is alone."""
        return draw_rounds(len(self.seats), f"{self.seed}/{label}") if len(self.seats) > 1 else repeat([0])

    def _wait(self, for_what: Callable[[], bool], seconds: float | None = None) -> bool:
        with self.changed:
            return self.changed.wait_for(for_what, seconds)

    def _run_to_steps(self, seats: Sequence[Seat]) -> None:
        """Run guests, all at once, to the begin of their next step, or their end."""
        going = [seat for seat in seats if seat.step is None and not seat.gone and not seat.has_come()]
        for seat in going:
            seat.go()
        while going:
            self._wait(lambda: any(seat.has_come() or seat.gone for seat in going))
            for seat in [seat for seat in going if seat.has_come() or seat.gone]:
                going.remove(seat)
                if not seat.gone and not seat.ending:
                    seat.hold()

    def _boot_together(self) -> None:
        """Run all guests to their first step. A kernel boots on its first CPU, so that each has another one of the host's for it."""
        for place, seat in enumerate(self.seats):
            seat.pin(place)
        self._run_to_steps(self.seats)
        for seat in self.seats:
            seat.pin(0)

    def _take_turns(self, seats: list[Seat]) -> None:
        """Run the step at whose begin all of these guests stand."""
        label = seats[0].step
        assert label is not None
        seconds = self.lengths[label]
        rounds = self._draw(label) if seconds else self._whole
        shares = {id(seat): Share(seat) for seat in seats}
        left = list(seats)
        while left:
            for place in next(rounds):
                if (seat := self.seats[place]) in left:
                    in_turns = bool(seconds) and len(left) > 1
                    over = shares[id(seat)].take(seconds if in_turns else None, alone=bool(seconds) and not in_turns)
                    if over:
                        left.remove(seat)


def run_in_turns(
    guests: Sequence[Callable[[Seat], Outcome]], turns: BlockTurns, *, cpus: int = 1, raised: bool = False
) -> list[Outcome]:
    """Run a block's guests, each by a call of `kduel.guest.launch.run` with its seat; they boot one after the other where they are
    too many for `cpus` of the host. `raised` gives the thread that lets them go weight against other work. Raises what the calls raise; no machine is left behind."""
    with boots.pool(len(guests)) as threads:
        running = [threads.submit(run_in_seat, guest, seat) for guest, seat in zip(guests, turns.seats, strict=True)]
        # Only now: a thread takes the weight of the one that starts it.
        with priority.raise_own_thread() if raised else nullcontext():
            started = turns.run(cpus)
        if not started:
            # One that did not start raises why; the others are killed.
            for future in as_completed(running):
                future.result()
        return [future.result() for future in running]


def run_in_seat(guest: Callable[[Seat], Outcome], seat: Seat) -> Outcome:
    """Run one guest. It leaves its seat also where it could not be started: nobody waits for it any more."""
    try:
        return guest(seat)
    finally:
        seat.leave()


class Share:
    """Part of a step that one guest has had."""

    def __init__(self, seat: Seat) -> None:
        self.seat, self.turns = seat, seat.turns
        with seat.changed:
            # It went on for a moment after it had told the begin.
            self.running = max(0.0, (seat.held_since or seat.came_at) - seat.came_at)
            self.held, self.ran_held = seat.held_before, seat.ran_held
        self.alone = self.longest_stop = 0.0
        self.windows: list[tuple[float, float]] = []

    def take(self, seconds: float | None, *, alone: bool) -> bool:
        """Let the guest run for `seconds`, or without them to the step's end; True if it has ended the step, or is gone."""
        seat = self.seat
        ends: list[float] = []
        if not self.windows and seat.recorder is not None and seat.step is not None:
            seat.recorder.begin(seat.step)

        def is_over() -> bool:
            if not ends and (end := seat.end_of_step()) is not None:
                ends.append(end)
            return bool(ends) or seat.gone

        begun = seat.go()
        left = None if seconds is None else max(0.0, begun + seconds - time.monotonic())
        if not self.turns._wait(is_over, left) and seat.ending:
            self.turns._wait(is_over)
        asked = time.monotonic()
        if ends and seat.step == self.turns.last:
            # It is about to switch itself off, when QEMU may not answer any more.
            self.turns._wait(lambda: seat.gone)
            stopped = asked
        else:
            stopped = seat.hold()
        with seat.changed:
            over = is_over()
        until = min(stopped, *ends) if ends else stopped
        self.windows.append((round(begun - self.turns.began, 6), round(max(0.0, until - begun), 6)))
        self.running += self.windows[-1][1]
        self.alone += self.windows[-1][1] if alone else 0.0
        if not seat.gone:
            self.longest_stop = max(self.longest_stop, stopped - asked)
        if over:
            self._record()
        return over

    def _record(self) -> None:
        seat = self.seat
        assert seat.step is not None
        seat.steps[seat.step] = StepTurns(
            turns=len(self.windows),
            running_seconds=round(self.running, 6),
            held_seconds=round(max(0.0, seat.held_before - self.held), 6),
            longest_stop_seconds=round(self.longest_stop, 6),
            alone_seconds=round(self.alone, 6),
            overlap_seconds=round(seat.ran_held - self.ran_held, 6),
            windows=self.windows,
        )
        seat.step = None


class TurnsRecorder(HostRecorder):
    """Record of the host under a guest in turns: a step begins when the guest is let go in it first."""

    def __init__(self, process: int, vcpus: Collection[int], cpus: Sequence[int], seat: Seat) -> None:
        self.seat = seat
        super().__init__(process, vcpus, cpus)

    def begin(self, step: str) -> None:
        """The guest is let go in a step."""
        super()._mark(step, ended=False)

    def stop(self) -> None:
        """The guest is about to be cut off, and looked at before: it does not end the step by itself."""
        if self._began is not None:
            super()._mark(self._began[0], ended=True)

    def look(self) -> HostSnapshot:
        """The totals now, with the partners' part of them."""
        return structs.replace(super().look(), held=self.seat.held_seconds(), partners=self.seat.run_of_partners())

    def _mark(self, label: str, *, ended: bool) -> None:
        if ended:
            super()._mark(label, ended=True)
        self.seat.tell(label, ended=ended)
