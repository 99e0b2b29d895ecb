"""What runs on a member of a fleet: the blocks that it is given, by the same code that runs them on one machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import ExitStack, chdir
from pathlib import Path

from msgspec import Struct, json, structs

from kduel.core.cache import Cache
from kduel.core.errors import InputError
from kduel.core.progress import Progress
from kduel.run.prepare import Ready, lock_of, make_ready
from kduel.run.runner import Runner
from kduel.run.watch import TrialDone
from kduel.store.documents import Lock, MemberRecord, read_lock, study_of
from kduel.store.identity import check_same_run
from kduel.store.rundir import RunDir, as_disk_error, write_whole
from kduel.study.load import parse_study
from kduel.study.plan import PlannedTrial

FORMER_ENDS = 86_400.0
"""Seconds for which a worker waits for a former one that has the directory: one whose connection or node was lost may
go on for a while. The controller knows how long it waits for a trial."""
DRAFT, DESCRIBED = "draft.json", "described.json"
Say = Callable[[str], None]
"""Takes an event for the controller."""


class Described(Struct, kw_only=True):
    """described.json: what a member is, before there is a lock."""

    lock: Lock
    """As a run of its own would have it on this member."""
    clock: float
    """The member's clock when it wrote this, in seconds of Unix time."""


def member_of(lock: Lock, name: str) -> MemberRecord:
    """The member of that name. Raises InputError."""
    for member in lock.fleet.members if lock.fleet else ():
        if member.name == name:
            return member
    raise InputError(
        f"the run has no member {name[:80]!r}: it has {', '.join(lock.hosts) or 'no fleet'}",
        "A worker is started by `kduel run --fleet`, in a directory that is named after the member.",
    )


def member_ready(lock: Lock, member: MemberRecord, text: str, progress: Progress, offline: bool) -> Ready:
    """The run's study made ready on this member, with its own settings of the machine."""
    study = study_of(lock, text)
    # The draft of a lock has nothing of [host]: what that means depends on the machine.
    host = parse_study(text, "study.toml").host
    own = structs.replace(study, machine_settings=study.machine_settings | member.settings, host=host)
    return make_ready(
        own, cache=Cache(progress=progress), progress=progress, offline=offline, lock=lock, origin=lock.origin
    )


def started_in(lock: Lock, held: ExitStack) -> None:
    """Relative paths in the study are meant from where the run was started, where that exists here."""
    if lock.directory and Path(lock.directory).is_dir():
        held.enter_context(chdir(lock.directory))


def describe(directory: Path, progress: Progress, *, offline: bool) -> None:
    """Write described.json: this member's kernels and machine. Raises what making a study ready raises."""
    directory = directory.absolute()
    draft = read_lock(directory / DRAFT)
    member = member_of(draft, directory.name)
    with ExitStack() as held:
        started_in(draft, held)
        ready = member_ready(draft, member, (directory / "study.toml").read_text("utf-8"), progress, offline)
        held.callback(ready.machine.close)
        lock = lock_of(ready, draft.seed, draft.origin)
        with as_disk_error(directory):
            write_whole(directory / DESCRIBED, json.encode(Described(lock=lock, clock=time.time())))


class BlockRunner(Runner):
    """Runs the blocks that it is given. Whether the run goes on is decided where all members' trials are known."""

    blocks: Collection[int] = ()
    say: Say

    def boots_left(self) -> list[list[PlannedTrial]]:
        return [boot for boot in super().boots_left() if boot[0].block in self.blocks]

    def finished(self) -> bool:
        return False

    def futile(self) -> bool:
        return False

    def refuse_hopeless(self, record: object) -> None:
        """Nothing: the controller knows the trials of the others."""

    def done(self, progress: TrialDone) -> None:
        """A trial has become visible."""
        self.say(f"trial {progress.record.id}")


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
            self.member = member_of(lock, directory.name)
            self.held.enter_context(run.at_work(FORMER_ENDS))
            started_in(lock, self.held)
            ready = member_ready(lock, self.member, run.study_text(), progress, offline)
            self.held.callback(ready.machine.close)
            check_same_run(
                structs.replace(lock, machine=self.member.machine),
                lock_of(ready, lock.seed, lock.origin),
                directory,
            )
            self.runner = BlockRunner(ready, run, progress, self.watch, lambda *_: False)
            self.runner.say = say
        except BaseException:
            self.held.close()
            raise

    def watch(self, progress: TrialDone) -> None:
        self.runner.done(progress)

    def work(self, block: int) -> None:
        """Run what is missing of a block; what is there already is reported again.

        Raises InputError for a block of another member.
        """
        planned = [trial for trial in self.runner.plan if trial.block == block]
        if not planned or planned[0].host != self.member.name:
            raise InputError(f"block {block} is not one of {self.member.name}", "A worker runs its own blocks only.")
        for trial in planned:
            if trial.id in self.runner.records:
                self.say(f"trial {trial.id}")
        self.runner.blocks = (block,)
        self.runner.go()
        self.say(f"done {block}")

    def close(self) -> None:
        """Give the machine and the directory back."""
        self.held.close()
