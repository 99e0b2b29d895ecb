"""What the exact machine costs: two workers against one, and the counting plug-in against none.

    python perf/exact_speed.py [KERNEL]

For a host with two CPUs at least; about ten minutes. What is compared is interleaved. Besides the clock's seconds it
gives QEMU's CPU seconds, which other work on the host disturbs less: two workers are as fast as 2 x (CPU of a trial
alone) / (CPU of a trial beside another) where both CPUs are free.
"""

from __future__ import annotations

import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from kduel.core.cache import Cache
from kduel.core.progress import Progress
from kduel.guest import programs
from kduel.guest.processor import plugin_api
from kduel.machines import Trial
from kduel.machines.icount import IcountMachine
from kduel.run.prepare import make_ready
from kduel.study.contenders import contender_tables
from kduel.study.load import assemble, parse_study, suite_text

TRIALS, ROUNDS = 2, 3


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock, and of CPU in the programs that were started."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - begin, cpu


def main(kernel: str) -> None:
    cache = Cache()
    text = suite_text("exact") + contender_tables([kernel, kernel], True)
    ready = make_ready(assemble(parse_study(text, "exact"), text, "exact"), cache=cache, progress=Progress())
    machine, arm = ready.machine, ready.arms[0]
    assert isinstance(machine, IcountMachine)
    script = ready.dress.script(arm.contender, range(len(ready.study.steps)))
    plugin = programs.build_plugin(api=plugin_api(machine.facts["qemu"]), cache=cache)

    def once(extra: list[str]) -> None:
        with tempfile.TemporaryDirectory() as name:
            trial = Trial(id="x", arm=arm, script=script.text, deadline=1800, into=Path(name))
            outcome = machine.boot_once(trial, [word.replace("@", name) for word in extra])
            assert not outcome.void, outcome.message

    once([])
    print(f"load of the host at the start: {os.getloadavg()[0]:.1f}", flush=True)
    rows: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
    for _ in range(ROUNDS):
        for workers, measured in rows.items():
            with ThreadPoolExecutor(workers) as pool:
                measured.append(timed(lambda: list(pool.map(once, [[]] * TRIALS))))
            wall, cpu = measured[-1]
            print(f"{TRIALS} trials, {workers} worker(s): {wall:6.1f} s, QEMU's CPU {cpu:6.1f} s", flush=True)
    (wall_1, cpu_1), (wall_2, cpu_2) = (
        [statistics.median(values) for values in zip(*rows[workers], strict=True)] for workers in (1, 2)
    )
    print(f"two workers are {wall_1 / wall_2:.2f} times as fast as one by the clock; by CPU {2 * cpu_1 / cpu_2:.2f}")
    ways = {
        "no plug-in": [],
        "counting": ["-plugin", f"{plugin},out=@/counts"],
        "counting, with texts": ["-plugin", f"{plugin},out=@/counts,disassemble=on"],
    }
    costs: dict[str, list[tuple[float, float]]] = {what: [] for what in ways}
    for _ in range(ROUNDS):
        for what, extra in ways.items():
            costs[what].append(timed(lambda: once(extra)))  # noqa: B023
    plain = statistics.median(cpu for _, cpu in costs["no plug-in"])
    for what, pairs in costs.items():
        wall, cpu = (statistics.median(values) for values in zip(*pairs, strict=True))
        print(f"{what:22} {wall:6.1f} s, QEMU's CPU {cpu:6.1f} s: {cpu / plain:.2f} times the plain run")
    print(f"load of the host at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "debian:6.12-cloud")
