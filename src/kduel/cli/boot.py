"""`kduel boot`: where the time of a run's boots went."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("boot")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--limit", type=click.IntRange(0), default=15, show_default=True, help="Initcalls shown; 0 for all.")
def command(run: Path, limit: int) -> None:
    """Show the stages of a run's boots, contender by contender, and which initcalls they spent their time in.

    Every trial keeps its console with the host's time of each line, so this works for any run on machines that have
    one (qemu, board), whatever it measured. Times that are to be judged come from the benchmark boot-timeline; this
    is the look behind them.

    \b
    kduel boot kduel-runs/RUN
    kduel boot kduel-runs/RUN --limit 0         every initcall

    Initcalls are told by kernels that were booted with initcall_debug:

    \b
    kduel run ... --machine 'board:arm64-virt,cmdline=initcall_debug log_buf_len=4M'
    """
    from kduel.analysis.boot import as_text, read_boots
    from kduel.cli import printable

    click.echo(printable(as_text(read_boots(run), limit)), nl=False)
