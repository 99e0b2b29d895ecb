"""The controller of a run on several machines: hands out blocks, takes trials in, and decides after complete rounds.

All state is on disk: RUN/trials (whole trials), RUN/fleet/state.json (machines out of service), and a directory for each
member, RUN/fleet/NAME, which is a run directory of its own blocks. Nothing else is remembered: a controller that was
killed goes on from there.
"""

import os
import shlex
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from msgspec import Struct, field

from kduel.core.errors import HostError, InputError, KduelError
from kduel.core.progress import Progress
from kduel.core.temporary import ordinary_mode
from kduel.fleets import Beat, Fleet, FleetSettings
from kduel.run.decision import Decision
from kduel.run.fleet.quarantine import Conduct, equal_pairs, find_misbehaving, pair_differences
from kduel.run.records import Records
from kduel.run.watch import GiveUp, Watcher
from kduel.store.documents import TrialRecord, read_trial
from kduel.store.fleet_state import Live, LiveMember, Out, read_state, write_live, write_state
from kduel.store.integrity import follows
from kduel.store.manifest import RUN_FILES, changes, run_digests
from kduel.store.rundir import FLEET, RunDir
from kduel.store.whole_files import as_disk_error, sync_tree, sync_tree_top

ATTEMPTS = 3
"""Failures in a row, without a trial between them, after which a machine is lost."""
PAUSE = 5.0
"""Seconds after the first failure; twice as many after each further one."""
LONGEST_PAUSE = 60.0
LIVE_EVERY = 5.0
"""Seconds between two notes of what the machines do."""


class MemberState(Struct):
    state: Literal["idle", "ahead", "working", "waiting", "lost", "quarantined", "done"] = "idle"
    blocks: list[int] = field(default_factory=list)
    message: str = ""
    failures: int = 0
    again: float = 0.0
    """Time from which it may be started again, by the monotonic clock."""
    last: float = 0.0
    """Its last trial or start, by the monotonic clock."""
    gained: float = float("-inf")
    """Its last trial since this controller began, by the monotonic clock."""


