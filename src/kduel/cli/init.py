"""`kduel init`: a commented study file to start from, and the schema for editors."""

from __future__ import annotations

import os
import shlex
from importlib import resources
from pathlib import Path

import click

from kduel.cli.options import NamedPath
from kduel.cli.output import STDOUT, emit, write
from kduel.core.errors import InputError


@click.command("init")
@click.argument("file", type=NamedPath(allow_dash=True), default="study.toml")
@click.option("--schema", is_flag=True, help="Print the JSON schema of study files instead.")
def command(file: Path, schema: bool) -> None:
    """Write FILE, a study that runs as it is and explains every key; - is standard output. Then: kduel run FILE."""
    if schema:
        import msgspec

        from kduel.study.file import schema as study_schema

        click.echo(msgspec.json.format(msgspec.json.encode(study_schema()), indent=2).decode())
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
