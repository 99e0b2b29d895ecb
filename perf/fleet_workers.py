#!/usr/bin/env python3
"""The same exact study on 1, 2 and 4 workers: identical values, time by worker count, and the controller's own CPU time.

    PYTHONPATH=src perf/fleet_workers.py [--slurm] [--blocks 8] [--workers 1,2,4]

With --slurm the workers are nodes of a Slurm cluster on loopback (scripts/slurm-loopback; no other Slurm may run meanwhile),
else processes of `--fleet local`. Guests are really booted. The controller's CPU time is its own and that of the Slurm
programs that it calls, without the workers: of the whole command (with preparation and report), and between its first and
last trial. The guests' CPU time is not known exactly with Slurm, so shares are of one CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from loopback import started
from msgspec import Struct
from test_fleet_icount import SOURCE, STUDY

TICK = os.sysconf("SC_CLK_TCK")


class Spent(Struct):
    """What a run took, in seconds."""

    wall: float
    cpu: float
    """Of the controller and the programs that it waited for."""
    loop_wall: float
    """From the first trial to the last."""
    loop_cpu: float


def cpu_of(pid: int, slurm: bool) -> float:
    """CPU seconds of a process; with Slurm also of the children that have ended, which are Slurm's programs."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return sum(map(int, words[11 : 15 if slurm else 13])) / TICK


def measured(study: Path, run: Path, fleet: str, slurm: bool) -> Spent:
    """One run. Raises SystemExit where it fails."""
    command = [sys.executable, "-P", "-m", "kduel", "run", study, "--fleet", fleet, "--out", run, "--quiet"]
    # Absolute: workers have other working directories.
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    began = time.monotonic()
    with (run.parent / f"{run.name}.log").open("wb") as log:
        process = subprocess.Popen([*map(str, command), "--seed", "7"], stdout=log, stderr=log, env=environment)
        count, cpu, marks = 0, 0.0, []
        while process.poll() is None:
            now = sum(1 for _ in run.glob("trials/[0-9]*/trial.json"))
            try:
                cpu = cpu_of(process.pid, slurm)
            except (OSError, IndexError):
                break
            if now > count:
                marks.append((time.monotonic() - began, cpu))
                count = now
            time.sleep(0.1)
        status = process.wait()
    if status:
        sys.exit((run.parent / f"{run.name}.log").read_text())
    (first, cpu_first), (last, cpu_last) = marks[0], marks[-1]
    return Spent(time.monotonic() - began, cpu, last - first, cpu_last - cpu_first)


@contextmanager
def cluster(nodes: int, wanted: bool) -> Iterator[None]:
    """A Slurm cluster, where one is wanted."""
    with started(nodes) if wanted else nullcontext():
        yield


def main() -> None:
    """The runs, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slurm", action="store_true")
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--workers", default="1,2,4")
    given = parser.parse_args()
    counts = [int(word) for word in given.workers.split(",")]
    values = {}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place, cluster(max(counts), given.slurm):
        study = Path(place) / "workers.toml"
        study.write_text(STUDY.format(operations='"null-call", "pipe"', blocks=given.blocks))
        print(
            "| workers | elapsed, s | first to last trial, s | controller's CPU, s | of one CPU, between trials | load |"
        )
        print("|---|---|---|---|---|---|", flush=True)
        for count in counts:
            fleet = f"slurm:nodes={count},exclusive=false" if given.slurm else f"local:workers={count}"
            run = Path(place) / str(count)
            spent = measured(study, run, fleet, given.slurm)
            results = json.loads((run / "results.json").read_bytes())
            values[count] = {(one["benchmark"], one["metric"]): one["values"] for one in results["metrics"]}
            share = 100 * spent.loop_cpu / spent.loop_wall
            print(
                f"| {count} | {spent.wall:.0f} | {spent.loop_wall:.0f} | {spent.cpu:.1f} (between trials {spent.loop_cpu:.2f}) | "
                f"{share:.2f} % | {os.getloadavg()[1]:.1f} |",
                flush=True,
            )
    print(f"identical values: {all(one == values[counts[0]] for one in values.values())}")


if __name__ == "__main__":
    main()
