"""Two virtual machines on a private link: the trial's, and a peer that is the same for all contenders."""

import os
import shlex
import socket
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct

from kduel.core.experiment import Settle, Void
from kduel.core.untrusted import read_end
from kduel.guest import boots, own_file
from kduel.guest.hostrecord import Scheduling
from kduel.guest.launch import Run, Side
from kduel.guest.script import ScriptStep, compose

MODULE = "virtio_net"
"""The card's driver, where it is not built in."""
TRIAL_ADDRESS, PEER_ADDRESS = "10.213.0.1", "10.213.0.2"
PREFIX_LENGTH = 30
"""Of the network: it has room for these two."""
MEET_SECONDS = 120
"""Seconds for which the trial's guest waits for a peer that is still booting."""
LOOK_SECONDS, PATIENCE_SECONDS = 300, 120
"""Seconds after which a step that still runs has the peer asked whether it is there, and for which an answer is waited for."""
ALLOWANCE = 240.0
"""Seconds that a peer may add to a trial, on a slow and busy host."""
LEAVE_SECONDS = 60.0
"""Seconds that the peer may take to send its results and switch itself off."""
NO_SETTLING = Settle(mode="fixed", seconds=0)
LATE, HUNG = 4, 5
"""The script's status where the peer did not come up, and where it did not answer."""
NO_PEER = "".join(f"{name}_peer() {{ :; }}\n" for name in ("meet", "watch", "check", "leave"))
"""Shell of a script that has no peer to wait for."""
DESCRIBE_PEER = """\
"$timeout" 60 peer >"$OUT/environment/peer" 2>/dev/null <<'KDUEL_DESCRIBE' || :
uname -a
dpkg-query -W -f '${Package} ${Version}\\n' || rpm -qa --qf '%{NAME} %{VERSION}-%{RELEASE}\\n' || :
KDUEL_DESCRIBE
"""
"""Shell that keeps the kernel and the packages of a declared peer."""
VOIDS = {LATE: "peer-late", HUNG: "peer-hung"}
ENDS = {"boot-deadline": "peer-late", "deadline": "peer-hung", "hung": "peer-hung", "partner": "peer-hung"}
"""Void codes by how the peer's run ended (`Run.ended`); any other end is its death."""
WORDS = {
    "peer-late": "did not come up in time",
    "peer-hung": "did not answer any more",
    "peer-died": "ended before the trial did",
    "peer-wrong": "is not what was planned",
}


class Pair(Struct, frozen=True):
    trial: Run
    peer: Run


def run_pair(
    trial: Callable[[Side], Run], peer: Callable[[Side], Run], pins: tuple[Sequence[int], Sequence[int]]
) -> Pair:
    """Run a trial's machine and its peer by calls of `kduel.guest.launch.run`, vCPUs on the CPUs in `pins`. Where one
    ends without results, the other is killed (`partner`), as is a peer LEAVE_SECONDS after the results. Raises what
    they raise."""
    with ExitStack() as held:
        wires = socket.socketpair()
        stops = os.eventfd(0), os.eventfd(0)
        for wire in wires:
            held.callback(wire.close)
        for stop in stops:
            held.callback(os.close, stop)
        started = threading.Event()
        known: list[Scheduling] = []

        def note_start(process: int, vcpus: list[int]) -> None:
            known.append(Scheduling(process, vcpus))
            started.set()

        def note_end(future: Future[Run]) -> None:
            if future.cancelled() or future.exception() or not is_whole(future.result()):
                os.eventfd_write(stops[0], 1)
            started.set()

        with boots.pool(1) as threads:
            other = threads.submit(
                peer, Side(wire=wires[1], number=2, stop=stops[1], others=pins[0], released=note_start)
            )
            other.add_done_callback(note_end)
            started.wait()
            # Where the peer did not start, this raises why, and no other machine does.
            if other.done():
                other.result()
            partner = next(iter(known), None)
            done = trial(Side(wire=wires[0], number=1, stop=stops[0], others=pins[1], partner=partner))
            if is_whole(done):
                wait([other], timeout=LEAVE_SECONDS)
            os.eventfd_write(stops[1], 1)
            return Pair(done, other.result())


