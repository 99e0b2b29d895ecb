"""Nothing is lost, whatever ends a run at whatever instant: it goes on and ends like one that was never interrupted."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from harness import PATIENCE, SOURCE, Broken, Place, Reference, ends_well, kept, names, no_traceback, place

from kduel.guest import confine

pytestmark = [pytest.mark.guest, pytest.mark.network]

KILLS = int(os.environ.get("KDUEL_TEST_KILLS", "8"))
"""How many instants each way of ending a run is tried at that is a matter of chance."""
IN_A_ROW = 8
"""So many interruptions of one run, at most."""

Ending = Callable[["subprocess.Popen[str]"], None]


def sent(*numbers: signal.Signals) -> Ending:
    def send(process: subprocess.Popen[str]) -> None:
        for number in numbers:
            process.send_signal(number)
            time.sleep(0.05)

    return send


def to_the_group(number: signal.Signals) -> Ending:
    return lambda process: os.killpg(process.pid, number)


ENDINGS: dict[str, Ending] = {
    "SIGKILL": sent(signal.SIGKILL),
    "SIGTERM": sent(signal.SIGTERM),
    "SIGHUP": sent(signal.SIGHUP),
    "SIGINT": sent(signal.SIGINT),
    "SIGINT twice": sent(signal.SIGINT, signal.SIGINT),
    "Ctrl-C, to all of the terminal's processes": to_the_group(signal.SIGINT),
    "SIGTERM, then SIGKILL": sent(signal.SIGTERM, signal.SIGKILL),
}


@pytest.fixture(scope="module")
def reference() -> Iterator[Reference]:
    with place() as own:
        yield Reference.of(own)


def at_random_instant(own: Place, process: subprocess.Popen[str], chance: random.Random, planned: int) -> str:
    """Wait for an instant of the run, however fast the machine is: while it starts, in a trial, in the report."""
    trial = chance.randint(-planned // 3, planned)
    pause = chance.uniform(0, 3.0 if trial == planned else 0.6)
    while trial > 0 and len(names(own.run)) < trial and process.poll() is None:
        time.sleep(0.005)
    if trial < 0:
        pause = chance.uniform(0, 4.0)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(pause)
    return f"{pause:.3f} s after {f'trial {trial}' if trial > 0 else 'its start'}"


def interrupted_run(reference: Reference, seed: int, endings: Sequence[str], **settings: Any) -> int:
    """A run that is ended at a random instant by each of `endings` in turn, and then goes on to its end.

    Gives how many of them came before it had ended by itself.
    """
    chance = random.Random(seed)
    hits, before, story = 0, {}, f"seed {seed}"
    with place(**settings) as own:
        for name in endings:
            words = own.words()
            process = own.start(*words)
            when = at_random_instant(own, process, chance, len(reference.names))
            if process.poll() is None:
                hits += 1
            else:
                # It was faster: nothing is left to interrupt.
                _, said = process.communicate()
                if process.returncode:
                    raise Broken(f"{story}: {words[0]} ended with {process.returncode}: {said[-1500:]}")
                break
            ENDINGS[name](process)
            try:
                _, said = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                raise Broken(f"{story}: {name} did not end it") from None
            story += f"; {words[0]}, {name} {when}: status {process.returncode}"
            no_traceback(story, said)
            before = kept(own, before, reference, story)
            # Before, there is nothing yet to go on with, or the command is not yet known.
            begun = "\ntrials\n" in said and (own.run / "lock.json").is_file()
            if begun and process.returncode == 130 and f"kduel resume {own.run}" not in said:
                raise Broken(f"{story}: it does not say how to go on: {said}")
        ends_well(own, before, reference, story)
    return hits


def test_sigkill_at_random_instants_loses_nothing(reference: Reference, capsys: pytest.CaptureFixture[str]) -> None:
    hits, seed, began = 0, 0, time.monotonic()
    while hits < KILLS:
        hits += interrupted_run(reference, seed, ["SIGKILL"] * min(IN_A_ROW, KILLS - hits))
        seed += 1
    with capsys.disabled():
        print(f"\n{hits} times SIGKILL in {seed} runs, {time.monotonic() - began:.0f} s", flush=True)


def test_every_other_way_to_end_a_run_loses_nothing(reference: Reference, capsys: pytest.CaptureFixture[str]) -> None:
    hits, rounds, began = 0, max(1, KILLS // 20), time.monotonic()
    for seed in range(1000, 1000 + rounds):
        names = [name for name in ENDINGS if name != "SIGKILL"]
        random.Random(seed).shuffle(names)
        hits += interrupted_run(reference, seed, names)
    with capsys.disabled():
        print(f"\n{hits} other endings in {rounds} runs, {time.monotonic() - began:.0f} s", flush=True)


def test_real_guests_that_are_killed_with_their_runner() -> None:
    with place(real=True, blocks=1) as own:
        uninterrupted = Reference.of(own)
    interrupted_run(uninterrupted, 1, ["SIGKILL", "SIGTERM"], real=True, blocks=1)


def test_no_machine_is_started_for_a_runner_that_is_gone(tmp_path: Path) -> None:
    # It was killed after it had started setpriv, and before that asked the kernel to end with it.
    code = "import json; from kduel.guest import confine; print(json.dumps(confine.prefix(None, 'tcg')))"
    gone = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
    )
    started = tmp_path / "started"
    subprocess.run([*json.loads(gone.stdout), "touch", started], check=False)
    assert not started.exists()
    subprocess.run([*confine.prefix(None, "tcg"), "touch", started], check=True)
    assert started.exists()
