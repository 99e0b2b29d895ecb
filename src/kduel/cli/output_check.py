"""Check of what a command is to write, before it begins: nothing that it reads is replaced, and no run is changed."""

import errno
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from kduel.cli.output import STDOUT, unwritable
from kduel.core.errors import InputError, unusable_path
from kduel.core.text import visible
from kduel.core.toml import parse_toml, read_text
from kduel.store.rundir import EXPLAIN, INDEX, MARKS, PAGE, RESULTS, is_run
from kduel.store.whole_files import is_below_file

REPORTS = (PAGE.parts[0], EXPLAIN)
"""Directories of a run whose files no verdict follows from."""
HEAD = 4096
"""Bytes at the beginning of a run's document which have the version of KDuel that wrote it."""
OUTPUTS = ("output", "plot", "out", "figures")
"""Parameters that name what is written."""
TREES = ("tree:", "git:", "modules=")
"""What is before the name of a directory that a kernel is read from."""
WRITTEN = (".csv", ".html", ".json", ".md", ".png", ".svg", ".tar", ".tex", ".txt", ".xml")
"""Suffixes of outputs, which no file has that is directly in a kernel's tree."""
STREAMS = ("/dev/stdout", "/dev/stderr", "/dev/fd", "/proc/self/fd")
"""Names of open files, which may be anywhere."""
INSTALLED = ("lib/modules", "usr/lib/modules")
"""Where the modules are below a directory that is like a system's root."""


def check_output(path: Path, option: str, context: click.Context, *, is_file: bool) -> None:
    """Raises InputError where the `path` of the `option` is an input of the command that runs, or another output, or would
    change a run, or where no file can be, and HostError where none can be written."""
    found = path.resolve()
    remedy = f"Give another {option}."
    if path == STDOUT:
        raise InputError(f"{option} is standard output, and what this command writes needs a name", remedy)
    words = list(words_of(context))
    inputs = [*inputs_of(context), *(Path(name) for word in words for name in names_in(word))]
    run = next((above for above in found.parents if is_own_run(above)), None)
    # `kduel report` makes the directory of a run's pages.
    of_run = run is not None and context.command.name == "report" and any(is_same_file(one, run) for one in inputs)
    if run is not None:
        within = found.relative_to(run)
        is_report = is_file and within.parts[0] in REPORTS and len(within.parts) > 1
        if not is_report and not (of_run and within == Path(RESULTS) and context.params.get("form") == "json"):
            pages = run / PAGE.parent
            among = f", or in {visible(pages)}" if is_file and (of_run or pages.is_dir()) else ""
            raise InputError(
                f"{path} would change the run {visible(run)}", f"Give another {option}: outside the run{among}."
            )
    if path.is_file() and any(is_same_file(one, path) for one in inputs):
        raise InputError(f"{path} is what this command reads: it would be lost", remedy)
    tree = next((tree for word in words for tree in trees_in(word) if found.is_relative_to(tree.resolve())), None)
    of_tree = tree is not None and not (found.parent == tree.resolve() and found.suffix in WRITTEN)
    if of_tree and path.is_file() and not any(path.is_relative_to(one) for one in STREAMS):
        raise InputError(
            f"{path} is in {tree}, which this command reads",
            f"Remove it if it is no part of that, or give another {option}.",
        )
    for name in OUTPUTS:
        other: Path | None = context.params.get(name)
        if other is not None and option != f"--{name}" and (other.resolve() == found or is_same_file(other, path)):
            raise InputError(f"{' and '.join(sorted((option, f'--{name}')))} name one file, {path}", remedy)
    check_place(path, found, remedy, is_file=is_file, made=run / PAGE.parent if run and of_run else None)


def check_place(path: Path, found: Path, remedy: str, *, is_file: bool, made: Path | None) -> None:
    """Raises InputError where no file, or no directory, can be at a path that leads to `found`, and HostError where none can
    be written. `made` is a directory that the command makes, as does whoever writes a directory with those above."""
    if is_below_file(found):
        raise unusable_path(path, os.strerror(errno.ENOTDIR))
    if not is_file:
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} is there already and is no directory", remedy)
        return
    if path.is_dir():
        raise InputError(f"{path} is a directory", remedy)
    if path.exists() and not path.is_file():
        if not path.is_char_device() and not path.is_fifo():
            raise InputError(f"{path} is no file", remedy)
        return
    if found.parent.is_dir():
        try:
            tempfile.TemporaryFile(dir=found.parent).close()
        except OSError as error:
            raise unwritable(path, error) from error
    elif found.parent != made:
        raise InputError(f"{path} cannot be written: there is no {path.parent}", f"Make it. {remedy}")


def is_own_run(path: Path) -> bool:
    """True for a run's directory; False where another program has a file of such a name."""
    if not is_run(path):
        return False
    for name in MARKS:
        with suppress(OSError), (path / name).open("rb") as stream:
            if b'"kduel"' in stream.read(HEAD):
                return True
    return False


def inputs_of(context: click.Context) -> Iterator[Path]:
    """The files and directories that a command line names to be read, and the indexes in those directories."""
    for parameter in context.command.params:
        if parameter.name in OUTPUTS or not isinstance(parameter.type, click.Path):
            continue
        value = context.params.get(parameter.name or "")
        for one in value if isinstance(value, tuple) else (value,):
            if one is not None:
                yield one
                if context.command.name != "index":
                    yield one / INDEX


def words_of(context: click.Context) -> Iterator[str]:
    """Words of a command line about kernels, files and a machine, and those of the study that it names."""
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if parameter.name == "machine" and value:
            yield value
        elif isinstance(parameter, click.Argument) and parameter.nargs == -1:
            for word in value or ():
                yield str(word)
                path = Path(word)
                if path.suffix == ".toml":
                    with suppress(InputError):
                        yield from words_in(parse_toml(read_text(path, "the study", ""), str(path), ""))


def words_in(value: Any, key: str = "") -> Iterator[str]:
    """Words of a part of a study about kernels, modules and files, as on a command line; it is the value of `key`."""
    if isinstance(value, dict):
        if key == "files":
            yield from value
        for name, one in value.items():
            yield from words_in(one, str(value.get("name")) if name == "levels" else name)
    elif isinstance(value, list):
        for one in value:
            yield from words_in(one, key)
    elif isinstance(value, str) and key in ("kernel", "modules", "place", "identity", "known_hosts"):
        yield f"modules={value}" if key == "modules" else value


def names_in(word: str) -> Iterator[str]:
    """Names that may be of files in a word: image.deb,modules.deb, git:DIR,config=FILE+guest, board:FILE, NAME=FILE."""
    for part in word.split(","):
        value = value_of(part)
        yield from filter(None, {part, value, *value.split("+")})


def trees_in(word: str) -> Iterator[Path]:
    """The directories of a kernel's specification that all below is read of: tree:DIR, git:DIR#REF, modules=DIR."""
    for part in word.split(","):
        if part.startswith(TREES):
            value = value_of(part)
            tree = Path(value.partition("#")[0] if part.startswith("git:") else value)
            below = [tree / name for name in INSTALLED if part.startswith("modules=") and (tree / name).is_dir()]
            yield from below or [tree]


def value_of(part: str) -> str:
    """The rest after the first colon or equals sign, where a shell expands no ~; all where there is none."""
    return os.path.expanduser(re.split("[:=]", part, maxsplit=1)[-1])  # noqa: PTH111 - never an error


def is_same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        return False