class Controller:
    """One controller's work on one run. The trials come from its members."""

    def __init__(
        self, run: RunDir, progress: Progress, watch: Watcher, give_up: GiveUp, fleet: Fleet, settings: FleetSettings
    ) -> None:
        self.run, self.progress, self.fleet, self.settings = run, progress, fleet, settings
        self.lock = run.lock()
        self.state = read_state(run.path)
        self.complete = 0
        """Rounds that are known to be complete: trials are only added, and machines only taken out."""
        self.records = Records(run, self.lock)
        self.decision = Decision(self.records, watch, give_up, self.complete_blocks)
        self.planned = {planned.id: planned for planned in self.records.plan}
        self.digests = run_digests(run.path)
        self.twins = equal_pairs(self.lock.contenders, [kernel.sha256 for kernel in self.lock.kernels])
        self.member_states = {name: MemberState(last=time.monotonic()) for name in self.lock.hosts}
        self.blocks_of: dict[str, list[int]] = {name: [] for name in self.lock.hosts}
        for block in range(1, self.total + 1):
            self.blocks_of[self.host_of(block)].append(block)

    @property
    def total(self) -> int:
        return self.records.plan[-1].block

    @property
    def in_service(self) -> int:
        return max(1, len(self.lock.hosts) - len(self.state.out))

    def host_of(self, block: int) -> str:
        return self.lock.hosts[(block - 1) % len(self.lock.hosts)]

    def directory(self, name: str) -> Path:
        return self.run.path / FLEET / name

    # What is decided, and when

    def complete_rounds(self) -> int:
        """The leading rounds that are complete: each member in service has run its block of them."""
        size = len(self.lock.hosts)
        while self.complete * size < self.total:
            first = self.complete * size + 1
            blocks = range(first, min(first + size, self.total + 1))
            if not all(self.records.has_block(block) or self.host_of(block) in self.state.out for block in blocks):
                break
            self.complete += 1
        return self.complete

    def complete_blocks(self) -> list[int]:
        """The blocks of the leading complete rounds: analyses do not depend on which machine was faster."""
        last = min(self.complete_rounds() * len(self.lock.hosts), self.total)
        return [block for block in range(1, last + 1) if self.records.has_block(block)]

    # The loop

    def go(self) -> None:
        """Hand out blocks and take trials in until the run ends. Raises HostError where no machine can go on."""
        self.prepare()
        self.decision.report_kept(self.in_service)
        looked = -1
        noted = 0.0
        try:
            while True:
                self.take_in()
                if (rounds := self.complete_rounds()) != looked:
                    looked = rounds
                    if rounds:
                        self.decision.check_measurable()
                    if self.decision.is_over():
                        return
                    self.quarantine()
                to_come = False
                for name in self.lock.hosts:
                    if name not in self.state.out and self.look_after(name):
                        to_come = True
                if not to_come:
                    return
                if time.monotonic() - noted > LIVE_EVERY:
                    noted = time.monotonic()
                    self.write_live_state()
                time.sleep(self.settings.poll)
        finally:
            self.stop()

    def prepare(self) -> None:
        """A directory for each member, with the run's own documents."""
        with as_disk_error(self.run.path):
            for name in self.lock.hosts:
                directory = self.directory(name)
                (directory / "trials").mkdir(parents=True, exist_ok=True)
                for file in RUN_FILES:
                    source = os.fsdecode(file).removeprefix("../../")
                    if not (directory / source).exists():
                        temporary = directory / f".{source}.new"
                        shutil.copyfile(self.run.path / source, temporary)
                        temporary.replace(directory / source)
            # A member goes on inside a block: what is there of it must be known there.
            for record in self.records.by_id.values():
                own = self.directory(record.member) / "trials" / record.id
                if not self.records.has_block(record.block) and not own.exists():
                    link_tree(self.run.directory(record.id), own.with_name(f".link-{record.id}"))
                    own.with_name(f".link-{record.id}").replace(own)

    def look_after(self, name: str) -> bool:
        """One member in service; whether anything is to come from it."""
        doing, now = self.member_states[name], time.monotonic()
        beat = self.fleet.beat(name, self.directory(name))
        if beat.failed:
            self.note_failure(name, beat)
        elif beat.active:
            doing.state, doing.message = ("working" if beat.working else "waiting"), beat.message
            if now - doing.last > self.settings.patience:
                self.lose(
                    name, f"no trial for {self.settings.patience:.0f} s{': ' * bool(beat.message)}{beat.message}"
                )
            return True
        elif doing.state == "working":
            doing.state = "idle"
        if name in self.state.out:
            return True
        left = [block for block in self.blocks_of[name] if not self.records.has_block(block)]
        if not left:
            doing.state, doing.blocks = "done", []
            return False
        size = len(self.lock.hosts)
        due = [block for block in left if (block - 1) // size <= self.complete_rounds() + self.settings.ahead]
        if not due:
            doing.state, doing.blocks, doing.message = "ahead", [], "it waits for the others to end their round"
        elif now >= doing.again:
            try:
                self.fleet.lease(name)
                self.fleet.start(name, self.directory(name), due)
            except KduelError as error:
                self.note_failure(name, Beat(active=False, failed=True, message=str(error)))
            else:
                doing.state, doing.blocks, doing.message, doing.last = "working", due, "", now
        return True

    def note_failure(self, name: str, beat: Beat) -> None:
        """A member's work ended in an error: again after a pause, and lost after some."""
        doing = self.member_states[name]
        doing.failures += 1
        doing.state, doing.message = "waiting", beat.message
        doing.again = time.monotonic() + min(PAUSE * 2 ** (doing.failures - 1), LONGEST_PAUSE)
        if doing.failures >= ATTEMPTS:
            self.lose(name, f"{doing.failures} failures in a row: {beat.message}")
        else:
            self.progress.warn(
                f"{name}: {beat.message}\nIt is tried again in {doing.again - time.monotonic():.0f} s."
            )

    def lose(self, name: str, message: str) -> None:
        """Go on without a member; but where the others make no progress either, the trouble may be ours."""
        doing = self.member_states[name]
        others = [self.member_states[one] for one in self.lock.hosts if one != name and one not in self.state.out]
        if any(one.gained > doing.gained or one.state in ("done", "ahead") for one in others):
            self.take_out(name, Out(why="lost", message=message, round=self.complete_rounds(), decided=now_utc()))
        elif not any(one.state == "working" for one in others):
            # That may be the network's fault and not theirs.
            raise HostError(
                f"no machine of the fleet makes progress. {name}: {message}",
                f"Nothing is lost: repair it, then `kduel resume {shlex.quote(str(self.run.path))}` continues.",
            )

    def quarantine(self) -> None:
        """Take machines out whose conduct is not their peers', by the rule of kduel.run.fleet.quarantine."""
        conduct = {name: Conduct() for name in self.lock.hosts if name not in self.state.out}
        last = self.complete_rounds() * len(self.lock.hosts)
        blocks: dict[int, list[TrialRecord]] = {}
        for record in self.records.by_id.values():
            if record.member in conduct and record.block <= last:
                blocks.setdefault(record.block, []).append(record)
        for _, records in sorted(blocks.items()):
            own = conduct[records[0].member]
            own.trials += len(records)
            own.void += (void := sum(record.status == "void" for record in records))
            if not void:
                own.blocks.append(sum(record.seconds for record in records))
        for name, what, difference in pair_differences(self.decision.samples(sorted(blocks)), self.twins):
            if name in conduct:
                conduct[name].apart.setdefault(what, []).append(difference)
        for name, why in find_misbehaving(conduct).items():
            self.take_out(name, Out(why="quarantined", message=why, round=self.complete_rounds(), decided=now_utc()))

    def take_out(self, name: str, out: Out) -> None:
        """Record that a member is out of service, report it, and end its work."""
        self.state.out[name] = out
        write_state(self.run.path, self.state)
        self.progress.warn(f"{name} is {out.why}: {out.message}\nThe other machines go on without it.")
        self.member_states[name].state, self.member_states[name].message = out.why, out.message
        self.fleet.cancel(name, self.directory(name))
        self.fleet.give_back(name)

    # Trials come in

    def take_in(self) -> None:
        """Make the trials visible that the members have finished."""
        for name in self.lock.hosts:
            trials = self.directory(name) / "trials"
            try:
                found = sorted(entry.name for entry in os.scandir(trials) if not entry.name.startswith("."))
            except OSError:
                continue
            for trial in found:
                if trial not in self.records.by_id:
                    self.take_trial(name, trials / trial)

    def take_trial(self, name: str, directory: Path) -> None:
        """One trial; one that is there is not taken again. Raises InputError for a damaged or an unplanned one."""
        planned = self.planned.get(directory.name)
        record = read_trial(directory / "trial.json")
        if planned is None or planned.host != name or not follows(record, planned, exact=False):
            raise InputError(f"{directory} is not a trial that {name} was to run", "Move it out of the run.")
        if damage := changes(directory, self.digests):
            raise InputError(
                f"{directory} did not arrive completely: {damage[0][0]} was {damage[0][1]}",
                f"Remove it and what {name} has made after it; `kduel resume` makes them again.",
            )
        staged = self.run.stage()
        with as_disk_error(self.run.trials):
            link_tree(directory, staged)
            staged.chmod(ordinary_mode(0o777))
            sync_tree(staged)
            staged.replace(self.run.directory(record.id))
            sync_tree_top(self.run.trials)
        doing = self.member_states[name]
        doing.gained = doing.last = time.monotonic()
        doing.failures, doing.again = 0, 0.0
        self.decision.take(record, at_once=self.in_service)

    # The end

    def write_live_state(self) -> None:
        """Write what the machines do now, for `kduel status`. It is derived, and may be lost."""
        live = Live(
            controller=os.getpid(),
            written=now_utc(),
            members={
                name: LiveMember(state=doing.state, blocks=doing.blocks, message=doing.message)
                for name, doing in self.member_states.items()
            },
        )
        write_live(self.run.path, live)

    def stop(self) -> None:
        """Cancel what runs, take in what has ended by then, and give all machines back."""
        for name in self.lock.hosts:
            if name not in self.state.out:
                self.fleet.cancel(name, self.directory(name))
                self.fleet.give_back(name)
                if self.member_states[name].state not in ("done", "lost", "quarantined"):
                    self.member_states[name].state = "idle"
        self.take_in()
        self.write_live_state()

    def clear(self) -> None:
        """Remove what only a run that goes on needs: all trials are in RUN/trials."""
        for name in self.lock.hosts:
            shutil.rmtree(self.directory(name), ignore_errors=True)
            if name not in self.state.out:
                self.fleet.clear(name)


def link_tree(source: Path, target: Path) -> None:
    """A directory anew, its files by hard links: they are on disk already, and never change."""
    shutil.copytree(source, target, symlinks=True, copy_function=os.link, dirs_exist_ok=True)


def now_utc() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
