"""`kduel bisect`: the commit that changed a cost, exact or measured with noise."""

from __future__ import annotations

import shlex
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kduel.cli.bisect_options import BOOTS, COMMAND, check_options, choose_method
from kduel.cli.interrupt import ReportedInterrupt
from kduel.cli.options import Number, limit_option, plot_option, quiet_option
from kduel.cli.output import emit, emit_json, output_width, write_plot
from kduel.cli.stepwise import Stepwise
from kduel.core.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kduel.core.cache import Cache
    from kduel.core.progress import Progress
    from kduel.explain.sharing.compare import SharingExplanation
    from kduel.run.bisect.build import Builder
    from kduel.run.bisect.exact import CommitCounter
    from kduel.run.bisect.history import History
    from kduel.run.bisect.outcome import SearchOutcome
    from kduel.run.bisect.sharing import SharedLineCounter
    from kduel.run.bisect.timed import SearchTask

EXACT_METRICS = ("instructions", "instructions-mean")


@click.command("bisect", cls=Stepwise, short_help="Find the commit that changed a cost.")
@click.argument("ends", metavar="[GOOD BAD [-- PATH...]]", nargs=-1)
@click.option(
    "--tree",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=".",
    help="The git repository.",
)
@click.option(
    "--benchmark",
    "-b",
    default="",
    metavar="NAME",
    help="An operation of kbench, or boot; with --machine, any benchmark.",
)
@click.option(
    "--machine",
    default="icount",
    show_default=True,
    metavar="KIND[:key=value,...]",
    help="icount counts instructions; on any other machine, such as qemu, the benchmark is timed, in fresh boots.",
)
@click.option(
    "--metric", default="", metavar="NAME",
    help="With icount: instructions (median) or instructions-mean; else a metric of the benchmark.",
)  # fmt: skip
@click.option(
    "--measure", default="", metavar="COMMAND",
    help="Instead of a benchmark: a command that runs in a checkout of a commit and prints one number.",
)  # fmt: skip
@click.option(
    "--timeout",
    type=Number(0, min_open=True),
    default=3600.0,
    show_default=True,
    help="Maximum time of COMMAND, in seconds.",
)
@click.option(
    "--sharing", is_flag=True,
    help="With icount: count the cache lines that two CPUs share in the operation (OPERATION/threads/common).",
)  # fmt: skip
@click.option("--first-parent", is_flag=True, help="Follow only the first parent of merges.")
@click.option(
    "--config",
    metavar="FILE|RECIPE",
    default="",
    help="The kernel configuration: a file, or a recipe such as tinyconfig+guest or FILE+guest.  [default: .config of the "
    "tree; with --step: none]",
)
@click.option(
    "--build-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory for objects and the state of the search; it is kept.",
)
@click.option(
    "--build-command",
    default="",
    metavar="COMMAND",
    help="Build with this command instead of make; it must put its objects into $KDUEL_BUILD.",
)
@click.option(
    "--image",
    default="",
    metavar="PATH",
    help="With --build-command: path of the kernel image, relative to $KDUEL_BUILD.",
)
@click.option(
    "--jobs", "-j", type=click.IntRange(0), default=0, help="Parallel jobs of make.  [default: the number of CPUs]"
)
@click.option(
    "--probability",
    type=Number(0.5, 0.999),
    default=0.95,
    show_default=True,
    help="Required probability that the set contains the commit.",
)
@click.option(
    "--measurements",
    type=click.IntRange(6),
    default=400,
    show_default=True,
    help="Maximum number of measurements before the confirmation.",
)
@click.option(
    "--confirm",
    type=click.IntRange(0),
    default=12,
    show_default=True,
    help="Maximum number of blocks of the confirmation; 0: no confirmation.",
)
@click.option(
    "--negligible",
    type=Number(0, min_open=True),
    default=1.0,
    show_default=True,
    metavar="PERCENT",
    help="Treat the ends as equal if they differ by less.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the order of measurements.")
