"""Factors: what a study varies, level by level, and the cells that follow: contenders, and steps within a trial."""

import contextlib
import itertools
import math
import re
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, field

from kduel.benchmarks import benchmark
from kduel.core.errors import InputError
from kduel.core.experiment import Contender, Design, Factor, StepCell
from kduel.core.text import did_you_mean, plural
from kduel.core.validation import validation_message
from kduel.study.contenders import (
    MOST_COMBINATIONS,
    check_printable,
    combine,
    count_text,
    read_contenders,
    short_name,
)

MOST_CELLS = 64
"""Contenders of a block: every one is a boot."""
HANDY_CELLS = 32
SUBJECT = "contender"
"""The factor that several [[contender]] tables are, where others are crossed with them."""
Level = str | int | float | bool


class FactorTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table [[factor]]. The first level is the one that the others are compared with."""

    name: str
    levels: list[Level] | dict[str, dict[str, Any]]
    """Values of the key of a contender, of the setting of the machine (`machine.cpus`), or of the parameter of benchmarks, that
    `name` is; or by the level's name what it
    changes: keys of a contender (kernel, cmdline, sysctl, scheduler, policy, ...) or parameters of benchmarks."""


class DesignTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The table [design]: how factors are crossed."""

    fraction: int = 1
    """2, 4, 8, ...: carry out only every so manieth cell, a regular fraction over the factors with two levels."""
    interactions: int = 2
    """Between how many factors interactions are estimated: 1 (none), 2 or 3."""


class ReadFactor(NamedTuple):
    """A factor with what each of its levels changes."""

    factor: Factor
    changes: dict[str, dict[str, Any]]
    of_steps: bool
    """Whether its levels are parameters of benchmarks, so that they share a boot."""


class Crossing(NamedTuple):
    """A study's contenders with all factors crossed."""

    contenders: list[Contender]
    factors: list[ReadFactor]
    """Those of contenders first."""
    cells: dict[str, dict[str, str]]


CONTENDER_KEYS = tuple(name for name in Contender.__struct_fields__ if name != "name")
OF_MACHINE = "machine."
"""Before a setting of the machine, where a factor is one."""
OFTEN_VARIED = ("cpus", "memory", "topology")
"""Settings of machines that are easily taken for keys of contenders."""


