"""`--command` of `kduel run`: a study of one command of the user's own."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from kduel.core.errors import InputError

F = TypeVar("F", bound=Callable[..., object])
NUMBER_ALONE = r"^\s*([-+0-9.eE]+)\s*$"
HEAD = """[study]
name = "command"
title = {title}
delta = 1.0
[machine]
kind = "qemu"
[settle]
mode = "idle"
seconds = 10
[blocks]
max = 20
"""


def command_options(command: F) -> F:
    """`--command` and what describes its number."""
    for option in (
        click.option(
            "--better",
            type=click.Choice(["lower", "higher"]),
            help="Which values of --command are better.  [default: lower]",
        ),
        click.option("--unit", metavar="UNIT", help="Unit of the number of --command.  [default: units]"),
        click.option(
            "--regex",
            metavar="RE",
            help="RE2 expression whose one group is the number.  [default: a number alone on a line]",
        ),
        click.option(
            "--command",
            "line",
            metavar="COMMAND",
            help="Measure the number that a command prints, in place of a suite. A program of this host that it begins with, "
            "such as ./bench, is brought along.",
        ),
    ):
        command = option(command)
    return command


def command_study(line: str | None, regex: str | None, unit: str | None, better: str | None) -> str | None:
    """Text of the study, without contenders; None without `line`. Raises InputError."""
    if line is None:
        given = {"--regex": regex, "--unit": unit, "--better": better}
        alone = [name for name, value in given.items() if value is not None]
        if alone:
            raise InputError(f"{alone[0]} describes what --command prints", "Give --command 'COMMAND', too.")
        return None
    from kduel.core.manifest import digest
    from kduel.core.text import printable
    from kduel.core.toml import shorten
    from kduel.study.contenders import as_toml

    try:
        words = shlex.split(line)
    except ValueError as error:
        raise InputError(f"--command {line!r}: {error}", "Check its quotes.") from error
    line, files = line.strip(), ""
    if words and "/" in words[0] and line.startswith(words[0]) and Path(words[0]).is_file():
        program = Path(words[0])
        line = shlex.quote(program.name) + line[len(words[0]) :]
        files = f"files = {as_toml({str(program): digest(program)})}\n"
    metric = {"name": "value", "unit": unit or "units", "better": better or "lower", "regex": regex or NUMBER_ALONE}
    step = f"command = {as_toml(line)}\n{files}metrics = [{as_toml(metric)}]\n"
    title = as_toml(shorten(printable(" ".join(line.split())), 80))
    return f'{HEAD.format(title=title)}[[benchmark]]\nuse = "command"\n{step}primary = ["value"]\n'
