"""`kduel schedulers`: what there is, and building it."""

import os

import click

from kduel.cli.completions import scheduler_names
from kduel.cli.options import Word, option
from kduel.cli.terminal import Terminal
from kduel.core.cache import Cache


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.pass_context
def command(ctx: click.Context) -> None:
    """List and build sched_ext schedulers, for contenders such as scheduler = "scx_bpfland".

    scx_plain is part of KDuel and needs no building. Any other scheduler found in PATH is used as it is.

    Without a command, the same as `list`.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@command.command("list")
def list_() -> None:
    """List the schedulers that KDuel can build, and whether each is built or in PATH."""
    import shutil

    from rich.console import Console
    from rich.table import Table

    from kduel.schedulers.build import KIND, key_of
    from kduel.schedulers.catalogue import KNOWN, PLAIN, PLAIN_ABOUT

    cache = Cache()
    table = Table(box=None, pad_edge=False)
    for heading in ("name", "version", "", "about"):
        table.add_column(heading)
    for known in KNOWN.values():
        state = "built" if cache.has(KIND, key_of(known)) else "in PATH" if shutil.which(known.name) else "not built"
        table.add_row(known.name, known.version, state, known.about)
    table.add_row(PLAIN, "", "built in", PLAIN_ABOUT)
    Console().print(table)


@command.command()
@click.argument("names", nargs=-1, required=True, type=Word(), metavar="NAME...", shell_complete=scheduler_names)
@option("--jobs", "Parallel compilers.  [default: the number of CPUs]", click.IntRange(1, 256), default=None)
def build(names: tuple[str, ...], jobs: int | None) -> None:
    """Build schedulers from their crates, once; later runs take them from the cache.

    Needs cargo and a clang for BPF; anything missing is listed before the build starts. On two CPUs the first scheduler
    takes about 6 minutes, each further one in the same command about 1.
    """
    from kduel.schedulers.build import build_schedulers as build_all

    progress = Terminal()
    for bundle, directory in build_all(
        list(dict.fromkeys(names)),
        cache=Cache(progress=progress),
        progress=progress,
        jobs=jobs or os.cpu_count() or 1,
    ):
        click.echo(f"{bundle.name} {bundle.version}  {directory}")