@click.option("--restart", is_flag=True, help="Measure everything again instead of resuming.")
@click.option(
    "--format",
    "-f",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Output format.",
)
@limit_option(25)
@plot_option("the levels and the posterior; for exact counts the differential flame graph")
@click.option(
    "--step",
    nargs=2,
    type=Number(0, min_open=True),
    metavar="GOOD BAD",
    help="For `git bisect run`: the costs at both ends.",
)
@quiet_option
def command(ends: tuple[str, ...], step: tuple[float, float] | None, **given: Any) -> None:
    """Find the commit after GOOD, up to BAD, that changed a cost. The cost may have risen or fallen.

    Exact counts are searched as by `git bisect`. For measurements that vary, the search controls the error: both ends
    (GOOD and BAD) are measured in every block, the next commit is chosen by its probability, and the result is the
    smallest set of commits that contains the culprit with a probability of 95 %. Exit status: 0 with a set, 1 when the
    ends do not differ or nothing could be measured.

    Commits that do not build, boot or give a number are skipped. The search uses separate checkouts; uncommitted
    changes are not measured. After an interruption the same command continues the search.

    With --step it is a command for `git bisect run`: give the costs at both ends, as reported by `kduel run A B --suite
    exact` or `kduel explain`; the exit status is 0, 1 or 125, as git expects.

    \b
    kduel bisect v1.0 HEAD --measure 'make -s && ./bench'
    kduel bisect v6.1 v6.2 --tree linux --config tinyconfig+guest --benchmark pipe
    kduel bisect v6.1 v6.2 --tree linux --config my.config --machine qemu \\
        --benchmark sysbench-cpu --metric events-per-second
    git bisect run kduel bisect --benchmark pipe --step 12580 12790
    """
    from kduel.cli.terminal import Terminal
    from kduel.core.cache import Cache
    from kduel.core.errors import InputError
    from kduel.run.bisect.git import git
    from kduel.run.bisect.history import changed_files, read_history
    from kduel.run.bisect.journal import hold_directory

    measure = given["measure"].strip()
    if bool(given["build_command"]) != bool(given["image"]):
        raise InputError(
            "--build-command and --image go together", "Give the file that the command makes with --image."
        )
    if (step is None) == (len(ends) < 2):
        raise InputError(
            "bisect takes two commits, or --step with two costs",
            "For example: kduel bisect v6.1 v6.2 --tree linux --benchmark pipe.",
        )
    if bool(measure) == bool(given["benchmark"]):
        raise InputError(
            "bisect takes --benchmark or --measure",
            "Name what is measured: --benchmark pipe, or --measure 'COMMAND' that prints one number.",
        )
    way = choose_method(measure=measure, machine=given["machine"], step=step is not None)
    check_options(way)
    progress = Terminal(given["quiet"])
    tree = given["tree"].resolve()
    if step is None:
        git(tree, "rev-parse", "--git-dir")
    cache = Cache(progress=progress)
    build_dir = given["build_dir"]
    work = build_dir.resolve() if build_dir else cache.root / "bisect" / tree.as_posix().strip("/").replace("/", "-")
    if step is not None:
        with hold_directory(work):
            git_step(tree, work, step, given, cache, progress)
        return
    history = read_history(tree, ends[0], ends[1], first_parent=given["first_parent"], paths=ends[2:])
    if count := changed_files(tree):
        progress.warn(f"{tree} has {count} changed files that are not committed: they are not measured.")
    with hold_directory(work), told_how_to_go_on():
        if way == COMMAND:
            by_command(tree, work, history, given, progress)
        elif way == BOOTS:
            by_boots(tree, work, history, given, cache, progress)
        else:
            exact(tree, work, ends, given, cache, progress)


@contextmanager
def told_how_to_go_on() -> Iterator[None]:
    """Whenever an interruption comes: nothing is lost, and how to go on."""
    try:
        yield
    except KeyboardInterrupt as error:
        from kduel.cli.terminal import say

        say("kduel: what is built and measured is kept. Go on with the same command.")
        raise ReportedInterrupt from error


def builder(tree: Path, source: Path, work: Path, given: dict[str, Any], progress: Progress) -> Builder:
    """The builder of kernels from what is checked out in `source`. Raises InputError."""
    from kduel.core.progress import UniqueMessages
    from kduel.run.bisect.build import Builder, read_config_option

    own, recipe = tree / ".config", ""
    config = own if own.is_file() else None
    if given["config"]:
        config, recipe = read_config_option(given["config"])
    return Builder(
        source=source,
        build=work / "build",
        config=config,
        recipe=recipe,
        warn=UniqueMessages(progress).warn,
        command=given["build_command"],
        image=given["image"],
        jobs=given["jobs"],
        log=work / "build.log",
    )


