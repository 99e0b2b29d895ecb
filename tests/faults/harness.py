"""A run of KDuel that something happens to, and what must hold of it afterwards.

QEMU is a stand-in (standin_qemu.py) where `Place` is not told otherwise; all else is the real thing: the kernels and
the root of the cache, the runner, its files, the report. Directories lie below one that everyone may enter, since QEMU
need not run as us.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from processes import command_lines

from kduel.core.cache import cache_root

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"
KERNELS = ("debian:6.1-cloud", "debian:6.12-cloud")
PATIENCE = 1800.0
"""Seconds that a command may take on a busy machine before it is taken to hang."""

KINDS = ("archive", "kernels", "vmlinux", "root", "initramfs", "scratch", "programs", "busybox")
"""Entries of the cache that a run uses."""

STUDY = """\
[study]
name = "faults"
delta = 0.5
[[contender]]
kernel = "debian:6.1-cloud"
[[contender]]
kernel = "debian:6.12-cloud"
[machine]
kind = "qemu"
boot_deadline = 900
priority = "normal"
accel = "tcg"
cpus = 1
memory = "256M"
disk = "16M"
[settle]
mode = "fixed"
seconds = 0
[blocks]
max = {blocks}
turns = "off"
[host]
quiet_seconds = 0
max_wait = 100 # other tests are no fault
"""
STEP = """
[[benchmark]]
use = "command"
label = "{label}"
command = "{command}"
primary = ["value"]
metrics = [{{ name = "value", unit = "1", better = "higher", regex = "value: ([0-9.]+)" }}]
"""


@dataclass
class Place:
    """Directories, environment and study of one scenario."""

    base: Path
    seconds: float = 0.2
    """Of a trial in the stand-in."""
    blocks: int = 4
    real: bool = False
    """Whether QEMU is the real one."""
    environment: dict[str, str] = field(default_factory=dict)
    wrapper: Sequence[str] = ()
    """What the commands are started by."""

    def __post_init__(self) -> None:
        self.run, self.temporary, self.cache = self.base / "run", self.base / "tmp", cache_root()
        self.program, self.study = self.base / "bin", self.base / "faults.toml"
        self.temporary.mkdir()
        self.program.mkdir()
        # With real guests the values must be those of the stand-in: they follow from nothing but the script.
        command = "echo value: 1000.5" if self.real else "echo value: the stand-in says it"
        steps = [STEP.format(label=label, command=command) for label in ("one", "two")]
        self.study.write_text(STUDY.format(blocks=self.blocks) + "".join(steps))
        if not self.real:
            target = self.program / "qemu-system-x86_64"
            shutil.copyfile(HERE / "standin_qemu.py", target)
            target.chmod(0o755)
        self.put_run(self.run)

    def put_run(self, path: Path) -> None:
        """The run's directory is to be `path`."""
        self.run = path
        (self.program / "settings.json").write_text(json.dumps({"seconds": self.seconds, "run": str(path)}))

    def copy_cache(self, kinds: Sequence[str] = KINDS) -> None:
        """A cache of its own, for faults in there: the same files by hard links, as far as these commands use them."""
        self.cache = self.base / "cache"
        self.cache.mkdir(exist_ok=True)
        self.environment["KDUEL_CACHE"] = str(self.cache)
        # Other tests fill the cache meanwhile: what they have not finished is left out.
        unfinished = shutil.ignore_patterns(".making-*", ".new-*")
        for kind in (*kinds, *(f"manifests/{kind}" for kind in kinds)):
            if (entries := cache_root() / kind).is_dir():
                shutil.copytree(entries, self.cache / kind, symlinks=True, copy_function=link, ignore=unfinished)

    def variables(self) -> dict[str, str]:
        path = f"{self.program}:{os.environ['PATH']}"
        own = {"PYTHONPATH": str(SOURCE), "TMPDIR": str(self.temporary), "PATH": path, "NO_COLOR": "1"}
        return os.environ | own | self.environment

    def start(self, *words: object, **options: Any) -> subprocess.Popen[str]:
        """`kduel WORDS` in a session of its own, as from a terminal."""
        given: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(
            [*self.wrapper, sys.executable, "-m", "kduel", *map(str, words)],
            env=self.variables(),
            cwd=self.base,
            text=True,
            errors="replace",
            start_new_session=True,
            **given | options,
        )

    def kduel(self, *words: object, **options: Any) -> subprocess.CompletedProcess[str]:
        """The same to its end."""
        with self.start(*words, **options) as process:
            try:
                out, err = process.communicate(timeout=PATIENCE)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def words(self) -> tuple[object, ...]:
        """What a user types to begin or to go on: the study's file where there is no run yet, else `resume`."""
        if (self.run / "lock.json").exists():
            return ("resume", self.run)
        return ("run", self.study, "--out", self.run, "--seed", 7)

    def finish(self) -> subprocess.CompletedProcess[str]:
        """Go on, without faults, to the end."""
        wrapper, self.wrapper = self.wrapper, ()
        try:
            return self.kduel(*self.words())
        finally:
            self.wrapper = wrapper

    def verdicts(self) -> Any:
        """The metrics that the run ended with, with their values by trial."""
        return json.loads((self.run / "results.json").read_bytes())["metrics"]

    def voids(self) -> list[str]:
        """Why trials are void."""
        records = [json.loads(path.read_bytes()) for path in self.run.glob("trials/*/trial.json")]
        return [f"{record['id']}: {record['void']}" for record in records if record["status"] != "ok"]

    def strays(self) -> dict[int, str]:
        """Processes that are left of this place: their command lines by number."""
        mine = str(self.base).encode()
        return {
            pid: words.replace(b"\0", b" ").decode(errors="replace")[:200]
            for pid, words in command_lines().items()
            if mine in words
        }