def judge_pair(done: Pair, own: Void | None, other: Void | None, into: Path) -> Void | None:
    """Reason why a trial with a peer is void: its `own`, or the `other` of the peer, whose files `into` has."""
    ended_for_peer = done.trial.ended == "partner"
    if own is None and other is None:
        return None
    if own is not None and not ended_for_peer and own.code not in VOIDS.values():
        return own
    code = own.code if own is not None and not ended_for_peer else ENDS.get(done.peer.ended, "peer-died")
    if own is None and is_whole(done.peer):
        code = "peer-wrong"
    said = f"{other.code}: {other.message}" if other is not None else read_end(into / "01-serve" / "stderr", 1000)
    if own is not None and own.code == code:
        return Void(code, f"{own.message} {said}".strip())
    return Void(code, f"The peer {WORDS[code]}. {said}".strip())


def loss_of_peer(status: int, into: Path) -> Void:
    """Reason why a trial is void whose script ended with LATE or HUNG, from what it left in `into`."""
    code = VOIDS[status]
    steps = sorted(path.parent.name for path in into.glob("[0-9]*-*/exit.json"))
    where = f" in or after the step {steps[-1]}" if steps else ""
    said = read_end(into / "environment" / "peer.error", 1000)
    return Void(code, f"The peer {WORDS[code]}{where}{f': {said}' if said else ''}.")


def is_whole(run: Run) -> bool:
    return "home" in run.timings


def trial_lines() -> str:
    """Shell for the trial's script (`kduel.guest.script.compose`): what reaches the peer, and what ends without it."""
    return (
        own_file("wire.sh").decode()
        + f"join {TRIAL_ADDRESS}/{PREFIX_LENGTH}\n"
        + watching_lines()
        + f"export KDUEL_PEER={PEER_ADDRESS} KDUEL_ADDRESS={TRIAL_ADDRESS}\n"
    )


def watching_lines() -> str:
    """Shell that has the trial end where its peer does not answer."""
    return (
        own_file("link.sh").decode()
        + f"link_bound={MEET_SECONDS} link_late={LATE} link_hung={HUNG}\n"
        + f"link_look={LOOK_SECONDS} link_patience={PATIENCE_SECONDS}\n"
    )


def peer_script(seconds: float) -> str:
    """The script of the peer: it does what the trial's guest asks for, `seconds` at most."""
    serve = ScriptStep(label="serve", timeout=seconds, script=own_file("peer.sh").decode())
    lines = [own_file("wire.sh").decode(), f"join {PEER_ADDRESS}/{PREFIX_LENGTH}", NO_PEER]
    return compose([serve], settle=NO_SETTLING, link="\n".join(lines))


def declared_lines(address: str, own_address: str, shell: str) -> str:
    """Shell for the script of a real machine, whose peer is there already. `shell` is a command that runs its standard input as a
    shell script there; empty where the peer's servers are declared to run."""
    if shell:
        there = f"{watching_lines()}meet_peer() {{ :; }}\nleave_peer() {{ :; }}\n{DESCRIBE_PEER}"
    else:
        there = f"export KDUEL_PEER_RUNS=1\n{NO_PEER}"
    refuse = "echo 'the study names no shell of the peer ([machine.peer] shell)' >&2; exit 97"
    return (
        f"export KDUEL_PEER={shlex.quote(address)} KDUEL_ADDRESS={shlex.quote(own_address)}\n"
        f"cat >\"$KDUEL_PROGRAMS/peer\" <<'KDUEL_PEER_SHELL'\n#!/bin/sh\n{shell or refuse}\nKDUEL_PEER_SHELL\n"
        'chmod 755 "$KDUEL_PROGRAMS/peer"\n'
        f"{there}"
    )
