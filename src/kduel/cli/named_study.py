"""The study that the words of a command line name: a study file, or contenders and a suite."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from kduel.core.errors import InputError
from kduel.study.contenders import contender_tables

if TYPE_CHECKING:
    from kduel.cli.own_study import OwnStudy
    from kduel.study.file import StudyFile


def is_study_file(names: Sequence[str]) -> bool:
    return len(names) == 1 and names[0].endswith(".toml")


def default_suite(machine: str) -> str:
    """The suite of contenders for which none is named: on a machine whose clock counts instructions one that counts
    them. `machine` is `KIND[:key=value,...]` or empty. Raises InputError for an unknown kind."""
    from kduel.machines import machine_kind
    from kduel.study.first_part import SUITE
    from kduel.study.load import read_machine

    return SUITE if machine and machine_kind(read_machine({}, machine)[0]).exact else "quick"


def read_named_study(
    names: Sequence[str], suite: str | None, aa: int | None = None, machine: str = "", own: OwnStudy | None = None
) -> tuple[str, StudyFile, str]:
    """The study's text, its content, and its origin: the file, or the suite (without one that of the `machine`; `own`
    takes its place). With `aa`, one kernel under so many names. Raises InputError."""
    from kduel.machines import machine_kind
    from kduel.store.rundir import is_run
    from kduel.study.file import find_study, parse_study, read_study, suite_text
    from kduel.study.load import read_machine

    unspeakable = [name for name in names if name.encode(errors="ignore").decode() != name]
    if unspeakable:
        raise InputError(
            f"{unspeakable[0]!r} is not UTF-8 and cannot be recorded", "Rename the file, or give a symbolic link."
        )
    files = [name for name in names if is_study_file([name])]
    if files and len(names) > 1:
        raise InputError(
            f"{files[0]} is a study file, which names its contenders itself",
            f"Give it alone, with the other contenders in it: kduel run {shlex.quote(files[0])}; or name kernels only.",
        )
    if own is not None and (suite is not None or files):
        raise InputError(
            f"{own.option} takes the place of a suite or a study file",
            f"Leave out {own.option}, or {'name kernels only' if files else '--suite'}.",
        )
    if is_study_file(names) and aa is None:
        if suite is not None:
            raise InputError(
                f"--suite {suite} names the benchmarks, and so does {names[0]}",
                "Leave out --suite, or name the contenders instead of a study file.",
            )
        return *read_study(Path(names[0])), names[0]
    if aa is not None:
        if len(names) != 1 or is_study_file(names):
            raise InputError("--aa takes one kernel", "For example: kduel run --aa 2 debian:6.12.")
    elif len(names) == 1 and is_run(Path(names[0])):
        again = shlex.quote(names[0])
        raise InputError(
            f"{names[0]} is a run, and no contender",
            f"`kduel resume {again}` continues it, `kduel report {again}` shows it.",
        )
    elif len(names) == 1 and not Path(names[0]).exists():
        meant = (f"{names[0]}.toml", f"studies/{Path(names[0]).name}.toml")
        if near := next((one for one in meant if find_study(Path(one)).is_file()), ""):
            raise InputError(f"{names[0]!r} is no kernel", f"Did you mean the study {near}?")
    suite = suite or default_suite(machine)
    contenders = contender_tables([*names] * (aa or 1), aa is not None)
    text = (own.text if own else suite_text(suite)) + contenders
    file = parse_study(text, own.option if own else f"the suite {suite}")
    kind, settings = read_machine(file.machine, machine)
    if machine_kind(kind).stays(settings):
        file = msgspec.structs.replace(file, blocks=msgspec.structs.replace(file.blocks, unit="load"))
    return text, file, own.option if own else suite
