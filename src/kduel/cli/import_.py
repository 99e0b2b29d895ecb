"""`kduel import`: results measured elsewhere become a run that every report works on."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kduel.cli.options import NamedPath, Percent, Word, command_listing, option, output_path_option, plugin_option
from kduel.core.text import plural, printable

if TYPE_CHECKING:
    from kduel.store.imported import Source


@click.command("import", cls=command_listing("imported", "Formats"))
@click.argument("files", nargs=-1, required=True, type=Word(), metavar="FILE|NAME=FILE...")
@output_path_option("--out", "Directory of the new run; must not exist.", NamedPath(), "DIR", required=True)
@plugin_option(
    "--format -f format_name", "imported",
    "Format of the files, one of those below.  [default: recognised by content]", metavar="NAME",
)  # fmt: skip
@option("--conditions", "TOML file with the known environment of each contender.", NamedPath(), "FILE")
@option("--baseline", "Baseline contender.  [default: the first]", metavar="NAME")
@option(
    "--primary", "Primary metric; may be repeated.  [default: by the column role, else every metric]",
    metavar="METRIC|BENCHMARK[/METRIC]", multiple=True,
)  # fmt: skip
@option("--delta", "Smallest effect of interest, in %.", Percent(), "PCT", default=1.0)
def command(
    files: tuple[str, ...],
    out: Path,
    format_name: str | None,
    conditions: Path | None,
    baseline: str | None,
    primary: tuple[str, ...],
    delta: float,
) -> None:
    """Import results measured elsewhere as a run.

    Give one file with all contenders, where its format has such files, or one named file for each contender: old=a.json
    new=b.json. The formats are listed below. The result store of Arm's Fastpath is not read: its columns are not documented.

    A wide table (CSV, with comma, semicolon, tab or bar) has a column for each contender (trial,old,new; optional columns
    benchmark, metric, unit and better), or one for each metric, whose heading gives unit and better side:
    contender,trial,latency [ms: lower],rate [1/s: higher].

    The CSV has the columns contender,trial,benchmark,metric,unit,better,value: one value a line; better is higher,
    lower or none. The first contender is the baseline. All values of one trial have its number, and a contender that lacks
    a number where another contender or metric has it lacks a value: contenders with different numbers of trials by intention
    take numbers of their own, 1 to 20 and 101 to 113. Other columns are optional. kind (time, rate, count, size, exact,
    scheduled, other): counts and sizes are exact, so that one value of each contender decides; of the kind exact, counted on a
    deterministic machine, repetitions may differ, and condition names which of several conditions a value was counted
    under; of the kind scheduled, counted on exact CPUs, conditions are a sample, and resolution_ns is what these resolve. aspect: what the metric measures, such as throughput, wakeup-latency, power or boot-time, for trade-offs and
    advice; without it, known names are recognised. role: primary or exploratory. `kduel report -f csv` writes all of these.
    """
    from kduel.store.imported import bring_in

    record = bring_in(
        [read_source(text) for text in files], out, format_name=format_name, conditions=conditions, baseline=baseline,
        primary=primary, delta=delta,
    )  # fmt: skip
    formats = ", ".join(sorted({stored.format for stored in record.files}))
    click.echo(
        f"{plural(record.values, 'value')} of {plural(len(record.metrics), 'metric')}, "
        f"{' against '.join(record.contenders)} ({formats}), are in {out}"
    )
    for reason in record.skipped:
        click.echo(printable(f"Left out: {reason}"), err=True)
    click.echo("Not interleaved, not randomised, environment unknown: the report repeats this with every verdict.")
    click.echo(f"Go on with: kduel report {shlex.quote(str(out))}")


def read_source(text: str) -> Source:
    """FILE or NAME=FILE; a file that is really called so wins."""
    from kduel.store.imported import Source

    name, separator, path = text.partition("=")
    if not separator or Path(text).exists():
        return Source(Path(text))
    if not name.strip() or not path:
        raise click.UsageError(f"{text!r} is neither a file nor NAME=FILE.")
    return Source(Path(path), name.strip())
