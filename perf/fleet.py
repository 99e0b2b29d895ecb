#!/usr/bin/env python3
"""A simulated fleet: how long the controller itself takes for many machines and blocks, with failures.

    PYTHONPATH=src perf/fleet.py [--machines 200] [--blocks 2000]

Real are the plan, the controller, the run's directory and every trial in it; simulated are the machines and the clock
(tests/support/simulated.py). Prints the controller's CPU time against the machines' own time.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from simulated import Clock, Machine, SimulatedFleet, run

from kduel.store.fleet_state import read_state
from kduel.store.rundir import RunDir


def main() -> None:
    """One run from its plan to its last block."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, default=200)
    parser.add_argument("--blocks", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    machines = {
        f"m{number:03d}": Machine(seconds=draw.uniform(50, 80), crash=0.02, void=0.02)
        for number in range(1, given.machines + 1)
    }
    names = list(machines)
    for name in draw.sample(names, max(1, given.machines // 50)):
        machines[name].gone_after = draw.randrange(1, 5)
    for name in draw.sample(names, max(1, given.machines // 50)):
        machines[name].void = 0.8
    fleet = SimulatedFleet(machines, Clock())
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "run"
        began, clock = time.monotonic(), fleet.clock.now
        told = run(fleet, path, f"fixed = {given.blocks}", patience=1800.0)
        seconds = time.monotonic() - began
        used = resource.getrusage(resource.RUSAGE_SELF)
        out = read_state(path).out
        trials = len(RunDir.open(path).records())
    lasted = fleet.clock.now - clock
    cpu = used.ru_utime + used.ru_stime
    print(
        f"{given.machines} machines, {given.blocks} blocks: {trials} trials kept, each run once: {set(fleet.runs.values()) == {1}}"
    )
    print(f"{sum('tried again' in text for text in told.warnings)} failures; out of service: {len(out)}")
    print(f"{seconds:.0f} s of this machine, {cpu:.0f} s of CPU (the simulated machines' files included)")
    print(
        f"{lasted:.0f} s of the simulated clock: {100 * cpu / lasted:.2f} % of one CPU; peak {used.ru_maxrss >> 10} MiB"
    )


if __name__ == "__main__":
    main()
