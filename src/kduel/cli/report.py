"""`kduel report`: a run, judged again from its raw files, in the requested format."""

import os
import re
import shlex
from pathlib import Path
from urllib.parse import quote

import click

from kduel.cli.completions import complete_runs
from kduel.cli.options import (
    NamedPath,
    limit_option,
    mode_option,
    option,
    output_path_option,
    plugin_option,
    run_argument,
)
from kduel.cli.output import STDOUT, emit, open_output
from kduel.core.errors import HostError, InputError
from kduel.core.text import printable
from kduel.report import ReportOptions, report_format
from kduel.store.whole_files import as_disk_error

ELSEWHERE = "name a file elsewhere: --output PAGE.html."


@click.command("report")
@click.argument("run", type=NamedPath(), metavar="RUN|FILE", shell_complete=complete_runs)
@plugin_option(
    "--format -f form", "report", "Report format; `kduel list formats` shows all.", metavar="NAME", default="text"
)
@output_path_option(
    "--output -o",
    "Write to this file; - is standard output.  [default: RUN/report/index.html for html, else standard output]",
    NamedPath(dir_okay=False, allow_dash=True),
)
@option(
    "--all-findings",
    "Show every finding with every metric it affects, not only the three most important.",
    is_flag=True,
)
@option(
    "--origin", "Who submits (kcidb): the name that KernelCI gave your CI system.", metavar="NAME", default="kduel"
)
@output_path_option(
    "--figures", "Draw a figure of each metric, effect and boot there, too.", NamedPath(file_okay=False), "DIR"
)
@option("--figure-format", "Format of figures.", ["svg", "png", "pdf"], default="pdf")
@option("--figure-columns", "Columns that a figure fills.", ["1", "2"], default="1")
@option("--open open_it", "Open the page in a browser (html).", is_flag=True)
@mode_option("--boot", "Show the boot stages and initcalls of RUN.")
def command(
    run: Path,
    form: str,
    output: Path | None,
    all_findings: bool,
    origin: str,
    figures: Path | None,
    figure_format: str,
    figure_columns: str,
    open_it: bool,
) -> None:
    """Write a report of RUN, the directory of a run or an import. Verdicts are computed again from its raw files.

    FILE may be results measured elsewhere, with all contenders in it, read as `kduel import` reads them. Import them to
    add conditions, a baseline or primary metrics, and to keep them.
    """
    from msgspec import structs

    from kduel.judge.evaluate import judge_path
    from kduel.store.rundir import PAGE

    chosen = report_format(form)
    if open_it and (form != "html" or output == STDOUT):
        raise InputError("--open needs a page", "Give --format html, and an --output that is a file, or none.")
    if not re.fullmatch(r"[a-z0-9_]+", origin):
        raise InputError(f"--origin {origin!r} is no name of KCIDB", "Give lower-case letters, digits and _.")
    if form == "html" and output is None:
        if run.is_file():
            raise InputError(
                f"{run} is a file: there is no run directory for the page", "Name a file: --output PAGE.html."
            )
        output = run / PAGE
    results = judge_path(run)
    options = ReportOptions(all_findings=all_findings, origin=origin, directory=run)
    if figures is not None:
        from kduel.report.plots.figures import write_figures

        drawn = write_figures(run, results, figures, figure_format, figure_columns)
        start = Path.cwd() if output in (None, STDOUT) else output.parent
        options = structs.replace(
            options, figures={relative_url(one, start): caption for one, caption in drawn.items()}
        )
        click.echo(f"Figures: {len(drawn)} in {figures}", err=True)
    if output is None or output == STDOUT:
        if form == "text":
            from kduel.report.text import show

            where = "" if run.is_file() else shlex.quote(str(run))
            click.echo(show(results, all_findings=all_findings, run=where), nl=False, color=True)
            return
        emit(chosen.render(results, structs.replace(options, run=relative_url(run, Path.cwd()))))
        return
    save(output, chosen.render(results, structs.replace(options, run=relative_url(run, output.parent))), inside=run)
    click.echo(f"Report: {output}")
    if open_it:
        click.launch(output.resolve().as_uri())


def relative_url(run: Path, start: Path) -> str:
    """The run's directory as a link on a page in `start`."""
    path = Path(os.path.relpath(run.resolve(), start.resolve()))
    return quote(path.as_posix(), safe="/")


def save(output: Path, text: str, inside: Path) -> None:
    """Write the report whole; its directory is made only where it is the run's own. Raises HostError."""
    import hashlib

    from kduel.store.rundir import PAGE, PAGE_DIGEST

    place = output.parent
    if place.resolve() == inside.resolve() / "report":
        if place.exists() and not place.is_dir():
            raise HostError(f"cannot write the page: {place} is no directory", f"Move it away, or {ELSEWHERE}")
        with as_disk_error(place, f"Free some space, correct the permissions, or {ELSEWHERE}"):
            place.mkdir(exist_ok=True)
    data = text.encode("utf-8", errors="backslashreplace")
    with open_output(output) as stream:
        stream.write(data)
    if output.resolve() == (inside / PAGE).resolve():
        with open_output(inside / PAGE_DIGEST) as stream:
            stream.write(f"{hashlib.sha256(data).hexdigest()}  {PAGE.name}\n".encode())


@click.command("boot")
@run_argument
@limit_option(15, "Initcalls to show")
def boot(run: Path, limit: int) -> None:
    """Show the boot stages of each contender of a run, and the initcalls that took longest: medians of its boots, and in
    parentheses their ranges.

    Every trial stores its console with the host's time of each line, so this works for any run on a machine that has a
    console (qemu, board). For a verdict on boot times use the benchmark boot-timeline; this command shows the details.

    \b
    kduel report --boot kduel-runs/RUN
    kduel report --boot kduel-runs/RUN --limit 0         every initcall

    Initcalls are shown for kernels booted with initcall_debug:

    \b
    kduel run ... \\
        --machine 'board:arm64-virt,cmdline=initcall_debug log_buf_len=4M'
    """
    from kduel.analysis.boot import as_text, clock_warning, read_boots

    boots = as_text(read_boots(run), limit)
    warning = clock_warning(run)
    click.echo(printable(f"{warning}\n\n{boots}" if warning else boots), nl=False)