def link(source: str, target: str) -> None:
    """A hard link, or a copy where the target is on another file system."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target)


@contextmanager
def place(**settings: Any) -> Iterator[Place]:
    """A place, removed afterwards."""
    base = Path(tempfile.mkdtemp(prefix="faults-"))
    base.chmod(0o755)
    own = Place(base, **settings)
    try:
        yield own
    finally:
        for number in own.strays():
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        shutil.rmtree(base, ignore_errors=True)


def digest(directory: Path) -> str:
    """Of every name and byte below a directory."""
    found = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        found.update(f"{path.relative_to(directory)}\0".encode())
        if path.is_file():
            found.update(path.read_bytes())
    return found.hexdigest()


def names(run: Path) -> list[str]:
    """The trials that a reader of the run sees."""
    try:
        return sorted(name for name in os.listdir(run / "trials") if not name.startswith("."))  # noqa: PTH208
    except FileNotFoundError:
        return []


def trials(run: Path) -> dict[str, str]:
    """The same, each with its digest."""
    return {name: digest(run / "trials" / name) for name in names(run)}


class Broken(AssertionError):
    """A promise that did not hold, with what led there."""


@dataclass
class Reference:
    """An uninterrupted run: what every interrupted one must come to."""

    plan: bytes
    names: set[str]
    verdicts: Any

    @classmethod
    def of(cls, place: Place) -> Reference:
        done = place.kduel(*place.words())
        assert done.returncode == 0, done.stderr
        plan = (place.run / "plan.jsonl").read_bytes()
        return cls(plan, set(names(place.run)), place.verdicts())


def kept(place: Place, before: dict[str, str], reference: Reference, story: str) -> dict[str, str]:
    """What holds at every instant: the plan is the one of the seed, and no trial that was there is gone or changed.

    Gives the trials that are there now.
    """
    if (place.run / "lock.json").exists() and (place.run / "plan.jsonl").read_bytes() != reference.plan:
        raise Broken(f"{story}: the plan is another")
    now = trials(place.run)
    lost = {name for name, value in before.items() if now.get(name) != value}
    if lost:
        raise Broken(f"{story}: trials lost or changed: {sorted(lost)}")
    if not now.keys() <= reference.names:
        raise Broken(f"{story}: trials that no plan holds: {sorted(now.keys() - reference.names)}")
    partial = [name for name in now if not (place.run / "trials" / name / "trial.json").is_file()]
    if partial:
        raise Broken(f"{story}: trials that are not whole: {partial}")
    return now


def ends_well(place: Place, before: dict[str, str], reference: Reference, story: str) -> None:
    """Go on with the words of a user; the end must be that of the uninterrupted run, with nothing left behind."""
    done = place.finish()
    story = f"{story}; then {' '.join(map(str, done.args[3:]))}"
    if done.returncode:
        raise Broken(f"{story}: ended with {done.returncode}: {done.stderr[-1500:]} {place.voids()}")
    now = kept(place, before, reference, story)
    if now.keys() != reference.names:
        raise Broken(f"{story}: {len(now)} trials in place of {len(reference.names)}")
    if place.verdicts() != reference.verdicts:
        raise Broken(f"{story}: other values or verdicts than uninterrupted")
    if left := list(place.base.rglob(".new-*")) + list(place.base.glob(f".{place.run.name}-*")):
        raise Broken(f"{story}: left behind: {left}")
    if left := sorted(path.name for path in place.temporary.iterdir()):
        raise Broken(f"{story}: left in TMPDIR: {left}")
    if left := place.strays():
        raise Broken(f"{story}: processes left: {left}")


def no_traceback(story: str, said: str) -> None:
    """Whatever happens, a person reads a paragraph, once Python itself has started."""
    if "Traceback" in said and str(SOURCE) in said:
        raise Broken(f"{story}: a traceback: {said[-3000:]}")
