"""Suggestions for a command that KDuel does not have."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType

MEASURE = "`kduel run A B` compares two kernels"
SHOW = "`kduel report RUN` shows a run"
COUNT = "`kduel run A B --machine icount` counts instructions"
CHANGED = "`kduel diff OLD NEW` compares two runs"
FUNCTIONS = "`kduel explain RUN -b NAME` shows the functions"
ELSEWHERE: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("bench", "benchmark", "duel", "measure", "start", "test", "vs"), MEASURE)
    | dict.fromkeys(("cat", "open", "print", "results", "show", "summary", "view"), SHOW)
    | dict.fromkeys(("count", "counts", "exact", "icount", "instructions"), COUNT)
    | dict.fromkeys(("annotate", "functions", "perf", "profile"), FUNCTIONS)
    | {
        "compare": f"{MEASURE}, {CHANGED}",
        "continue": "`kduel resume RUN` continues an interrupted run",
        "check": "`kduel doctor` checks this host, `kduel verify RUN` a run",
        "cmp": f"{MEASURE}, {CHANGED}",
        "estimate": "`kduel plan` estimates blocks and time",
        "help": "`kduel --help` lists the commands",
        "ls": "`kduel list benchmarks` lists benchmarks, `kduel query DIR` many runs",
        "man": "`kduel COMMAND --help` explains a command",
        "new": "`kduel init` writes a study file",
        "version": "`kduel --version` shows the version",
    }
)
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
