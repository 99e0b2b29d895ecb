"""Trials on one machine: booted, judged by gates, repeated if no contender's fault, kept; without verdicts."""

from __future__ import annotations

import shlex
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct, structs

from kduel.core.errors import HostError
from kduel.core.experiment import Void
from kduel.core.progress import Progress
from kduel.core.turns import TURNS_FILE, TrialTurns
from kduel.guest.boots import pool
from kduel.guest.turns import BlockTurns
from kduel.machines import Outcome, Trial
from kduel.run.prepare import Ready
from kduel.run.records import Records
from kduel.run.repeat import COVARIATE_SECONDS, Boot, EndedTrial, QuietHostWait, Repeats
from kduel.run.script import (
    boot_script,
    in_shared_turns,
    read_inside_records,
    set_aside,
    split_boot,
    split_host_record,
    turn_lengths,
    write_environment,
)
from kduel.run.watch import BootStarted
from kduel.store.collect import Values, seconds_of
from kduel.store.documents import Disturbance, TrialRecord, document_bytes
from kduel.store.rundir import RunDir
from kduel.store.whole_files import as_disk_error
from kduel.study.plan import PlannedTrial

NextBoot = Callable[[deque[Boot], bool], Boot | None]
"""Takes the next boot from those that wait; None where it must wait for those under way (True: there are some)."""


class BegunBoot(Struct, frozen=True):
    """A boot that begins: when, by the calendar and by a clock that is never set."""

    trial: Trial
    started: str
    clock: float
    repeats: int
    """How often it was made before."""


