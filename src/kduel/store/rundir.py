"""A run's directory: the only place where a run's state lives. Raw files are the truth; all else is derived.

    RUN/study.toml  lock.json  plan.jsonl  contenders.json  trials/0007-b04-debian-6.12/...  report/

A trial becomes visible only whole: written beside (trials/.new-*), synced, renamed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from kduel.core.errors import HostError, InputError
from kduel.core.experiment import Contender, Settle, Step, TrialStatus
from kduel.study.load import About, Blocks, Study
from kduel.study.plan import PlannedTrial


class TrialRecord(Struct, kw_only=True):
    """trial.json: what is known of a trial besides its raw files."""

    id: str
    block: int
    position: int
    contender: str
    status: TrialStatus
    reason: str = ""
    """For a void trial: its name and a paragraph, as the machine told them."""
    failed_steps: dict[str, str] = field(default_factory=dict)
    """By step label: why it gave no numbers."""
    started: str = ""
    """UTC, ISO 8601."""
    seconds: float = 0.0
    timings: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    boot: int = 0
    steps: list[int] = field(default_factory=list)


LOCK_SCHEMA = 2
"""Of lock.json as it is written now."""


class Lock(Struct, kw_only=True):
    """lock.json: everything resolved, so that the run can be understood and repeated years later."""

    schema: int = 1
    """Of this file. Version 0.1.0 wrote none."""
    kduel: str
    seed: int
    origin: str
    """The suite's name or the study file's path, as given."""
    directory: str = ""
    """Where the run was started: relative paths in the study are meant from here."""
    study: dict[str, Any]
    """name, title, about, delta, alpha, settle, blocks: the numbers that the run goes by."""
    machine: dict[str, Any]
    """kind, settings, exact, parallel, timing_warning, facts."""
    contenders: list[Contender]
    kernels: list[dict[str, Any]]
    """By contender: release, architecture, sha256, provenance, ..."""
    steps: list[Step]
    edition: int = 1
    """Of the method that the run was planned by and is judged by: kduel.core.experiment.EDITION."""
    covariates: list[str] = []
    """What the machine measures on the host beside each trial and the verdict uses, declared before the first trial."""
    host: dict[str, Any] = field(default_factory=dict)


def study_of(lock: Lock, text: str) -> Study:
    """The study that a run was made from; `text` is its study.toml."""
    numbers = lock.study
    return Study(
        about=msgspec.convert({key: numbers[key] for key in About.__struct_fields__}, About),
        contenders=lock.contenders,
        machine=lock.machine["kind"],
        machine_settings=lock.machine["settings"],
        settle=msgspec.convert(numbers["settle"], Settle),
        blocks=msgspec.convert({key: numbers[key] for key in Blocks.__struct_fields__}, Blocks),
        steps=lock.steps,
        text=text,
    )


GO_ON = "Free some space or mend the permissions; then `kduel resume RUN` goes on where it stopped."
CHOOSE = "Free some space, mend the permissions, or name another place with --out."


@contextmanager
def told_as_disk_trouble(where: Path, remedy: str = GO_ON) -> Iterator[None]:
    """Turn an OSError while writing into an error that says what to do; what is on disk stays as it is."""
    try:
        yield
    except OSError as error:
        raise HostError(f"cannot write to {where}: {error.strerror or error}", remedy) from error


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is either absent, old, or whole."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        fresh = Path(name)
        fresh.chmod(0o644)
        fresh.replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


def sync_tree(directory: Path) -> None:
    """fsync every file and directory below."""
    for root, _, files in os.walk(directory):
        for name in [*files, "."]:
            handle = os.open(os.path.join(root, name), os.O_RDONLY)  # noqa: PTH118 - speed
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


class RunDir:
    """A run's directory, opened. Reading never changes it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trials = path / "trials"

    @classmethod
    def create(cls, path: Path, study_text: str, lock: Lock, plan: list[PlannedTrial]) -> RunDir:
        """A new run. It appears whole, or not at all. Raises InputError where something is in the way."""
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise InputError(
                f"{path} is there already and holds something else",
                "Give another --out, or `kduel resume` it if it is a run.",
            )
        with told_as_disk_trouble(path, CHOOSE):
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
            try:
                fresh.chmod(0o755)
                (fresh / "study.toml").write_text(study_text, "utf-8")
                (fresh / "lock.json").write_bytes(msgspec.json.format(msgspec.json.encode(lock), indent=1) + b"\n")
                lines = b"".join(msgspec.json.encode(trial) + b"\n" for trial in plan)
                (fresh / "plan.jsonl").write_bytes(lines)
                (fresh / "trials").mkdir()
                sync_tree(fresh)
                fresh.replace(path)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> RunDir:
        """An existing run. Raises InputError where it is none."""
        if not (path / "lock.json").is_file() and not (path / "import.json").is_file():
            raise InputError(
                f"{path} is not a run of KDuel: it has no lock.json",
                "Give the directory that `kduel run` or `kduel import` named with --out.",
            )
        return cls(path)

    @property
    def imported(self) -> bool:
        """Whether the values were measured elsewhere and brought in by `kduel import`."""
        return (self.path / "import.json").is_file()

    def lock(self) -> Lock:
        """lock.json. Raises InputError where it is damaged."""
        lock: Lock = read_json(self.path / "lock.json", Lock)
        return lock

    def plan(self) -> list[PlannedTrial]:
        """plan.jsonl. Raises InputError where it is damaged."""
        path = self.path / "plan.jsonl"
        decode = msgspec.json.Decoder(PlannedTrial).decode
        planned = []
        try:
            for number, line in enumerate(path.read_bytes().splitlines(), 1):
                try:
                    planned.append(decode(line))
                except msgspec.DecodeError as error:
                    raise InputError(
                        f"{path}, line {number}: {error}", "The file was changed; restore it."
                    ) from error
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}", "Restore it from a copy of the run.") from error
        return planned

    def records(self) -> list[TrialRecord]:
        """The trials that are there, in the order of time."""
        decode = msgspec.json.Decoder(TrialRecord)
        found = []
        if self.trials.is_dir():
            for entry in os.scandir(self.trials):
                if not entry.name.startswith("."):
                    found.append(read_json(Path(entry.path) / "trial.json", decode))
        return sorted(found, key=lambda record: record.position)

    def directory(self, trial_id: str) -> Path:
        """Where a trial's raw files are."""
        return self.trials / trial_id

    def stage(self) -> Path:
        """A new empty directory beside the trials, to be filled and then kept."""
        with told_as_disk_trouble(self.trials):
            return Path(tempfile.mkdtemp(prefix=".new-", dir=self.trials))

    def keep(self, staged: Path, record: TrialRecord) -> None:
        """Make a staged trial visible, whole and synced."""
        with told_as_disk_trouble(self.trials):
            (staged / "trial.json").write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")
            staged.chmod(0o755)
            sync_tree(staged)
            staged.replace(self.directory(record.id))
            sync_tree_top(self.trials)

    def sweep(self) -> None:
        """Remove what an interrupted runner left half-written. Only for the holder of the run's lock."""
        for entry in self.trials.glob(".new-*"):
            shutil.rmtree(entry, ignore_errors=True)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the run for writing. Raises InputError where another runner has it."""
        with told_as_disk_trouble(self.path), (self.path / ".held").open("a") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    f"another kduel is at work in {self.path}",
                    "Wait for it to end, or give this run another --out.",
                ) from None
            yield


def sync_tree_top(directory: Path) -> None:
    """fsync the directory itself, so that a rename in it lasts."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_json(path: Path, kind: Any) -> Any:
    """A typed JSON file (`kind` is a type or a ready decoder). Raises InputError naming it."""
    decoder = kind if isinstance(kind, msgspec.json.Decoder) else msgspec.json.Decoder(kind)
    try:
        return decoder.decode(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", "Restore it from a copy of the run.") from error
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: {error}", "The file was changed; restore it from a copy of the run.") from error
