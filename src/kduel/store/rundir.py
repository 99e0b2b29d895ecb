"""A run's directory: the only place where a run's state lives. Raw files are the truth; all else is derived.

    RUN/study.toml  lock.json  plan.jsonl  trials/0007-b04-debian-6.12/...  report/
    RUN/exact/      where something was counted before anything was timed: a run of its own
        repeated/0007-b04-debian-6.12.1/...   a boot that was put aside and made again, as whole as a trial

A trial becomes visible only whole: written to trials/.new-*, synced, renamed.
"""

import shlex
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from kduel.core.errors import InputError, cannot_read
from kduel.core.regular_files import check_no_special_files, remove_special_files
from kduel.core.temporary import ordinary_mode, try_to_make
from kduel.core.text import check_names, visible
from kduel.core.untrusted import entries, read_whole
from kduel.store import whole_files
from kduel.store.documents import RESTORE, Lock, TrialRecord, document_bytes, read_lock, read_trial
from kduel.store.manifest import RUN_FILES, write_manifest
from kduel.store.run_lock import hold
from kduel.study.plan import PlannedTrial

EXACT = "exact"
"""The subdirectory of a run that holds its exact part; empty from its start where the part could not be made yet."""
RESULTS = "results.json"
"""In a run: its results, written when it has come to its end."""
PAGE = Path("report/index.html")
PAGE_DIGEST = PAGE.with_name(f"{PAGE.name}.sha256")
"""Beside the page, in the format of sha256sum."""
"""In a run: its page, written after its results; `kduel report --format html` writes one of an interrupted run, too."""
FLEET = "fleet"
"""The subdirectory of a run that holds what its controller and workers exchange."""
INDEX = "kduel-index.sqlite"
"""In a directory of runs, of which a single run is one: what `kduel query --update` and `kduel site` write for searches."""
EXPLAIN = "explain"
"""The subdirectory of a run that holds what `kduel explain` found, and the runs of profiled trials."""
PROFILE_FILES = ("profile.json", "profile.svg")
"""Results of a profiled run, beside the trials that they come from."""
PROFILE_ORIGIN = "kduel explain"
"""The origin of a run of profiled trials: a part of the run that it explains, and no run to be judged or resumed."""
MERGED = "merge.json"
MARKS = ("lock.json", "import.json", MERGED)
"""A directory with one of these is a run."""


def check_free(path: Path) -> None:
    """Raises InputError where `path` is there and not empty, HostError where nothing can be written."""
    if not path.is_dir():
        if path.exists() or path.is_symlink():
            raise InputError(f"{path} is there already and is no directory", "Give another --out.")
        with whole_files.as_disk_error(path, whole_files.CHOOSE):
            try_to_make(path)
        return
    with whole_files.as_disk_error(path, whole_files.CHOOSE):
        names = sorted(entry.name for entry in path.iterdir())
    if names:
        raise whole_files.occupied_error(path, names)


def is_run(path: Path) -> bool:
    return any((path / name).is_file() for name in MARKS)


def has_report(path: Path) -> bool:
    """True if the run in `path` has come to its end and its report was written."""
    return (path / RESULTS).is_file() and (path / PAGE).is_file()


