"""`kduel init`: a commented study file to start from, and the schema for editors."""

import os
import shlex
from importlib import resources
from pathlib import Path

import click

from kduel.cli.options import NamedPath, option
from kduel.cli.output import STDOUT, emit, write
from kduel.core.errors import InputError


@click.command("init")
@click.argument("file", type=NamedPath(allow_dash=True), default="study.toml")
@option("--schema", "Print the JSON schema of study files instead.", is_flag=True)
@option(
    "--from-report", "Ask the question of this mail of the kernel test robot, or job.yaml of LKP.", NamedPath(),
    "MAIL",
)  # fmt: skip
@option("--tree", "With --from-report: the git tree that has the commits.", metavar="DIR", default="linux")
@option("--test", "With --from-report: which of the tests that the mail names.", int, "N", default=1)
def command(file: Path, schema: bool, from_report: Path | None, tree: str, test: int) -> None:
    """Write FILE, a study that runs as it is and explains every key; - is standard output. Then: kduel run FILE.

    With --from-report it is the study that a mail of the kernel test robot asks for. Beside it are written the mail's claim, its
    figures as an imported run and, where it is about one operation, studies that count it. docs/robot-reports.md has an example.
    """
    if schema:
        import msgspec

        from kduel.study.file import schema as study_schema

        click.echo(msgspec.json.format(msgspec.json.encode(study_schema()), indent=2).decode())
        return
    if from_report is not None:
        from kduel.cli.from_report import write_from_report

        write_from_report(from_report, file, tree, test)
        return
    text = (resources.files("kduel.cli") / "init.toml").read_text("utf-8")
    if file == STDOUT:
        emit(text)
        return
    if os.path.lexists(file):
        raise InputError(f"{file} exists already", "Give another name: kduel init NAME.toml.")
    from kduel.cli.output_check import check_output

    check_output(file, "FILE", click.get_current_context(), is_file=True)
    write(file, text.encode())
    click.echo(f"Edit it, then: kduel run {shlex.quote(str(file))}")
