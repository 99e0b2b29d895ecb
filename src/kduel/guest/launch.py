"""Running a virtual machine once: its console and results are read as they come, and it never outlives us."""

import contextlib
import fcntl
import io
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct, field

from kduel.core.errors import HostError
from kduel.core.host import HostStep
from kduel.core.host_packages import install_command
from kduel.guest import boots, confine, envelope, priority
from kduel.guest.console import ConsoleLog
from kduel.guest.hostrecord import HostRecorder, Scheduling
from kduel.guest.monitor import ANSWER_SECONDS, Monitor, MonitorError, Observer, UnansweredError
from kduel.guest.turns import Seat, turns_words
from kduel.guest.vm import VirtualMachine, Wiring
from kduel.guest.watch import Watch

START_SECONDS = 600.0
"""Seconds that QEMU may take to answer where a deadline leaves out what the host keeps it waiting."""
POWER_OFF_SECONDS = 15.0
"""Seconds that a guest may take to switch itself off once its results are home."""
SENT = (signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM)
"""Signals that QEMU gets from others only."""


class Run(Struct, kw_only=True):
    results: Path
    """The file with all that came over the results port, bounded: for kduel.guest.envelope."""
    ended: str
    """`off`: the guest switched itself off; `boot-deadline`, `deadline`: it was killed then; `flood`: it was
    killed for sending too much; `lingered`: results were home, but it had to be killed; `killed`: a signal that was
    not ours ended QEMU; `failed`: QEMU gave up with an error, also where it would have stayed since KVM could not run the
    guest any more; `hung`: QEMU itself did not answer at a deadline; `partner`: it was killed since the machine at the other end of its link had ended."""
    exit_status: int
    """QEMU's; minus the signal's number where one ended it."""
    stderr: str
    timings: dict[str, float] = field(default_factory=dict)
    waited: float = 0.0
    """Seconds of these that did not count towards the deadlines."""
    argv: list[str] = field(default_factory=list)
    """Arguments for a user who may open the files; QEMU itself inherits them (kduel.guest.confine)."""
    pinned: list[int] = field(default_factory=list)
    """Host CPUs, one for each vCPU, or none."""
    stuck: list[str] = field(default_factory=list)
    """At a deadline: vCPUs that could not have gone on by themselves."""
    host: list[tuple[str, HostStep]] = field(default_factory=list)
    """Record of the host during each step that ended, by the step's directory, in the order of time."""
    priority: list[str] = field(default_factory=list)
    """The weight that QEMU got against other work, in words."""

    @property
    def killed_by(self) -> str:
        """The signal by which somebody else ended QEMU, such as SIGKILL of a host without memory; empty where nobody did.
        The signals of a crash are not among them: what a guest does may make QEMU crash."""
        number = -self.exit_status
        return signal.Signals(number).name if self.ended == "killed" and number in SENT else ""


class Side(Struct, frozen=True, kw_only=True):
    """One side of a private link between two machines (kduel.guest.link)."""

    wire: socket.socket
    number: int
    """1 or 2, the last digit of its card's address."""
    stop: int
    """An eventfd that becomes readable when the machine is to be killed for the other's sake."""
    released: Callable[[int, list[int]], None] = lambda *_: None
    """Is told QEMU's process and the threads of its CPUs before the machine begins."""
    partner: Scheduling | None = None
    """The other machine, whose work is a part of this one's."""
    others: Sequence[int] = ()
    """Host CPUs that the other machine's vCPUs are pinned to."""


def card_words(number: int, wire: int | str) -> list[str]:
    """QEMU's arguments for the network card of a link's side; `wire` is the socket's descriptor in QEMU."""
    card = f"virtio-net-pci,netdev=link,mac=52:54:00:00:00:0{number},romfile="
    return ["-netdev", f"socket,id=link,fd={wire}", "-device", card]


