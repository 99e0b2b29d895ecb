"""Suggestions for a command that KDuel does not have."""

import shlex
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

from kduel.core.toml import table_beside

ELSEWHERE: dict[str, str] = table_beside(__file__)
"""Names of other tools' commands, with what does here what they do."""


def suggest_command(words: Sequence[str], commands: Iterable[str]) -> str:
    """The command to type in place of these words, of which the first is none of the commands; empty where nothing is like it."""
    name = words[0]
    if near := get_close_matches(name.lower(), [*commands, *ELSEWHERE], 1, 0.75):
        return f"{ELSEWHERE[near[0]]}." if near[0] in ELSEWHERE else f"Did you mean `kduel {near[0]}`?"
    if Path(name).is_dir() and (Path(name) / "lock.json").is_file():
        return f"Did you mean `{shlex.join(['kduel', 'report', name])}`?"
    if ":" in name or name.endswith((".toml", ".deb")) or Path(name).is_file():
        return f"Did you mean `{shlex.join(['kduel', 'run', *words])}`?"
    return "`kduel --help` lists the commands."
