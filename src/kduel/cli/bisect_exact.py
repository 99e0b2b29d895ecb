"""Search of `kduel bisect` by exact counts: of instructions, or of the lines that two CPUs share."""

from collections.abc import Callable
from pathlib import Path

import click

from kduel.cli.bisect_options import BisectOptions
from kduel.cli.output import emit, emit_json, output_width, write_plot
from kduel.core.cache import Cache
from kduel.core.errors import InputError, unknown_name
from kduel.core.progress import Progress, UniqueMessages
from kduel.core.text import printable
from kduel.explain import flame
from kduel.explain.sharing import show as sharing_show
from kduel.explain.sharing.compare import SharingExplanation
from kduel.run.bisect.build import Builder, read_config_option
from kduel.run.bisect.exact import CommitCounter, bisect, judge_checkout
from kduel.run.bisect.exact_text import as_text
from kduel.run.bisect.git import commit_of, worktree
from kduel.run.bisect.kernels import CommitKernels
from kduel.run.bisect.sharing import METRICS, SharedLineCounter
from kduel.run.exact.subject import BOOT, check_operation

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
