"""`kduel report`: a run, judged anew from its raw files, in the format asked for."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import click


@click.command("report")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "-f",
    "form",
    default="text",
    show_default=True,
    metavar="NAME",
    help="text, summary, html, json, csv, markdown, latex, mail, or what a plug-in offers.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="A file; - is standard output. By default html goes to RUN/report/index.html, all else to standard output.",
)
@click.option("--open", "open_it", is_flag=True, help="Show the page in a browser (html).")
def command(run: Path, form: str, output: Path | None, open_it: bool) -> None:
    """Write up RUN, the directory of a run or an import. The verdicts are reached anew from its raw files."""
    from kduel.errors import InputError
    from kduel.judgement import judge_run
    from kduel.report import report_format

    chosen = report_format(form)
    if open_it and (form != "html" or output == Path("-")):
        raise InputError("--open shows a page", "Give --format html, and no --output or a file.")
    if form == "html" and output is None:
        output = run / "report" / "index.html"
    results = judge_run(run)
    if output is None or output == Path("-"):
        if form == "text":
            from kduel.report.text import show

            click.echo(show(results), nl=False, color=True)
            return
        click.echo(chosen.render_for(results, relative_url(run, Path.cwd())), nl=False)
        return
    save(output, chosen.render_for(results, relative_url(run, output.parent)), inside=run)
    click.echo(f"Report: {output}")
    if open_it:
        click.launch(output.resolve().as_uri())


def relative_url(run: Path, start: Path) -> str:
    """How a page in `start` names the run's directory."""
    path = Path(os.path.relpath(run.resolve(), start.resolve()))
    return quote(path.as_posix(), safe="/")


def save(output: Path, text: str, inside: Path) -> None:
    """Write the report whole; its directory is made only where it is the run's own. Raises HostError."""
    from kduel.errors import HostError
    from kduel.rundir import write_whole

    try:
        if output.parent == inside / "report":
            output.parent.mkdir(exist_ok=True)
        write_whole(output, text.encode("utf-8", errors="backslashreplace"))
    except OSError as error:
        raise HostError(
            f"cannot write the report to {output}: {error.strerror or error}",
            "Free some space, mend the permissions, or name another place with --output.",
        ) from error