def cross(
    tables: list[dict[str, Any]],
    factors: Sequence[dict[str, Any]],
    benchmarks: Sequence[dict[str, Any]],
    design: DesignTable,
    origin: str,
    blocks: int,
) -> Crossing:
    """The contenders of a study, once for each combination of the factors' levels; `blocks` is how many are planned,
    for the error about trials. Raises InputError naming the factor."""
    read = [read_factor(table, number, benchmarks, origin) for number, table in enumerate(factors, 1)]
    names = [one.factor.name for one in read]
    if doubled := next((name for name in names if names.count(name) > 1), None):
        raise InputError(
            f"{origin}: two factors are called {doubled!r}", "Keep one of them, or give each a name of its own."
        )
    boots = [one for one in read if not one.of_steps]
    sets = {key for one in boots for change in one.changes.values() for key in change}
    if "kernel" not in sets or not read:
        contenders = read_contenders(tables, origin)
        if not read:
            if design.fraction != 1:
                raise InputError(
                    f"{origin}: design.fraction is {design.fraction}, and there is no factor to leave cells out of",
                    "Add [[factor]] tables, or leave the table [design] out.",
                )
            return Crossing(contenders, [], {})
        bases = [
            {key: value for key, value in msgspec.structs.asdict(contender).items() if value}
            for contender in contenders
        ]
    else:
        if len(tables) > 1:
            raise InputError(
                f"{origin}: the contenders name kernels, and so does the factor {next(o.factor.name for o in boots)!r}",
                "Keep one [[contender]] table, without a kernel, for what all cells share; or leave out the factor.",
            )
        bases = [dict(tables[0]) if tables else {}]
    if len(bases) > 1:
        subject = Factor(name=SUBJECT, levels=[base["name"] for base in bases])
        boots.insert(0, ReadFactor(subject, {base["name"]: base for base in bases}, False))
        bases = [{}]
    check_size(math.prod(len(one.factor.levels) for one in boots) // max(design.fraction, 1), boots, origin, blocks)
    cells = list(combine([one.factor.levels for one in boots], f"{origin}: the factors"))
    chosen = [cells[place] for place in kept_cells([len(one.factor.levels) for one in boots], design, origin)]
    base = {key: value for key, value in (bases[0] if bases else {}).items() if key != "name"}
    merged = [merge(base, cell, boots, origin) for cell in chosen]
    found = read_contenders(merged, origin) if boots else read_contenders([bases[0]] if bases else [], origin)
    levels = [dict(zip((one.factor.name for one in boots), cell, strict=True)) for cell in chosen]
    ordered = [*boots, *(one for one in read if one.of_steps)]
    return Crossing(found, ordered, {one.name: level for one, level in zip(found, levels, strict=True)})


def read_factor(table: dict[str, Any], number: int, benchmarks: Sequence[dict[str, Any]], origin: str) -> ReadFactor:
    """One [[factor]] table. Raises InputError naming it."""
    where = f"{origin}: factor[#{number}]"
    try:
        read = msgspec.convert(table, FactorTable, strict=True)
    except msgspec.ValidationError as error:
        raise InputError(
            f"{where}: {validation_message(error, FactorTable)}",
            'A factor has a name and levels: name = "threads", levels = [1, 2, 4].',
        ) from error
    where = f"{origin}: the factor {read.name!r}"
    check_printable("name", read.name, where)
    if not read.name.strip():
        raise InputError(f'{origin}: factor[#{number}]: name = "" is no name', "Give one.")
    if isinstance(read.levels, dict):
        changes = read.levels
        check_levels(list(changes), where)
    else:
        check_levels([label(read.name, value) for value in read.levels], where)
        name, setting, key = read.name.rpartition(OF_MACHINE)
        changes = {
            label(read.name, value): {"machine": {key: value}} if setting and not name else {read.name: value}
            for value in read.levels
        }
    for name in changes:
        check_printable("a level", name, where)
    keys = {key for change in changes.values() for key in change}
    if not keys:
        raise InputError(f"{where} changes nothing: its levels are empty", "Let each level change a key.")
    check_keys(keys, benchmarks, f"{where} changes")
    of_steps = not keys <= set(CONTENDER_KEYS)
    if of_steps and keys & set(CONTENDER_KEYS):
        raise InputError(
            f"{where} changes contenders ({', '.join(sorted(keys & set(CONTENDER_KEYS)))}) and benchmarks "
            f"({', '.join(sorted(keys - set(CONTENDER_KEYS)))})",
            "Make two factors of it: levels of benchmarks share a boot, and levels of contenders do not.",
        )
    return ReadFactor(Factor(name=read.name.removeprefix(OF_MACHINE), levels=list(changes)), changes, of_steps)


def check_levels(levels: Sequence[str], where: str) -> None:
    """Raises InputError for fewer than two levels that differ."""
    if twice := next((level for level, count in Counter(levels).items() if count > 1), None):
        raise InputError(f"{where} has the level {twice!r} twice", "Give levels that differ.")
    if len(levels) < 2:
        named = f"only the level {levels[0]!r}" if levels else "no level"
        raise InputError(
            f"{where} has {named}, and nothing to compare it with",
            "Give two levels at least, the one to compare with first; or leave the factor out.",
        )


def check_keys(keys: Iterable[str], benchmarks: Sequence[dict[str, Any]], where: str) -> None:
    """Raises InputError, with `where` before the key, for one that nothing of this study has."""
    known = {name for one in benchmarks for name in parameters_of(one)}
    for key in sorted(set(keys) - set(CONTENDER_KEYS) - known):
        raise InputError(
            f"{where} {key!r}, which is neither a key of a contender nor a parameter of a benchmark of this study",
            (
                f"The machine's is {OF_MACHINE}{key}. "
                if key in OFTEN_VARIED
                else did_you_mean(key, known | set(CONTENDER_KEYS))
            )
            + f"Keys of a contender: {', '.join(CONTENDER_KEYS)}. "
            f"Parameters: {', '.join(sorted(known)) or 'none'}.",
        )


def label(name: str, value: Level) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return short_name(Contender(kernel=value)) if name == "kernel" and isinstance(value, str) else str(value)


def parameters_of(table: dict[str, Any]) -> tuple[str, ...]:
    """The parameters that the benchmark of a [[benchmark]] table has; none where it names no benchmark."""
    use = table.get("use")
    return (*benchmark(use).Parameters.__struct_fields__, "load") if isinstance(use, str) else ()


def merge(base: dict[str, Any], cell: Sequence[str], factors: Sequence[ReadFactor], origin: str) -> dict[str, Any]:
    """A cell's [[contender]] table: words of the command line are added, sysctls joined, all else must be set once."""
    table = dict(base)
    for level, one in zip(cell, factors, strict=True):
        for key, value in one.changes[level].items():
            before = table.get(key)
            if key == "name" or not before or before == value:
                table[key] = value
            elif key == "cmdline":
                table[key] = f"{before} {value}"
            elif isinstance(before, dict) and isinstance(value, dict) and not before.keys() & value.keys():
                table[key] = before | value
            else:
                raise InputError(
                    f"{origin}: the factor {one.factor.name!r} sets {key}, which is set already",
                    "Let only one factor, or the contender, set it.",
                )
    return table | {
        "name": ", ".join(
            level if one.factor.name in (SUBJECT, "kernel") else f"{one.factor.name}={level}"
            for level, one in zip(cell, factors, strict=True)
        )
    }


def check_size(cells: int, factors: Sequence[ReadFactor], origin: str, blocks: int) -> None:
    """Raises InputError for more cells than anybody would boot."""
    if cells <= MOST_CELLS:
        return
    two = sum(len(one.factor.levels) == 2 for one in factors)
    # Of more than can be counted out, no fraction is made either.
    halvings = min(math.ceil(math.log2(cells / HANDY_CELLS)), max(two - 3, 0)) if cells <= MOST_COMBINATIONS else 0
    raise InputError(
        f"{origin}: the factors make {count_text(cells)} cells; {blocks} blocks of them are {count_text(cells * blocks)} trials "
        f"({MOST_CELLS} cells are allowed)",
        f"Leave out factors or levels{f', or add [design] fraction = {2**halvings}' if halvings else ''}.",
    )


def kept_cells(levels: Sequence[int], design: DesignTable, origin: str) -> list[int]:
    """The places of the cells that are carried out, in the order of the full design. Raises InputError."""
    if not 1 <= design.interactions <= 3:
        raise InputError(f"{origin}: design.interactions is {design.interactions}", "Give 1, 2 or 3.")
    if design.fraction < 1 or design.fraction & (design.fraction - 1):
        raise InputError(f"{origin}: design.fraction is {design.fraction}", "Give 1, 2, 4, 8, ...")
    two = [place for place, count in enumerate(levels) if count == 2]
    fraction = regular_fraction(len(two), design.fraction)
    if fraction is None:
        most = design.fraction // 2
        while regular_fraction(len(two), most) is None:
            most //= 2
        raise InputError(
            f"{origin}: a fraction of 1/{design.fraction} cannot tell factors apart; contenders have "
            f"{plural(len(two), 'factor')} with two levels",
            f"Give design.fraction = {most}{' (all cells)' if most == 1 else ''}.",
        )
    cells = itertools.product(*(range(count) for count in levels))
    return [place for place, cell in enumerate(cells) if tuple(cell[factor] for factor in two) in fraction]


def regular_fraction(factors: int, fraction: int) -> set[tuple[int, ...]] | None:
    """The cells of a regular 1/`fraction` of all combinations of factors with two levels (0 and 1), of the highest resolution there
    is; the cell of the first levels is one of them. None where none tells all factors apart (resolution 3)."""
    if fraction == 1:
        return set(itertools.product((0, 1), repeat=factors))
    # Takes a moment to import.
    import numpy as np
    from pydoe import fracfact_by_res

    count = 2**factors / fraction
    for resolution in range(factors, 2, -1):
        with contextlib.suppress(ValueError):  # It needs more cells than there are.
            cells = fracfact_by_res(factors, resolution)
            if len(cells) <= count:
                break
    else:
        return None
    cells = cells * cells[0]
    # It is the smallest design of its resolution: each factor that need no longer be the product of others doubles it.
    for factor in range(factors - 1, -1, -1):
        if len(cells) < count:
            other = cells.copy()
            other[:, factor] *= -1
            cells = np.concatenate([cells, other])
    return {tuple(int(level < 0) for level in cell) for cell in cells}


class StepTable(Struct, kw_only=True):
    """A [[benchmark]] table at one combination of the levels of its factors."""

    table: dict[str, Any]
    levels: dict[str, str] = field(default_factory=dict)


def cross_steps(table: dict[str, Any], factors: Iterable[ReadFactor]) -> list[StepTable]:
    """A [[benchmark]] table for each combination of its factors; what the table gives for them is replaced."""
    known = parameters_of(table)
    own = [one for one in factors if one.of_steps and all(set(c) <= set(known) for c in one.changes.values())]
    found = []
    for cell in combine([one.factor.levels for one in own], "the factors"):
        changes: dict[str, Any] = {}
        for level, one in zip(cell, own, strict=True):
            changes |= one.changes[level]
        if cell and table.get("label"):
            changes["label"] = "-".join(
                [str(table["label"]), *(re.sub(r"[^A-Za-z0-9.]+", "-", level) for level in cell)]
            )
        found.append(
            StepTable(table=table | changes, levels=dict(zip((o.factor.name for o in own), cell, strict=True)))
        )
    return found


def design_of(crossed: Crossing, table: DesignTable, steps: dict[str, StepCell]) -> Design | None:
    """The design that reports and verdicts read; None for a study without factors."""
    if not crossed.factors:
        return None
    return Design(
        factors=[one.factor for one in crossed.factors],
        cells=crossed.cells,
        steps=steps,
        fraction=table.fraction,
        interactions=table.interactions,
    )


def family_name(labels: Sequence[str], used: Container[str]) -> str:
    """The labels' common part (`kload-cpu` of `kload-cpu-10`), or all of them if taken; empty without one."""
    words = [label.split("-") for label in labels]
    common = "-".join(word for word in words[0] if all(word in others for others in words[1:]))
    return ", ".join(labels) if common in used else common
