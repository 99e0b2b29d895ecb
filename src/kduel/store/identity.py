"""Whether a run may be continued: what makes two locks the same experiment, and the facts in which they differ."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from kduel.core.errors import InputError
from kduel.store.documents import Lock, study_of
from kduel.study.load import Study

PROVENANCE = ("spec", "provenance")
"""Of a kernel, how it was found: what is compared is what was found."""
MODULES = "modules"
"""Of a kernel, what older locks lack, and locks of machines with modules of their own."""
WAYS = ("entries",)
"""Of a machine's facts, those that only name how it boots what the other facts identify."""
PROTOCOL_FACTS = ("accelerator", "clock", "root", "busybox", "boot", "compilers")
"""Of a machine's facts, those that belong to how one measures, not to which machine it is. Of an exact machine all do:
its counts depend on no machine, and on each of these."""
ADDED = ("priority",)
"""Facts that earlier locks of the same schema lack: compared where both have them."""
OLD_ARGV = "argv"
"""QEMU's arguments, by contender. In schema 1 they held the cache's paths, and were kept by kernel specification; what a
user can set in them is compared by itself."""
MOST_NAMED = 5
"""Differences that a message lists."""
CONTINUED = "Continuing would mix two experiments. Restore what differs, or start a new run with another --out."
LONGEST = 60
"""Characters of a value in a message."""


def check_same_run(old: Lock, new: Lock, path: Path, remedy: str = CONTINUED) -> None:
    """Raises InputError, naming each fact that differs, where continuing would mix two experiments; `remedy` of those that
    do something else with the run."""
    found = differences(old, new)
    if found:
        raise differs(found, path, remedy)


def check_same_study(lock: Lock, study: Study, path: Path) -> None:
    """The same of what is known before anything is prepared: nothing is compared but what the study declares."""
    new = structs.replace(
        lock,
        study=study.about,
        blocks=study.blocks,
        settle=study.settle,
        machine=structs.replace(lock.machine, kind=study.machine, settings=study.machine_settings),
        contenders=study.contenders,
        steps=study.steps,
    )
    found = [*declared(lock, new), *compare("machine", *machines(lock, new))]
    if found:
        raise differs(found, path)


def differs(found: list[tuple[str, Any, Any]], path: Path, remedy: str = CONTINUED) -> InputError:
    """The error about what was `found` between the run in `path` and the one that is to be there."""
    return InputError(
        f"{path} holds a run that differs from this one:\n{listed(found, ('in the run', 'now'))}", remedy
    )


def listed(found: list[tuple[str, Any, Any]], names: tuple[str, str]) -> str:
    """The first differences, a line each; `names` are the sources of the values."""
    lines = [f"{what}: {told(was, now, names)}" for what, was, now in found[:MOST_NAMED]]
    lines += [f"and {len(found) - MOST_NAMED} more"] if len(found) > MOST_NAMED else []
    return "\n".join(f"  {line}" for line in lines)


def told(was: Any, now: Any, names: tuple[str, str]) -> str:
    """Both values; of two long lists of words, which a message would cut where they are still alike, what only one has."""
    if isinstance(was, str) and isinstance(now, str) and min(len(was), len(now)) > LONGEST:
        lists = was.split(","), now.split(",")
        own = [word for word in lists[0] if word not in lists[1]], [word for word in lists[1] if word not in lists[0]]
        said = [f"{short(', '.join(words))} only {name}" for words, name in zip(own, names, strict=True) if words]
        if said and min(len(words) for words in lists) > 1:
            return "; ".join(said)
    return f"{short(was)} {names[0]}, {short(now)} {names[1]}"


def protocol_differences(first: Lock, other: Lock) -> list[tuple[str, Any, Any]]:
    """As `differences`, of two runs that may have been made on different machines, with seeds and numbers of blocks of
    their own; what every trial went through must be the same."""
    kind = {lock.blocks.fixed is None for lock in (first, other)}
    free = {"study.max"} | ({"study.fixed"} if len(kind) == 1 else set())

    def protocol(lock: Lock) -> dict[str, Any]:
        facts = {
            name: value for name, value in lock.machine.facts.items() if lock.machine.exact or name in PROTOCOL_FACTS
        }
        return {
            "kind": lock.machine.kind,
            "exact": lock.machine.exact,
            "facts": facts,
            "edition": lock.edition,
            "covariates": lock.covariates,
        }

    found = [one for one in differences(first, other) if not one[0].startswith("machine.") and one[0] not in free]
    return found + list(compare("machine", protocol(first), protocol(other)))


