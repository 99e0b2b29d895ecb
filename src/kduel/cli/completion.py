"""`kduel --completion`: the shell's own completion script, and what it calls."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, ClassVar

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

from kduel.core.errors import KduelError

SCRIPT = Path(__file__).with_suffix(".bash").read_text("utf-8")


PLACES = {
    "bash": "~/.local/share/bash-completion/completions/kduel",
    "zsh": "~/.zfunc/_kduel",
    "fish": "~/.config/fish/completions/kduel.fish",
}


class WholeWords(ShellComplete):
    """Completion of `--option=value` as a whole word, as shells want it; nothing where the line is wrong."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        try:
            found = super().get_completions(args, incomplete)
        except (KduelError, OSError, click.ClickException):
            return []
        option, equals, _ = incomplete.partition("=")
        if not equals or not option.startswith("-"):
            return found
        return [CompletionItem(f"{option}={item.value}", item.type, item.help) for item in found]


@add_completion_class
class FishWords(WholeWords, FishComplete):
    """Completion for fish."""


@add_completion_class
class ZshWords(WholeWords, ZshComplete):
    """Completion for zsh."""


@add_completion_class
class BashWords(WholeWords, BashComplete):
    """Completion for bash by the line itself: bash breaks its words at `:` and `=`, which ours hold."""

    name: ClassVar[str] = "bash"
    source_template: ClassVar[str] = SCRIPT

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["COMP_WORDS"]
        words = split_arg_string(line)
        last = "" if line[-1:].isspace() and line[-2:-1] != "\\" else words.pop()
        return words[1:], last

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """The item without what stands before bash's own word, quoted as the line quotes."""
        value, quote = str(item.value), find_open_quote(os.environ["COMP_WORDS"])
        _, incomplete = self.get_completion_args()
        if not quote:
            value = value.removeprefix(incomplete[: bash_word(os.environ["COMP_WORDS"], incomplete)])
        return f"{item.type},{quote_as(quote, value)}"


def bash_word(line: str, word: str) -> int:
    """Place in the last word of a line where bash's own begins: behind the last `:` or `=` that no backslash precedes."""
    marks = [mark for mark in ":=" if mark in os.environ["COMP_WORDBREAKS"]]
    place, end = len(word), len(line)
    while place and not (word[place - 1] in marks and line[end - 2 : end - 1] != "\\"):
        end -= 2 if line[end - 2 : end - 1] == "\\" else 1
        place -= 1
    return place


def quote_as(quote: str, value: str) -> str:
    """The value as bash takes it within that quotation mark, or within none."""
    if quote == "'":
        return value.replace("'", "'\\''")
    return re.sub(r'["\\$`]' if quote else r"[^\w@%+=:,./-]", r"\\\g<0>", value)


def find_open_quote(line: str) -> str:
    """The quotation mark in which a line of shell ends, if any."""
    quote, escaped = "", False
    for character in line:
        if escaped or (character == "\\" and quote != "'"):
            escaped = not escaped
        elif not quote and character in "'\"":
            quote = character
        elif character == quote:
            quote = ""
    return quote


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print a completion script for SHELL, as `kduel --completion SHELL` does."""
    click.echo(completion_script(shell))


def completion_script(shell: str) -> str:
    """The script that the shell reads to complete `kduel`."""
    from click.shell_completion import get_completion_class

    from kduel.cli import kduel

    chosen = get_completion_class(shell)
    assert chosen is not None, "these three are click's own"
    return f"{chosen(kduel, {}, 'kduel', '_KDUEL_COMPLETE').source()}\n# Its place: {PLACES[shell]}"
