"""A run on one machine: its trials carried out in the order of the plan, until they are decided."""

from pathlib import Path

from kduel.core.progress import Progress
from kduel.run.decision import Decision
from kduel.run.prepare import Ready, open_run
from kduel.run.records import Records
from kduel.run.repeat import EndedTrial
from kduel.run.trials import Trials
from kduel.run.watch import BootStarted, GiveUp, Watcher
from kduel.store.rundir import RunDir


def run_study(
    ready: Ready,
    path: Path,
    *,
    origin: str,
    seed: int,
    progress: Progress,
    watch: Watcher,
    give_up: GiveUp = lambda *_: False,
    boot_started: BootStarted = lambda *_: None,
) -> RunDir:
    """Carry the study out in `path`, or go on there, once, until every primary metric is decided, the plan ends, or
    `give_up` returns True. Raises NotMeasuredError where first trials are all void, InputError for another run."""
    run = open_run(ready, path, origin=origin, seed=seed)
    with run.at_work():
        make_trials(ready, run, progress, watch, give_up, boot_started)
    return run


def make_trials(
    ready: Ready, run: RunDir, progress: Progress, watch: Watcher, give_up: GiveUp, boot_started: BootStarted
) -> None:
    """Make the trials that a run, which is held, still lacks; see `run_study`."""
    records = Records(run, run.lock())
    records.put_aside_parts()
    decision = Decision(records, watch, give_up)
    decision.report_kept(ready.machine.parallel)
    decision.check_measurable()
    excluded = records.excluded_contenders()
    trials = Trials.for_run(records, progress, boot_started)

    def take(ended: list[EndedTrial]) -> None:
        for trial in ended:
            decision.take(
                trial.record, trial.values, repeated_seconds=trials.repeats.seconds, at_once=ready.machine.parallel
            )
        decision.check_measurable()
        for contender in sorted(records.excluded_contenders() - excluded):
            excluded.add(contender)
            why = decision.describe_unmeasurable(contender)
            progress.warn(f"{why}\n{decision.console_hint(contender)}. The others go on without it.")

    trials.make(
        ready, records.missing_boots(), take, is_over=decision.is_over, next_boot=decision.next_boot,
        reasons_not_to_boot=records.reasons_not_to_boot,
    )  # fmt: skip
