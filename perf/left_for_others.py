"""CPU time that a guest's raised priority leaves for other work: the table of docs/busy-hosts.md.

    python perf/left_for_others.py [--seconds 5]

One CPU. A busy process stands for a guest's vCPU, beside one and six ordinary busy processes in sessions of their own. Beside
it "none", then the default priority of the machines qemu and icount, and nice alone. Root only; other work on that CPU spoils it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from kduel.guest.priority import NICE, raise_priority

TICKS = os.sysconf("SC_CLK_TCK")
BUSY = [sys.executable, "-ISc", "while True: pass"]


def cpu_seconds(process: int) -> float:
    """CPU time of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text("ascii", errors="replace").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def shares(others: int, means: str, seconds: float) -> tuple[float, float, list[str]]:
    """The share of one CPU that the process with priority got, the mean share of each other, and the means in words."""
    cpu = max(os.sched_getaffinity(0))
    with ExitStack() as held:
        processes = []
        for _ in range(others + 1):
            process = held.enter_context(subprocess.Popen(BUSY, start_new_session=True))
            held.callback(process.kill)
            os.sched_setaffinity(process.pid, {cpu})
            processes.append(process.pid)
        first, *rest = processes
        got: list[str] = []
        if means == "default":
            got = held.enter_context(raise_priority(first))
        elif means == "nice alone":
            os.setpriority(os.PRIO_PROCESS, first, NICE)
        time.sleep(0.5)
        before = [cpu_seconds(one) for one in processes]
        began = time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - began
        used = [(cpu_seconds(one) - was) / took for one, was in zip(processes, before, strict=True)]
    return used[0], sum(used[1:]) / len(rest), got


def main() -> None:
    """Print the table and the host's load, by which its worth is to be judged."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    given = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("raised priority is root's: start it with sudo")
    print(f"load of the host before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    print("| priority | beside one | the other | beside six | each other |\n|---|---|---|---|---|")
    for means in ("none", "default", "nice alone"):
        one, six = shares(1, means, given.seconds), shares(6, means, given.seconds)
        name = f"default ({', '.join(one[2])})" if one[2] else means
        print(f"| {name} | {one[0]:.0%} | {one[1]:.1%} | {six[0]:.0%} | {six[1]:.1%} |")


if __name__ == "__main__":
    main()
