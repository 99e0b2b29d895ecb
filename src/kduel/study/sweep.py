"""`--sweep NAME=V1,V2,...`: factors of the command line, checked and refused in the words that name them."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from kduel.core.errors import InputError
from kduel.study.contenders import as_toml
from kduel.study.factors import CONTENDER_KEYS, OF_MACHINE, check_keys, check_levels, parameters_of
from kduel.study.steps import expand

NUMBER = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]+)?")


class Sweep(NamedTuple):
    """A factor as the command line gives it."""

    option: str
    name: str
    values: list[str]

    @property
    def levels(self) -> list[str | int | float]:
        """The values, numbers as such."""
        return [
            (float(value) if "." in value else int(value)) if NUMBER.fullmatch(value) else value
            for value in self.values
        ]

    def toml(self) -> str:
        """The [[factor]] table."""
        levels = ", ".join(value if NUMBER.fullmatch(value) else as_toml(value) for value in self.values)
        return f"\n# From the command line:\n[[factor]]\nname = {as_toml(self.name)}\nlevels = [{levels}]\n"


def sweep_tables(sweeps: Sequence[str], tables: Sequence[dict[str, Any]], options: Sequence[str] = ()) -> str:
    """The [[factor]] tables of all `--sweep`, as TOML. `tables` are the study's benchmarks, `options` those of the command line
    that gave them, if it did. Raises InputError naming the option."""
    found = [read_sweep(words) for words in sweeps]
    names = [one.name for one in found]
    for place, one in enumerate(found):
        if one.name in names[:place]:
            before = found[names.index(one.name)]
            raise InputError(
                f"{before.option} and {one.option} vary the same key", "Give all of its values in one --sweep."
            )
        check_values(one, tables)
        for table, option in zip(tables, options, strict=bool(options)):
            if one.name in table:
                raise InputError(
                    f"{option} and {one.option} both give {one.name}",
                    f"Leave {one.name} out of one of them: the values of --sweep would replace the other one.",
                )
    return "".join(one.toml() for one in found)


def read_sweep(words: str) -> Sweep:
    """One `NAME=V1,V2,...`. Raises InputError."""
    name, _, values = words.partition("=")
    found = Sweep(f"--sweep {words}", name.strip(), [value.strip() for value in values.split(",")])
    if not found.name or not all(found.values):
        raise InputError(
            f"--sweep {words or repr(words)} is no factor", "Give a key and its values: --sweep threads=1,2,4,8."
        )
    check_levels(found.values, found.option)
    return found


def check_values(one: Sweep, tables: Sequence[dict[str, Any]]) -> None:
    """Raises InputError for a key that nothing has, and for a value that a benchmark does not take."""
    if one.name.startswith(OF_MACHINE):  # Which settings there are is known by the machine.
        return
    check_keys([one.name], tables, f"{one.option} varies")
    if one.name == "sysctl":
        raise InputError(
            f"{one.option}: sysctls are a table, which the command line does not take",
            'Write a study file (`kduel init`), in whose [[factor]] each level is one: levels.low.sysctl = { "vm.swappiness" = 10 }.',
        )
    if one.name == "machine":
        raise InputError(
            f"{one.option}: name the setting of the machine that varies", "For example --sweep machine.cpus=2,4,8."
        )
    if one.name in CONTENDER_KEYS:
        return
    for table in tables:
        for level in one.levels if one.name in parameters_of(table) else ():
            try:
                expand(table | {one.name: level})
            except InputError as error:
                raise InputError(
                    f"{one.option}: {level} is no value for it: {error.message}",
                    f"Give others; `kduel list benchmarks {table['use']}` shows what it takes.",
                ) from error
