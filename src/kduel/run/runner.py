"""The runner: plans, boots trial after trial, stops when it is decided. The only module that acts in time."""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, wait
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from kduel.core.errors import HostError, NotMeasuredError
from kduel.core.experiment import LEFT_OUT, Void
from kduel.core.host import HostStep
from kduel.core.progress import Progress
from kduel.core.results import MetricResult
from kduel.core.void_codes import may_be_contenders
from kduel.guest.boots import pool
from kduel.judge.verdict.interim import Standing, finished, standing
from kduel.machines import Outcome, Trial
from kduel.run.prepare import Ready, open_run
from kduel.run.repeat import Boot, Ended, Quiet, Repeats
from kduel.run.script import boot_script, bring_home, host_parts, inside_parts, keep_environment, set_aside
from kduel.run.watch import Begun, GiveUp, TrialDone, Watcher
from kduel.store.collect import Collector, Values
from kduel.store.documents import TrialRecord
from kduel.store.integrity import checked_plan, trials_of
from kduel.store.rundir import RunDir, as_disk_error
from kduel.study.plan import PlannedTrial

if TYPE_CHECKING:
    from kduel.judge.verdict.futility import Hopeless
    from kduel.judge.verdict.rule import Rule

HOPELESS = 2
"""So many void trials at the start of a contender, and none that is good: it cannot be measured."""


def run_study(
    ready: Ready,
    path: Path,
    *,
    origin: str,
    seed: int,
    progress: Progress,
    watch: Watcher,
    give_up: GiveUp = lambda *_: False,
    begun: Begun = lambda *_: None,
) -> RunDir:
    """Carry the study out in `path`, or go on there; returns when every primary metric is decided, the plan ends, or
    nothing can be decided any more and `give_up` returns True. It is called once.

    Raises NotMeasuredError where a contender's first trials are all void, InputError where `path` holds another run.
    """
    run = open_run(ready, path, origin=origin, seed=seed)
    with run.at_work():
        Runner(ready, run, progress, watch, give_up, begun).go()
    return run


