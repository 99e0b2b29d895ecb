"""`kduel bisect`: the commit that changed an exact cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kduel.cli.options import benchmark_option, limit_option, plot_option, quiet_option
from kduel.cli.output import write_plot
from kduel.core.text import printable

ABORT = 255
"""Tells `git bisect run` to stop: nothing is known of the commit, nor will be of the next one."""


@click.command("bisect", short_help="Find the commit that made an exact cost change.")
@click.argument("ends", metavar="[GOOD BAD]", nargs=-1)
@click.option(
    "--tree",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=".",
    help="The kernel's git tree.",
)
@benchmark_option
@click.option(
    "--metric",
    type=click.Choice(["instructions", "instructions-mean"]),
    default="instructions",
    show_default=True,
    help="The usual call, or the mean of all.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The .config [default: the tree's, but not with --step].",
)
@click.option("--build-dir", type=click.Path(path_type=Path, file_okay=False), help="Where objects go, and stay.")
@click.option("--build-command", default="", metavar="COMMAND", help="Instead of make; objects go to $KDUEL_BUILD.")
@click.option("--image", default="", metavar="PATH", help="With --build-command: the kernel below $KDUEL_BUILD.")
@click.option("--jobs", "-j", type=click.IntRange(0), default=0, help="Of make [default: the number of CPUs].")
@limit_option(25)
@plot_option("the differential flame graph of the commit")
@click.option("--step", nargs=2, type=float, metavar="GOOD BAD", help="For `git bisect run`: the costs at both ends.")
@quiet_option
def command(
    ends: tuple[str, ...],
    tree: Path,
    benchmark: str,
    metric: str,
    config: Path | None,
    build_dir: Path | None,
    build_command: str,
    image: str,
    jobs: int,
    limit: int,
    plot: Path | None,
    step: tuple[float, float] | None,
    quiet: bool,
) -> None:
    """Find the first commit after GOOD, up to BAD, from which on an operation costs what it costs in BAD.

    Each commit is built, booted on the exact machine and counted once; what does not build or boot is skipped. The
    work is done in a worktree of its own. In the end there are the commit, its cost per operation, and the functions
    that the cost is in. BAD may also be the cheaper one.

    As a command for `git bisect run`, --step takes the costs at both ends, as `kduel run A B --suite exact` or
    `kduel explain` told them, and ends with 0, 1 or 125 as git asks.

    \b
    kduel bisect v6.1 v6.2 --tree linux --config my.config --benchmark pipe
    git bisect run kduel bisect --benchmark pipe --step 12580 12790
    """
    from kduel.cli.terminal import Terminal
    from kduel.core.cache import Cache
    from kduel.core.errors import InputError, KduelError
    from kduel.run.bisect.build import Builder
    from kduel.run.bisect.search import commit_of, worktree
    from kduel.run.bisect.verdict import Trier, bisect, one_step
    from kduel.run.exact.subject import check_operation

    if bool(build_command) != bool(image):
        raise InputError("--build-command and --image go together", "Say with --image what the command makes.")
    if (step is None) == (len(ends) != 2):
        raise InputError(
            "bisect takes two commits, or --step with two costs",
            "For example: kduel bisect v6.1 v6.2 --tree linux --benchmark pipe.",
        )
    check_operation(benchmark)
    progress = Terminal(quiet)
    cache = Cache(progress=progress)
    tree = tree.resolve()
    work = build_dir.resolve() if build_dir else cache.root / "bisect" / tree.as_posix().strip("/").replace("/", "-")
    work.mkdir(parents=True, exist_ok=True)

    def builder(source: Path) -> Builder:
        given = config.resolve() if config else (tree / ".config" if (tree / ".config").is_file() else None)
        return Builder(
            source=source,
            build=work / "build",
            config=given,
            command=build_command,
            image=image,
            jobs=jobs,
            log=work / "build.log",
        )

    if step is not None:
        try:
            trier = Trier(builder(tree), benchmark, metric, cache=cache, progress=progress)
            status, said = one_step(trier, tree, *step)
        except KduelError as error:
            status, said = ABORT, str(error)
        click.echo(printable(said))
        click.get_current_context().exit(status)
    old, new = (commit_of(tree, end) for end in ends)
    with worktree(tree, work / "source", old) as place:
        trier = Trier(builder(place), benchmark, metric, cache=cache, progress=progress)
        result = bisect(place, old, new, trier, progress=progress)
        tell(place, result, benchmark, limit, plot)


def tell(place: Path, result: Any, benchmark: str, limit: int, plot: Path | None) -> None:
    """What was found, in words."""
    from kduel.explain.flame import as_svg
    from kduel.explain.show import as_text
    from kduel.run.bisect.search import git

    skipped = sum(step.judgement == "skip" for step in result.found.steps)
    tried = len(result.found.steps)
    click.echo(f"{tried} commits tried between the ends, {skipped} of them skipped.")
    if len(result.found.commits) != 1:
        click.echo("Skipped commits hide which one it is. It is one of these:")
        for commit in result.found.commits:
            click.echo(printable(f"  {git(place, 'show', '--no-patch', '--format=%h %s', commit)}"))
        return
    commit = result.found.commits[0]
    click.echo("The first commit with the new cost:\n")
    shown = git(place, "show", "--no-patch", "--format=commit %H%nAuthor: %an%nDate:   %ad%n%n    %s", commit)
    click.echo(printable(shown))
    if result.before is not None and result.after is not None:
        change = result.after - result.before
        click.echo(
            f"\n{benchmark}: {result.before:,.10g} instructions before it, {result.after:,.10g} with it "
            f"({change:+,.10g} per operation)."
        )
    if result.explanation is not None:
        click.echo("\n" + printable(as_text(result.explanation, limit)), nl=False)
        if plot is not None:
            write_plot(plot, as_svg(result.explanation))
