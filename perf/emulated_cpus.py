"""How should an emulator that has the int3 fault run its CPUs: a thread for each, one thread for all, or one CPU?

    python perf/emulated_cpus.py [--boots N] [--kernel KERNEL]

QEMU before 8.1 with several emulated CPUs, each with a thread, sometimes corrupts code that the kernel is patching (an `int3`
oops). The three ways take turns, N boots each (20 by default): a scratch disk, and sysbench CPU with two threads for two
seconds. By way: boots that failed, seconds a boot took, events/s, and their spread between boots. Seconds that a verdict costs
grow with the time of a boot and with the square of the spread: the last column is their product, relative to the first way.
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

from kduel.core.cache import Cache
from kduel.core.progress import Progress
from kduel.guest import launch
from kduel.machines import Machine, Trial
from kduel.run.prepare import make_ready
from kduel.store.collect import Prepared
from kduel.study.load import assemble, parse_study

STUDY = """[study]
name = "emulated-cpus"
[[contender]]
kernel = "{kernel}"
[[contender]]
kernel = "{kernel}"
name = "again"
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
"""
WAYS = {
    "a thread for each of two CPUs": (2, "multi"),
    "one thread for two CPUs": (2, "single"),
    "one CPU": (1, "multi"),
}


def one_boot(machine: Machine, ready: Any, thread: str) -> tuple[str, float, float]:
    """What ended the boot too early ("" if nothing did), its seconds, and its events/s (0 if it failed)."""
    start = launch._start

    def otherwise(argv: list[str], *more: Any) -> Any:
        words = [word.removesuffix(",accel=tcg") for word in argv]
        return start([*words, "-accel", f"tcg,thread={thread}"], *more)

    arm = ready.arms[0]
    script = ready.dress.script(arm.contender, range(1))
    launch._start = otherwise  # type: ignore[assignment]
    try:
        with tempfile.TemporaryDirectory() as name:
            began = time.monotonic()
            trial = Trial(id="x", arm=arm, script=script.text, deadline=300, into=Path(name))
            outcome = machine.boot(trial)
            seconds = time.monotonic() - began
            if outcome.void:
                return outcome.void, seconds, 0.0
            value = Prepared(ready.study.steps).parse(Path(name), 0)["events-per-second"]
            return "", seconds, value
    finally:
        launch._start = start


def main() -> None:
    """Markdown on standard output, boots on standard error."""
    read = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    read.add_argument("--boots", type=int, default=20)
    read.add_argument("--kernel", default="debian:6.1-cloud")
    given = read.parse_args()
    cache, found = Cache(), defaultdict(list)
    ready = {}
    for way, (cpus, _) in WAYS.items():
        text = STUDY.format(kernel=given.kernel, cpus=cpus)
        ready[way] = make_ready(assemble(parse_study(text, way), text, way), cache=cache, progress=Progress())
    loads = [os.getloadavg()[0]]
    for number in range(given.boots):
        for way, (_, thread) in WAYS.items():
            found[way].append(one_boot(ready[way].machine, ready[way], thread))
            print(f"{number + 1}/{given.boots} {way}: {found[way][-1]}", file=sys.stderr, flush=True)
        loads.append(os.getloadavg()[0])
    print(f"load average {min(loads):.1f} to {max(loads):.1f}\n")
    print(
        "| way | boots | failed | seconds per boot | events/s | SD between boots, % | seconds per verdict, relative |"
    )
    print("|---|---:|---|---:|---:|---:|---:|")
    first = 0.0
    for way, boots in found.items():
        failed = Counter(why for why, _, _ in boots if why)
        seconds = statistics.mean(each for _, each, _ in boots)
        events = [value for why, _, value in boots if not why]
        spread = 100 * statistics.stdev(events) / statistics.mean(events)
        costs = seconds * len(boots) / len(events) * spread**2
        first = first or costs
        words = ", ".join(f"{why} {times}" for why, times in failed.items()) or "0"
        print(
            f"| {way} | {len(boots)} | {words} | {seconds:.1f} | {statistics.mean(events):.0f} | {spread:.2f} "
            f"| {costs / first:.2f} |"
        )


if __name__ == "__main__":
    main()
