"""`kduel history`: all runs of a machine over time."""

from __future__ import annotations

from pathlib import Path

import click

FORMATS = ("text", "markdown", "html", "json", "svg")


@click.command("history")
@click.argument("places", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR...")
@click.option("--metric", default="", metavar="PART", help="Only metrics whose benchmark/metric contains this.")
@click.option("--contender", default="", metavar="PART", help="Only contenders whose name contains this.")
@click.option("--format", "-f", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="A file; else standard output.")
@click.option(
    "--alpha",
    type=click.FloatRange(0.001, 0.2),
    default=0.01,
    show_default=True,
    help="The chance of calling a line changed that is not.",
)
def command(
    places: tuple[Path, ...], metric: str, contender: str, form: str, output: Path | None, alpha: float
) -> None:
    """Show every metric of all runs in or below DIR over time, and where its level changed.

    Runs of different machines, and of different parameters, never share a line.
    """
    import msgspec

    from kduel.analysis.campaigns import history
    from kduel.cli.diff import deliver
    from kduel.report.campaigns import page

    found = history.history(places, metric=metric, contender=contender, alpha=alpha)
    if form == "json":
        written = msgspec.json.format(msgspec.json.encode(found), indent=1).decode() + "\n"
    elif form in ("text", "markdown"):
        written = getattr(page, form)(history.page_of(found))
    else:
        from kduel.report.plots.effects import svg

        drawn = svg(history.picture(found)) if found.lines else ""
        written = drawn if form == "svg" else page.html(history.page_of(found), drawn)
    deliver(written, output)