class Trials:
    """Carries out boots and keeps them in `run`. `planned` is how many trials there may be, `past` has those that are
    there, `resume` is the command to go on after an error; with `covariates` other work is measured."""

    def __init__(
        self,
        run: RunDir,
        disturbance: Disturbance | None,
        planned: int,
        progress: Progress,
        *,
        past: Iterable[TrialRecord] = (),
        covariates: bool = False,
        boot_started: BootStarted = lambda *_: None,
        resume: str = "",
    ) -> None:
        self.run, self.progress, self.boot_started, self.covariates = run, progress, boot_started, covariates
        self.resume = resume or f"`kduel resume {shlex.quote(str(run.path))}`"
        self.kept = list(past)
        self.repeats = Repeats(run, disturbance, planned)
        self.quiet = QuietHostWait(disturbance, progress)

    @classmethod
    def for_run(cls, records: Records, progress: Progress, boot_started: BootStarted = lambda *_: None) -> Trials:
        """The trials of a planned run, of which some may be there."""
        lock = records.lock
        return cls(
            records.run, lock.disturbance, len(records.plan), progress, past=records.by_id.values(),
            covariates=bool(lock.covariates), boot_started=boot_started,
        )  # fmt: skip

    def make(
        self,
        ready: Ready,
        boots: Iterable[Boot],
        kept: Callable[[list[EndedTrial]], None],
        *,
        is_over: Callable[[], bool] = lambda: False,
        next_boot: NextBoot = lambda waiting, _: waiting.popleft(),
        reasons_not_to_boot: Callable[[Boot], list[Void]] = lambda _: [],
    ) -> None:
        """Carry boots out, as many at once as the machine allows, until none is left or `is_over`; `kept` gets the
        trials of each. Raises NotMeasuredError and HostError where trial after trial is void for the host's sake."""
        side_by_side = ready.study.blocks.side_by_side
        waiting = self.repeats.order_boots(join_blocks(boots) if side_by_side else list(boots))
        running: dict[Future[list[EndedTrial]], Boot] = {}
        with pool(ready.machine.parallel) as threads:
            while not is_over():
                while waiting and len(running) < ready.machine.parallel:
                    if (boot := next_boot(waiting, bool(running))) is None:
                        break
                    if side_by_side:
                        for planned in list(boot):
                            if reasons := reasons_not_to_boot([planned]):
                                boot.remove(planned)
                                self.keep_or_repeat([planned], self.skip([planned], reasons), waiting, kept)
                        if not boot:
                            continue
                        future = completed_future(self.carry_out_alone(ready, boot))
                    elif reasons := reasons_not_to_boot(boot):
                        future = completed_future(self.skip(boot, reasons))
                    elif ready.machine.parallel > 1:
                        future = threads.submit(self.carry_out, ready, boot)
                    else:
                        # In this thread, where an interruption ends a boot of any machine.
                        future = completed_future(self.carry_out_alone(ready, boot))
                    running[future] = boot
                if not running:
                    break
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    self.keep_or_repeat(running.pop(future), future.result(), waiting, kept)

    def keep_or_repeat(
        self, boot: Boot, trials: list[EndedTrial], waiting: deque[Boot], kept: Callable[[list[EndedTrial]], None]
    ) -> None:
        """Keep a boot's trials; or put them aside, to be made again, for a fault that is not their contender's."""
        trials, code = self.repeats.judge_boot(trials)
        for trial in trials:
            self.quiet.note_trial(trial.record)
        if code:
            self.repeats.put_aside(boot, trials, code, waiting)
            void = [one.record for one in trials if one.record.void]
            named = next((one for one in void if one.void and one.void.code == code), (void or [trials[0].record])[0])
            when = "with its partners" if len(trials) > 1 else "at the end of its block"
            self.progress.info(f"made again {when}: {named.id}: {named.void.brief if named.void else code}")
            return
        for trial in trials:
            self.run.keep(trial.staged, trial.record)
            self.kept.append(trial.record)
        kept(trials)
        self.repeats.check_not_in_vain(self.kept, self.resume)

    def skip(self, boot: Boot, reasons: list[Void]) -> list[EndedTrial]:
        """The trials of a boot that is not carried out, staged."""
        pairs = zip(boot, reasons, strict=True)
        return [EndedTrial(self.run.stage(), TrialRecord.of_unbooted(planned, reason)) for planned, reason in pairs]

    def carry_out_alone(self, ready: Ready, boot: Boot) -> list[EndedTrial]:
        """Carry out one boot once the host is quiet, or does not become so."""
        self.quiet.wait()
        return self.carry_out(
            ready, boot, self.quiet.measure_other_work(COVARIATE_SECONDS) if self.covariates else None
        )

    def carry_out(self, ready: Ready, boot: Boot, other_work: float | None = None) -> list[EndedTrial]:
        """Carry out a boot, or a block's boots in turns; gives staged trials. `other_work`: of the host, before."""
        blocks = ready.study.blocks
        if not isinstance(turns := blocks.turns, int) or not blocks.side_by_side:
            begun = self.begin(ready, boot, self.repeats.times_made(boot))
            return self.end(ready, boot, begun, ready.machine.boot(begun.trial), other_work)
        lengths = turn_lengths(boot[0], ready.prepared, turns)
        together = not ready.prepared.measure_boots()
        block = BlockTurns(len(boot), lengths, str(boot[0].seed), boot_together=together)
        repeats = self.repeats.times_made(boot)
        several = [self.begin(ready, [planned], repeats) for planned in boot]
        outcomes = ready.machine.boot_block([begun.trial for begun in several], block)
        ended = []
        for place, (planned, begun, outcome) in enumerate(zip(boot, several, outcomes, strict=True), 1):
            # A guest's own time, as the block's is shared by all.
            outcome_seconds = outcome.timings.get("off", 0.0)
            (trial,) = self.end(ready, [planned], begun, outcome, other_work, outcome_seconds)
            partners = [other.position + 1 for other in boot if other is not planned]
            record = TrialTurns(
                turns_ms=turns,
                partners=partners,
                place=place,
                steps={
                    name: structs.replace(step, guest_seconds=seconds_of(trial.staged / name, "seconds"))
                    for name, step in outcome.turns.items()
                },
            )
            with as_disk_error(self.run.trials):
                (trial.staged / TURNS_FILE).write_bytes(document_bytes(record))
            ended.append(trial)
        return ended

    def begin(self, ready: Ready, boot: Boot, repeats: int) -> BegunBoot:
        """Stage a boot that is to begin, and was made so often before."""
        staged = self.run.stage(boot[0].position)
        inside = ready.machine.records_inside
        script = boot_script(ready.study, ready.setup, boot, recorded=inside, link=ready.machine.link)
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        clock = time.monotonic()
        (staged / "guest.sh").write_text(script.text, "utf-8")
        self.boot_started(boot, staged)
        trial = Trial(
            id=boot[0].id, arm=next(arm for arm in ready.arms if arm.contender.name == boot[0].contender),
            script=script.text, deadline=script.deadline, into=staged, block=boot[0].block,
        )  # fmt: skip
        return BegunBoot(trial, started, clock, repeats)

    def end(
        self,
        ready: Ready,
        boot: Boot,
        begun: BegunBoot,
        outcome: Outcome,
        other_work: float | None,
        seconds: float | None = None,
    ) -> list[EndedTrial]:
        """The trials of a boot that has ended, staged. `seconds` is how long each took, if not all the time since it began."""
        staged, inside = begun.trial.into, ready.machine.records_inside
        with as_disk_error(self.run.trials):
            parts = split_boot(staged, boot, self.run.stage)
            prepared = ready.prepared
            hosts = (
                read_inside_records(boot, prepared, parts)
                if inside
                else split_host_record(boot, prepared, outcome.host, shared=in_shared_turns(ready.study))
            )
            seconds = round(time.monotonic() - begun.clock if seconds is None else seconds, 3)
            trials = []
            for planned, part, host in zip(boot, parts, hosts, strict=True):
                void, values, failed = examine(ready, planned, part, outcome.why)
                record = TrialRecord(
                    id=planned.id, block=planned.block, position=planned.position, contender=planned.contender,
                    status="void" if void else "partial" if failed else "ok", void=void, failed_steps=failed,
                    started=begun.started, seconds=seconds, timings=outcome.timings, facts=outcome.facts,
                    boot=planned.boot, steps=planned.steps, host=host, other_work_before=other_work,
                    repeats=begun.repeats, member=planned.host,
                )  # fmt: skip
                trials.append(EndedTrial(part, record, values))
            return trials