class Launch(Struct, frozen=True, kw_only=True):
    """The way in which a machine is booted, watched and ended. Deadlines are seconds from now."""

    boot_deadline: float
    """For the READY mark."""
    deadline: float
    """For the complete envelope."""
    pin: Sequence[int] = ()
    """Host CPUs, one for each vCPU, or none."""
    handles: Sequence[confine.Open] = ()
    """Nameless files that QEMU inherits (as /proc/self/fd/N)."""
    extra: Sequence[str] = ()
    """More arguments, in which the keys of `reads` and `writes` stand for files."""
    reads: Mapping[str, Path] = MappingProxyType({})
    writes: Mapping[str, Path] = MappingProxyType({})
    linger: float = POWER_OFF_SECONDS
    """How long it may take to switch itself off."""
    preload: Path | None = None
    """A shared object that QEMU loads before its own."""
    record_host: bool = True
    """Whether to record what the host does meanwhile."""
    raised: bool = False
    """Whether QEMU gets weight against other work on the host."""
    own_time: bool = False
    """Whether deadlines and `linger` leave out time that the guest waited for the host's CPU."""
    side: Side | None = None
    """The machine's side of a link."""
    seat: Seat | None = None
    """Its place among guests that take turns: the seconds in which it is held count nowhere, in no deadline and no time."""


def run(machine: VirtualMachine, console: Path, how: Launch) -> Run:
    """Boot `machine`, keep its console in `console` and its output in RAW next to it. Raises HostError."""
    pin, side, seat, extra = how.pin, how.side, how.seat, how.extra
    started = time.monotonic()
    with contextlib.ExitStack() as held:
        serial, serial_far = _pipe(held)
        results, results_far = _pipe(held)
        monitor, monitor_far = _pair(held)
        observer, observer_far = _pair(held)
        far_ends: list[socket.socket | io.FileIO] = [serial_far, results_far, monitor_far, observer_far]
        given = confine.Handles(confine.user_for_guest(), held)
        wiring = Wiring(
            console=f"file,path={given.hand_over(serial_far)}",
            results=f"file,path={given.hand_over(results_far)}",
            monitor=f"socket,fd={given.socket(monitor_far)}",
            observer=f"socket,fd={given.socket(observer_far)}",
        )
        for file in how.handles:
            given.hand_over(file)
        if side is not None:
            extra = [*extra, *card_words(side.number, given.socket(side.wire))]
        if seat is not None:
            turns, turns_far = _pair(held)
            far_ends.append(turns_far)
            extra = [*extra, *turns_words(given.socket(turns_far))]
        argv = [*machine.argv(wiring, paused=True), *insert_files(extra, {**how.reads, **how.writes})]
        files = {key: given.reading(path) for key, path in how.reads.items()}
        files |= {key: given.writing(path) for key, path in how.writes.items()}
        name, *words = machine.with_open_files(given).argv(wiring, paused=True)
        confined = [name, *given.words, *words, *insert_files(extra, files)]
        process = _start(
            confined, machine.accelerator, given, None if how.preload is None else given.reading(how.preload)
        )
        held.callback(_bury, process)
        held.enter_context(boots.running(process))
        for end in far_ends:
            end.close()
        got: list[str] = []

        def place_threads(vcpus: list[int]) -> None:
            priority.keep_off(process.pid, vcpus, [*pin, *(side.others if side is not None and pin else ())])
            if how.raised:
                got.extend(held.enter_context(priority.raise_priority(process.pid)))
                if seat is not None:
                    priority.prefer_monitor(process.pid, vcpus)
            if side is not None:
                side.released(process.pid, vcpus)

        seconds = START_SECONDS if how.own_time else ANSWER_SECONDS
        vcpus = _release(process, monitor, pin, argv, place_threads, seconds, let_go=seat is None)
        pinned = list(pin[: len(vcpus)])
        partner = side.partner if side is not None else None
        log = ConsoleLog(console, started)
        recorder: HostRecorder | None = None
        if seat is not None:
            recorder, log.held = seat.recorder_for(process.pid, vcpus, pinned), seat.held_seconds
        elif how.record_host:
            recorder = HostRecorder(process.pid, vcpus, pinned, partner=partner)
        held.callback(log.close)
        inbox = envelope.Inbox(console.with_name(envelope.RAW))
        held.callback(inbox.close)
        scheduling = Scheduling(process.pid, vcpus) if how.own_time else None
        looking = held.enter_context(Observer(observer))
        # With virtual time a sleeping CPU's clock is moved on without end; other guests are disturbed by a look.
        asleep = looking.sleeps_for_ever if how.own_time else None
        stop = side.stop if side is not None else None
        watch = Watch(process, serial, results, log, inbox, started, recorder, scheduling, asleep, stop, log.held)
        watch.timings["launched"] = watch.own_seconds()
        if seat is not None:
            with _start_errors(process, argv):
                seat.join(process, turns)
        ended = watch.until_gone(how.boot_deadline, how.deadline, how.linger)
        if seat is not None:
            with seat.changed:
                seat.ending = True
            if seat.unanswered:
                ended = "hung"
        if recorder and ended != "off":
            recorder.stop()
        stuck = looking.stuck_cpus() if ended.endswith("deadline") else []
        if stuck is None:
            ended, stuck = "hung", []
        if ended == "off" and (status := process.wait()):
            ended = "killed" if status < 0 else "failed"
        _bury(process)
        watch.drain()
    if log.first is not None:
        watch.timings["kernel"] = log.first
    watch.timings["off"] = watch.own_seconds()
    return Run(
        results=inbox.path, ended=ended, exit_status=process.returncode,
        stderr=watch.stderr.decode("utf-8", errors="replace"), timings=watch.timings, waited=watch.waited, argv=argv,
        pinned=pinned, stuck=stuck, host=recorder.steps if recorder else [], priority=got,
    )  # fmt: skip


