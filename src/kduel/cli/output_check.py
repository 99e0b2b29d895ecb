"""Check of what a command is to write, before it begins: nothing that it reads, and nothing that a run keeps, is replaced."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click

from kduel.analysis.index import NAME
from kduel.core.errors import InputError, unusable_path
from kduel.core.text import visible
from kduel.core.toml import parse_toml, read_text
from kduel.store.integrity import OWN_FILES
from kduel.store.rundir import EXPLAIN, MARKS, PAGE, RESULTS, is_run
from kduel.store.whole_files import is_below_file

KEPT = (OWN_FILES | {*MARKS, "imported", "runs"}) - {EXPLAIN}
"""Names in a run's directory of what its verdicts follow from."""
HEAD = 4096
"""Bytes at the beginning of a run's document which have the version of KDuel that wrote it."""

OUTPUTS = ("output", "plot", "out")
"""Parameters that name what is written."""


def check_output(path: Path, option: str, context: click.Context, *, is_file: bool) -> None:
    """Raises InputError where the `path` of the `option` is an input of the command that runs, or what a run keeps, or where
    no file can be."""
    found = path.resolve()
    run = next((above for above in found.parents if is_own_run(above)), None)
    inputs = list(inputs_of(context))
    if run is not None:
        within = found.relative_to(run)
        is_results = within == Path(RESULTS) and not writes_results(context, run, inputs)
        if within.parts[0] in KEPT or is_results:
            raise InputError(
                f"{path} belongs to the run {visible(run)}, which would be damaged",
                f"Give another {option}: outside the run, or in {visible(run / PAGE.parent)}.",
            )
        if not is_file and any(is_same_file(given, run) for given in inputs):
            raise InputError(
                f"{path} is in the run {visible(run)}, which this command reads", f"Give another {option}."
            )
    if path.is_file() and any(is_same_file(given, path) for given in inputs):
        raise InputError(f"{path} is what this command reads: it would be lost", f"Give another {option}.")
    if is_below_file(found):
        raise unusable_path(path, os.strerror(errno.ENOTDIR))
    # Whoever writes a directory makes those above it, and `kduel report` the one of a run's pages.
    made = run / PAGE.parent if run is not None and context.command.name == "report" else None
    if is_file and not found.parent.is_dir() and found.parent != made:
        raise InputError(
            f"{path} cannot be written: there is no {path.parent}", f"Make it, or give another {option}."
        )


def is_own_run(path: Path) -> bool:
    """True for a run's directory; False where another program has a file of such a name."""
    if not is_run(path):
        return False
    for name in MARKS:
        with suppress(OSError), (path / name).open("rb") as stream:
            if b'"kduel"' in stream.read(HEAD):
                return True
    return False


def writes_results(context: click.Context, run: Path, inputs: list[str | Path]) -> bool:
    """True if the command writes the results of the run that it reads."""
    of_run = any(is_same_file(given, run) for given in inputs)
    return context.command.name == "report" and context.params.get("form") == "json" and of_run


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
            yield from files_of_study(Path(one))
            if isinstance(one, str):
                yield from files_of_kernel(one, Path())
                continue
            yield one
            if context.command.name != "index":
                yield one / NAME


def files_of_kernel(word: str, place: Path) -> Iterator[Path]:
    """Names that may be files in a kernel's specification: image.deb,modules.deb, tree:DIR, ./bzImage,modules=DIR."""
    for part in word.split(","):
        yield from (place / name for name in {part, part.partition(":")[2], part.partition("=")[2]} if name)


def files_of_study(path: Path) -> Iterator[Path]:
    """The files that the contenders of a study name; none where it is no study, which the command itself tells."""
    if path.suffix != ".toml":
        return
    try:
        contenders = parse_toml(read_text(path, "the study", ""), str(path), "").get("contender")
    except InputError:
        return
    for contender in contenders if isinstance(contenders, list) else []:
        for value in contender.values() if isinstance(contender, dict) else []:
            if isinstance(value, str):
                yield from files_of_kernel(value, path.parent)
                yield from files_of_kernel(value, Path())


def is_same_file(one: str | Path, other: Path) -> bool:
    """True if both names lead to one file."""
    try:
        return Path(one).samefile(other)
    except (OSError, ValueError):
        return False
