"""Are trials on the machine icount the same, bit for bit? Boots of each kernel: alone; with QEMU started otherwise (its
own addresses not random, another environment, another directory); two at once; on a busy host; with QEMU stopped and
continued all the time; and with its monitor polled without pause.

    python perf/exact_identity.py [--short] [--suite SUITE] [--cpus N] [--boots HOW=N,...] [--keep DIR [--minutes M]] KERNEL...

Runs the suite exact, exact-lines (the lines that a call touches), exact-sharing (the lines that two CPUs share),
exact-applications (requests) or exact-scheduling; with --short some of its operations, in all but the first under one
condition or two. With --cpus the suite exact-scheduling has so many CPUs, workers and busy tasks. Prints a line per boot with
a hash over all files that the guest left (values, environment, console up to the script's end), and a table at the end. All
boots of a kernel must have one hash. Takes about an hour on 2 CPUs.

With --keep the lines are added to DIR/boots.tsv and the table is of all that are there, so that many boots can be made in parts: no
boot begins after --minutes, and the same command makes those that are missing. The files of the first boot with each hash stay in
DIR, for a comparison.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import hostile
from msgspec import structs

from kduel.benchmarks.request import APPLICATIONS
from kduel.core.cache import Cache
from kduel.core.progress import Progress
from kduel.machines import Trial
from kduel.machines.guests.proofs import fingerprint, trial_contents
from kduel.machines.icount import IcountMachine
from kduel.run.prepare import make_ready
from kduel.study.contenders import contender_tables
from kduel.study.file import parse_study, suite_text
from kduel.study.load import Study, assemble

BOOTS = "alone=2,otherwise=2,together=4,busy=2,stopped=2,polled=2"
SHORT = {
    "exact": ("boot", "null-call", "signal-deliver", "pipe", "tcp", "switch-8-16k", "fork-exec", "fault-file", "timer"),
    "exact-lines": tuple(f"{name}-lines" for name in ("null-call", "pipe", "tcp", "fork-exec", "fault-file", "dup")),
    "exact-sharing": (
        "null-call-processes", "create-delete-processes", "tcp-connect-processes", "fork-exit-processes", "pipe-threads",
        "clone-threads", "mmap-threads", "fault-anonymous-threads", "rename-processes-directory",
        "epoll-10-processes-common", "fault-anonymous-against-mmap-threads",
    ),
    "exact-applications": tuple(APPLICATIONS),
    "exact-scheduling": ("wakeup-4w-6c-1000hz-250r-work-200-4hogs", "kload-cpu-16-6c-30000i"),
}  # fmt: skip
ADDRESSES_NOT_RANDOM = 0x0040000
"""ADDR_NO_RANDOMIZE of personality(2)."""


def burn() -> None:
    """One busy CPU."""
    while True:
        sum(range(100_000))


@contextmanager
def busy_host() -> Iterator[None]:
    """As many busy processes as there are CPUs."""
    hogs = [multiprocessing.Process(target=burn, daemon=True) for _ in range(multiprocessing.cpu_count())]
    for hog in hogs:
        hog.start()
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()


@contextmanager
def started_otherwise() -> Iterator[None]:
    """QEMU's own addresses are not random, its environment is 20 KiB larger, and its files lie elsewhere."""
    libc, before, place = ctypes.CDLL(None), dict(os.environ), tempfile.tempdir
    persona = libc.personality(0xFFFFFFFF)
    with tempfile.TemporaryDirectory(prefix="another-place-with-a-longer-name-") as name:
        libc.personality(persona | ADDRESSES_NOT_RANDOM)
        os.environ.update({f"KDUEL_PADDING_{number}": "x" * 1000 for number in range(20)}, TZ="Asia/Tokyo")
        tempfile.tempdir = name
        try:
            yield
        finally:
            tempfile.tempdir = place
            libc.personality(persona)
            os.environ.clear()
            os.environ.update(before)


def hash_of(directory: Path) -> str:
    """Over every file that the guest sent, and its console as far as it was measured."""
    return hashlib.sha256(repr(fingerprint(trial_contents(directory))).encode()).hexdigest()[:16]


def shortened(study: Study, suite: str) -> Study:
    """Less of the same."""
    steps = [step for step in study.steps if step.label in SHORT[suite]]
    if suite != "exact":
        conditions = 2 if suite == "exact-scheduling" else 0
        steps = [structs.replace(step, parameters={**step.parameters, "conditions": conditions}) for step in steps]
    return structs.replace(study, steps=steps)


