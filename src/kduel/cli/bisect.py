"""`kduel bisect`: the commit that changed a cost, exact or measured with noise."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from kduel.cli.bisect_options import BOOTS, COMMAND, BisectOptions, check_options, choose_method
from kduel.cli.interrupt import ReportedInterrupt, is_interruption
from kduel.cli.options import (
    NamedPath,
    Number,
    Percent,
    Word,
    limit_option,
    option,
    plot_option,
    plugin_option,
    quiet_option,
)
from kduel.cli.terminal import Terminal
from kduel.cli.trouble import as_user_error
from kduel.core.cache import Cache
from kduel.core.errors import InputError, KduelError
from kduel.run.bisect.git import git, is_tracked
from kduel.run.bisect.journal import hold_directory

STEP = "--step"
ABORT = 255
"""Ends `git bisect run`: nothing is known of the commit, nor will be of the next one. All that ends commands otherwise (1, 2
and 3) would mean to git that the commit is bad, and it would name a wrong one."""


class VerdictByStatus(click.Command):
    """A command for `git bisect run`, to which 1 to 127 is a verdict: every error with --step ends with ABORT."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the command line. Raises what click raises."""
        with abort_on_error(args):
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Carry it out. Raises what the command raises."""
        with abort_on_error([STEP] if ctx.params.get("step") is not None else []):
            return super().invoke(ctx)


@contextmanager
def abort_on_error(words: Sequence[str]) -> Iterator[None]:
    """Give every error the exit status ABORT, if --step is among the words of the command line."""
    words = list(words)  # Parsing takes them away.
    try:
        yield
    except (click.exceptions.Exit, click.exceptions.Abort):
        raise
    except Exception as error:
        if is_interruption(error) or not any(word.partition("=")[0] == STEP for word in words):
            raise
        told = error if isinstance(error, click.ClickException | KduelError) else as_user_error(error)
        if isinstance(told, KduelError):
            told.exit_status = ABORT
            raise told from error.__cause__
        if isinstance(told, click.ClickException):
            told.show()
        else:
            traceback.print_exception(error)
        raise click.exceptions.Exit(ABORT) from error


@click.command("bisect", cls=VerdictByStatus, short_help="Find the commit that changed a cost.")
@click.argument("ends", metavar="[GOOD BAD [-- PATH...]]", nargs=-1, type=Word())
@option("--tree", "The git repository.", NamedPath(file_okay=False, exists=True), default=".", show_default=False)
@option(
    "--benchmark -b", "An operation of kbench, or boot; with --machine, any benchmark.", metavar="NAME", default=""
)
@plugin_option(
    "--machine", "machines",
    "icount counts instructions; on any other machine, such as qemu, the benchmark is timed, in fresh boots.",
    metavar="KIND[:key=value,...]", default="icount",
)  # fmt: skip
@option(
    "--metric", "With icount: instructions (median) or instructions-mean; else a metric of the benchmark.", Word(),
    "NAME", default="",
)  # fmt: skip
@option(
    "--measure", "Instead of a benchmark: a command that runs in a checkout of a commit and prints one number.",
    Word(), "COMMAND", default="",
)  # fmt: skip
@option("--timeout", "Maximum time of COMMAND, in seconds.", Number(0, min_open=True), default=3600.0)
@option(
    "--sharing",
    "With icount: count the cache lines that two CPUs share in the operation (OPERATION/threads/common).",
    is_flag=True,
)
@option("--first-parent", "Follow only the first parent of merges.", is_flag=True)
@option(
    "--config",
    "The kernel configuration: a file, or a recipe such as tinyconfig+guest or FILE+guest.  [default: .config of the "
    "tree; with --step: none]", metavar="FILE|RECIPE", default="",
)  # fmt: skip
@option("--build-dir", "Directory for objects and the state of the search; it is kept.", NamedPath(file_okay=False))
@option(
    "--build-command", "Build with this command instead of make; it must put its objects into $KDUEL_BUILD.",
    metavar="COMMAND", default="",
)  # fmt: skip
@option(
    "--image", "With --build-command: path of the kernel image, relative to $KDUEL_BUILD.", metavar="PATH", default=""
)
@option("--jobs -j", "Parallel jobs of make.  [default: the number of CPUs]", click.IntRange(0), default=0)
@option("--probability", "Required probability that the set contains the commit.", Number(0.5, 0.999), default=0.95)
@option("--measurements", "Maximum number of measurements before the confirmation.", click.IntRange(6), default=400)
@option(
    "--confirm", "Maximum number of blocks of the confirmation; 0: no confirmation.", click.IntRange(0), default=12
)
@option("--negligible", "Treat the ends as equal if they differ by less.", Percent(), "PERCENT", default=1.0)
@option("--seed", "Seed of the order of measurements.", int, default=1)
@option("--restart", "Measure everything again instead of resuming.", is_flag=True)
@option("--format -f form", "Output format.", ["text", "html", "json"], default="text")
@limit_option(25)
@plot_option("the levels and the posterior; for exact counts the differential flame graph")
@option("--step", "For `git bisect run`: the costs at both ends.", Number(0, min_open=True), "GOOD BAD", nargs=2)
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
    from kduel.cli import bisect_exact
    from kduel.cli.output_check import is_own_run
    from kduel.run.bisect.history import changed_files, read_history

    options = BisectOptions(**given)
    if bool(options.build_command) != bool(options.image):
        raise InputError(
            "--build-command and --image go together", "Give the file that the command makes with --image."
        )
    if (step is None) == (len(ends) < 2):
        raise InputError(
            "bisect takes two commits, or --step with two costs",
            "For example: kduel bisect v6.1 v6.2 --tree linux --benchmark pipe.",
        )
    if bool(options.measure.strip()) == bool(options.benchmark):
        raise InputError(
            "--benchmark and --measure exclude each other"
            if options.benchmark
            else "bisect takes --benchmark or --measure",
            "Name what is measured: --benchmark pipe, or --measure 'COMMAND' that prints one number.",
        )
    way = choose_method(measure=options.measure.strip(), machine=options.machine, step=step is not None)
    check_options(way)
    progress = Terminal(options.quiet)
    tree = options.tree.resolve()
    if step is None:
        git(tree, "rev-parse", "--git-dir")
        if options.plot and is_tracked(tree, options.plot.resolve()):
            raise InputError(f"{options.plot} is a file of {tree}, and would be replaced", "Give another --plot.")
    cache = Cache(progress=progress)
    kept = cache.root / "bisect" / tree.as_posix().strip("/").replace("/", "-")
    work = options.build_dir.resolve() if options.build_dir else kept
    if run := next((one for one in (work, *work.parents) if is_own_run(one)), None):
        raise InputError(
            f"{options.build_dir} would change the run {run}", "Give another --build-dir, outside of runs."
        )
    if step is not None:
        with hold_directory(work):
            bisect_exact.check_step(tree, work, step, options, cache, progress)
        return
    history = read_history(tree, ends[0], ends[1], first_parent=options.first_parent, paths=ends[2:])
    if count := changed_files(tree):
        progress.warn(f"{tree} has {count} changed files that are not committed: they are not measured.")
    from kduel.cli import bisect_noisy

    with hold_directory(work), explain_resuming():
        if way == COMMAND:
            bisect_noisy.search_by_command(tree, work, history, options, progress)
        elif way == BOOTS:
            bisect_noisy.search_by_boots(tree, work, history, options, cache, progress)
        else:
            bisect_exact.search_by_counts(tree, work, ends, options, cache, progress)


@contextmanager
def explain_resuming() -> Iterator[None]:
    """Say after an interruption that nothing is lost, and how to go on."""
    try:
        yield
    except KeyboardInterrupt as error:
        from kduel.cli.terminal import say

        say("kduel: what is built and measured is kept. Go on with the same command.")
        raise ReportedInterrupt from error