class RunDir:
    """A run's directory, opened. Reading never changes it. `documents` are what its trials' manifests cover besides."""

    def __init__(self, path: Path, documents: Sequence[bytes] = RUN_FILES) -> None:
        self.path, self.documents = path, documents
        self.trials = path / "trials"
        self.repeated = path / "repeated"

    @classmethod
    def create(cls, path: Path, study_text: str, lock: Lock, plan: list[PlannedTrial]) -> "RunDir":
        """A new run, whole or not at all, with a place for an exact part if not `prepared`. Raises InputError."""
        check_free(path)
        with whole_files.whole_directory(path) as fresh:
            (fresh / "study.toml").write_bytes(study_text.encode())
            (fresh / "plan.jsonl").write_bytes(b"".join(msgspec.json.encode(trial) + b"\n" for trial in plan))
            (fresh / "lock.json").write_bytes(document_bytes(lock))
            (fresh / "trials").mkdir()
            if not lock.prepared:
                (fresh / EXACT).mkdir()
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> "RunDir":
        """An existing run. Raises InputError where it is none, or holds a link or a special file."""
        run = cls.find(path)
        check_no_special_files(path)
        return run

    @classmethod
    def find(cls, path: Path) -> "RunDir":
        """An existing run, whatever it holds. Raises InputError where it is none."""
        if not is_run(path):
            raise InputError(
                f"{path} is not a run of KDuel: it has none of {', '.join(MARKS)}"
                if path.exists()
                else f"there is no {path}",
                "Give the directory that `kduel run`, `kduel import` or `kduel merge` named with --out.",
            )
        return cls(path)

    def complete(self, lock: Lock) -> None:
        """Write the lock of a run whose machine is prepared now. Raises HostError."""
        with whole_files.as_disk_error(self.path):
            whole_files.write_whole(self.path / "lock.json", document_bytes(lock))

    @property
    def exact_part(self) -> Path | None:
        """The run that was counted before this one's trials were timed; None where there is none, or none yet."""
        path = self.path / EXACT
        return path if (path / "lock.json").is_file() else None

    @property
    def imported(self) -> bool:
        """True if the values were measured elsewhere and brought in by `kduel import`."""
        return (self.path / "import.json").is_file()

    @property
    def merged(self) -> bool:
        """True if it is made of several runs by `kduel merge`."""
        return (self.path / MERGED).is_file()

    @property
    def single(self) -> bool:
        """True if it is one run that KDuel carried out."""
        return not (self.imported or self.merged)

    def study_text(self) -> str:
        """study.toml. Raises InputError where it is damaged."""
        path = self.path / "study.toml"
        try:
            return read_whole(path).decode()
        except OSError as error:
            raise cannot_read(path, error, RESTORE) from error
        except UnicodeDecodeError as error:
            raise InputError(f"cannot read {path}: it is not UTF-8 text", RESTORE) from error

    def lock(self, *, prepared: bool = True) -> Lock:
        """lock.json. Raises InputError where it is damaged, or of a later version, or where values were imported or runs merged;
        with `prepared`, also where the machine was not made ready yet."""
        if self.imported:
            raise InputError(
                f"{self.path} was imported: KDuel ran nothing of it", "`kduel report` writes a report of it."
            )
        if self.merged:
            raise InputError(
                f"{self.path} is a merged run, and this takes a single one",
                f"Name one of its parts: {self.path / 'runs'}/...",
            )
        lock = read_lock(self.path / "lock.json")
        if prepared and not lock.prepared:
            counted = (
                f"; `kduel report {shlex.quote(str(self.exact_part))}` shows what is counted"
                if self.exact_part
                else ""
            )
            raise InputError(
                f"nothing of {self.path} is timed yet",
                f"`kduel resume {shlex.quote(str(self.path))}` goes on{counted}.",
            )
        return lock

    def plan(self) -> list[PlannedTrial]:
        """plan.jsonl. Raises InputError where it is damaged."""
        path = self.path / "plan.jsonl"
        decode = msgspec.json.Decoder(PlannedTrial).decode
        try:
            lines = read_whole(path).splitlines()
        except OSError as error:
            raise cannot_read(path, error, "Restore it from a copy of the run.") from error
        planned = []
        for number, line in enumerate(lines, 1):
            try:
                planned.append(decode(line))
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                raise InputError(f"{path}, line {number}: {visible(error)}", RESTORE) from error
        return planned

    def records(self) -> list[TrialRecord]:
        """The trials that are there, in the order of time. Raises InputError for one that is damaged, or a copy."""
        return sorted(map(self.record, self.names()), key=lambda record: record.position)

    def names(self) -> list[str]:
        """The names of the trials that are there, in no order. Raises InputError."""
        # A copy by git has no such directory where nothing was measured yet.
        if not self.trials.exists() and not (self.path / RESULTS).exists():
            return []
        try:
            names = [path.name for path in entries(self.trials) if not path.name.startswith(".")]
            check_names(*names)
        except OSError as error:
            raise cannot_read(self.trials, error, RESTORE) from error
        except ValueError as error:
            raise InputError(f"{self.trials}: {error}", RESTORE) from error
        return names

    def record(self, name: str) -> TrialRecord:
        """One of them. Raises InputError where it is damaged, or a copy of another."""
        record = read_trial(self.trials / name / "trial.json")
        if record.id != name:
            raise InputError(
                f"{self.trials / name} holds the trial {record.id[:80]}, not one of its own name",
                "A directory of trials/ was copied or renamed: move it out of the run, or rename it back.",
            )
        return record

    def directory(self, trial_id: str) -> Path:
        return self.trials / trial_id

    def stage(self, position: int | None = None) -> Path:
        """A new empty directory next to the trials, to be filled and kept; `position`: of the boot's first trial."""
        with whole_files.as_disk_error(self.trials):
            mark = "" if position is None else f"{position}-"
            return Path(tempfile.mkdtemp(prefix=f".new-{mark}", dir=self.trials))

    def staged_boots(self) -> dict[int, Path]:
        """The boots that are under way, by the position of their first trial: where their raw files appear."""
        found = {}
        for path in self.trials.glob(".new-*-*"):
            position = path.name.split("-")[1]
            if position.isdigit():
                found[int(position)] = path
        return dict(sorted(found.items()))

    def keep(self, staged: Path, record: TrialRecord) -> None:
        """Make a staged trial visible, whole and synced."""
        self._keep(staged, record, self.directory(record.id))

    def put_aside(self, staged: Path, record: TrialRecord) -> None:
        """Make a staged boot visible next to the trials: its trial is made again."""
        with whole_files.as_disk_error(self.repeated):
            self.repeated.mkdir(exist_ok=True)
        self._keep(staged, record, self.repeated / f"{record.id}.{record.repeats + 1}")

    def _keep(self, staged: Path, record: TrialRecord, target: Path) -> None:
        with whole_files.as_disk_error(target.parent):
            (staged / "trial.json").write_bytes(document_bytes(record))
            remove_special_files(staged)
            write_manifest(staged, self.documents)
            staged.chmod(ordinary_mode(0o777))
            whole_files.sync_tree(staged)
            staged.replace(target)
            whole_files.sync_tree_top(target.parent)

    def put_asides(self) -> list[tuple[Path, TrialRecord]]:
        """The boots that were made again, with their directories. Raises InputError for one that is damaged."""
        if not self.repeated.is_dir():
            return []
        found = []
        for directory in sorted(self.repeated.iterdir()):
            record = read_trial(directory / "trial.json")
            if directory.name != f"{record.id}.{record.repeats + 1}":
                raise InputError(
                    f"{directory} holds the boot {record.id[:80]}.{record.repeats + 1}, not one of its own name",
                    "A directory of repeated/ was copied or renamed: move it out of the run, or rename it back.",
                )
            found.append((directory, record))
        return found

    @contextmanager
    def at_work(self, patience: float = 0.0) -> Iterator[None]:
        """Hold the run, as `hold`, to make trials; what is half-written is removed before and after."""
        with self.hold(patience):
            if not self.names():
                with whole_files.as_disk_error(self.trials):
                    self.trials.mkdir(exist_ok=True)
            self.sweep()
            try:
                yield
            finally:
                self.sweep()

    def sweep(self) -> None:
        """Remove what a command that was killed has left half-written. The run is held."""
        for entry in self.trials.glob(".new-*"):
            shutil.rmtree(entry, ignore_errors=True)

    @contextmanager
    def hold(self, patience: float = 0.0) -> Iterator[None]:
        """Hold the run for writing. Raises InputError where another runner has it, for more than `patience` seconds."""
        with whole_files.as_disk_error(self.path), hold(self.path, patience):
            yield
