"""`kduel query`: questions to the index of many runs."""

import csv
import io
import math
from pathlib import Path

import click

from kduel.cli.options import NamedPath, Word, format_option, mode_option, option, output_option
from kduel.cli.output import emit, emit_json, is_on_terminal
from kduel.cli.terminal import Terminal
from kduel.core.errors import InputError
from kduel.core.format import MISSING
from kduel.core.text import align_columns, printable, visible

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
