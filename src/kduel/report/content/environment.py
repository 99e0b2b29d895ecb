"""Environment of the trials, and its differences between the contenders, as rows of tables."""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from kduel.core.results import Difference, Results
from kduel.core.text import visible

ROWS = 400
"""So many rows of the environment are shown; the raw files have the rest."""
MOST_DIFFERENCES = 1000
"""Of a group."""
LONGEST = 300
LARGEST = 40
"""A table of more entries (a kernel's configuration, the packages of a root image) is only counted."""
FIRST = ("clocksource", "cmdline", "mitigations", "scheduler", "hardware", "machine", "conditions", "sysctl")
"""Groups that explain a difference in speed more often than others."""


class DifferenceGroup(Struct, kw_only=True):
    name: str
    declared: bool
    rows: list[tuple[list[str], dict[str, str | None]]]
    """What differs in the same way is one row: the keys, and the value of each contender; the rarest first."""
    count: int
    hidden: int


def difference_groups(results: Results) -> list[DifferenceGroup]:
    """The undeclared ones first, and of these the usual suspects first."""
    found: dict[tuple[bool, str], list[Difference]] = {}
    for difference in results.differences:
        found.setdefault((difference.declared, difference.group), []).append(difference)

    def rank(place: tuple[bool, str]) -> tuple[bool, int, str]:
        declared, group = place
        return declared, FIRST.index(group) if group in FIRST else len(FIRST), group

    return [
        DifferenceGroup(
            name=place[1],
            declared=place[0],
            rows=alike_rows(found[place][:MOST_DIFFERENCES]),
            count=len(found[place]),
            hidden=max(0, len(found[place]) - MOST_DIFFERENCES),
        )
        for place in sorted(found, key=rank)
    ]


def alike_rows(differences: list[Difference]) -> list[tuple[list[str], dict[str, str | None]]]:
    """The keys that differ in the same way with their values, the rarest first."""
    found: dict[str, tuple[list[str], dict[str, str | None]]] = {}
    for one in differences:
        found.setdefault(str(sorted(one.values.items())), ([], one.values))[0].append(one.key)
    return sorted(found.values(), key=lambda row: len(row[0]))


def environment_rows(results: Results) -> list[tuple[str, list[str]]]:
    """(key, value by contender) of all that was captured and of the machine; the same keys in one row."""
    names = [contender.name for contender in results.contenders]
    columns = [dict(flat(results.environment.get(name, {}))) for name in names]
    keys = list(dict.fromkeys(key for column in columns for key in column))
    machine = to_builtins(replace(results.machine, timing_warning=""))
    rows = [(f"machine: {key}", [value] * len(names)) for key, value in flat(machine)]
    rows += [(key, [column.get(key, "") for column in columns]) for key in keys]
    return rows[:ROWS]


def flat(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """A nested table as dotted keys, its leaves as short strings."""
    if isinstance(value, dict) and prefix and len(value) > LARGEST:
        yield visible(prefix, 120), f"{len(value):,} entries: see the raw files, and the differences above"
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from flat(inner, f"{prefix}.{name}" if prefix else str(name))
    elif isinstance(value, list) and all(not isinstance(inner, dict | list) for inner in value):
        yield visible(prefix, 120), visible(" ".join(map(str, value)), LONGEST)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from flat(inner, f"{prefix}.{number}")
    elif value not in (None, ""):
        yield visible(prefix, 120), visible(value, LONGEST)
