"""`kduel report --boot`: where the time of a run's boots went."""

from pathlib import Path

import click

from kduel.cli.options import limit_option, run_argument
from kduel.core.text import printable


@click.command("boot")
@run_argument
@limit_option(15, "Initcalls to show")
def command(run: Path, limit: int) -> None:
    """Show the boot stages of each contender of a run, and the initcalls that took longest: medians of its boots, and in
    parentheses their ranges.

    Every trial stores its console with the host's time of each line, so this works for any run on a machine that has a
    console (qemu, board). For a verdict on boot times use the benchmark boot-timeline; this command shows the details.

    \b
    kduel report --boot kduel-runs/RUN
    kduel report --boot kduel-runs/RUN --limit 0         every initcall

    Initcalls are shown for kernels booted with initcall_debug:

    \b
    kduel run ... \\
        --machine 'board:arm64-virt,cmdline=initcall_debug log_buf_len=4M'
    """
    from kduel.analysis.boot import as_text, clock_warning, read_boots

    boots = as_text(read_boots(run), limit)
    warning = clock_warning(run)
    click.echo(printable(f"{warning}\n\n{boots}" if warning else boots), nl=False)
