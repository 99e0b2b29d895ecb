"""Are trials on the machine icount the same, bit for bit? Ten of each kernel: alone; with QEMU started otherwise (its
own addresses not random, another environment, another directory); two at once; and on a busy host. Then, N times each
(2 by default), with QEMU stopped and continued all the time, and with its monitor polled without pause.

    python perf/exact_identity.py [--short] [--hostile N] [--suite exact-sharing] debian:5.10-cloud debian:6.1-cloud ...

Runs the suite exact, or exact-sharing (the lines that two CPUs share); with --short some of its operations. Prints a line
per trial with a hash over all files that the guest left (values, environment, console up to the script's end), and a table
at the end. All trials of a kernel must have one hash. Takes about an hour on 2 CPUs.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import hostile
from msgspec import structs

from kduel.core.cache import Cache
from kduel.core.progress import Progress
from kduel.guest.repetition import fingerprint, trial_contents
from kduel.machines import Trial
from kduel.machines.icount import IcountMachine
from kduel.run.prepare import make_ready
from kduel.study.contenders import contender_tables
from kduel.study.file import parse_study, suite_text
from kduel.study.load import Study, assemble

ALONE, OTHERWISE, TOGETHER, BUSY = 2, 2, 4, 2
SHORT = {
    "exact": ("boot", "null-call", "signal-deliver", "pipe", "tcp", "switch-8-16k", "fork-exec", "fault-file", "timer"),
    "exact-sharing": (
        "null-call-processes", "create-delete-processes", "tcp-connect-processes", "fork-exit-processes", "pipe-threads",
        "clone-threads", "mmap-threads", "fault-anonymous-threads", "rename-processes-directory",
        "epoll-10-processes-common", "fault-anonymous-against-mmap-threads",
    ),
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
    return structs.replace(study, steps=[step for step in study.steps if step.label in SHORT[suite]])


def main(kernels: list[str], suite: str, short: bool, hostile_times: int) -> None:
    cache = Cache()
    hashes: dict[str, list[str]] = {}
    for kernel in kernels:
        text = suite_text(suite) + contender_tables([kernel, kernel], True)
        study = assemble(parse_study(text, suite), text, suite)
        ready = make_ready(shortened(study, suite) if short else study, cache=cache, progress=Progress())
        machine, arm = ready.machine, ready.arms[0]
        assert isinstance(machine, IcountMachine)
        script = ready.setup.script(arm.contender, range(len(ready.study.steps)))

        def once(how: str) -> str:
            with tempfile.TemporaryDirectory() as name:
                begin = time.monotonic()
                trial = Trial(id="x", arm=arm, script=script.text, deadline=1800, into=Path(name))  # noqa: B023
                outcome = machine.boot_once(trial)  # noqa: B023
                found = outcome.void or hash_of(Path(name))
                print(f"{kernel:24} {how:10} {time.monotonic() - begin:7.1f} s  {found}", flush=True)  # noqa: B023
                return found

        found = [once("alone") for _ in range(ALONE)]
        with started_otherwise():
            found += [once("otherwise") for _ in range(OTHERWISE)]
        with ThreadPoolExecutor(2) as pool:
            found += pool.map(once, ["together"] * TOGETHER)
        with busy_host():
            found += [once("busy host") for _ in range(BUSY)]
        for how, load in (("stopped", hostile.stopped_and_continued), ("polled", hostile.polled)):
            with load(machine):
                found += [once(how) for _ in range(hostile_times)]
        hashes[kernel] = found
    print()
    for kernel, found_hashes in hashes.items():
        print(
            f"{kernel:24} {len(found_hashes)} trials, {len(set(found_hashes))} different: {', '.join(set(found_hashes))}"
        )
    sys.exit(any(len(set(found_hashes)) != 1 for found_hashes in hashes.values()))


if __name__ == "__main__":
    read = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    read.add_argument("kernels", nargs="*", default=[f"debian:{v}-cloud" for v in ("5.10", "6.1", "6.12", "7")])
    read.add_argument("--suite", choices=SHORT, default="exact")
    read.add_argument("--short", action="store_true")
    read.add_argument("--hostile", type=int, default=2, metavar="N")
    given = read.parse_args()
    main(given.kernels, given.suite, given.short, given.hostile)
