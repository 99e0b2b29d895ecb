"""The help of every command fits a terminal, and the commands stand in groups."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from kduel.cli import COMMANDS, GROUPS, MODES, kduel
from kduel.core.plugins import plugins


def arguments(command: click.Command) -> Iterator[click.Argument]:
    """The arguments of a command and of those below it."""
    yield from (one for one in command.params if isinstance(one, click.Argument))
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            below = command.get_command(click.Context(command), name)
            assert below is not None
            yield from arguments(below)


def helps(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
    """The help of a command and of those below it, by the words that call them."""
    context = click.Context(command, info_name=path, terminal_width=80, max_content_width=80)
    yield path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in [*command.list_commands(context), *(MODES if command is kduel else ())]:
            below = command.get_command(context, name)
            assert below is not None
            yield from helps(below, f"{path} {name}")


def test_no_line_of_any_help_is_wider_than_a_terminal() -> None:
    wide = [(path, line) for path, text in helps(kduel, "kduel") for line in text.splitlines() if len(line) > 80]
    assert wide == []


def test_no_argument_of_any_command_may_be_empty() -> None:
    """An unset variable of a shell is not the current directory, nor a kernel without a name."""
    for argument in arguments(kduel):
        with pytest.raises(click.BadParameter):
            argument.type.convert("", argument, None)


def test_each_command_stands_in_one_group() -> None:
    text = CliRunner().invoke(kduel, ["--help"]).stdout
    names = [name for group in GROUPS.values() for name in group]
    assert len(names) == len(set(names)) == len(COMMANDS) <= 20
    assert all(f"\n{heading}:\n" in text for heading in GROUPS)
    assert max(map(len, GROUPS.values())) < 10


def test_help_of_import_lists_every_format(monkeypatch: pytest.MonkeyPatch) -> None:
    class Outside:
        summary = "a format from outside"

    known = plugins("imported")
    monkeypatch.setattr("kduel.core.plugins.plugins", lambda _: known | {"elsewhere": Outside()})
    text = " ".join(CliRunner().invoke(kduel, ["import", "--help"]).stdout.split())
    assert "elsewhere a format from outside" in text
    assert not [name for name, found in known.items() if f"{name} {found.summary[:20]}" not in text]
