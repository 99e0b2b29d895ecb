"""Options of QEMU that could give steadier or safer guests: how its CPUs run, where its memory lies, and who shares their CPUs.

    python perf/qemu_options.py [--boots N] [--kernel KERNEL] [--only WAY]...

QEMU before 8.1 with several emulated CPUs, each with a thread, sometimes corrupts code that the kernel is patching (an `int3`
oops): one thread for all CPUs, or one CPU, would avoid it. Locked memory, huge pages, addresses that are not drawn, and timers
that expire on time could lower the spread. The ways take turns, N boots each (20 by default): sysbench CPU with two threads for two
seconds, a switch between two tasks on one CPU, and fork and exit, for one each. By way: boots that failed, seconds a boot took, and
each value with its spread between boots. Ways that the host does not permit are left out, with the reason. Run it as root.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from against_itself import with_contenders

from kduel.core.cache import Cache
from kduel.core.errors import KduelError
from kduel.core.progress import Progress
from kduel.guest import launch, priority
from kduel.machines import Machine, Trial
from kduel.run.prepare import make_ready
from kduel.store.collect import PreparedSteps
from kduel.study.file import parse_study
from kduel.study.load import assemble

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
use = "stress-ng"
stressor = "switch"
pinned = true
[[benchmark]]
use = "kbench"
operation = "fork-exit"
"""
METRICS = {"cpu, events/s": "events-per-second", "switch, ops/s": "operations-per-second", "fork, ns": "time"}
HUGE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
SLACK = 29
"""PR_SET_TIMERSLACK of prctl(2); 0 is the usual 50 microseconds."""


REFUSED = 2
"""A way of which so many boots failed, and all, is tried no more."""


class Way(NamedTuple):
    """How QEMU is started."""

    cpus: int = 2
    words: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    """Words before QEMU's own."""
    around: Callable[[], AbstractContextManager[None]] = nullcontext


@contextmanager
def huge_pages(which: str) -> Iterator[None]:
    """`always`: for all memory of QEMU, translated code included; QEMU asks for them for the guest's memory only. `never`: none."""
    was = HUGE.read_text().partition("[")[2].partition("]")[0]
    HUGE.write_text(which)
    try:
        yield
    finally:
        HUGE.write_text(was)


@contextmanager
def lockable() -> Iterator[None]:
    """Locked memory without a limit."""
    was = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, was)


@contextmanager
def exact_timers() -> Iterator[None]:
    """Timers that expire within a nanosecond: QEMU inherits it from the thread that starts it."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(SLACK, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(SLACK, 0, 0, 0, 0)


@contextmanager
def together() -> Iterator[None]:
    """QEMU's other threads may run on the CPUs of the virtual ones."""
    with patch.object(priority, "keep_off", lambda *_: None):
        yield


WAYS = {
    "as KDuel does": Way(),
    "one thread for two CPUs": Way(words=("-accel", "tcg,thread=single")),
    "memory locked": Way(words=("-overcommit", "mem-lock=on"), around=lockable),
    "huge pages for all of QEMU": Way(around=partial(huge_pages, "always")),
    "no huge pages": Way(around=partial(huge_pages, "never")),
    "reserved huge pages": Way(words=("-mem-path", "/dev/hugepages", "-mem-prealloc")),
    "addresses not drawn": Way(before=("setarch", "-R")),
    "timer slack of 1 ns": Way(around=exact_timers),
    "one CPU, other threads elsewhere": Way(cpus=1),
    "one CPU, other threads anywhere": Way(cpus=1, around=together),
}
"""Reserved huge pages must be there: 512 of 2 MiB, and a hugetlbfs that all may write. With two virtual CPUs on two of the host
no CPU is left for QEMU's other threads, so that their place is tried with one."""

Boot = tuple[str, float, list[float]]


def one_boot(machine: Machine, ready: Any, way: Way) -> Boot:
    """What ended the boot too early ("" if nothing did), its seconds, and its values."""
    start = launch._start

    def otherwise(argv: list[str], *rest: Any) -> Any:
        words = [word.removesuffix(",accel=tcg") if "-accel" in way.words else word for word in argv]
        return start([*way.before, *words, *way.words], *rest)

    arm = ready.arms[0]
    script = ready.dress.script(arm.contender, range(len(METRICS)))
    with (
        patch.object(launch, "_start", otherwise),
        way.around(),
        tempfile.TemporaryDirectory() as name,
    ):
        began = time.monotonic()
        trial = Trial(id="x", arm=arm, script=script.text, deadline=300, into=Path(name))
        try:
            outcome = machine.boot(trial)
        except KduelError as error:
            return str(error), time.monotonic() - began, []
        seconds = time.monotonic() - began
        if outcome.void:
            return f"{outcome.void}: {outcome.message}", seconds, []
        found = PreparedSteps(ready.study.steps)
        return "", seconds, [found.parse(Path(name), step)[metric] for step, metric in enumerate(METRICS.values())]


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
    found: dict[str, list[Boot]] = defaultdict(list)
    for way in given.only or WAYS:
        text = with_contenders(STUDY.format(cpus=WAYS[way].cpus), given.kernel)
        ready[way] = make_ready(assemble(parse_study(text, way), text, way), cache=cache, progress=Progress())
    loads = [os.getloadavg()[0]]
    for number in range(given.boots):
        for way, each in ready.items():
            if len(found[way]) == REFUSED and not any(values for _, _, values in found[way]):
                continue
            found[way].append(one_boot(each.machine, each, WAYS[way]))
            print(f"{number + 1}/{given.boots} {way}: {found[way][-1]}", file=sys.stderr, flush=True)
        loads.append(os.getloadavg()[0])
    print(f"load average {min(loads):.1f} to {max(loads):.1f}\n")
    print(f"| way | boots | failed | s per boot | {' | '.join(f'{name} | SD, %' for name in METRICS)} |")
    print(f"|---|---:|---|---:|{'---:|---:|' * len(METRICS)}")
    for way, boots in found.items():
        failed = Counter(why.partition(":")[0] for why, *_ in boots if why)
        words = ", ".join(f"{why} {times}" for why, times in failed.items()) or "0"
        seconds = statistics.mean(each for _, each, _ in boots)
        good = [values for _, _, values in boots if values]
        cells = [spread([values[number] for values in good]) for number in range(len(METRICS)) if len(good) > 2]
        print(f"| {way} | {len(boots)} | {words} | {seconds:.1f} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