def widened(study: Study, cpus: int) -> Study:
    """The same on so many CPUs, with as many workers and busy tasks."""
    more = {"workers": cpus, "hogs": cpus}
    steps = [
        structs.replace(step, parameters={**step.parameters, **more}) if step.benchmark == "wakeup" else step
        for step in study.steps
    ]
    return structs.replace(study, steps=steps, machine_settings={**study.machine_settings, "cpus": cpus})


class Boots:
    """Boots of one kernel, and those kept from earlier parts."""

    def __init__(self, kernel: str, suite: str, short: bool, cpus: int, keep: Path | None) -> None:
        text = suite_text(suite) + contender_tables([kernel, kernel], True)
        study = assemble(parse_study(text, suite), text, suite)
        study = shortened(study, suite) if short else study
        ready = make_ready(widened(study, cpus) if cpus else study, cache=Cache(), progress=Progress())
        assert isinstance(ready.machine, IcountMachine)
        self.kernel, self.keep, self.machine, self.arm = kernel, keep, ready.machine, ready.arms[0]
        self.script = ready.setup.script(self.arm.contender, range(len(ready.study.steps)))
        self.made: list[tuple[str, str]] = []
        """How each was made, and its hash."""
        if keep and (lines := keep / "boots.tsv").is_file():
            rows = (line.split("\t") for line in lines.read_text().splitlines())
            self.made = [(how, found) for name, how, _, _, found in rows if name == kernel]

    def missing(self, how: str, wanted: int) -> int:
        """Boots of a kind that are still to be made."""
        return max(0, wanted - sum(one == how for one, _ in self.made))

    def once(self, how: str) -> None:
        """Make one boot."""
        with tempfile.TemporaryDirectory() as name:
            into, begin = Path(name) / "trial", time.monotonic()
            into.mkdir()
            outcome = self.machine.boot_once(
                Trial(id="x", arm=self.arm, script=self.script.text, deadline=1800, into=into)
            )
            found = outcome.void or hash_of(into)
            seconds, load = time.monotonic() - begin, os.getloadavg()[0]
            print(f"{self.kernel:24} {how:10} {seconds:7.1f} s, load {load:4.1f}  {found}", flush=True)
            if self.keep:
                kept = self.keep / self.kernel.replace("/", "-").replace(":", "-") / found
                if not kept.exists():
                    shutil.copytree(into, kept)
                with (self.keep / "boots.tsv").open("a") as lines:
                    lines.write(f"{self.kernel}\t{how}\t{seconds:.1f}\t{load:.1f}\t{found}\n")
            self.made.append((how, found))

    def make(self, how: str, times: int, over: Callable[[], bool]) -> None:
        """Make boots of a kind, until it is `over`."""
        loads = {"stopped": hostile.stopped_and_continued, "polled": hostile.polled}
        with ExitStack() as stack:
            if how == "otherwise":
                stack.enter_context(started_otherwise())
            elif how == "busy":
                stack.enter_context(busy_host())
            elif how in loads:
                stack.enter_context(loads[how](self.machine))
            pool = stack.enter_context(ThreadPoolExecutor(2 if how == "together" else 1))
            list(pool.map(lambda _: over() or self.once(how), range(times)))


def main(
    kernels: list[str], suite: str, short: bool, cpus: int, wanted: dict[str, int], keep: Path | None, minutes: float
) -> None:
    end = time.monotonic() + 60 * minutes
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
    boots = [Boots(kernel, suite, short, cpus, keep) for kernel in kernels]
    for one in boots:
        for how, times in wanted.items():
            one.make(how, one.missing(how, times), lambda: time.monotonic() > end)
    print()
    for one in boots:
        hashes = Counter(found for _, found in one.made)
        print(f"{one.kernel:24} {len(one.made)} boots, {len(hashes)} different: {dict(hashes.most_common())}")
    sys.exit(any(len({found for _, found in one.made}) > 1 for one in boots))


def boots_wanted(text: str) -> dict[str, int]:
    """`stopped=20,together=5` as numbers by kind."""
    return {how: int(times) for how, times in (word.split("=") for word in text.split(","))}


if __name__ == "__main__":
    read = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    read.add_argument("kernels", nargs="*", default=[f"debian:{v}-cloud" for v in ("5.10", "6.1", "6.12", "7")])
    read.add_argument("--suite", choices=SHORT, default="exact")
    read.add_argument("--short", action="store_true")
    read.add_argument("--cpus", type=int, default=0, metavar="N")
    read.add_argument("--boots", type=boots_wanted, default=boots_wanted(BOOTS), metavar="HOW=N,...", help=BOOTS)
    read.add_argument("--keep", type=Path, metavar="DIR")
    read.add_argument("--minutes", type=float, default=float("inf"))
    given = read.parse_args()
    main(given.kernels, given.suite, given.short, given.cpus, given.boots, given.keep, given.minutes)
