"""Search of `kduel bisect` by measurements that vary: of a command, or of a benchmark in fresh boots."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from kduel.cli.bisect_exact import make_builder
from kduel.cli.bisect_options import BisectOptions
from kduel.cli.output import emit, emit_json, write_plot
from kduel.core.cache import Cache
from kduel.core.errors import NOT_MEASURED
from kduel.core.experiment import Better
from kduel.core.progress import Progress
from kduel.report.campaigns.page import html
from kduel.run.bisect.boots import BootMeasurement, boot_study, choose_metric
from kduel.run.bisect.command import ShellMeasurement
from kduel.run.bisect.git import commit_subject, worktree
from kduel.run.bisect.history import History
from kduel.run.bisect.named import named_files
from kduel.run.bisect.outcome import SearchOutcome
from kduel.run.bisect.show import MeasurementNotes, as_svg, as_text, page_of
from kduel.run.bisect.terms import SearchSettings
from kduel.run.bisect.timed import SearchTask, search, state_directory
from kduel.run.prepare import cpu_model, host_record


def search_by_command(tree: Path, work: Path, history: History, options: BisectOptions, progress: Progress) -> None:
    line = options.measure.strip()
    task = make_task(
        tree, history, options.metric or "value", f"the command '{line}' in a checkout of each commit", options,
        made_by=named_files(line, work / "checkouts" / history.good),
    )  # fmt: skip
    command = ShellMeasurement(tree, work / "checkouts", line, (history.good, history.bad), options.timeout)
    try:
        outcome = search(task, state_directory(work, task), command, progress)
    finally:
        command.close()
    show_outcome(outcome, task, options, what=options.metric or f"what '{line}' prints")


def search_by_boots(
    tree: Path, work: Path, history: History, options: BisectOptions, cache: Cache, progress: Progress
) -> None:
    """Search by a benchmark's metric, in fresh boots of each commit's kernel."""
    machine, benchmark = options.machine, options.benchmark
    chosen = choose_metric(boot_study(benchmark, machine), options.metric)
    metric = chosen.name
    subject = f"{benchmark} in fresh boots of each commit's kernel on the machine {machine}"
    made = make_builder(tree, work / "source", work, options, progress)
    made.check()
    task = make_task(tree, history, f"{benchmark} {metric}", subject, options, made_by=made.identity())
    state = state_directory(work, task)
    with worktree(tree, made.source, history.good, made.built_commit(), progress=progress):
        boots = BootMeasurement(
            made, machine, benchmark, metric, state, cache=cache, progress=progress, most=task.settings.most
        )
        try:
            outcome = search(task, state, boots, progress)
        finally:
            boots.close()
    show_outcome(outcome, task, options, what=f"{task.metric} ({chosen.unit})", better=chosen.better)


def make_task(
    tree: Path, history: History, metric: str, subject: str, options: BisectOptions, made_by: Sequence[str]
) -> SearchTask:
    """The search that the options request. `made_by` as in SearchTask."""
    settings = SearchSettings(
        probability=options.probability,
        most=options.measurements,
        confirm=options.confirm,
        negligible=options.negligible,
        seed=options.seed,
    )
    return SearchTask(
        tree=tree, history=history, metric=metric, subject=subject, settings=settings, made_by=tuple(made_by),
        restart=options.restart,
    )  # fmt: skip


def show_outcome(
    outcome: SearchOutcome, task: SearchTask, options: BisectOptions, *, what: str, better: Better = "none"
) -> None:
    """Print the outcome, write the plot, and end with 1 where there is no set. `what` was measured, in words."""
    host = host_record()
    named = {level.commit for level in outcome.levels} | set(outcome.set[:100])
    about = MeasurementNotes(
        subject=task.subject,
        host=f"{cpu_model() or 'an unknown CPU'}, {host.cpus} CPUs, Linux {host.kernel}",
        reproduce=shlex.join(["kduel", *sys.argv[1:]]),
        subjects={commit: commit_subject(task.tree, commit) for commit in named},
        what=what,
        better=better,
    )
    if options.form == "json":
        emit_json(outcome.document())
    elif options.form == "html":
        emit(html(page_of(outcome, about), as_svg(outcome, page=True)))
    else:
        emit(as_text(outcome, about))
    if options.plot:
        write_plot(options.plot, as_svg(outcome))
    if not outcome.set:
        click.get_current_context().exit(NOT_MEASURED)
