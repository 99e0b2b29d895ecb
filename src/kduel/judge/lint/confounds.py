"""Undeclared differences between the arms: their captured environments, compared leaf by leaf."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct

from kduel.core.experiment import Contender
from kduel.core.results import Difference
from kduel.core.toml import table_beside

Environment = Mapping[str, Any]

_TABLE = table_beside(__file__)
GROUPS = {key: group for group, keys in _TABLE["groups"].items() for key in keys}
ORDER = (
    "kernel", "scheduler", "clocksource", "cmdline", "mitigations", "sysctl", "conditions", "hardware", "packages",
)  # fmt: skip
"""Of the groups; unknown ones follow, the kernel's configuration comes last since it is the longest."""
VOLATILE = frozenset(_TABLE["volatile"])
TAINTED = "kernel.tainted"
TROUBLE = 1 << 4 | 1 << 5 | 1 << 7 | 1 << 9 | 1 << 14
"""Of the taint flags (Documentation/admin-guide/tainted-kernels.rst): machine check, bad page, oops, warning and soft lockup
happen to a kernel and are findings in its log; they are no setting in which contenders differ."""
TOPICS: dict[str, str] = _TABLE["topics"]
TOPIC_NAMES = (*TOPICS, "other")
ABSENT = (None, "n", "not set", "is not set", "")
"""An option that a kernel does not know is as little built in as one that is off."""
EVERY_MITIGATION = frozenset(("mitigations",))
SET_BY = {(group, key): frozenset(names) for group, keys in _TABLE["set_by"].items() for key, names in keys.items()}
OF_SETTINGS: dict[str, list[str]] = _TABLE["of_settings"]
LATER = {"peer": None, "conditions": ("renicers",)}
"""By group, the keys that versions before 0.2 do not record, None for all: a trial without one does not contradict another."""
NEAR = 0.02
"""MemTotal differs a little from kernel to kernel on the same machine."""
LONGEST = 300


class DeclaredDifferences(Struct, frozen=True, kw_only=True):
    kernels: bool = False
    cmdline: frozenset[str] = frozenset()
    """Words, and their names before the `=`."""
    sysctl: frozenset[str] = frozenset()
    scheduler: bool = False
    keys: frozenset[str] = frozenset()
    """Further groups (`packages`), keys (`release`) or both (`conditions.cooldown`)."""


def declared_by(contenders: Sequence[Contender], keys: Sequence[str] = ()) -> DeclaredDifferences:
    """Settings that differ between the contenders' tables, and `keys` besides."""

    def differ(what: list[Any]) -> bool:
        return any(each != what[0] for each in what)

    words = [set(contender.cmdline.split()) for contender in contenders]
    changed: set[str] = set().union(*words) - (set(words[0]).intersection(*words) if words else set())
    sysctls = {key for contender in contenders for key in contender.sysctl}
    machines = {key for contender in contenders for key in contender.machine}
    varied = {key for key in machines if differ([contender.machine.get(key) for contender in contenders])}
    return DeclaredDifferences(
        kernels=differ([(contender.kernel, contender.modules) for contender in contenders]),
        cmdline=frozenset(changed | {word.partition("=")[0] for word in changed}),
        sysctl=frozenset(key for key in sysctls if differ([contender.sysctl.get(key) for contender in contenders])),
        scheduler=differ([(contender.scheduler, contender.policy) for contender in contenders]),
        keys=frozenset(keys).union(*(OF_SETTINGS.get(key, ()) for key in varied)),
    )


def differences(environments: Mapping[str, Sequence[Environment]], declared: DeclaredDifferences) -> list[Difference]:
    """Every leaf of the environments that differs between the contenders, the weightier groups first. Trials of one
    that differ among themselves show so: `tsc (7 of 10), hpet (3 of 10)`; a contender without trials is left out."""
    known = {name: list(trials) for name, trials in environments.items() if any(trials)}
    if len(known) < 2:
        return []
    leaves = {name: leaves_of(trials) for name, trials in known.items()}
    same_model = len({str(trials[0].get("cpu_model")) for trials in known.values()}) == 1
    found = []
    tables = list(leaves.values())
    for path in dict.fromkeys(chain.from_iterable(tables)):
        group, key = path
        values = [table.get(path) for table in tables]
        if are_alike(group, key, values) or (None in values and is_of_later(group, key)):
            continue
        shown = only_different(values) if isinstance(values[0], frozenset) else values
        found.append(
            Difference(
                group=group,
                key=key,
                values={name: text(value) for name, value in zip(leaves, shown, strict=True)},
                declared=is_declared(group, key, values, declared, same_model) or follows(path, leaves, declared),
            )
        )
    return sorted(found, key=weight)


def leaves_of(trials: Sequence[Environment]) -> dict[tuple[str, str], Any]:
    """By group and key, what a contender's trials captured; a Counter of texts where they do not agree."""
    first = trials[0]
    merged: dict[tuple[str, str], Any] = {}
    for top in dict.fromkeys(key for trial in trials for key in trial):
        if top in VOLATILE:
            continue
        # Most keys are the same in every trial, and comparing them whole is quick.
        if all(top in trial and trial[top] == first.get(top) for trial in trials):
            merged |= flatten(top, first[top])
            continue
        tables = [flatten(top, trial.get(top)) for trial in trials]
        for path in dict.fromkeys(path for table in tables for path in table):
            values = [table.get(path) for table in tables]
            if is_of_later(*path):
                values = [value for value in values if value is not None]
            same = all(value == values[0] for value in values)
            merged[path] = values[0] if same else Counter(text(value) or "missing" for value in values)
    return merged


