"""Worker on a member of a fleet: runs the blocks that it is given, by the same code that runs them on one machine."""

import time
from collections.abc import Callable
from contextlib import ExitStack, chdir
from pathlib import Path

from msgspec import Struct, json, structs

from kduel.core.cache import Cache
from kduel.core.errors import InputError
from kduel.core.progress import Progress
from kduel.run.prepare import Ready, make_lock, make_ready
from kduel.run.records import Records
from kduel.run.repeat import EndedTrial
from kduel.run.trials import Trials
from kduel.store.documents import Lock, MemberRecord, read_lock, study_of
from kduel.store.identity import check_same_run
from kduel.store.rundir import RunDir
from kduel.store.whole_files import as_disk_error, write_whole
from kduel.study.file import parse_study

FORMER_ENDS = 86_400.0
"""Seconds for which a worker waits for a former one that has the directory: one whose connection or node was lost may
go on for a while. The controller knows how long it waits for a trial."""
DRAFT, DESCRIBED = "draft.json", "described.json"
Say = Callable[[str], None]
"""Takes an event for the controller."""


class MemberDescription(Struct, kw_only=True):
    """described.json: what a member is, before there is a lock."""

    lock: Lock
    """The lock that a run of its own would have on this member."""
    clock: float
    """The member's clock when it wrote this, in seconds of Unix time."""


def find_member(lock: Lock, name: str) -> MemberRecord:
    """The member of that name. Raises InputError."""
    for member in lock.fleet.members if lock.fleet else ():
        if member.name == name:
            return member
    raise InputError(
        f"the run has no member {name[:80]!r}: it has {', '.join(lock.hosts) or 'no fleet'}",
        "A worker is started by `kduel run --fleet`, in a directory that is named after the member.",
    )


def prepare_member(lock: Lock, member: MemberRecord, text: str, progress: Progress, offline: bool) -> Ready:
    """The run's study made ready on this member, with its own settings of the machine."""
    study = study_of(lock, text)
    # The draft of a lock has nothing of [host]: what that means depends on the machine.
    host = parse_study(text, "study.toml").host
    own = structs.replace(study, machine_settings=study.machine_settings | member.settings, host=host)
    return make_ready(
        own, cache=Cache(progress=progress), progress=progress, offline=offline, lock=lock, origin=lock.origin
    )


def enter_start_directory(lock: Lock, held: ExitStack) -> None:
    """Relative paths in the study are meant from where the run was started, where that exists here."""
    if lock.directory and Path(lock.directory).is_dir():
        held.enter_context(chdir(lock.directory))


def describe(directory: Path, progress: Progress, *, offline: bool) -> None:
    """Write described.json: this member's kernels and machine. Raises what making a study ready raises."""
    directory = directory.absolute()
    draft = read_lock(directory / DRAFT)
    member = find_member(draft, directory.name)
    with ExitStack() as held:
        enter_start_directory(draft, held)
        ready = prepare_member(draft, member, (directory / "study.toml").read_text("utf-8"), progress, offline)
        held.callback(ready.machine.close)
        lock = make_lock(ready, draft.seed, draft.origin)
        with as_disk_error(directory):
            write_whole(directory / DESCRIBED, json.encode(MemberDescription(lock=lock, clock=time.time())))


class BlockWorker:
    """A member's run directory, opened for work until `close`. Raises InputError where the member has changed since
    the run began. Another worker that has the directory is waited for."""

    def __init__(self, directory: Path, progress: Progress, say: Say, *, offline: bool) -> None:
        directory = directory.absolute()
        self.held = ExitStack()
        self.say = say
        try:
            run = RunDir.open(directory)
            lock = run.lock()
            self.member = find_member(lock, directory.name)
            self.held.enter_context(run.at_work(FORMER_ENDS))
            enter_start_directory(lock, self.held)
            ready = prepare_member(lock, self.member, run.study_text(), progress, offline)
            self.held.callback(ready.machine.close)
            check_same_run(
                structs.replace(lock, machine=self.member.machine),
                make_lock(ready, lock.seed, lock.origin),
                directory,
            )
            self.ready, self.records = ready, Records(run, lock)
            self.records.put_aside_parts()
            self.trials = Trials.for_run(self.records, progress)
        except BaseException:
            self.held.close()
            raise

    def work(self, block: int) -> None:
        """Run what is missing of a block and report it all. Raises InputError for another member's block."""
        planned = [trial for trial in self.records.plan if trial.block == block]
        if not planned or planned[0].host != self.member.name:
            raise InputError(f"block {block} is not one of {self.member.name}", "A worker runs its own blocks only.")
        for trial in planned:
            if trial.id in self.records.by_id:
                self.say(f"trial {trial.id}")
        self.trials.make(
            self.ready,
            self.records.missing_boots((block,)),
            self.report,
            reasons_not_to_boot=self.records.reasons_not_to_boot,
        )
        self.say(f"done {block}")

    def report(self, trials: list[EndedTrial]) -> None:
        """Report trials that have become visible."""
        for trial in trials:
            self.records.add(trial.record)
            self.say(f"trial {trial.record.id}")

    def close(self) -> None:
        """Give the machine and the directory back."""
        self.held.close()
