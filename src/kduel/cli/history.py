"""`kduel query --history`: all runs of a machine over time."""

from pathlib import Path

import click

from kduel.cli.options import NamedPath, Number, format_option, option, output_option, plot_option
from kduel.cli.output import emit, emit_json, write_plot
from kduel.core.errors import InputError

FORMATS = ("text", "markdown", "html", "json")


@click.command("history")
@click.argument("places", nargs=-1, required=True, type=NamedPath(), metavar="DIR...")
@option("--metric", "Only metrics whose name BENCHMARK/METRIC contains PART.", metavar="PART", default="")
@option("--contender", "Only contenders whose name contains PART.", metavar="PART", default="")
@format_option(*FORMATS)
@output_option
@plot_option("each metric over time")
@option("--alpha", "False-positive rate of change detection, for each series.", Number(0.001, 0.2), "P", default=0.01)
@option(
    "--index use_index",
    "Read the index of DIR, as `kduel query --update` last wrote it, instead of the runs.",
    is_flag=True,
)
def command(
    places: tuple[Path, ...],
    metric: str,
    contender: str,
    form: str,
    output: Path | None,
    plot: Path | None,
    alpha: float,
    use_index: bool,
) -> None:
    """Show every metric of all runs in or below DIR over time, and where its level changed.

    Runs on different machines, or with different parameters, are different series; so are exact counts by different
    versions of QEMU.
    """
    from kduel.analysis.campaigns.history import history
    from kduel.report.campaigns import page
    from kduel.report.campaigns.history import draw_picture, page_of

    if use_index:
        from kduel.analysis.index import index_path
        from kduel.analysis.indexed import indexed_history

        if len(places) > 1:
            raise InputError("--index reads one index", "Name one directory, or the index file.")
        found = indexed_history(index_path(places[0]), metric=metric, contender=contender, alpha=alpha)
    else:
        found = history(places, metric=metric, contender=contender, alpha=alpha)
    if not found.lines and (metric or contender):
        raise InputError(
            f"no metric of two runs or more is called {metric!r}{f' of {contender!r}' * bool(contender)}",
            "Leave out --metric and --contender to see all, or give a part of a name: --metric sysbench.",
        )
    if plot is not None:
        write_plot(plot, draw_picture(found))
    if form == "json":
        emit_json(found, output)
    elif form == "html":
        emit(page.html(page_of(found), draw_picture(found)), output)
    else:
        emit(page.FORMATS[form](page_of(found)), output)
