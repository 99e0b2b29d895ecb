"""Check of what a command is to write, before it begins: nothing that it reads, and nothing that a run keeps, is replaced."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import click

from kduel.analysis.index import NAME
from kduel.core.errors import InputError, unusable_path
from kduel.core.text import visible
from kduel.store.integrity import OWN_FILES
from kduel.store.rundir import EXPLAIN, MARKS, PAGE, is_run
from kduel.store.whole_files import is_below_file

KEPT = (OWN_FILES | {*MARKS, "imported", "runs"}) - {EXPLAIN}
"""Names in a run's directory of what its verdicts follow from."""


OUTPUTS = ("output", "plot", "out")
"""Parameters that name what is written."""


def check_output(path: Path, option: str, context: click.Context, *, is_file: bool) -> None:
    """Raises InputError where the `path` of the `option` is an input of the command that runs, or what a run keeps, or where
    no file can be."""
    found = path.resolve()
    run = next((above for above in found.parents if is_run(above)), None)
    if run is not None and found.relative_to(run).parts[0] in KEPT:
        raise InputError(
            f"{path} belongs to the run {visible(run)}, which would be damaged",
            f"Give another {option}: outside the run, or in {visible(run / PAGE.parent)}.",
        )
    if path.is_file() and any(is_same_file(given, path) for given in inputs_of(context)):
        raise InputError(f"{path} is what this command reads: it would be lost", f"Give another {option}.")
    if is_below_file(found):
        raise unusable_path(path, os.strerror(errno.ENOTDIR))
    # Whoever writes a directory makes those above it, and `kduel report` the one of a run's pages.
    made = run / PAGE.parent if run is not None and context.command.name == "report" else None
    if is_file and not found.parent.is_dir() and found.parent != made:
        raise InputError(
            f"{path} cannot be written: there is no {path.parent}", f"Make it, or give another {option}."
        )


def inputs_of(context: click.Context) -> Iterator[str | Path]:
    """The files and directories that a command line names to be read, and the indexes in those directories."""
    for parameter in context.command.params:
        many = isinstance(parameter, click.Argument) and parameter.nargs == -1
        if parameter.name in OUTPUTS or not (many or isinstance(parameter.type, click.Path)):
            continue
        value = context.params.get(parameter.name or "")
        for one in value if isinstance(value, tuple) else (value,):
            if one is None:
                continue
            yield one
            if isinstance(one, str):  # A kernel, such as tree:DIR.
                yield one.partition(":")[2].partition(",")[0]
            elif context.command.name != "index":
                yield one / NAME


def is_same_file(one: str | Path, other: Path) -> bool:
    """True if both names lead to one file."""
    try:
        return Path(one).samefile(other)
    except (OSError, ValueError):
        return False
