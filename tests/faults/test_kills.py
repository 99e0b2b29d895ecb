"""Nothing is lost, whatever ends a run at whatever instant: it goes on and ends like one that was never interrupted."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from harness import Broken, Reference, ends_well, kept, no_traceback, place

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


def interrupted_run(reference: Reference, seed: int, kills: int, ending: Ending, name: str, **settings: Any) -> int:
    """A run that is ended at `kills` random instants and then goes on to its end; gives how many did hit it."""
    chance = random.Random(seed)
    hits, before, story = 0, {}, f"seed {seed}"
    with place(**settings) as own:
        for _ in range(kills):
            instant = chance.uniform(0, reference.seconds)
            words = own.words()
            process = own.start(*words)
            try:
                process.wait(instant)
            except subprocess.TimeoutExpired:
                hits += 1
            else:
                # It was faster than the uninterrupted one: nothing is left to interrupt.
                _, said = process.communicate()
                if process.returncode:
                    raise Broken(f"{story}: {words[0]} ended with {process.returncode}: {said[-1500:]}")
                break
            ending(process)
            try:
                _, said = process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                raise Broken(f"{story}: {name} did not end it within a minute") from None
            story += f"; {words[0]}, {name} after {instant:.3f} s: status {process.returncode}"
            no_traceback(story, said)
            before = kept(own, before, reference, story)
            if (
                name.startswith("SIGINT")
                and process.returncode != -signal.SIGINT
                and (own.run / "lock.json").exists()
            ):
                assert "kduel resume" in said or process.returncode == 0, f"{story}: {said}"
        ends_well(own, before, reference, story)
    return hits


def test_sigkill_at_random_instants_loses_nothing(reference: Reference) -> None:
    hits, seed = 0, 0
    while hits < KILLS:
        hits += interrupted_run(reference, seed, min(IN_A_ROW, KILLS - hits), sent(signal.SIGKILL), "SIGKILL")
        seed += 1


@pytest.mark.parametrize("name", ENDINGS)
def test_other_ways_to_end_a_run(reference: Reference, name: str) -> None:
    for seed in range(max(1, KILLS // 40)):
        interrupted_run(reference, 1000 + seed, 2, ENDINGS[name], name)


def test_real_guests_that_are_killed_with_their_runner() -> None:
    with place(real=True, blocks=1) as own:
        uninterrupted = Reference.of(own)
    interrupted_run(uninterrupted, 1, 3, sent(signal.SIGKILL), "SIGKILL", real=True, blocks=1)
    interrupted_run(uninterrupted, 2, 1, to_the_group(signal.SIGTERM), "SIGTERM to all", real=True, blocks=1)
