"""A disk that refuses: every call that writes fails once, each in its turn. The error names the place that failed, and
the run goes on when the fault is gone.

A preloaded library (failing.c) makes the calls fail, in KDuel's own process; the real small file systems at the end prove
that its errors are those of a disk.
"""

from __future__ import annotations

import errno
import os
import random
import re
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness import Broken, Place, Reference, ends_well, kept, no_traceback, place

pytestmark = [pytest.mark.guest, pytest.mark.network]

WANTED, _, SLICE = os.environ.get("KDUEL_TEST_FAULTS", "").partition(",")
EVERY = WANTED == "all"
"""Whether each of the calls is made to fail; else one of each kind is, drawn by a seed. `all,2/3`: the second third."""
BLOCKS = 1
ERRORS = {
    "write": ("ENOSPC", "EIO"), "pwrite64": ("ENOSPC",), "rename": ("ENOSPC", "EROFS"), "mkdir": ("ENOSPC", "EROFS"),
    "fsync": ("EIO", "ENOSPC"), "ftruncate": ("EFBIG", "EIO"), "fallocate": ("ENOSPC",), "sendfile": ("ENOSPC", "EIO"),
    "copy_file_range": ("ENOSPC",), "chmod": ("EROFS",), "fchmod": ("EROFS",), "flock": ("ENOLCK",),
    "openat": ("ENOSPC", "EROFS", "ENFILE", "EMFILE"), "fdatasync": ("EIO", "ENOSPC"), "close": ("ENOSPC", "EIO"),
}  # fmt: skip
"""ENOSPC of openat and mkdir is also what a file system without free inodes says."""


@dataclass(frozen=True, order=True)
class Call:
    """A call that writes in an undisturbed run: the `number`th of that name."""

    where: str
    name: str
    number: int
    text: str


def directories(own: Place) -> dict[str, list[Path]]:
    """What a fault is to be named by, and where it may happen."""
    return {"the run": [own.run], "TMPDIR": [own.temporary], "the cache": [own.cache]}


def where(own: Place, text: str) -> str:
    """Which of the places a path is in, or nothing."""
    for name, paths in directories(own).items():
        # A new run is written beside its name first.
        if any(str(path) in text or str(path.parent / f".{path.name}-") in text for path in paths):
            return name
    return ""


@contextmanager
def watched(own: Place, library: Path, call: str = "") -> Iterator[Path]:
    """Commands of this place log their calls that write into one of its directories, to this file; `call` fails."""
    log = own.base / "calls"
    log.unlink(missing_ok=True)
    places = [*(str(path) for paths in directories(own).values() for path in paths)]
    new_run = f"{own.run.parent}/.{own.run.name}-"
    before = own.environment
    own.environment = before | {
        "LD_PRELOAD": str(library),
        "FAULT_LOG": str(log),
        "FAULT_PLACES": ":".join([*places, new_run]),
        "FAULT_CALL": call,
    }
    try:
        yield log
    finally:
        own.environment = before


def calls(own: Place, library: Path) -> list[Call]:
    """The calls of a run that write into one of the places."""
    with watched(own, library) as log:
        done = own.kduel(*own.words(), "--offline")
    assert done.returncode == 0, done.stderr
    found = []
    for line in log.read_text(errors="replace").splitlines():
        match = re.fullmatch(r"(\w+)\((.*)\) (\d+)", line)
        assert match, line
        found.append(Call(where(own, match[2]), match[1], int(match[3]), line[:200]))
    return found


