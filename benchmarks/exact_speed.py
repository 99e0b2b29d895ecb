"""What the exact machine costs: two workers against one, and the counting plug-in against none.

    python benchmarks/exact_speed.py [KERNEL]

For an idle host with two CPUs at least; about five minutes. Wall-clock seconds, and CPU seconds of QEMU, which a busy
host disturbs less.
"""

from __future__ import annotations

import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kduel import programs
from kduel.cache import Cache
from kduel.machines import Trial
from kduel.machines.icount import IcountMachine, plugin_api
from kduel.runner import make_ready
from kduel.study import assemble, contender_tables, parse_study, suite_text
from kduel.talk import Talk

TRIALS = 4


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
    ready = make_ready(assemble(parse_study(text, "exact"), text, "exact"), cache=cache, talk=Talk())
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
    rows = []
    for workers in (1, 2, 1, 2):
        with ThreadPoolExecutor(workers) as pool:
            rows.append((workers, *timed(lambda: list(pool.map(once, [[]] * TRIALS)))))
        print(
            f"{TRIALS} trials, {workers} worker(s): {rows[-1][1]:6.1f} s, QEMU's CPU {rows[-1][2]:6.1f} s", flush=True
        )
    by = {workers: statistics.mean(row[1] for row in rows if row[0] == workers) for workers in (1, 2)}
    print(f"two workers are {by[1] / by[2]:.2f} times as fast as one")
    costs = {
        what: [timed(lambda: once(extra)) for _ in range(3)]  # noqa: B023
        for what, extra in (
            ("no plug-in", []),
            ("counting", ["-plugin", f"{plugin},out=@/counts"]),
            ("counting, with texts", ["-plugin", f"{plugin},out=@/counts,disassemble=on"]),
        )
    }
    plain = statistics.median(cpu for _, cpu in costs["no plug-in"])
    for what, pairs in costs.items():
        wall, cpu = (statistics.median(values) for values in zip(*pairs, strict=True))
        print(f"{what:22} {wall:6.1f} s, QEMU's CPU {cpu:6.1f} s: {cpu / plain:.2f} times the plain run")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "debian:6.12-cloud")
