"""`kduel site`: static pages about many runs."""

from pathlib import Path

import click

from kduel.cli.options import NamedPath, output_path_option, quiet_option
from kduel.cli.terminal import Terminal
from kduel.core.text import plural


@click.command("site")
@click.argument("place", type=NamedPath(), metavar="DIR")
@output_path_option(
    "--output -o",
    "Directory of the pages: new, empty, or an earlier site, whose pages are replaced; other files are kept.  [default: kduel-site]",
    NamedPath(file_okay=False),
)
@quiet_option
def command(place: Path, output: Path | None, quiet: bool) -> None:
    """Write static pages about all runs in or below DIR: they open offline, need no server and have no script.

    There is a page with all runs, one for each pair of contenders, one for each benchmark over time with its change
    points, a matrix of contenders by metrics, and the machines. The index of DIR is brought up to date first.

    \b
    kduel site kduel-runs
    """
    from kduel.analysis.campaigns.history import runs_below
    from kduel.analysis.index import update
    from kduel.report.site.write import pages_of, write_site
    from kduel.store.rundir import INDEX

    output = output or Path("kduel-site")
    pages_of(output)
    index = place / INDEX
    found = update(place, runs_below([place]), index, Terminal(quiet))
    written = write_site(place, index, output)
    left = f", {len(found.skipped)} not readable" if found.skipped else ""
    click.echo(f"{output / 'index.html'}: {plural(found.runs, 'run')} on {plural(len(written), 'page')}{left}")