def _pipe(held: contextlib.ExitStack) -> tuple[io.FileIO, io.FileIO]:
    """Pipe for the guest's output, of which a socket would lose bytes: the console writes them one by one, which soon
    fills it, and does not wait for long; and a guest that switches itself off takes along what a full one has not
    taken."""
    read_end, write_end = os.pipe()
    ours = held.enter_context(os.fdopen(read_end, "rb", buffering=0))
    theirs = held.enter_context(os.fdopen(write_end, "wb", buffering=0))
    with contextlib.suppress(OSError):
        fcntl.fcntl(ours, fcntl.F_SETPIPE_SZ, 1 << 20)
    return ours, theirs


def _pair(held: contextlib.ExitStack) -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair()
    held.callback(ours.close)
    held.callback(theirs.close)
    return ours, theirs


def insert_files(words: Sequence[str], files: Mapping[str, Path]) -> list[str]:
    """Arguments of QEMU with the files that stand in them; a comma in an option's value is written twice."""
    out = list(words)
    for key, path in files.items():
        out = [word.replace(key, str(path).replace(",", ",,")) for word in out]
    return out


def _start(
    argv: list[str], accelerator: str, given: confine.Handles, preload: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start QEMU, confined, with the descriptors that it inherits. Raises HostError."""
    if shutil.which(argv[0]) is None:
        raise HostError(f"{argv[0]} is not installed", f"Install QEMU: {install_command(argv[0])}.")
    return subprocess.Popen(
        [*confine.prefix(given.user, accelerator), *argv], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, pass_fds=given.numbers, env=confine.environment(preload), start_new_session=True,
    )  # fmt: skip


def _bury(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
        process.wait()


def _release(
    process: subprocess.Popen[bytes],
    monitor: socket.socket,
    pin: Sequence[int],
    argv: list[str],
    place_threads: Callable[[list[int]], None],
    seconds: float,
    let_go: bool = True,
) -> list[int]:
    """Pin the waiting machine's vCPUs, and `let_go`. Gives thread ids by vCPU. Raises HostError."""
    with _start_errors(process, argv), Monitor(monitor, seconds) as told:
        threads = [cpu["thread-id"] for cpu in sorted(told("query-cpus-fast"), key=lambda cpu: cpu["cpu-index"])]
        for thread, cpu in zip(threads, pin, strict=False):
            priority.set_affinity(thread, {cpu})
        place_threads(threads)
        if let_go:
            told("cont")
    return threads


@contextlib.contextmanager
def _start_errors(process: subprocess.Popen[bytes], argv: list[str]) -> Iterator[None]:
    """Raises HostError where QEMU, just started, does not answer its monitor."""
    try:
        yield
    except UnansweredError as error:
        raise HostError(
            f"QEMU was started, and gave {error}",
            f"This host is too busy: start the same command again when it has less to do. Command: {' '.join(argv)}",
        ) from error
    except MonitorError as error:
        _bury(process)
        said = process.stderr.read(4096).decode(errors="replace").strip() if process.stderr else ""
        remedy = (
            "Install a QEMU that is built with seccomp, as distributions build it: KDuel runs no guest without."
            if "-sandbox" in said
            else "Use QEMU as Debian builds it, or a machine with one CPU."
            if "does not export" in said
            else "Check the machine's settings (memory, cpus) against this host."
        )
        raise HostError(
            f"QEMU does not start (status {process.returncode}): {said or error}",
            f"{remedy} Command: {' '.join(argv)}",
        ) from error
