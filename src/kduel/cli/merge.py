"""`kduel merge`: runs of one experiment as one, with one verdict."""

import shlex
from pathlib import Path

import click

from kduel.cli.completions import complete_runs
from kduel.cli.options import NamedPath, format_option, option, output_path_option
from kduel.cli.output import emit_json
from kduel.core.errors import InputError
from kduel.core.text import plural, visible


@click.command("merge")
@click.argument(
    "paths", nargs=-1, required=True, type=NamedPath(), metavar="RUN RUN...", shell_complete=complete_runs
)
@output_path_option("--out", "Directory of the merged run.", NamedPath(file_okay=False), required=True)
@option(
    "--machines",
    "The machine of each run, in order; equal names are one machine. By default machines are distinguished by "
    "place, host, settings and hardware. For a fleet's run, the name stands before those of its machines.",
    metavar="NAME,NAME,...",
    default="",
)
@format_option("text", "json")
def command(paths: tuple[Path, ...], out: Path, machines: str, form: str) -> None:
    """Merge runs of one experiment into one run with one verdict; the runs themselves stay as they are.

    Contenders, kernels, benchmarks and protocol must agree; otherwise the message names what differs. Seeds, numbers of
    blocks and machines may differ. Every run is copied whole below DIR/runs, with its raw files and manifests, so that
    `kduel report` and `kduel verify` work on the merged run and on each part.

    Blocks of one machine are judged as one longer run. Several machines are strata: each may have an effect of its own,
    and the verdict is about these machines, or about their class where the study says machines = "class".

    Decide before the first run how many runs to merge. Merging one more run each time that the result is undecided is
    peeking: false positives grow from 5 % to 6.5, 7.9 and 8.8 % with one, two and three further runs.

    \b
    kduel merge kduel-runs/monday kduel-runs/tuesday --out kduel-runs/both
    kduel merge rack1-run rack2-run --out rack --machines rack1,rack2
    """
    from kduel.store.merged import merge, parts

    names = [name.strip() for name in machines.split(",")] if machines.strip() else []
    if not all(names):
        raise InputError("--machines has an empty name", "Separate names by single commas.")
    record = merge(paths, out, names)
    if form == "json":
        emit_json(record)
        return
    places = {one.part.name: one.machines for one in parts(out)}
    count = len({machine for machines_of in places.values() for machine in machines_of})
    click.echo(f"{out}: {plural(len(record.parts), 'run')} of {plural(count, 'machine')}")
    for part in record.parts:
        click.echo(f"  {part.name} on {visible(', '.join(places[part.name]))}")
    click.echo(f"Report: kduel report {shlex.quote(str(out))}")
