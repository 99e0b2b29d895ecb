"""Checks of a study before anything is fetched, built or written: what `kduel run` and its --dry-run refuse alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kduel import schedulers
from kduel.benchmarks.support.commands import commands_of
from kduel.core.errors import InputError
from kduel.core.text import plural
from kduel.guest.size import mebibytes
from kduel.kernels import find_source

if TYPE_CHECKING:
    from kduel.core.cache import Cache
    from kduel.core.experiment import Contender
    from kduel.core.progress import Progress
    from kduel.machines import MachineKind
    from kduel.store.collect import PreparedSteps
    from kduel.store.documents import KernelRecord, Lock
    from kduel.study.load import Study


def check_at_once(
    study: Study,
    kind: MachineKind[Any],
    settings: Any,
    prepared: PreparedSteps,
    cache_root: Path,
    lock: Lock | None = None,
) -> None:
    """Raise what machine and contenders are refused for as far as that is seen at once; nothing is fetched, built or written. With the
    `lock` of a run that goes on, the kernels are those of the run."""
    check_unit(study, not kind.stays(study.machine_settings))
    for each in kind.read_all_settings(study.machine_settings, study.contenders):
        kind.check_host(each)
    kind.check_commands(
        settings, commands_of(zip(prepared.steps, prepared.benchmarks, prepared.parameters, strict=True))
    )
    for index, contender in enumerate(study.contenders):
        known = lock.kernels[index] if lock is not None else None
        if known is None or not known.unbuilt:
            spec = name_exactly(contender, known)
            kind.check_contender(settings, contender, spec)
            if architecture := kind.check_kernel(spec, contender.modules):
                kind.check_architecture(settings, spec, architecture)
        schedulers.check_at_once(contender, cache_root)


def unchecked_kernels(
    study: Study, lock: Lock | None, *, cache: Cache, offline: bool, ask: Progress | None = None
) -> list[str]:
    """Kernels of which only an archive knows whether there are such; a list of it that is still trusted is asked here. Raises
    what `KernelSource.check_kept` raises. `lock` is that of a run that goes on; with `ask`, which hears of it, archives are asked
    for their lists first."""
    unknown = []
    for index, contender in enumerate(study.contenders):
        known = lock.kernels[index] if lock is not None else None
        if known is not None and known.unbuilt:
            continue
        spec = name_exactly(contender, known)
        try:
            source = find_source(spec, contender.modules)
        except InputError:
            if ask is None:
                raise
            continue  # As the machine's own way to its kernels will say, or not.
        if ask is not None and not offline:
            source.ask_archive(spec, cache=cache, progress=ask)
        if not source.check_kept(spec, cache=cache, offline=offline):
            unknown.append(spec)
    return list(dict.fromkeys(unknown))


def name_exactly(contender: Contender, known: KernelRecord | None) -> str:
    """The specification of a contender's kernel; `known` is its record in a run that goes on."""
    exact: str = known.provenance.get("exact", contender.kernel) if known is not None else contender.kernel
    return exact


def check_kind(kind: MachineKind[Any], prepared: PreparedSteps) -> None:
    """Raises InputError where only another kind of machine can carry out a step."""
    for step, chosen in zip(prepared.steps, prepared.benchmarks, strict=True):
        if chosen.only_on not in ("", kind.name):
            raise InputError(
                f"{step.label} takes the machine {chosen.only_on}, and this study runs on {kind.name}",
                f"Give --machine {chosen.only_on}; or leave the step out.",
            )


def check_unit(study: Study, reboots: bool) -> None:
    """Raises InputError where trials are to be boots and the machine does not reboot."""
    if not reboots and study.blocks.unit != "load":
        raise InputError(
            f"the machine {study.machine} does not reboot, and the study's unit is the boot",
            'Choose the unit: write unit = "load" in [blocks].',
        )


def check_counted(study: Study, kind: MachineKind[Any], prepared: PreparedSteps) -> None:
    """Raises InputError where a step counts instructions by a clock that does not: its nanoseconds would be taken for them."""
    steps = zip(study.steps, prepared.benchmarks, prepared.parameters, strict=True)
    counted = [step.label for step, chosen, given in steps if chosen.counts_instructions(given)]
    if counted and not kind.exact:
        others = f" and {plural(len(counted) - 1, 'more benchmark')}" if counted[1:] else ""
        raise InputError(
            f"{counted[0]}{others} would count instructions, but the clock of the machine {study.machine} counts time",
            'Give --machine icount; or measure time: choose another suite, such as --suite quick, or mode = "time" in the study.',
        )


def check_peer(kind: MachineKind[Any], settings: Any, prepared: PreparedSteps) -> None:
    """Raises InputError where a step needs a peer, and the machine has none."""
    steps = zip(prepared.steps, prepared.benchmarks, prepared.parameters, strict=True)
    linked = [step.label for step, chosen, given in steps if chosen.needs_peer(given)]
    if linked and (reason := kind.why_no_peer(settings)):
        raise InputError(
            f"{linked[0]} needs a peer, a second machine over a network; {reason}",
            "The machine qemu boots it: give both guests together no more CPUs than this host has. A real machine takes "
            "[machine.peer]. Or leave the step out.",
        )


def check_room(settings: Any, prepared: PreparedSteps) -> None:
    """Raises InputError where a step takes more memory or scratch disk than the machine's settings say that it has."""
    for step, chosen, given in zip(prepared.steps, prepared.benchmarks, prepared.parameters, strict=True):
        room = chosen.room(given)
        for key, what, taken in (("memory", "memory", room.memory), ("disk", "its scratch disk", room.scratch)):
            size = getattr(settings, key, "")
            if size and taken >= mebibytes(size, key):
                raise InputError(
                    f"{step.label} takes {taken:,.0f} MiB of {what}, and the machine has {key} = {size!r} in all",
                    f"Make {room.keys} of [[benchmark]] {chosen.name} smaller, or {key} of [machine] larger.",
                )
