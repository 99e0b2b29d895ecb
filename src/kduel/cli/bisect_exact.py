"""Search of `kduel bisect` by exact counts: of instructions, or of the lines that two CPUs share."""

from collections.abc import Callable
from pathlib import Path
from textwrap import wrap

import click

from kduel.cli.bisect_options import BisectOptions
from kduel.cli.output import emit, emit_json, output_width, write_plot
from kduel.core.cache import Cache
from kduel.core.errors import InputError, unknown_name
from kduel.core.format import with_sign
from kduel.core.progress import Progress, UniqueMessages
from kduel.core.text import plural, printable
from kduel.explain import flame
from kduel.explain.sharing import show as sharing_show
from kduel.explain.sharing.compare import SharingExplanation
from kduel.explain.show import as_text as explained
from kduel.run.bisect.build import Builder, read_config_option
from kduel.run.bisect.exact import CommitCounter, ExactSearch, bisect, judge_checkout
from kduel.run.bisect.git import commit_of, commit_subject, git, worktree
from kduel.run.bisect.kernels import CommitKernels
from kduel.run.bisect.path import SHORT, order_commits, path_lines
from kduel.run.bisect.sharing import METRICS, SharedLineCounter
from kduel.run.exact.subject import BOOT, check_operation

AMONG = 50
"""Commits that are listed where skipped ones hide which it is."""


EXACT_METRICS = ("instructions", "instructions-mean")


def make_builder(tree: Path, source: Path, work: Path, options: BisectOptions, progress: Progress) -> Builder:
    """The builder of kernels from what is checked out in `source`. Raises InputError."""
    own, recipe = tree / ".config", ""
    config = own if own.is_file() else None
    if options.config:
        config, recipe = read_config_option(options.config)
    return Builder(
        source=source, build=work / "build", config=config, recipe=recipe, warn=UniqueMessages(progress).warn,
        command=options.build_command, image=options.image, jobs=options.jobs, log=work / "build.log",
    )  # fmt: skip


def make_counter(
    build: Callable[[str], str], options: BisectOptions, cache: Cache, progress: Progress
) -> CommitCounter:
    """Counts the commits that `build` builds. Raises InputError for an operation or metric that is not counted."""
    if options.sharing:
        return make_line_counter(build, options, cache, progress)
    check_operation(options.benchmark)
    metric = options.metric or EXACT_METRICS[0]
    if metric not in EXACT_METRICS:
        raise unknown_name(f"there is no exact metric {metric!r}", metric, EXACT_METRICS)
    if options.benchmark == BOOT and options.metric == EXACT_METRICS[1]:
        raise InputError(f"the boot is counted once, and has no {metric}", "Leave out --metric.")
    return CommitCounter(build, options.benchmark, metric, machine=options.machine, cache=cache, progress=progress)


def make_line_counter(
    build: Callable[[str], str], options: BisectOptions, cache: Cache, progress: Progress
) -> SharedLineCounter:
    """Counts the lines that commits share. Raises InputError for an operation or metric that is not counted."""
    metric = options.metric or next(iter(METRICS))
    if metric not in METRICS:
        raise unknown_name(f"there is no metric {metric!r} of shared lines", metric, METRICS)
    if ":" in options.machine:
        raise InputError("--sharing has a machine of its own", f"Leave out --machine {options.machine}.")
    trier = SharedLineCounter(build, options.benchmark, metric, cache=cache, progress=progress)
    trier.study("debian:6.1")  # refuses what is no operation before anything is built
    return trier


def check_step(
    tree: Path, work: Path, step: tuple[float, float], options: BisectOptions, cache: Cache, progress: Progress
) -> None:
    """One step of `git bisect run`."""
    if step[0] == step[1]:
        raise InputError(
            f"both ends have the same cost, {step[0]:,.10g}: there is nothing to find",
            "Give the costs of GOOD and of BAD, as `kduel explain` shows them.",
        )
    made = make_builder(tree, tree, work, options, progress)

    def build(commit: str) -> str:
        # What lies in the tree may be more than the commit: nothing is taken from the cache.
        with progress.task(f"building {commit[:12]}"):
            return str(made.make())

    trier = make_counter(build, options, cache, progress)
    made.check()
    status, said = judge_checkout(trier, tree, *step)
    click.echo(printable(said))
    click.get_current_context().exit(status)


