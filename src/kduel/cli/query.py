"""`kduel query`: questions to the index of many runs."""

import csv
import io
import math
from pathlib import Path

import click

from kduel.cli.options import (
    NamedPath,
    Number,
    Word,
    format_option,
    mode_option,
    option,
    output_option,
    output_path_option,
    plot_option,
    quiet_option,
)
from kduel.cli.output import emit, emit_json, is_on_terminal, write_plot
from kduel.cli.terminal import Terminal
from kduel.core.errors import InputError
from kduel.core.format import MISSING
from kduel.core.text import align_columns, plural, printable, visible

FORMATS = ("text", "markdown", "html", "json")

LONGEST_SHOWN = 60
"""Characters of a text in a table on a terminal; a file or a pipe has it whole."""


@click.command("query")
@click.argument("place", type=NamedPath(), metavar="DIR|INDEX")
@click.argument("question", required=False, type=Word())
@option("--series", "Export a metric over time as CSV for Apache Otava instead.", Word(), "BENCHMARK/METRIC")
@format_option("text", "json", "csv")
@output_option
@mode_option("--history", "Show every metric of all runs in DIR over time.")
@mode_option("--update", "Write the index of DIR, or update it.")
def command(place: Path, question: str | None, series: str | None, form: str, output: Path | None) -> None:
    """Query the index of DIR, which `kduel query --update DIR` writes.

    QUESTION is runs, verdicts, latest, worse (slower, or more of what is counted), better, slower, faster, more, fewer, undecided, void, unstable, pairs, kernels, machines or
    skipped, or SQL over the tables run, contender, verdict, value and point and the views headline and series (docs/many-runs.md). SQL can only read.

    \b
    kduel query kduel-runs worse
    kduel query kduel-runs "SELECT path, seed FROM run WHERE void > 2" -f json
    kduel query kduel-runs --series sysbench-cpu-1t/events-per-second -o s.csv
    """
    from kduel.analysis.campaigns.history import runs_in
    from kduel.analysis.index import index_path, run_query, tell_age
    from kduel.analysis.otava import otava

    path = index_path(place)
    if place.is_dir() and (age := tell_age(place, runs_in([place]))):
        Terminal().warn(age)
    if series is not None:
        if question is not None or form == "json":
            raise InputError("--series is a question of its own, answered as CSV", "Leave out QUESTION and --format.")
        benchmark, _, metric = series.rpartition("/")
        emit(as_csv(otava(path, benchmark, metric, Terminal())), output)
        return
    answer = run_query(path, "runs" if question is None else question)
    if form == "json":
        check_json(answer.columns, answer.rows)
        rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
        emit_json({"schema": 1, "rows": rows}, output)
    elif form == "csv":
        emit(as_csv([list(answer.columns), *answer.rows]), output)
    else:
        emit(as_table(answer.columns, answer.rows, LONGEST_SHOWN if is_on_terminal(output) else None), output)


def check_json(columns: list[str], rows: list[list[str | int | float | None]]) -> None:
    """Raises InputError for a number that JSON does not have."""
    for row in rows:
        for column, value in zip(columns, row, strict=True):
            if isinstance(value, float) and not math.isfinite(value):
                raise InputError(f"{column} is {value}, which JSON does not have", "Give --format csv or text.")


def as_csv(rows: list[list[str | int | float | None]]) -> str:
    """RFC 4180; a missing value is an empty field, nothing is hidden, and no field is read as a formula by a spreadsheet."""
    from kduel.report.csv import no_formula

    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(
        [[no_formula(printable(field)) if isinstance(field, str) else field for field in row] for row in rows]
    )
    return stream.getvalue()


def as_table(columns: list[str], rows: list[list[str | int | float | None]], longest: int | None) -> str:
    """Aligned columns under a header; numbers at the right. Texts are cut at `longest` characters, if it is given."""
    if not rows:
        return "No rows.\n"
    cells = [
        [
            MISSING if v is None else f"{v:.4g}" if isinstance(v, float) else visible(v, longest or len(str(v)))
            for v in row
        ]
        for row in rows
    ]
    words = [i for i in range(len(columns)) if not all(isinstance(row[i], int | float | None) for row in rows)]
    return "".join(f"{line}\n" for line in align_columns([columns, *cells], left=words))


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
def history(
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


@click.command("index")
@click.argument("place", type=NamedPath(), metavar="DIR")
@output_path_option("--output -o", "The index file.  [default: DIR/kduel-index.sqlite]", NamedPath(dir_okay=False))
@option("--rebuild", "Discard the existing index first.", is_flag=True)
@format_option("text", "json")
@quiet_option
def index(place: Path, output: Path | None, rebuild: bool, form: str, quiet: bool) -> None:
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
