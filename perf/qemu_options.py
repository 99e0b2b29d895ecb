"""Options of QEMU that could give steadier or safer guests: how its CPUs run, and where the guest's memory lies.

    python perf/qemu_options.py [--boots N] [--kernel KERNEL] [--only WAY]...

QEMU before 8.1 with several emulated CPUs, each with a thread, sometimes corrupts code that the kernel is patching (an `int3`
oops): one thread for all CPUs, or one CPU, would avoid it. Locked memory or huge pages could lower the spread. The ways take
turns, N boots each (20 by default): sysbench CPU with two threads for two seconds, sysbench memory for one. By way: boots that
failed, seconds a boot took, events/s and MiB/s with their spread between boots. Seconds that a verdict costs grow with the
time of a boot and with the square of the spread: the last column is their product for events/s, relative to the first way.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from against_itself import with_contenders

from kduel.core.cache import Cache
from kduel.core.errors import KduelError
from kduel.core.progress import Progress
from kduel.guest import launch
from kduel.machines import Machine, Trial
from kduel.run.prepare import make_ready
from kduel.store.collect import Prepared
from kduel.study.load import assemble, parse_study

STUDY = """[study]
name = "emulated-cpus"
[machine]
kind = "qemu"
accel = "tcg"
cpus = {cpus}
memory = 1024
[settle]
mode = "fixed"
seconds = 0
[[benchmark]]
use = "sysbench-cpu"
threads = 2
time = 2
[[benchmark]]
use = "sysbench-memory"
time = 1
"""
WAYS: dict[str, tuple[int, list[str]]] = {
    "a thread for each of two CPUs": (2, []),
    "one thread for two CPUs": (2, ["-accel", "tcg,thread=single"]),
    "one CPU": (1, []),
    "memory locked": (2, ["-overcommit", "mem-lock=on"]),
    "huge pages": (2, ["-mem-path", "/dev/hugepages", "-mem-prealloc"]),
}
"""CPUs, and what else QEMU is told. Huge pages must be there: 512 of 2 MiB, and a hugetlbfs that all may write."""


def one_boot(machine: Machine, ready: Any, more: list[str]) -> tuple[str, float, float, float]:
    """What ended the boot too early ("" if nothing did), its seconds, and its events/s and MiB/s (0 if it failed)."""
    start = launch._start

    def otherwise(argv: list[str], *rest: Any) -> Any:
        words = [word.removesuffix(",accel=tcg") if "-accel" in more else word for word in argv]
        return start([*words, *more], *rest)

    arm = ready.arms[0]
    script = ready.dress.script(arm.contender, range(2))
    launch._start = otherwise  # type: ignore[assignment]
    try:
        with tempfile.TemporaryDirectory() as name:
            began = time.monotonic()
            trial = Trial(id="x", arm=arm, script=script.text, deadline=300, into=Path(name))
            try:
                outcome = machine.boot(trial)
            except KduelError as error:
                return str(error), time.monotonic() - began, 0.0, 0.0
            seconds = time.monotonic() - began
            if outcome.void:
                return f"{outcome.void}: {outcome.message}", seconds, 0.0, 0.0
            found = Prepared(ready.study.steps)
            bandwidth = found.parse(Path(name), 1)
            return "", seconds, found.parse(Path(name), 0)["events-per-second"], next(iter(bandwidth.values()))
    finally:
        launch._start = start


def spread(values: list[float]) -> str:
    """Mean and relative standard deviation, as two cells."""
    mean = statistics.mean(values)
    return f"{mean:.0f} | {100 * statistics.stdev(values) / mean:.2f}"


def main() -> None:
    """Markdown on standard output, boots on standard error."""
    read = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    read.add_argument("--boots", type=int, default=20)
    read.add_argument("--kernel", default="debian:6.1-cloud")
    read.add_argument("--only", action="append", choices=list(WAYS), metavar="WAY", help="Only this one; repeat it.")
    given = read.parse_args()
    cache, ready = Cache(), {}
    found: dict[str, list[tuple[str, float, float, float]]] = defaultdict(list)
    for way in given.only or WAYS:
        text = with_contenders(STUDY.format(cpus=WAYS[way][0]), given.kernel)
        ready[way] = make_ready(assemble(parse_study(text, way), text, way), cache=cache, progress=Progress())
    loads = [os.getloadavg()[0]]
    for number in range(given.boots):
        for way, each in ready.items():
            found[way].append(one_boot(each.machine, each, WAYS[way][1]))
            print(f"{number + 1}/{given.boots} {way}: {found[way][-1]}", file=sys.stderr, flush=True)
        loads.append(os.getloadavg()[0])
    print(f"load average {min(loads):.1f} to {max(loads):.1f}\n")
    print("| way | boots | failed | s per boot | events/s | SD, % | MiB/s | SD, % | s per verdict, relative |")
    print("|---|---:|---|---:|---:|---:|---:|---:|---:|")
    first = 0.0
    for way, boots in found.items():
        failed = Counter(why.partition(":")[0] for why, *_ in boots if why)
        words = ", ".join(f"{why} {times}" for why, times in failed.items()) or "0"
        seconds = statistics.mean(each for _, each, *_ in boots)
        good = [boot for boot in boots if not boot[0]]
        if len(good) < 3:
            print(f"| {way} | {len(boots)} | {words} | | | | | | |")
            continue
        events = [boot[2] for boot in good]
        costs = seconds * len(boots) / len(good) * (statistics.stdev(events) / statistics.mean(events)) ** 2
        first = first or costs
        print(
            f"| {way} | {len(boots)} | {words} | {seconds:.1f} | {spread(events)} "
            f"| {spread([boot[3] for boot in good])} | {costs / first:.2f} |"
        )


if __name__ == "__main__":
    main()