class Runner:
    """One runner's work on one run."""

    def __init__(
        self,
        ready: Ready,
        run: RunDir,
        progress: Progress,
        watch: Watcher,
        give_up: GiveUp,
        begun: Begun = lambda *_: None,
    ) -> None:
        self.ready = ready
        self.run = run
        self.progress = progress
        self.watch = watch
        self.give_up = give_up
        self.begun = begun
        self.judged: tuple[int, list[MetricResult]] = (0, [])
        """How many blocks were complete, and what the primary metrics were then."""
        self.hopeless_metrics: list[Hopeless] = []
        """After the last complete block."""
        self.given_up: bool | None = None
        """The result of `give_up`; None until it is called."""
        self.lock = run.lock()
        self.plan = checked_plan(run, self.lock)
        self.collector = Collector(run, self.lock, ready.prepared)
        self.records: dict[str, TrialRecord] = {}
        self.repeats = Repeats(run, self.lock.disturbance, len(self.plan))
        self.quiet = Quiet(self.lock.disturbance, progress)
        self.other_work: float | None = None
        """What other work took just before the boot, where that is a covariate."""
        self.arms = {arm.contender.name: arm for arm in ready.arms}
        for record in trials_of(run, self.lock):
            self.take(record)

    @cached_property
    def rule(self) -> Rule:
        """The rule that the run was planned by."""
        from kduel.judge.evaluate import rule_of

        return rule_of(self.lock)

    def take(self, record: TrialRecord, values: Values | None = None) -> None:
        """Know of a trial that is there, and of the values that were just read from it."""
        self.records[record.id] = record
        self.collector.add(record, values)

    def go(self) -> None:
        """Boot what the plan still has, until it is decided."""
        boots = self.repeats.in_order(self.boots_left())
        if self.ready.machine.parallel > 1:
            self.go_parallel(boots)
        else:
            while boots and not (self.finished() or self.futile()):
                boot = self.still_open(boots.popleft())
                self.quiet.wait()
                self.other_work = self.quiet.before_boot() if self.lock.covariates else None
                self.end(boot, self.carry_out(boot), boots)

    def go_parallel(self, waiting: deque[Boot]) -> None:
        """The same with several boots at once; only for machines whose trials do not touch one another."""
        running: dict[Future[list[Ended]], Boot] = {}
        with pool(self.ready.machine.parallel) as threads:
            while not (self.finished() or self.futile()):
                while waiting and len(running) < self.ready.machine.parallel:
                    # A block that counts only what those before left open waits for them.
                    if running and self.by_need and waiting[0][0].block - 1 not in (0, *self.complete_blocks()):
                        break
                    boot = self.still_open(waiting.popleft())
                    running[threads.submit(self.carry_out, boot)] = boot
                if not running:
                    break
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    self.end(running.pop(future), future.result(), waiting)

    def end(self, boot: Boot, trials: list[Ended], waiting: deque[Boot]) -> None:
        """Keep a boot's trials; or put them aside, to be made again, for a fault that is not their contender's."""
        trials, code = self.repeats.due(trials)
        for trial in trials:
            self.quiet.saw(trial.record)
        if not code:
            self.keep(trials)
            return
        self.repeats.put_aside(boot, trials, code, waiting)
        why = str(trials[0].record.void).splitlines()[0]
        self.progress.info(f"made again at the end of its block: {trials[0].record.id}: {why}")

    @property
    def by_need(self) -> bool:
        """Whether a block counts only those steps whose verdict those before it left open: on an exact machine, where
        a repetition gives the same, and more conditions are all that a block can add. Not in a fleet, where what was
        there before a block depends on how many machines there are."""
        return self.ready.machine.exact and self.ready.study.blocks.fixed is None and self.lock.fleet is None

    def still_open(self, boot: list[PlannedTrial]) -> list[PlannedTrial]:
        """The planned trials with the steps that are to run: all, or by need those that are still open."""
        block = boot[0].block
        if not self.by_need or block == 1:
            return boot
        known = [record.steps for record in self.records.values() if record.block == block and record.steps]
        if known:
            return [structs.replace(planned, steps=known[0]) for planned in boot]
        before = [complete for complete in self.complete_blocks() if complete < block]
        labels = {one.benchmark for one in self.standings_of(before) if not one.decided}
        chosen = [index for index, step in enumerate(self.ready.study.steps) if step.label in labels]
        if not chosen:
            return boot
        return [
            structs.replace(planned, steps=[step for step in planned.steps if step in chosen]) for planned in boot
        ]

    def boots_left(self) -> list[list[PlannedTrial]]:
        """The trials that are not there yet, those of one boot together, in the order of the plan."""
        groups: dict[int, list[PlannedTrial]] = {}
        for planned in self.plan:
            if planned.id not in self.records:
                groups.setdefault(planned.boot, []).append(planned)
        return list(groups.values())

    def finished(self) -> bool:
        """Whether all primary metrics are decided by the complete blocks that are there. Where there is none, an exact
        machine, on which a repetition gives the same, carries out one block."""
        complete = self.complete_blocks()
        if not complete or self.ready.study.blocks.fixed is not None:
            return False
        if not any(step.primary for step in self.ready.study.steps):
            return self.ready.machine.exact
        samples = self.collector.samples(complete)
        return finished(samples, self.rule, exact=self.ready.machine.exact, without=self.left_out())

    def futile(self) -> bool:
        """Whether nothing can be decided any more and the run is to end for that."""
        if self.given_up is None and (hopeless := self.hopeless_now()):
            self.given_up = self.give_up(hopeless, self.rule)
        return bool(self.given_up)

    def hopeless_now(self) -> list[Hopeless]:
        """What is unlikely to be decided any more, by the complete blocks that are there."""
        complete = self.complete_blocks()
        if not complete or self.ready.study.blocks.fixed is not None:
            return []
        from kduel.judge.verdict.futility import futile

        samples = self.collector.samples(complete)
        return futile(samples, self.rule, exact=self.ready.machine.exact, without=self.left_out())

    def complete_blocks(self) -> list[int]:
        """The leading blocks of which every trial is there: looks never depend on the order inside a block."""
        count = len(self.ready.study.contenders)
        complete: list[int] = []
        for block in sorted({planned.block for planned in self.plan}):
            if sum(record.block == block for record in self.records.values()) < count:
                break
            complete.append(block)
        return complete

    def carry_out(self, boot: list[PlannedTrial]) -> list[Ended]:
        """One boot: its trials' directories, staged, and what is known of them."""
        if boot[0].contender in self.ready.unbuilt:
            return [Ended(self.run.stage(), self.not_built(planned)) for planned in boot]
        arm = self.arms[boot[0].contender]
        if all(planned.contender in self.left_out() for planned in boot):
            return [Ended(self.run.stage(), self.not_run(planned)) for planned in boot]
        staged = self.run.stage(boot[0].position)
        inside = self.ready.machine.records_inside
        script = boot_script(self.ready.study, self.ready.dress, boot, recorded=inside)
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        clock = time.monotonic()
        (staged / "guest.sh").write_text(script.text, "utf-8")
        self.begun(boot, staged)
        outcome = self.ready.machine.boot(
            Trial(
                id=boot[0].id,
                arm=arm,
                script=script.text,
                deadline=script.deadline,
                into=staged,
                block=boot[0].block,
            )
        )
        with as_disk_error(self.run.trials):
            parts = bring_home(staged, boot, self.run.stage)
            steps = self.lock.steps
            hosts = inside_parts(boot, steps, parts) if inside else host_parts(boot, steps, outcome.host)
            seconds = time.monotonic() - clock
            return [
                self.ended(planned, boot, part, outcome, host, started, seconds)
                for planned, part, host in zip(boot, parts, hosts, strict=True)
            ]

    def ended(
        self,
        planned: PlannedTrial,
        boot: Boot,
        staged: Path,
        outcome: Outcome,
        host: dict[str, HostStep],
        started: str,
        seconds: float,
    ) -> Ended:
        """A trial that was booted: void for the machine's or a gate's reason, else by which steps gave numbers."""
        values: Values = {}
        failed: dict[str, str] = {}
        void = outcome.why
        taken = set_aside(staged)
        if taken and void is None:
            void = Void("broken-envelope", f"The guest left files with names of KDuel's own: {', '.join(taken)}.")
        try:
            keep_environment(staged)
            if void is None:
                void = self.ready.dress.gate(staged, planned.contender)
        except (OSError, HostError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever a guest left, its raw files are kept
            void = Void("unreadable-results", f"What the guest left cannot be read: {type(error).__name__}: {error}")
        if void is None:
            values, failed = self.ready.prepared.parse_trial(staged, planned.steps)
            if len(failed) == len(planned.steps):
                void = Void("no-results", next(iter(failed.values())))
        record = TrialRecord(
            id=planned.id,
            block=planned.block,
            position=planned.position,
            contender=planned.contender,
            status="void" if void else "partial" if failed else "ok",
            void=void,
            failed_steps=failed,
            started=started,
            seconds=round(seconds, 3),
            timings=outcome.timings,
            facts=outcome.facts,
            boot=planned.boot,
            steps=planned.steps,
            host=host,
            other_work_before=self.other_work,
            repeats=self.repeats.of(boot),
            member=planned.host,
        )
        return Ended(staged, record, values)

    def left_out(self) -> set[str]:
        """The contenders, other than the baseline, that cannot be measured: their first trials are all void.

        The run goes on with the others, if there are any. The values play no part in it.
        """
        names = [contender.name for contender in self.lock.contenders]
        out = {name for name in names[1:] if self.hopeless(name)}
        return out if len(names) - len(out) > 1 else set()

    def hopeless(self, contender: str) -> bool:
        """Whether a contender's trials are all void, and enough of them."""
        own = self.of(contender)
        return len(own) >= self.enough and all(record.status == "void" for record in own)

    @property
    def enough(self) -> int:
        """How many void trials, and no good one, show that a contender cannot be measured."""
        return min(HOPELESS, self.lock.blocks.fixed or HOPELESS)

    def of(self, contender: str) -> list[TrialRecord]:
        """The trials of a contender so far, without those that are void by no fault of its own."""
        return [
            record
            for record in list(self.records.values())
            if record.contender == contender and (record.void is None or may_be_contenders(record.void))
        ]

    def not_run(self, planned: PlannedTrial) -> TrialRecord:
        """trial.json of a trial of a contender that is left out."""
        first = min(self.of(planned.contender), key=lambda record: record.position)
        why = f"not run: its first trials were void. The first: {first.void}"
        return TrialRecord.unbooted(planned, Void(LEFT_OUT, why))

    def not_built(self, planned: PlannedTrial) -> TrialRecord:
        """trial.json of a trial of a contender that has no kernel."""
        why = f"not measurable: {self.ready.unbuilt[planned.contender]}"
        return TrialRecord.unbooted(planned, Void("does-not-build", why))

    def keep(self, trials: list[Ended]) -> None:
        """Make a boot's trials visible, report them, and give up on a contender that cannot be measured."""
        for trial in trials:
            record = trial.record
            before = len(self.complete_blocks())
            self.run.keep(trial.staged, record)
            self.take(record, trial.values)
            if block_done := len(self.complete_blocks()) > before:
                self.hopeless_metrics = self.hopeless_now()
            self.watch(
                TrialDone(
                    done=len(self.records),
                    planned=len(self.plan),
                    record=record,
                    block_done=block_done,
                    mean_seconds=(sum(one.seconds for one in self.records.values()) + self.repeats.seconds)
                    / len(self.records)
                    / self.ready.machine.parallel,
                    metrics=self.metrics(),
                    hopeless=self.hopeless_metrics,
                )
            )
        # Only when all of the boot's trials are kept: the others may be good.
        for trial in trials:
            self.refuse_hopeless(trial.record)
        self.repeats.refuse_in_vain(list(self.records.values()))

    def metrics(self) -> list[MetricResult]:
        """The primary metrics after the complete blocks; judged once for each number of them."""
        if len(complete := self.complete_blocks()) != self.judged[0]:
            from kduel.judge.verdict.judge import judge_primary

            samples = self.collector.samples(complete)
            self.judged = len(complete), judge_primary(samples, self.rule, exact=self.ready.machine.exact)
        return self.judged[1]

    def standings_of(self, complete: list[int]) -> list[Standing]:
        """How the primary metrics stand after these blocks."""
        if not complete:
            return []
        return list(standing(self.collector.samples(complete), self.rule, exact=self.ready.machine.exact))

    def refuse_hopeless(self, record: TrialRecord) -> None:
        """Raises NotMeasuredError when a contender's first trials are all void, and without it nothing is left to
        compare; otherwise the others go on."""
        own = self.of(record.contender)
        if len(own) != self.enough or not self.hopeless(record.contender):
            return
        what = f"its first {len(own)} trials are void" if len(own) > 1 else "its trial is void"
        message = f"{record.contender} could not be measured: {what}. {record.void}"
        where = f"Look at {self.run.directory(record.id) / 'console.log'}"
        if record.contender in self.left_out():
            self.progress.warn(f"{message}\n{where}. The others go on without it.")
            return
        raise NotMeasuredError(message, f"{where}; the trials so far are kept in {self.run.path}.")
