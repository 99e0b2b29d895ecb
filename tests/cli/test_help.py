"""The help of every command fits a terminal, and the commands stand in groups."""

from __future__ import annotations

from collections.abc import Iterator

import click
from click.testing import CliRunner

from kduel.cli import COMMANDS, GROUPS, kduel


def helps(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
    """The help of a command and of those below it, by the words that call them."""
    context = click.Context(command, info_name=path, terminal_width=80, max_content_width=80)
    yield path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from helps(below, f"{path} {name}")


def test_no_line_of_any_help_is_wider_than_a_terminal() -> None:
    wide = [(path, line) for path, text in helps(kduel, "kduel") for line in text.splitlines() if len(line) > 80]
    assert wide == []


def test_each_command_stands_in_one_group() -> None:
    text = CliRunner().invoke(kduel, ["--help"]).stdout
    names = [name for group in GROUPS.values() for name in group]
    assert len(names) == len(set(names)) == len(COMMANDS)
    assert all(f"\n{heading}:\n" in text for heading in GROUPS)
    assert max(map(len, GROUPS.values())) < 10