def search_by_counts(
    tree: Path, work: Path, ends: tuple[str, ...], options: BisectOptions, cache: Cache, progress: Progress
) -> None:
    """Search by exact counts."""
    if options.form == "html":
        raise InputError(
            "there is no page of a search by exact counts", "Leave out --format, and draw it with --plot FILE."
        )
    old, new = (commit_of(tree, end) for end in ends[:2])
    made = make_builder(tree, work / "source", work, options, progress)
    kernels = CommitKernels(made, cache=cache, progress=progress)
    trier = make_counter(lambda commit: str(kernels(commit)), options, cache, progress)
    made.check()
    with worktree(tree, made.source, old, made.built_commit(), progress=progress) as place:
        result = bisect(place, old, new, trier, progress=progress, first_parent=options.first_parent, paths=ends[2:])
        if options.form == "json":
            metric = f"{options.benchmark} {trier.metric}"
            emit_json(result.outcome(old, new, metric).document())
        else:
            emit(as_text(place, result, options.benchmark, options.limit, output_width()))
        if isinstance(trier, SharedLineCounter):
            show_lines(trier.explain_difference(result), options)
        elif options.plot and result.explanation is not None:
            write_plot(options.plot, flame.as_svg(result.explanation))
        elif options.plot:
            progress.warn(f"{options.plot} is not written: it takes one commit whose parent was counted, too.")


def show_lines(found: SharingExplanation | None, options: BisectOptions) -> None:
    """Print and draw the lines that a commit changed, where they are known."""
    if found is None:
        return
    if options.form == "text":
        emit(printable(sharing_show.as_text(found, options.limit, output_width())))
    if options.plot:
        write_plot(options.plot, sharing_show.as_svg(found))


def as_text(tree: Path, result: ExactSearch, benchmark: str, limit: int, width: int) -> str:
    """The commit, or a set of them, the cost along the history, and functions: `limit` rows (0: all)."""
    skipped = sum(step.judgement == "skip" for step in result.found.steps)
    lines = [f"{plural(len(result.found.steps), 'commit')} tried between the ends, {skipped} of them skipped."]
    if len(result.found.commits) != 1:
        lines.append("Skipped commits hide which one it is. It is one of these:")
        among = result.found.commits
        lines += [f"  {git(tree, 'show', '--no-patch', '--format=%h %s', commit)}" for commit in among[:AMONG]]
        lines += [f"  and {len(among) - AMONG:,} more, up to {among[-1][:SHORT]}"] if len(among) > AMONG else []
    else:
        form = "--format=commit %H%nAuthor: %an%nDate:   %ad%n%n    %s"
        header = git(tree, "show", "--no-patch", form, result.found.commits[0])
        lines += [f"The first commit {describe_cost(result)}:", "", header]
    if result.before is not None and result.after is not None:
        each = "" if benchmark == BOOT else " per operation"
        them = "it" if len(result.found.commits) == 1 else "them"
        lines += [
            "",
            f"{benchmark}: {result.before:,.10g} {result.unit} before {them}, {result.after:,.10g} with {them} "
            f"({with_sign(result.after - result.before, ',.10g')}{each}).",
        ]
    tried = {*(step.commit for step in result.path), *(step.commit for step in result.found.steps)}
    subjects = {commit: commit_subject(tree, commit) for commit in tried}
    order = order_commits(tree, result.path[0].commit, result.path[-1].commit, tried)
    lines += ["", *path_lines(result.path, result.found.commits, subjects, order)]
    if reasons := [
        line
        for step in result.found.steps
        if step.judgement == "skip"
        for line in wrap(
            f"{step.commit[:SHORT]} {step.why.splitlines()[0]}", width, initial_indent="  ", subsequent_indent="    "
        )
    ]:
        lines += ["", "What was skipped:", *reasons]
    text = "\n".join([*lines, ""])
    if result.explanation is not None:
        text += "\n" + explained(result.explanation, limit, width)
    return printable(text)


def describe_cost(result: ExactSearch) -> str:
    """Words on the cost of the commit that was found. A later change may have taken part of its own back."""
    if result.after in (None, result.new_value):
        return "with the new cost"
    return f"that costs more like BAD ({result.new_value:,.10g}) than like GOOD ({result.old_value:,.10g})"
