"""Identity of experiments: the facts that two locks must share for a run to be continued, and those in which they differ."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from kduel.core.errors import InputError
from kduel.core.experiment import Step
from kduel.store.documents import KernelRecord, Lock
from kduel.study.file import MOST, Blocks
from kduel.study.load import Study

PROVENANCE = ("spec", "provenance")
"""Of a kernel, how it was found: what is compared is what was found."""
WAYS = ("entries",)
"""Of a machine's facts, those that only name how it boots what the other facts identify."""
PROTOCOL_FACTS = ("accelerator", "clock", "root", "busybox", "boot", "compilers")
"""Facts that belong to the way of measuring, not to the machine; counts of an exact one depend on each."""
MOST_NAMED = 5
"""Differences that a message lists."""
CONTINUED = "Continuing would mix two experiments. Restore what differs, or start a new run with another --out."
LONGEST = 60
"""Characters of a value in a message."""


def check_same_run(old: Lock, new: Lock, path: Path, remedy: str = CONTINUED) -> None:
    """Raises InputError naming each fact that differs where continuing would mix two experiments."""
    found = differences(old, new)
    if found:
        raise mismatch_error(found, path, remedy)


def check_same_study(lock: Lock, study: Study, path: Path, remedy: str = CONTINUED) -> None:
    """Raises InputError, naming each fact that differs, where the run in `path` was started from another study."""
    found = study_differences(lock, study)
    if found:
        raise mismatch_error(found, path, remedy)


def same_study(lock: Lock, study: Study) -> bool:
    """True if a run was started from this study, as far as that is known before anything is prepared."""
    return not study_differences(lock, study)


def study_differences(lock: Lock, study: Study) -> list[tuple[str, Any, Any]]:
    """Differences between a run and a study in what the study declares: known before anything is prepared."""
    new = structs.replace(
        lock,
        study=study.about,
        blocks=as_begun(study, lock),
        settle=study.settle,
        machine=structs.replace(lock.machine, kind=study.machine, settings=study.machine_settings),
        contenders=study.contenders,
        kernels=[KernelRecord(spec="")] * len(study.contenders),  # Not known yet, and not compared.
        steps=study.steps,
    )
    return [*declared_differences(lock, new), *value_differences("machine", *machine_facts(lock, new))]


def as_begun(study: Study, lock: Lock) -> Blocks:
    """The table of a study for a run that goes on: what the study does not say is as it was when the run began."""
    blocks, begun = study.blocks, lock.blocks
    turns = begun.turns if blocks.turns is None else blocks.turns
    most = blocks.max
    if study.machine == lock.machine.kind == "icount" and begun.max in (1, MOST):
        # The usual number was MOST, or 1 with scheduling, which even a MOST that was stated became.
        once = study.machine_settings.get("scheduling") and study.machine_settings.get("online") != "both"
        if study.usual or (once and most == MOST):
            most = begun.max
    return structs.replace(blocks, max=most, turns=turns, reduce=blocks.reduce or begun.reducer)


def mismatch_error(found: list[tuple[str, Any, Any]], path: Path, remedy: str = CONTINUED) -> InputError:
    """The error about what was `found` between the run in `path` and the one that is to be there."""
    return InputError(
        f"{path} holds a run that differs from this one:\n{differences_text(found, ('in the run', 'now'))}", remedy
    )


def differences_text(found: list[tuple[str, Any, Any]], names: tuple[str, str]) -> str:
    """The first differences, a line each; `names` are the sources of the values."""
    lines = [f"{what}: {value_texts(was, now, names)}" for what, was, now in found[:MOST_NAMED]]
    lines += [f"and {len(found) - MOST_NAMED} more"] if len(found) > MOST_NAMED else []
    return "\n".join(f"  {line}" for line in lines)


def value_texts(was: Any, now: Any, names: tuple[str, str]) -> str:
    """Both values; of two long lists of words, which a message would cut where they are still alike, what only one has."""
    if isinstance(was, str) and isinstance(now, str) and min(len(was), len(now)) > LONGEST:
        lists = was.split(","), now.split(",")
        own = [word for word in lists[0] if word not in lists[1]], [word for word in lists[1] if word not in lists[0]]
        said = [
            f"{short_value(', '.join(words))} only {name}" for words, name in zip(own, names, strict=True) if words
        ]
        if said and min(len(words) for words in lists) > 1:
            return "; ".join(said)
    return f"{short_value(was)} {names[0]}, {short_value(now)} {names[1]}"


