"""Checks of a study before anything is fetched, built or written: what `kduel run` and its --dry-run refuse alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kduel import schedulers
from kduel.benchmarks import Benchmark
from kduel.benchmarks.support import delays, load
from kduel.core.errors import InputError
from kduel.core.experiment import Step
from kduel.core.text import plural
from kduel.guest.size import mebibytes
from kduel.kernels import find_source
from kduel.machines import Needs
from kduel.study.plan import make_plan

if TYPE_CHECKING:
    from kduel.core.cache import Cache
    from kduel.core.experiment import Contender
    from kduel.core.progress import Progress
    from kduel.machines import MachineKind
    from kduel.store.collect import PreparedSteps
    from kduel.store.documents import KernelRecord, Lock
    from kduel.study.load import Study


EXACT_POINTS = 36.0
"""Points of pi that all exact CPUs together calculate in a microsecond of their clock."""

COMMANDS = {
    "apache2-utils": ("ab",), "dbench": ("dbench", "tbench", "tbench_srv"), "ethtool": ("ethtool",), "fio": ("fio",),
    "git": ("git",), "iperf3": ("iperf3",), "iproute2": ("ip", "tc"), "linux-cpupower": ("turbostat",),
    "libmemcached-tools": ("memcaslap", "memcping"), "linux-perf": ("perf",), "mariadb-client-core": ("mariadb",),
    "mariadb-server-core": ("mariadbd", "mariadb-install-db"), "memcached": ("memcached",),
    "netperf": ("netperf", "netserver"), "nginx-light": ("nginx",), "procps": ("vmstat",),
    "redis-server": ("redis-server",), "redis-tools": ("redis-cli", "redis-benchmark"),
    "rt-tests": ("cyclictest", "hackbench", "oslat", "signaltest"), "sqlite3": ("sqlite3",), "stress-ng": ("stress-ng",),
    "sysbench": ("sysbench",), "tcc": ("tcc",), "zstd": ("zstd",),
}  # fmt: skip
"""Commands in PATH, by the Debian package that has them."""


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
    kind.check_needs(settings, needs_of(prepared))
    steps = [(chosen, given) for _, chosen, given in prepared]
    for index, contender in enumerate(study.contenders):
        known = lock.kernels[index] if lock is not None else None
        if known is None or not known.unbuilt:
            spec = name_exactly(contender, known)
            kind.check_contender(settings, contender, spec)
            if architecture := kind.check_kernel(spec, contender.modules):
                kind.check_architecture(settings, spec, architecture)
        cpus = getattr(kind.read_settings(study.machine_settings | contender.machine), "cpus", None) or None
        schedulers.check_at_once(contender, cache_root, steps, cpus=cpus)


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


def needs_of(prepared: PreparedSteps) -> Needs:
    packages, programs, files, trial_files, modules = (
        set[str](),
        set[str](),
        set[tuple[str, Path]](),
        set[str](),
        set[str](),
    )
    for step, chosen, given in prepared:
        packages.update(chosen.packages_for(given))
        programs.update(chosen.programs, (delays.PROGRAM,) if step.schedstat else ())
        files.update(chosen.files_for(given))
        trial_files.update(chosen.trial_files)
        modules.update(chosen.modules_for(given), chosen.loaded_modules(given))
    loads = {load.of_step(step, given) for step, _, given in prepared} - {"", "idle"}
    return Needs(
        packages=tuple(sorted(packages | set(load.PACKAGES if loads else ()))), commands=commands_of(prepared),
        programs=tuple(sorted(programs)), files=tuple(sorted(files)), trial_files=tuple(sorted(trial_files)),
        modules=tuple(sorted(modules)), peer=any(chosen.needs_peer(given) for _, chosen, given in prepared),
        scratch=any(one.needs_scratch for one in prepared.benchmarks) or not loads.isdisjoint(load.NEED_SCRATCH),
    )  # fmt: skip


def name_exactly(contender: Contender, known: KernelRecord | None) -> str:
    """The specification of a contender's kernel; `known` is its record in a run that goes on."""
    exact: str = known.provenance.get("exact", contender.kernel) if known is not None else contender.kernel
    return exact


def check_kind(kind: MachineKind[Any], prepared: PreparedSteps) -> None:
    """Raises InputError where only another kind of machine can carry out a step."""
    for step, chosen, _ in prepared:
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
    counted = [step.label for step, chosen, given in prepared if chosen.counts_instructions(given)]
    if counted and not kind.exact:
        others = f" and {plural(len(counted) - 1, 'more benchmark')}" if counted[1:] else ""
        raise InputError(
            f"{counted[0]}{others} would count instructions, but the clock of the machine {study.machine} counts time",
            'Give --machine icount; or measure time: choose another suite, such as --suite quick, or mode = "time" in the study.',
        )