@pytest.fixture(scope="module")
def undisturbed(
    need: Callable[..., str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Reference, list[Call], Path]:
    """A run without faults, the calls by which one writes, and the library that makes them fail. The first run fetches what is
    missing; the others are offline, since other tests may have the lists of packages read again at any time."""
    library = tmp_path_factory.mktemp("library") / "failing.so"
    source = Path(__file__).with_name("failing.c")
    subprocess.run([need("gcc"), "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, source], check=True)
    with place(seconds=0.05, blocks=BLOCKS) as own:
        reference = Reference.of(own)
    with place(seconds=0.05, blocks=BLOCKS) as own:
        return reference, calls(own, library), library


def chosen(found: list[Call]) -> list[tuple[Call, str]]:
    """Each call with each of its errors, every call once before the first one twice; or of every kind and place one with
    one error."""
    chance = random.Random(17)
    if EVERY:
        errors = [(call, chance.sample(ERRORS[call.name], len(ERRORS[call.name]))) for call in found]
        rounds = [
            [(call, own[n]) for call, own in errors if n < len(own)] for n in range(max(map(len, ERRORS.values())))
        ]
        first, of = (int(number) for number in (SLICE or "1/1").split("/"))
        return [one for given in rounds for one in chance.sample(given, len(given))][first - 1 :: of]
    everything = [(call, error) for call in found for error in ERRORS[call.name]]
    kinds: dict[tuple[str, str], list[tuple[Call, str]]] = defaultdict(list)
    for call, error in everything:
        kinds[call.where, call.name].append((call, error))
    return [chance.choice(kinds[kind]) for kind in sorted(kinds)]


def test_a_call_that_fails_is_named_where_it_is_and_loses_nothing(
    undisturbed: tuple[Reference, list[Call], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    reference, found, library = undisturbed
    assert {call.where for call in found} == {"the run", "the cache"}, "a trial keeps nothing in TMPDIR"
    broken, tried, hit, begun = [], chosen(found), 0, time.monotonic()
    for number, (call, error) in enumerate(tried, 1):
        story = f"{error} at {call.name} number {call.number} ({call.where})"
        with place(seconds=0.05, blocks=BLOCKS) as own:
            with watched(own, library, f"{call.name}:{call.number}:{getattr(errno, error)}") as log:
                done = own.kduel(*own.words(), "--offline")
            lines = [line for line in log.read_text(errors="replace").splitlines() if "(INJECTED)" in line]
            try:
                no_traceback(story, done.stderr)
                hit += bool(lines)
                if done.returncode:
                    named_rightly(own, story, lines[0] if lines else "", done)
                ends_well(own, kept(own, {}, reference, story), reference, story)
            except Broken as error_found:
                broken.append(f"{error_found}\n    {lines[:1]}")
        if EVERY:
            with capsys.disabled():
                seconds = time.monotonic() - begun
                print(f"{number} of {len(tried)}, {hit} hit, {len(broken)} broken, {seconds:.0f} s", flush=True)
                if broken and story in broken[-1]:
                    print(broken[-1], flush=True)
    with capsys.disabled():
        print(f"\n{len(tried)} faults in {len(found)} calls, {hit} hit, {len(broken)} broken", flush=True)
    assert not broken, "\n".join(broken)


def named_rightly(own: Place, story: str, line: str, done: subprocess.CompletedProcess[str]) -> None:
    """The status is that of a host that lacks something, and the message names the place of the fault and no other."""
    if done.returncode != 3:
        raise Broken(f"{story}: ended with {done.returncode}: {done.stderr[-1500:]}")
    said = done.stderr[done.stderr.index("kduel: ") :] if "kduel: " in done.stderr else done.stderr
    if "open files" in said:
        return
    place_of = where(own, line)
    if place_of and not any(str(path) in said or place_of in said for path in directories(own)[place_of]):
        raise Broken(f"{story}: {place_of} is not named: {said}")
    for name, paths in directories(own).items():
        if name != place_of and any(f"cannot write to {path}" in said for path in paths):
            raise Broken(f"{story}: it names {name}: {said}")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system takes root")
@pytest.mark.parametrize(
    ("lacking", "mended"), [("size=200k", "size=64m"), ("nr_inodes=40", "nr_inodes=10000"), ("ro", "rw")]
)
def test_a_real_disk_that_is_full_is_named(
    undisturbed: tuple[Reference, list[Call], Path], lacking: str, mended: str
) -> None:
    reference, _, _ = undisturbed
    with place(seconds=0.05, blocks=BLOCKS) as own:
        disk = own.base / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", lacking, "small", disk], check=True)
        try:
            own.put_run(disk / "run")
            done = own.kduel(*own.words(), "--offline")
            assert done.returncode == 3, done.stderr
            no_traceback(lacking, done.stderr)
            assert str(own.run) in done.stderr[done.stderr.index("kduel: ") :]
            subprocess.run(["mount", "-o", f"remount,{mended}", disk], check=True)
            ends_well(own, kept(own, {}, reference, lacking), reference, lacking)
        finally:
            subprocess.run(["umount", disk], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system takes root")
def test_a_full_tmpdir_is_no_hindrance(undisturbed: tuple[Reference, list[Call], Path]) -> None:
    reference, _, _ = undisturbed
    with place(seconds=0.05, blocks=BLOCKS) as own:
        own.temporary.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "small", own.temporary], check=True)
        try:
            done = own.kduel(*own.words(), "--offline")
            assert done.returncode == 0, done.stderr
            ends_well(own, kept(own, {}, reference, "TMPDIR"), reference, "TMPDIR")
        finally:
            subprocess.run(["umount", own.temporary], check=True)