def protocol_differences(first: Lock, other: Lock) -> list[tuple[str, Any, Any]]:
    """Differences between two runs in what every trial went through; machines, seeds and numbers of blocks may differ."""
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
    return found + list(value_differences("machine", protocol(first), protocol(other)))


def differences(old: Lock, new: Lock) -> list[tuple[str, Any, Any]]:
    """Facts that differ: name, value in `old`, value in `new`."""
    return [
        *declared_differences(old, new),
        *value_differences("kernels", *kernel_facts(old, new)),
        *value_differences("machine", *machine_facts(old, new)),
        *value_differences("host", *host_rules(old, new)),
    ]


def declared_differences(old: Lock, new: Lock) -> list[tuple[str, Any, Any]]:
    """Differences in what the study declares about contenders, benchmarks and numbers."""
    return [
        *value_differences(
            "contenders", {one.name: one for one in old.contenders}, {one.name: one for one in new.contenders}
        ),
        *value_differences("benchmarks", steps_of(old), steps_of(new)),
        *order_differences(
            "order of the contenders", [one.name for one in old.contenders], [one.name for one in new.contenders]
        ),
        *order_differences(
            "order of the benchmarks", [one.label for one in old.steps], [one.label for one in new.steps]
        ),
        *value_differences("factors", old.design, new.design),
        *value_differences("bound", old.bound, new.bound),
        *value_differences("study", study_numbers(old), study_numbers(new)),
    ]


def steps_of(lock: Lock) -> dict[str, Step]:
    """By label, as they are on an emulated machine: whether a study's machine is one may not be known yet."""
    return {step.label: step.on(emulated=True) for step in lock.steps}


def host_rules(old: Lock, new: Lock) -> tuple[Any, Any]:
    """The rule of disturbance of each. Without one in the study a run continues by its own: defaults may change."""
    asked = [lock.disturbance for lock in (old, new) if lock.disturbance is not None and lock.disturbance.strict]
    return (old.disturbance, new.disturbance) if asked else (None, None)


def value_differences(name: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """The leaves in which two values differ, as JSON has them; a missing one is None."""
    old, new = as_json_value(old), as_json_value(new)
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from value_differences(f"{name}.{key}", old.get(key), new.get(key))
    elif old != new:
        yield name, old, new


def order_differences(name: str, old: list[str], new: list[str]) -> Iterator[tuple[str, Any, Any]]:
    """Both orders, where the same names stand in another one. The first contender is the baseline of every verdict."""
    if old != new and sorted(old) == sorted(new):
        yield name, old, new


def as_json_value(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def kernel_facts(old: Lock, new: Lock) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """By contender: the kernel's release, image and modules, the scheduler, ...; not where they came from."""
    first, second = (
        {
            contender.name: {key: value for key, value in as_json_value(kernel).items() if key not in PROVENANCE}
            for contender, kernel in zip(lock.contenders, lock.kernels, strict=True)
        }
        for lock in (old, new)
    )
    return first, second


def study_numbers(lock: Lock) -> dict[str, Any]:
    """The study's numbers; its title and description may change."""
    about = {"delta": lock.study.delta, "alpha": lock.study.alpha, "machines": lock.study.machines}
    # A run from before there were turns has none.
    turns = "off" if lock.blocks.turns is None else lock.blocks.turns
    return about | {"settle": lock.settle} | structs.asdict(lock.blocks.follow_turns()) | {"turns": turns}


def machine_facts(old: Lock, new: Lock) -> tuple[dict[str, Any], dict[str, Any]]:
    first, second = (
        {
            "kind": lock.machine.kind,
            "settings": lock.machine.settings,
            "exact": lock.machine.exact,
            "facts": {key: value for key, value in lock.machine.facts.items() if key not in WAYS},
        }
        for lock in (old, new)
    )
    return first, second


def short_value(value: Any) -> str:
    if value is None:
        return "nothing"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