def differences(old: Lock, new: Lock) -> list[tuple[str, Any, Any]]:
    """What was compared and differs: its name, its value in `old`, its value in `new`."""
    return [
        *declared(old, new),
        *compare("kernels", *kernels(old, new)),
        *compare("machine", *machines(old, new)),
        *compare("host", *host_rules(old, new)),
    ]


def declared(old: Lock, new: Lock) -> list[tuple[str, Any, Any]]:
    """Of the differences those in what the study declares about contenders, benchmarks and numbers."""
    return [
        *compare("contenders", {one.name: one for one in old.contenders}, {one.name: one for one in new.contenders}),
        *compare("benchmarks", {one.label: one for one in old.steps}, {one.label: one for one in new.steps}),
        *compare("order of the benchmarks", [one.label for one in old.steps], [one.label for one in new.steps]),
        *compare("study", numbers(old), numbers(new)),
    ]


def host_rules(old: Lock, new: Lock) -> tuple[Any, Any]:
    """When a trial is disturbed, by each. A run continues by its own rule where the study declares none: an older
    version made it, or one with another default."""
    asked = [lock.disturbance for lock in (old, new) if lock.disturbance is not None and lock.disturbance.strict]
    return (old.disturbance, new.disturbance) if asked else (None, None)


def compare(name: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """The leaves in which two values differ, as JSON has them; a missing one is None."""
    old, new = plain(old), plain(new)
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from compare(f"{name}.{key}", old.get(key), new.get(key))
    elif old != new:
        yield name, old, new


def plain(value: Any) -> Any:
    """The value as it comes back from JSON."""
    return msgspec.json.decode(msgspec.json.encode(value))


def kernels(old: Lock, new: Lock) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """By contender: the kernel's release and image, its modules where both locks know them, the scheduler, ...; not where
    they came from."""
    first, second = (
        {
            contender.name: {key: value for key, value in plain(kernel).items() if key not in PROVENANCE}
            for contender, kernel in zip(lock.contenders, lock.kernels, strict=True)
        }
        for lock in (old, new)
    )
    for name in first.keys() & second.keys():
        if MODULES not in first[name].keys() & second[name].keys():
            for kernel in (first[name], second[name]):
                kernel.pop(MODULES, None)
    return first, second


def numbers(lock: Lock) -> dict[str, Any]:
    """The study's numbers; its title and description may change."""
    about = {"delta": lock.study.delta, "alpha": lock.study.alpha, "machines": lock.study.machines}
    return about | {"settle": lock.settle} | structs.asdict(lock.blocks)


def machines(old: Lock, new: Lock) -> tuple[dict[str, Any], dict[str, Any]]:
    """The machines' kinds, settings and facts; where one lock is older, the facts that both have."""
    was, now = old.machine.facts, new.machine.facts
    left_out = set(WAYS) | {key for key in ADDED if key not in was or key not in now}
    if old.schema != new.schema:
        left_out |= {OLD_ARGV} | (was.keys() ^ now.keys())
    first, second = (
        {
            "kind": lock.machine.kind,
            "settings": lock.machine.settings,
            "exact": lock.machine.exact,
            "facts": {key: value for key, value in lock.machine.facts.items() if key not in left_out},
        }
        for lock in (old, new)
    )
    return first, second


def same_study(lock: Lock, study: Study) -> bool:
    """Whether a run was started from this study, as far as that is known before anything is prepared."""
    known = study_of(lock, study.text)
    return all(
        plain(getattr(known, key)) == plain(getattr(study, key))
        for key in ("contenders", "machine", "machine_settings", "settle", "blocks", "steps")
    ) and all(getattr(known.about, key) == getattr(study.about, key) for key in ("delta", "alpha", "machines"))


def short(value: Any) -> str:
    """A value in a message."""
    if value is None:
        return "nothing"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
