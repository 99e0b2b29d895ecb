"""Two machines on a private link, with real QEMU and kernels of a few bytes."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny_kernels as tiny
from processes import own_children

from kduel.benchmarks.support.service import on_peer, server
from kduel.core.errors import HostError
from kduel.core.experiment import Settle, Void
from kduel.guest.environment import read_environment
from kduel.guest.launch import Launch, Run, Side, run
from kduel.guest.link import HUNG, Pair, declared_lines, judge_pair, loss_of_peer, run_pair
from kduel.guest.script import ScriptStep, compose
from kduel.guest.vm import VirtualMachine
from kduel.machines import machine_kind

CYCLES = int(os.environ.get("KDUEL_TEST_CYCLES", "3"))
FOR_EVER = tiny.say(b"here\n") + tiny.SLEEP_FOR_EVER


def caller(directory: Path, code: bytes, deadline: float = 60.0) -> Callable[[Side], Run]:
    directory.mkdir(parents=True)
    (directory / "initrd").write_bytes(b"x")
    machine = VirtualMachine(
        accelerator="tcg",
        cpus=1,
        memory_mib=64,
        kernel=tiny.kernel(directory / "kernel", code),
        initrd=directory / "initrd",
        cmdline="test",
    )

    def call(side: Side) -> Run:
        return run(machine, directory / "console.log", Launch(boot_deadline=deadline, deadline=deadline, side=side))

    return call


def pair(directory: Path, own: bytes, peer: bytes) -> Pair:
    return run_pair(caller(directory / "own", own), caller(directory / "peer", peer), ((), ()))


def guests() -> list[int]:
    """Processes of QEMU that this process started."""
    return [pid for pid, words in own_children().items() if b"qemu" in words]


def what_is_open() -> tuple[list[str], int, list[int]]:
    """Files and sockets of this process, its threads, its guests."""
    files = []
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            files.append(str(path.readlink()).split(":")[0])
    return sorted(files), threading.active_count(), guests()


@pytest.mark.guest
def test_neither_machine_outlives_the_other(tmp_path: Path) -> None:
    died = pair(tmp_path / "died", FOR_EVER, tiny.say(b"bye\n") + tiny.POWER_OFF)
    assert (died.trial.ended, died.peer.ended) == ("partner", "off")
    alone = pair(tmp_path / "alone", tiny.say(b"bye\n") + tiny.POWER_OFF, FOR_EVER)
    assert (alone.trial.ended, alone.peer.ended) == ("off", "partner")
    assert guests() == []


@pytest.mark.guest
def test_a_killed_peer_ends_the_trial_at_once(tmp_path: Path) -> None:
    own, peer = caller(tmp_path / "own", FOR_EVER), caller(tmp_path / "peer", FOR_EVER)
    seen: list[int] = []

    def peer_killed(side: Side) -> Run:
        log = tmp_path / "peer/console.log"
        while not (log.exists() and "here" in log.read_text()):
            time.sleep(0.05)
        seen.extend(guests())
        assert len(seen) == 1
        os.kill(seen[0], signal.SIGKILL)
        return own(side)

    done = run_pair(peer_killed, peer, ((), ()))
    assert (done.trial.ended, done.peer.ended, done.peer.killed_by) == ("partner", "killed", "SIGKILL")
    void = judge_pair(done, Void("no-console", "nothing"), Void("qemu-killed", "by a signal"), tmp_path)
    assert void == Void("peer-died", "The peer ended before the trial did. qemu-killed: by a signal")


@pytest.mark.guest
def test_a_peer_that_does_not_come_up_ends_the_trial(tmp_path: Path) -> None:
    done = run_pair(caller(tmp_path / "own", FOR_EVER), caller(tmp_path / "peer", FOR_EVER, 0.5), ((), ()))
    assert (done.trial.ended, done.peer.ended) == ("partner", "deadline")


@pytest.mark.guest
def test_no_machine_begins_where_its_peer_cannot(tmp_path: Path) -> None:
    peer = caller(tmp_path / "peer", FOR_EVER)
    (tmp_path / "peer/kernel").unlink()

    def never(side: Side) -> Run:
        raise AssertionError("the trial began")

    with pytest.raises(HostError, match="cannot be opened"):
        run_pair(never, peer, ((), ()))


@pytest.mark.guest
def test_nothing_is_left_behind(tmp_path: Path) -> None:
    pair(tmp_path / "first", tiny.POWER_OFF, FOR_EVER)
    before = what_is_open()
    for cycle in range(CYCLES):
        ends = [tiny.POWER_OFF, FOR_EVER] if cycle % 2 else [FOR_EVER, tiny.POWER_OFF]
        pair(tmp_path / f"{cycle}", *ends)
    assert what_is_open() == before


WHOLE, KILLED = {"home": 1.0}, {"launched": 1.0}
"""Timings of a machine that sent its results, and of one that did not."""


@pytest.mark.parametrize(
    ("trial", "peer", "own", "other", "code"),
    [
        (("off", WHOLE), ("off", WHOLE), "", "", ""),
        (("off", KILLED), ("partner", KILLED), "panic", "no-console", "panic"),
        (("partner", KILLED), ("killed", KILLED), "no-console", "qemu-killed", "peer-died"),
        (("partner", KILLED), ("off", KILLED), "no-console", "panic", "peer-died"),
        (("partner", KILLED), ("boot-deadline", KILLED), "no-console", "hang", "peer-late"),
        (("partner", WHOLE), ("off", KILLED), "", "panic", "peer-died"),
        (("off", WHOLE), ("partner", KILLED), "peer-late", "hang", "peer-late"),
        (("off", WHOLE), ("partner", KILLED), "peer-hung", "silent-exit", "peer-hung"),
        (("off", WHOLE), ("off", WHOLE), "peer-late", "", "peer-late"),
        (("off", WHOLE), ("partner", KILLED), "", "silent-exit", "peer-hung"),
        (("off", WHOLE), ("off", WHOLE), "", "wrong-clock", "peer-wrong"),
        (("off", WHOLE), ("off", WHOLE), "setup-failed", "", "setup-failed"),
    ],
)
def test_a_void_trial_says_whose_end_it_was(
    tmp_path: Path,
    trial: tuple[str, dict[str, float]],
    peer: tuple[str, dict[str, float]],
    own: str,
    other: str,
    code: str,
) -> None:
    def made(ended: str, timings: dict[str, float]) -> Run:
        return Run(results=tmp_path, ended=ended, exit_status=0, stderr="", timings=timings)

    def void(name: str) -> Void | None:
        return Void(name, f"words about {name}") if name else None

    found = judge_pair(Pair(made(*trial), made(*peer)), void(own), void(other), tmp_path)
    assert (found.code if found else "") == code
    if found and found.code.startswith("peer-") and other:
        assert f"{other}: words about {other}" in found.message


def test_the_peers_own_words_are_in_the_message(tmp_path: Path) -> None:
    (tmp_path / "01-serve").mkdir()
    (tmp_path / "01-serve/stderr").write_text("the peer's kernel lacks virtio_net\n")
    whole = Run(results=tmp_path, ended="off", exit_status=0, stderr="", timings=WHOLE)
    found = judge_pair(Pair(whole, whole), Void("peer-late", ""), None, tmp_path)
    assert found is not None and "lacks virtio_net" in found.message


@pytest.mark.parametrize("shell", ["sh -e", ""])
def test_a_declared_peer_is_reached_by_its_shell_or_serves_already(tmp_path: Path, shell: str) -> None:
    place = tmp_path / "served"
    service = on_peer(server("sleeper", f"sleep 600 && : {place}", ready=f"echo up >{place}", before="pwd >>log\n"))
    asks = "echo $KDUEL_PEER $KDUEL_ADDRESS\necho 'echo from there; exit 3' | peer || echo $?\n"
    steps = [ScriptStep(label="ask", script=asks, timeout=20, service=service, peer=True)]
    script = compose(
        steps, settle=Settle(mode="fixed", seconds=0), link=declared_lines("10.0.0.7", "10.0.0.6", shell)
    )
    (tmp_path / "guest.sh").write_text(script)
    subprocess.run(["sh", "guest.sh", "out"], cwd=tmp_path, check=True, timeout=60)
    told = (tmp_path / "out/01-ask/stdout").read_text().split("\n", 1)
    assert told == ["10.0.0.7 10.0.0.6", "from there\n3\n" if shell else "97\n"]
    assert place.exists() == bool(shell)
    assert not Path("/tmp/kduel-sleeper").exists()
    # Here the peer is this very host.
    peer = read_environment(tmp_path / "out/environment").get("peer", {})
    assert peer.get("release") == (os.uname().release if shell else None)
    assert not shell or re.match(r"[0-9]", peer["packages"]["dash"])
    refused = (tmp_path / "out/01-ask/stderr").read_text()
    assert ("[machine.peer] shell" in refused) == (not shell)


@pytest.mark.parametrize("hangs", [True, False])
def test_a_peer_that_hangs_in_a_long_step_ends_the_trial(tmp_path: Path, hangs: bool) -> None:
    """It is asked beside the step, which has an hour, and which goes on where it answers."""
    mark = tmp_path / "hung"
    shell = f"[ ! -e {mark} ] || exec sleep 4321\nsh -e"
    begins = f"touch {mark}; sleep 4321" if hangs else "sleep 2.5"
    steps = [
        ScriptStep(label="long", script=begins, timeout=3600, peer=True),
        ScriptStep(label="next", script="true", timeout=20),
    ]
    script = compose(
        steps, settle=Settle(mode="fixed", seconds=0), link=declared_lines("10.0.0.7", "10.0.0.6", shell)
    )
    for what, quick in (
        ("link_look=300", "link_look=1"),
        ("link_patience=120", "link_patience=1"),
        ("answers 30", "answers 1"),
    ):
        assert what in script
        script = script.replace(what, quick)
    (tmp_path / "guest.sh").write_text(script)
    done = subprocess.run(["sh", "guest.sh", "out"], cwd=tmp_path, timeout=60, check=False)
    out = tmp_path / "out"
    assert done.returncode == (HUNG if hangs else 0)
    assert (out / "02-next/exit.json").exists() != hangs
    if hangs:
        assert loss_of_peer(HUNG, out) == Void(
            "peer-hung", "The peer did not answer any more in or after the step 01-long: no answer within 1 s."
        )
    left = subprocess.run(["pgrep", "-f", "^sleep 4321$"], capture_output=True, check=False)
    assert left.stdout == b"", "nothing of the step is left"


@pytest.mark.parametrize(
    ("machine", "table", "reason"),
    [
        ("qemu", {"cpus": 200}, "would have 201 CPUs"),
        ("icount", {}, "the machine icount has none"),
        ("ssh", {"place": "root@laptop"}, "[machine.peer] address"),
        ("ssh", {"place": "root@laptop", "peer": {"address": "10.0.0.7"}}, ""),
    ],
)
def test_a_machine_says_why_it_has_no_peer(machine: str, table: dict[str, object], reason: str) -> None:
    kind = machine_kind(machine)
    told = kind.why_no_peer(kind.read_settings(table))
    assert reason in told and bool(told) == bool(reason)