def exact_trier(
    build: Callable[[str], str], given: dict[str, Any], cache: Cache, progress: Progress
) -> CommitCounter:
    """Counts the commits that `build` builds. Raises InputError for an operation or metric that is not counted."""
    from kduel.core.errors import InputError
    from kduel.run.bisect.exact import CommitCounter
    from kduel.run.exact.subject import BOOT, check_operation

    if given["sharing"]:
        return sharing_trier(build, given, cache, progress)
    check_operation(given["benchmark"])
    metric = given["metric"] or EXACT_METRICS[0]
    if metric not in EXACT_METRICS:
        raise InputError(f"there is no exact metric {metric!r}", f"There are: {', '.join(EXACT_METRICS)}.")
    if given["benchmark"] == BOOT and given["metric"] == EXACT_METRICS[1]:
        raise InputError(f"the boot is counted once, and has no {metric}", "Leave out --metric.")
    return CommitCounter(build, given["benchmark"], metric, machine=given["machine"], cache=cache, progress=progress)


def sharing_trier(
    build: Callable[[str], str], given: dict[str, Any], cache: Cache, progress: Progress
) -> SharedLineCounter:
    """Counts the lines that commits share. Raises InputError for an operation or metric that is not counted."""
    from kduel.core.errors import InputError
    from kduel.run.bisect.sharing import METRICS, SharedLineCounter

    metric = given["metric"] or next(iter(METRICS))
    if metric not in METRICS:
        raise InputError(f"there is no metric {metric!r} of shared lines", f"There are: {', '.join(METRICS)}.")
    if ":" in given["machine"]:
        raise InputError("--sharing has a machine of its own", f"Leave out --machine {given['machine']}.")
    trier = SharedLineCounter(build, given["benchmark"], metric, cache=cache, progress=progress)
    trier.study("debian:6.1")  # refuses what is no operation before anything is built
    return trier


def git_step(
    tree: Path, work: Path, step: tuple[float, float], given: dict[str, Any], cache: Cache, progress: Progress
) -> None:
    """One step of `git bisect run`."""
    from kduel.core.errors import InputError
    from kduel.run.bisect.exact import judge_checkout

    if step[0] == step[1]:
        raise InputError(
            f"both ends have the same cost, {step[0]:,.10g}: there is nothing to find",
            "Give the costs of GOOD and of BAD, as `kduel explain` shows them.",
        )
    made = builder(tree, tree, work, given, progress)

    def build(commit: str) -> str:
        # What lies in the tree may be more than the commit: nothing is taken from the cache.
        with progress.task(f"building {commit[:12]}"):
            return str(made.make())

    trier = exact_trier(build, given, cache, progress)
    made.check()
    status, said = judge_checkout(trier, tree, *step)
    click.echo(printable(said))
    click.get_current_context().exit(status)


def exact(
    tree: Path, work: Path, ends: tuple[str, ...], given: dict[str, Any], cache: Cache, progress: Progress
) -> None:
    """Search by exact counts."""
    from kduel.explain.flame import as_svg
    from kduel.run.bisect.exact import bisect
    from kduel.run.bisect.exact_text import as_text
    from kduel.run.bisect.git import commit_of, worktree
    from kduel.run.bisect.kernels import CommitKernels
    from kduel.run.bisect.sharing import SharedLineCounter

    old, new = (commit_of(tree, end) for end in ends[:2])
    made = builder(tree, work / "source", work, given, progress)
    kernels = CommitKernels(made, cache=cache, progress=progress)
    trier = exact_trier(lambda commit: str(kernels(commit)), given, cache, progress)
    made.check()
    with worktree(tree, made.source, old, made.built_commit(), progress=progress) as place:
        result = bisect(place, old, new, trier, progress=progress, first_parent=given["first_parent"], paths=ends[2:])
        if given["form"] == "json":
            metric = f"{given['benchmark']} {trier.metric}"
            emit_json(result.outcome(old, new, metric).document())
        else:
            emit(as_text(place, result, given["benchmark"], given["limit"], output_width()))
        if isinstance(trier, SharedLineCounter):
            show_lines(trier.explain_difference(result), given)
        elif given["plot"] and result.explanation is not None:
            write_plot(given["plot"], as_svg(result.explanation))
        elif given["plot"]:
            progress.warn(f"{given['plot']} is not written: it takes one commit whose parent was counted, too.")