def check_peer(kind: MachineKind[Any], settings: Sequence[Any], prepared: PreparedSteps) -> None:
    """Raises InputError where a step needs a peer, and the machine has none with its own `settings`, or those of a contender."""
    linked = [step.label for step, chosen, given in prepared if chosen.needs_peer(given)]
    if linked and (reason := next(filter(None, map(kind.why_no_peer, settings)), "")):
        raise InputError(
            f"{linked[0]} needs a peer, a second machine over a network; {reason}",
            "The machine qemu boots it: give both guests together no more CPUs than this host has. A real machine takes "
            "[machine.peer]. Or leave the step out.",
        )
    if linked and len({getattr(each, "cpus", 0) for each in settings}) > 1:
        raise InputError(
            "a step needs a peer, and contenders have numbers of CPUs of their own",
            "Leave the step or the factor out: the host's CPUs are shared out to both guests once.",
        )


def check_turns(study: Study, kind: MachineKind[Any], settings: Any, prepared: PreparedSteps) -> None:
    """Raises InputError where the study asks for turns, and no machine with these settings can take them."""
    if study.blocks.turns in (None, "off"):
        return
    linked = any(chosen.needs_peer(given) for _, chosen, given in prepared)
    if study.blocks.unit != "load":
        if reason := kind.no_turns or "its guests have peers, which would run on" * linked:
            raise refused_turns(study, reason)
        return
    if study.blocks.turns != 0 or any(step.turns for step in study.steps):
        raise InputError(
            'contenders that share a boot (unit = "load") take whole slices in turn: nothing stops one inside a slice',
            "Write turns = 0 in [blocks] and no turns in [[benchmark]], or give --turns 0 or off.",
        )
    serving = next((step.label for step, chosen, given in prepared if chosen.service(given)), None)
    boots = {trial.boot for trial in make_plan(study, 0) if trial.block == 1}
    reasons = {
        f"the machine {study.machine} counts exactly": kind.exact,
        f"the machine {study.machine} has a peer": linked
        or (kind.installed_kernels and not kind.why_no_peer(settings)),
        f"{serving} has a server, which would work in the others' turns": serving is not None,
        "they need several boots, as they differ in kernel, modules, command line or machine": len(boots) > 1,
    }
    if shared := next((why for why, holds in reasons.items() if holds), None):
        raise InputError(
            f"contenders that share a boot cannot take turns: {shared}",
            'Write turns = "off" in [blocks], or give --turns off.',
        )


def refused_turns(study: Study, reason: str) -> InputError:
    """The error where a study asks for turns that its machine cannot take."""
    told = f"the machine {study.machine} cannot take turns: {reason}"
    return InputError(told, 'Write turns = "off" in [blocks], or give --turns off.')


def check_load_of_host(study: Study, recorded: bool) -> None:
    """Raises InputError where the study has a rule for the load of the host, and that is not recorded."""
    if not recorded and (study.host.max_wait is not None or study.host.covariate):
        raise InputError(
            f"the machine {study.machine} does not record the load of its host, so [host] cannot be applied",
            "Leave max_wait and covariate out of [host], or measure on the machine qemu.",
        )


def check_speed(settings: Any, prepared: PreparedSteps) -> None:
    """Raises InputError where a step counts on CPUs that are over four times as fast as exact ones, of one speed each."""
    if not getattr(settings, "scheduling", False):
        return
    own = EXACT_POINTS / settings.cpus
    for step, chosen, given in prepared:
        if (speed := getattr(given, "speed", 0)) > 4 * own:
            raise InputError(
                f"{step.label} counts on CPUs of speed = {speed:g}, and {settings.cpus} exact CPUs have {own:g} each",
                f"Give speed = {own:g} in [[benchmark]] {chosen.name}, or -b {chosen.name}:speed={own:g}.",
            )


def check_room(settings: Any, prepared: PreparedSteps) -> None:
    """Raises InputError where a step takes more memory or scratch disk than the machine's settings say that it has."""
    for step, chosen, given in prepared:
        room = chosen.room(given)
        for key, what, taken in (("memory", "memory", room.memory), ("disk", "its scratch disk", room.scratch)):
            size = getattr(settings, key, "")
            if size and taken >= mebibytes(size, key):
                raise InputError(
                    f"{step.label} takes {taken:,.0f} MiB of {what}, and the machine has {key} = {size!r} in all",
                    f"Make {room.keys} of [[benchmark]] {chosen.name} smaller, or {key} of [machine] larger.",
                )


def commands_of(steps: Iterable[tuple[Step, Benchmark[Any], Any]]) -> tuple[tuple[str, str, str], ...]:
    """Each command once, with its package and the label of the first step that runs it; steps come with benchmark and parameters."""
    found: dict[str, tuple[str, str, str]] = {}
    for step, chosen, given in steps:
        under = load.of_step(step, given)
        service = None if chosen.needs_peer(given) else chosen.service(given)
        text = f"{chosen.script(given)}\n{service.start if service else ''}\n{load.COMMANDS.get(under, '')}"
        for package in (*chosen.packages_for(given), *load.PACKAGES):
            for command in COMMANDS.get(package, ()):
                if re.search(rf"(?<![\w./$-]){re.escape(command)}(?![\w.-])", text):
                    found.setdefault(command, (command, package, step.label))
    return tuple(found.values())