def is_of_later(group: str, key: str) -> bool:
    """True if older trials of a run that goes on may lack this."""
    keys = LATER.get(group, ())
    return keys is None or key in keys


def flatten(top: str, value: Any) -> dict[tuple[str, str], Any]:
    """A top-level key as leaves: (group, key) to a scalar, or a set where the order has no meaning."""
    if top == "cmdline" and isinstance(value, str):
        return {("cmdline", word.partition("=")[0]): word for word in value.split()}
    if not isinstance(value, Mapping):
        return {(GROUPS.get(top, "conditions"), top): leaf(value)}
    group = GROUPS.get(top, top)
    return {(group, key): found for key, found in branches(value, top if top != group else "") if key not in VOLATILE}


def branches(value: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """A nested table as dotted keys with their leaves."""
    for key, inner in value.items():
        name = f"{prefix}.{key}" if prefix else str(key)
        if isinstance(inner, dict):
            yield from branches(inner, name)
        elif name == TAINTED and str(inner).isdecimal():
            yield name, str(int(inner) & ~TROUBLE)
        else:
            yield name, leaf(inner)


def leaf(value: Any) -> Any:
    """A list counts as a set: flags and modules come in any order."""
    return frozenset(map(str, value)) if isinstance(value, list | tuple) else value


def are_alike(group: str, key: str, values: list[Any]) -> bool:
    """True if this is no difference."""
    # First and quickly what most of thousands of configuration options are.
    if not isinstance(values[0], Counter) and values.count(values[0]) == len(values):
        return True
    if any(isinstance(value, Counter) for value in values):
        return False
    if group == "config":
        values = [None if value in ABSENT else value for value in values]
    if key == "memory_kib" and all(isinstance(value, int | float) and value > 0 for value in values):
        return bool(max(values) <= (1 + NEAR) * min(values))
    return all(value == values[0] for value in values)


def only_different(values: list[Any]) -> list[Any]:
    """Sets without what all of them have."""
    sets = [value if isinstance(value, frozenset) else frozenset() for value in values]
    common = frozenset.intersection(*sets)
    return [value - common for value in sets]


def is_declared(group: str, key: str, values: list[Any], declared: DeclaredDifferences, same_model: bool) -> bool:
    """True if the study declares this difference, or it follows from what it declares."""
    if any(isinstance(value, Counter) for value in values):
        return False
    if {group, key, f"{group}.{key}"} & declared.keys:
        return True
    match group:
        case "kernel" | "config":
            return declared.kernels
        case "scheduler":
            return declared.scheduler
        case "cmdline":
            return key in declared.cmdline or (declared.kernels and key == "BOOT_IMAGE")
        case "sysctl":
            # A kernel that lacks the knob lacks it by design; one that has another default differs.
            return key in declared.sysctl or (declared.kernels and None in values)
        case "hardware":
            # Newer kernels name more flags of the same processor.
            return declared.kernels and same_model and key == "cpu_flags"
    return False


def follows(
    path: tuple[str, str], leaves: Mapping[str, Mapping[tuple[str, str], Any]], declared: DeclaredDifferences
) -> bool:
    """True if a declared difference of the command lines sets this property: equal parameters give equal values."""
    parameters = SET_BY.get(path, frozenset()) | (EVERY_MITIGATION if path[0] == "mitigations" else frozenset())
    if not parameters & declared.cmdline:
        return False
    found: dict[tuple[Any, ...], list[Any]] = {}
    for table in leaves.values():
        given = tuple(table.get(("cmdline", name)) for name in sorted(parameters))
        found.setdefault(given, []).append(table.get(path))
    return len(found) > 1 and all(
        not isinstance(value, Counter) and value == values[0] for values in found.values() for value in values
    )


def text(value: Any) -> str | None:
    """A leaf as a report shows it, bounded."""
    if value is None:
        return None
    if isinstance(value, Counter):
        total = sum(value.values())
        words = ", ".join(f"{what} ({count} of {total})" for what, count in value.most_common())
    elif isinstance(value, frozenset):
        words = " ".join(sorted(value))
    elif isinstance(value, bool):
        words = "yes" if value else "no"
    else:
        words = str(value)
    return words if len(words) <= LONGEST else words[: LONGEST - 1] + "…"


def topic(option: str) -> str:
    """Topic of a kernel configuration option: one of TOPIC_NAMES."""
    name = option.removeprefix("CONFIG_")
    return next((topic for topic, pattern in TOPICS.items() if re.search(pattern, name)), "other")


def weight(difference: Difference) -> tuple[int, int, str]:
    """Sort key of a difference in the table."""
    if difference.group == "config":
        return len(ORDER) + 1, TOPIC_NAMES.index(topic(difference.key)), difference.key
    place = ORDER.index(difference.group) if difference.group in ORDER else len(ORDER)
    return place, 0, f"{difference.group}.{difference.key}"
