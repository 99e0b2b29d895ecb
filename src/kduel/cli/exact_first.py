"""The exact part of a run, counted before its trials are timed: an answer within a minute, on however busy a host.

It is a run of its own in the directory `exact` of the run, with its own report, and each command that reads a run finds
it there. Without working KVM it comes by itself; `--exact-first` requests it. The timed part's guest root, which takes
longest of all that is made, is made meanwhile; so the run's own lock.json lacks the machine's facts until then.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from kduel.cli.live_trials import show_trials
from kduel.cli.options import option
from kduel.cli.write_up import keep_report
from kduel.core.background_task import BackgroundTask
from kduel.core.errors import InputError, KduelError
from kduel.store.run_lock import HeldError
from kduel.store.rundir import EXACT, RunDir, has_report
from kduel.study.first_part import EXACT_SEED, first_part, only_kernels

if TYPE_CHECKING:
    from kduel.cli.terminal import Terminal
    from kduel.core.progress import Progress
    from kduel.machines import Means
    from kduel.run.prepare import ResolvedStudy
    from kduel.study.load import Study

exact_first_option = option(
    "--exact-first/--no-exact-first",
    "Count eight operations exactly before anything is timed.  [default: where KVM does not work, for a suite and kernels "
    "on the command line without --machine, --benchmark, --command, --aa or --fleet]",
    default=None,
)


def wants_exact_part(
    asked: bool | None, chosen: ResolvedStudy, path: Path, *, by_default: bool, **means: Unpack[Means]
) -> bool:
    """True if the run in `path` has an exact part, or is to have one."""
    if asked is not None:
        return asked
    if (path / "lock.json").is_file():
        return (path / EXACT).is_dir()
    if chosen.study.about.exact_first:
        return True
    return (
        by_default and can_be_emulated(chosen.study) and chosen.kind.emulates(chosen.settings, chosen.arms, **means)
    )


def can_be_emulated(study: Study) -> bool:
    """True if a study has an exact part by default where KVM does not work."""
    return study.machine == "qemu" and only_kernels(study)


def prepare_in_background(
    study: Study, chosen: ResolvedStudy, terminal: Terminal, **means: Unpack[Means]
) -> BackgroundTask:
    """Make the guest's root meanwhile; nothing for a study that differs in more than kernel and command line."""
    from kduel.run.prepare import prepare_early

    simple = only_kernels(study)

    def work(progress: Progress) -> None:
        if simple:
            prepare_early(chosen, cache=means["cache"], progress=progress, offline=means.get("offline", False))

    return BackgroundTask(work, terminal)


def count_first(
    chosen: ResolvedStudy, run: RunDir, terminal: Terminal, *, asked: bool | None, **means: Unpack[Means]
) -> None:
    """Carry out what is left of a run's exact part, and show what it found. Where that cannot be done, the timed part
    follows a warning; an error where counts were requested, or what is there cannot be continued."""
    from kduel.judge.evaluate import judge_run
    from kduel.report.text import show_closing
    from kduel.run.prepare import get_machine
    from kduel.run.runner import run_study

    where = run.path / EXACT
    if has_report(where):
        return
    only_part = run.exact_part is not None and not run.lock(prepared=False).prepared
    try:
        part = first_part(chosen.study)
        suite = part.about.name
        rest = "the lines that CPUs share" if chosen.kind.exact else "the timed part"
        terminal.info(
            f"First {len(part.steps)} steps of the suite {suite} are counted exactly; {rest} follow{'' if chosen.kind.exact else 's'}."
        )
        ready = get_machine(chosen.for_part(part, suite), **means)
        try:
            with show_trials(terminal, part, part.machine, ready.machine.parallel) as (watch, boot_started):
                run_study(
                    ready, where, origin=suite, seed=EXACT_SEED, progress=terminal, watch=watch,
                    boot_started=boot_started,
                )  # fmt: skip
        finally:
            ready.machine.close()
        results = judge_run(where)
    except KduelError as error:
        if asked or isinstance(error, HeldError) or (only_part and isinstance(error, InputError)):
            raise
        terminal.warn(f"Nothing is counted first: {error}")
        return
    click.echo(show_closing(results, shlex.quote(str(where)), 2), nl=False, color=True)
    keep_report(where, results)