def join_blocks(boots: Iterable[Boot]) -> list[Boot]:
    """The boots of each block as one: they are alive at once."""
    blocks: dict[int, Boot] = {}
    for boot in boots:
        blocks.setdefault(boot[0].block, []).extend(boot)
    return list(blocks.values())


def completed_future(trials: list[EndedTrial]) -> Future[list[EndedTrial]]:
    """The result of a boot that is over, or was never due."""
    future: Future[list[EndedTrial]] = Future()
    future.set_result(trials)
    return future


def examine(
    ready: Ready, planned: PlannedTrial, staged: Path, void: Void | None
) -> tuple[Void | None, Values, dict[str, str]]:
    """Read what a trial left: why it is void (`void`: the machine's reason), its values, or why a step gave none."""
    taken = set_aside(staged)
    if taken and void is None:
        void = Void("broken-envelope", f"The guest left files with names of KDuel's own: {', '.join(taken)}.")
    try:
        write_environment(staged)
        if void is None:
            void = ready.setup.gate(staged, planned.contender)
    except (OSError, HostError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever a guest left, its raw files are kept
        void = Void("unreadable-results", f"What the guest left cannot be read: {type(error).__name__}: {error}")
    if void is not None:
        return void, {}, {}
    values, failed = ready.prepared.parse_trial(staged, planned.steps)
    if not values:
        void = Void("no-results", next(iter(failed.values())))
    return void, values, failed
