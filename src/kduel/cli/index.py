"""`kduel query --update`: an SQLite index of many runs."""

from pathlib import Path

import click

from kduel.cli.options import NamedPath, format_option, option, output_path_option, quiet_option
from kduel.cli.output import emit_json
from kduel.cli.terminal import Terminal
from kduel.core.text import plural, visible


@click.command("index")
@click.argument("place", type=NamedPath(), metavar="DIR")
@output_path_option("--output -o", "The index file.  [default: DIR/kduel-index.sqlite]", NamedPath(dir_okay=False))
@option("--rebuild", "Discard the existing index first.", is_flag=True)
@format_option("text", "json")
@quiet_option
def command(place: Path, output: Path | None, rebuild: bool, form: str, quiet: bool) -> None:
    """Write an index of all runs in or below DIR, or update it; `kduel query` reads it.

    The index is derived from the runs: it can be deleted and written again at any time. Only runs that changed are
    judged again.

    \b
    kduel query --update kduel-runs
    kduel query kduel-runs slower
    """
    from kduel.analysis.campaigns.history import runs_below
    from kduel.analysis.index import update
    from kduel.store.rundir import INDEX

    runs = runs_below([place])
    path = output or place / INDEX
    found = update(place, runs, path, Terminal(quiet), rebuild=rebuild)
    if form == "json":
        emit_json({"schema": 1, "index": str(found.path), "runs": found.runs, "judged": found.added,
                   "removed": found.removed, "skipped": found.skipped})  # fmt: skip
        return
    click.echo(f"{found.path}: {plural(found.runs, 'run')}; {found.added} judged now, {found.removed} removed")
    for name, reason in found.skipped.items():
        click.echo(f"Skipped {visible(name)}: {visible(reason)}", err=True)