def show_lines(found: SharingExplanation | None, given: dict[str, Any]) -> None:
    """Print and draw the lines that a commit changed, where they are known."""
    from kduel.explain.sharing.show import as_svg, as_text

    if found is None:
        return
    if given["form"] == "text":
        emit(printable(as_text(found, given["limit"], output_width())))
    if given["plot"]:
        write_plot(given["plot"], as_svg(found))


def by_command(tree: Path, work: Path, history: History, given: dict[str, Any], progress: Progress) -> None:
    """Search by what a command prints."""
    from kduel.run.bisect.command import ShellMeasurement
    from kduel.run.bisect.named import named_files
    from kduel.run.bisect.timed import search, state_directory

    line = given["measure"].strip()
    task = task_of(
        tree,
        history,
        given["metric"] or "value",
        f"the command '{line}' in a checkout of each commit",
        given,
        made_by=named_files(line, work / "checkouts" / history.good),
    )
    command = ShellMeasurement(tree, work / "checkouts", line, (history.good, history.bad), given["timeout"])
    try:
        outcome = search(task, state_directory(work, task), command, progress)
    finally:
        command.close()
    show(outcome, task, given)


def by_boots(
    tree: Path, work: Path, history: History, given: dict[str, Any], cache: Cache, progress: Progress
) -> None:
    """Search by a benchmark's metric, in fresh boots of each commit's kernel."""
    from kduel.run.bisect.boots import BootMeasurement, boot_study, choose_metric
    from kduel.run.bisect.git import worktree
    from kduel.run.bisect.timed import search, state_directory

    machine, benchmark = given["machine"], given["benchmark"]
    metric = choose_metric(boot_study(benchmark, machine), given["metric"])
    subject = f"{benchmark} in fresh boots of each commit's kernel on the machine {machine}"
    made = builder(tree, work / "source", work, given, progress)
    made.check()
    task = task_of(tree, history, f"{benchmark} {metric}", subject, given, made_by=made.identity())
    state = state_directory(work, task)
    with worktree(tree, made.source, history.good, made.built_commit(), progress=progress):
        boots = BootMeasurement(
            made, machine, benchmark, metric, state, cache=cache, progress=progress, most=task.settings.most
        )
        try:
            outcome = search(task, state, boots, progress)
        finally:
            boots.close()
    show(outcome, task, given)


def task_of(
    tree: Path, history: History, metric: str, subject: str, given: dict[str, Any], made_by: Sequence[str]
) -> SearchTask:
    """The search that the options request. `made_by` as in SearchTask."""
    from kduel.run.bisect.terms import SearchSettings
    from kduel.run.bisect.timed import SearchTask

    settings = SearchSettings(
        probability=given["probability"],
        most=given["measurements"],
        confirm=given["confirm"],
        negligible=given["negligible"],
        seed=given["seed"],
    )
    return SearchTask(
        tree=tree,
        history=history,
        metric=metric,
        subject=subject,
        settings=settings,
        made_by=tuple(made_by),
        restart=given["restart"],
    )


def show(outcome: SearchOutcome, task: SearchTask, given: dict[str, Any]) -> None:
    """Print the outcome, write the plot, and end with 1 where there is no set."""
    from kduel.core.errors import NOT_MEASURED
    from kduel.run.bisect.git import commit_subject
    from kduel.run.bisect.show import MeasurementNotes, as_svg, as_text
    from kduel.run.prepare import cpu_model, host_record

    host = host_record()
    named = {level.commit for level in outcome.levels} | set(outcome.set[:100])
    about = MeasurementNotes(
        subject=task.subject,
        host=f"{cpu_model() or 'an unknown CPU'}, {host.cpus} CPUs, Linux {host.kernel}",
        reproduce=shlex.join(["kduel", *sys.argv[1:]]),
        subjects={commit: commit_subject(task.tree, commit) for commit in named},
    )
    if given["form"] == "json":
        emit_json(outcome.document())
    else:
        emit(as_text(outcome, about))
    if given["plot"]:
        write_plot(given["plot"], as_svg(outcome))
    if not outcome.set:
        click.get_current_context().exit(NOT_MEASURED)
