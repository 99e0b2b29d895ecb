"""`kduel report`: a run, judged anew from its raw files, in the format asked for."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

if TYPE_CHECKING:
    from kduel.core.results import Results


@click.command("report")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN|FILE")
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
    """Write up RUN, the directory of a run or an import. The verdicts are reached anew from its raw files.

    A FILE of results measured elsewhere, with all contenders in it, is written up as `kduel import FILE` reads it; import
    it to say more of it, and to keep it.
    """
    from kduel.core.errors import InputError
    from kduel.report import report_format

    chosen = report_format(form)
    if open_it and (form != "html" or output == Path("-")):
        raise InputError("--open shows a page", "Give --format html, and no --output or a file.")
    if form == "html" and output is None:
        if run.is_file():
            raise InputError(f"{run} is a file and has no place for a page", "Name one: --output PAGE.html.")
        output = run / "report" / "index.html"
    results = results_of(run)
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


def results_of(run: Path) -> Results:
    """The results of a run's directory, or of a file that is imported for the moment. Raises InputError."""
    from kduel.judge.evaluate import judge_run

    if not run.is_file():
        return judge_run(run)
    from kduel.store.imported import Source, bring_in

    with tempfile.TemporaryDirectory(prefix="kduel-") as place:
        bring_in([Source(run)], Path(place) / "run")
        return judge_run(Path(place) / "run")


def relative_url(run: Path, start: Path) -> str:
    """How a page in `start` names the run's directory."""
    path = Path(os.path.relpath(run.resolve(), start.resolve()))
    return quote(path.as_posix(), safe="/")


def save(output: Path, text: str, inside: Path) -> None:
    """Write the report whole; its directory is made only where it is the run's own. Raises HostError."""
    from kduel.core.errors import HostError
    from kduel.store.rundir import write_whole

    try:
        if output.parent == inside / "report":
            output.parent.mkdir(exist_ok=True)
        write_whole(output, text.encode("utf-8", errors="backslashreplace"))
    except OSError as error:
        raise HostError(
            f"cannot write the report to {output}: {error.strerror or error}",
            "Free some space, mend the permissions, or name another place with --output.",
        ) from error
