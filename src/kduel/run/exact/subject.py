"""Subjects of an explanation: two arms of a run on the exact machine, or two kernels without a run."""

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from kduel.benchmarks.request import APPLICATIONS
from kduel.benchmarks.support.operations import OPERATIONS
from kduel.core.cache import Cache
from kduel.core.errors import HostError, InputError, NotMeasuredError, unknown_name
from kduel.core.progress import Progress
from kduel.run.exact.measure import CountedTrial, equals_run, is_boot
from kduel.run.prepare import Ready, make_lock, make_ready
from kduel.store.collect import step_directory
from kduel.store.documents import study_of
from kduel.store.identity import check_same_run
from kduel.store.integrity import trials_of
from kduel.store.rundir import EXPLAIN, RunDir
from kduel.store.whole_files import as_disk_error, write_whole
from kduel.study.contenders import contender_tables
from kduel.study.file import parse_study
from kduel.study.load import Study, assemble

STUDY = """[study]
name = "explain"
[machine]
kind = "icount"
[settle]
mode = "fixed"
seconds = 3
[blocks]
fixed = 1
"""
KBENCH = """[[benchmark]]
use = "kbench"
mode = "exact"
operation = {operation}
primary = ["instructions"]
"""
REQUEST = """[[benchmark]]
use = "request"
application = {operation}
primary = ["instructions"]
"""
BOOT = "boot"
BOOT_TABLE = """[[benchmark]]
use = "boot-instructions"
primary = "*"
"""


class Subject(Struct, frozen=True, kw_only=True):
    """Two arms, made ready."""

    ready: Ready
    names: tuple[str, str]
    run: RunDir | None = None

    @property
    def seed(self) -> int:
        """Seed of the conditions in the run's first block; 0 without a run."""
        return next((planned.seed for planned in self.run.plan() if planned.block == 1), 0) if self.run else 0

    def blocks(self, index: int) -> int:
        """Number of blocks in which the run counted a step; 0 without a run, and for the boot, which is the same in all."""
        if self.run is None or is_boot(self.ready, index):
            return 0
        run, label = self.run, self.ready.study.steps[index].label
        return len(
            {
                record.block
                for record in trials_of(run, run.lock())
                if record.void is None
                and label not in record.failed_steps
                and step_directory(run.directory(record.id), index, label).is_dir()
            }
        )

    def check(self, counted: list[CountedTrial], index: int) -> None:
        """Raises NotMeasuredError where the counts are not those of the run, bit for bit."""
        if self.run is None or is_boot(self.ready, index):
            return
        label = self.ready.study.steps[index].label
        for arm in counted:
            self.check_same(index, arm.name, partial(equals_run, arm, index=index, label=label))

    def check_same(self, index: int, contender: str, is_same: Callable[[Path], bool]) -> None:
        """Check that each trial of a contender in the run's first block has what was counted. Raises NotMeasuredError."""
        if self.run is None:
            return
        label = self.ready.study.steps[index].label
        trials = [
            self.run.directory(record.id)
            for record in trials_of(self.run, self.run.lock())
            if (record.contender, record.block, record.void) == (contender, 1, None)
            and label not in record.failed_steps
        ]
        if not all(is_same(trial) for trial in trials):
            raise NotMeasuredError(
                f"repeating {contender} gave other values in {label} than the run in {self.run.path} has",
                "It was measured with another QEMU or another KDuel; run the study again.",
            )

    def keep(self, words: Sequence[str], picture: Callable[[], str], document: Callable[[], bytes]) -> str:
        """Store an explanation's picture and document in the run, if there is one, by the words of its name. Gives the reason
        where that fails: it takes nothing from what was counted."""
        if self.run is None:
            return ""
        folder = self.run.path / EXPLAIN
        name = ".".join(words).replace("/", "-").replace(" ", "_")
        try:
            with as_disk_error(folder):
                folder.mkdir(exist_ok=True)
                write_whole(folder / f"{name}.svg", picture().encode())
                write_whole(folder / f"{name}.json", document())
        except HostError as error:
            return f"this explanation is not kept: {error.message}"
        return ""


def find_subject(
    targets: list[str],
    benchmark: str,
    contender: str,
    *,
    cache: Cache,
    progress: Progress,
    offline: bool = False,
    without_run: Callable[[list[str], str], Study] | None = None,
) -> Subject:
    """The arms that a command line means; `without_run` makes the study of two kernels. Raises InputError."""
    if len(targets) == 1 and Path(targets[0]).is_dir():
        return subject_of_run(Path(targets[0]), contender, cache=cache, progress=progress, offline=offline)
    if len(targets) < 2 or (len(targets) > 2 and without_run is None):
        raise InputError(
            f"there is no directory {targets[0]}: explain takes a run's directory, or two kernels"
            if len(targets) == 1
            else "explain takes a run's directory, or two kernels; more than two with --sharing",
            "For example: kduel explain debian:6.1 debian:6.12 --benchmark pipe.",
        )
    if run := next((target for target in targets if (Path(target) / "lock.json").is_file()), None):
        raise InputError(
            f"explain takes one run, or two kernels, and {run} is a run",
            f"For example: kduel explain {shlex.quote(run)} --benchmark pipe. `kduel diff` compares two runs.",
        )
    ready = make_ready(
        (without_run or operation_study)(targets, benchmark), cache=cache, progress=progress, offline=offline
    )
    names = [arm.contender.name for arm in ready.arms]
    return Subject(ready=ready, names=(names[0], names[1]))


def check_operation(name: str) -> None:
    """Raises InputError, with those that there are, for what is neither an operation of kbench nor an application's request."""
    known = (BOOT, *OPERATIONS[1:], *APPLICATIONS)
    if name not in (OPERATIONS[0], *known):
        raise unknown_name(f"there is no operation {name!r} to count", name, known)


def operation_study(kernels: list[str], operation: str, machine: str = "") -> Study:
    """A study of one kbench operation, of an application's request, or of the boot, in some kernels, on the exact machine. Raises InputError."""
    check_operation(operation)
    same = len(set(kernels)) < len(kernels)
    table = BOOT_TABLE if operation == BOOT else REQUEST if operation in APPLICATIONS else KBENCH
    table = table.format(operation=f'"{operation}"')
    text = STUDY + table + contender_tables(kernels, same)
    return assemble(parse_study(text, "explain"), text, "explain", machine=machine)


def subject_of_run(path: Path, contender: str, *, cache: Cache, progress: Progress, offline: bool = False) -> Subject:
    """Two arms of a run, the kernels checked against its lock."""
    run = RunDir.open(path)
    lock = run.lock()
    study = study_of(lock, run.study_text())
    names = study.names
    if contender and contender not in names[1:]:
        raise unknown_name(f"{path} has no contender {contender!r}", contender, names[1:])
    if lock.machine.kind != "icount":
        raise InputError(
            f"{path} ran on the machine {lock.machine.kind}, which cannot count instructions",
            f"Compare the kernels instead: {command_without_run(study, contender or names[1])}.",
        )
    ready = make_ready(study, cache=cache, progress=progress, offline=offline, lock=lock)
    check_same_run(
        lock, make_lock(ready, lock.seed, lock.origin), path, remedy_for_change(study, contender or names[1])
    )
    return Subject(ready=ready, names=(names[0], contender or names[1]), run=run)


def command_without_run(study: Study, contender: str) -> str:
    """Command that explains the kernels of baseline and contender without a run."""
    kernels = {one.name: one.kernel for one in study.contenders}
    return shlex.join(["kduel", "explain", kernels[study.names[0]], kernels[contender], "--benchmark", "NAME"])


def remedy_for_change(study: Study, contender: str) -> str:
    """Remedy where a run was measured with something else than there is now."""
    return (
        "An explanation counts what the run measured. Restore what differs, measure again and explain that run, or count "
        f"the kernels without a run: {command_without_run(study, contender)}."
    )
