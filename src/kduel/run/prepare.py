"""A study made concrete: kernels fetched or built, a machine prepared, and lock.json of what will be measured."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from kduel.benchmarks import Benchmark
from kduel.core.cache import Cache
from kduel.core.editions import EDITION
from kduel.core.errors import HostError, InputError, NotMeasuredError
from kduel.core.experiment import Contender, MachineRecord
from kduel.core.host import OTHER_WORK
from kduel.core.progress import Progress
from kduel.core.this_host import machine_hash, text_of
from kduel.core.turns import DEFAULT_MS, Turns
from kduel.core.version import full_version
from kduel.judge.verdict.comparison import is_of_time
from kduel.kernels import Kernel
from kduel.machines import Arm, Machine, MachineKind, Means, Needs, machine_kind
from kduel.run import check
from kduel.run.script import TrialSetup
from kduel.store.collect import PreparedSteps
from kduel.store.documents import Disturbance, HostRecord, KernelRecord, Lock
from kduel.store.identity import as_begun, check_same_run
from kduel.store.rundir import RunDir
from kduel.study.file import Blocks
from kduel.study.load import Study
from kduel.study.plan import make_plan

VIRTUAL_TIME = (
    "The clock of this machine counts instructions, one a nanosecond: times and rates are in virtual time. They show path "
    "lengths and scheduling on one CPU, not the speed of hardware. --suite exact counts instructions "
    'per operation, as does mode = "exact" of the benchmark kbench in a study.'
)
"""Warning about times and rates on a machine whose clock counts."""
QUIET_SECONDS = 10.0
"""Longest wait for a quiet host, by default, while nothing shows that the host is ever quiet."""
BETWEEN_BURSTS_SECONDS = 60.0
"""Longest wait on a host that has been quiet in the run."""


class ResolvedStudy(Struct, kw_only=True):
    """A study with its kernels: all that its machine is to be prepared for."""

    study: Study
    kind: MachineKind[Any]
    settings: Any
    """The machine's."""
    prepared: PreparedSteps
    arms: list[Arm] = []
    unbuilt: dict[str, str] = {}
    """Contenders that have no kernel to boot, and why."""
    begun: bool = False
    """True for a run that goes on, in its own mode."""

    def for_part(self, part: Study, origin: str) -> ResolvedStudy:
        """Another study of the same contenders, with these very kernels. Raises InputError."""
        kernels = {arm.contender.name: arm.kernel for arm in self.arms}
        arms = [Arm(one, kernels[one.name]) for one in part.contenders if one.name in kernels]
        return structs.replace(read_study(part, origin), arms=arms, unbuilt=self.unbuilt)


class Ready(Struct, kw_only=True):
    """A study made concrete: everything slow that is not a trial is done."""

    study: Study
    arms: list[Arm]
    machine: Machine
    prepared: PreparedSteps
    setup: TrialSetup
    unbuilt: dict[str, str] = {}
    """Contenders that have no kernel to boot, and why: it does not build. They have no arm."""


def make_ready(
    study: Study,
    *,
    cache: Cache,
    progress: Progress,
    offline: bool = False,
    lock: Lock | None = None,
    origin: str = "",
) -> Ready:
    """Get the kernels (`get_kernels`) and prepare the machine (`get_machine`). Raises what sources and machines raise."""
    means = Means(cache=cache, progress=progress, offline=offline)
    return get_machine(get_kernels(read_study(study, origin, lock), lock=lock, **means), **means)


def read_study(study: Study, origin: str = "", lock: Lock | None = None) -> ResolvedStudy:
    """A study whose settings fit its machine and its benchmarks; nothing is fetched. Raises InputError. `origin`, the
    study's file or suite, is named where the machine's settings are wrong; `lock` is that of a run that goes on, whose
    results are as they are."""
    kind = machine_kind(study.machine)
    try:
        settings = kind.read_settings(study.machine_settings)
        own = kind.read_all_settings(study.machine_settings, study.contenders)
    except InputError as error:
        where = "--machine" if origin.startswith("--") else origin
        raise InputError(f"{where}: {error.message}" if where else error.message, error.remedy) from error
    prepared = PreparedSteps(study.steps, study.blocks)
    check.check_kind(kind, prepared)
    check.check_counted(study, kind, prepared)
    check.check_turns(study, kind, settings, prepared)
    check.check_load_of_host(study, kind.exact or kind.records_host)
    check.check_peer(kind, [settings, *own], prepared)
    for each in own:
        check.check_room(each, prepared)
        if lock is None:
            check.check_speed(each, prepared)
    return ResolvedStudy(study=study, kind=kind, settings=settings, prepared=prepared)


def get_kernels(
    chosen: ResolvedStudy, *, cache: Cache, progress: Progress, offline: bool = False, lock: Lock | None = None
) -> ResolvedStudy:
    """Resolve the study's kernels; with the `lock` of a run that goes on, those of the run. One that does not build
    is left out where another is left to compare. Raises what sources raise."""
    study, kind = chosen.study, chosen.kind
    begun = lock is not None and bool(lock.prepared or lock.fleet)
    if lock is not None and begun:
        # One from before there were turns has none.
        blocks = as_begun(study, lock)
        study = structs.replace(
            study, blocks=structs.replace(blocks, turns="off" if blocks.turns is None else blocks.turns)
        )
    if lock is None:
        # Whatever no archive has is told before the first package is fetched.
        check.unchecked_kernels(study, lock, cache=cache, offline=offline, ask=progress)
    arms = []
    # Each once: a matrix of policies or command lines names one kernel many times.
    kernels: dict[tuple[str, str], Kernel | NotMeasuredError] = {}
    unbuilt: dict[str, str] = {}
    for index, contender in enumerate(study.contenders):
        known = lock.kernels[index] if lock is not None else None
        if known is not None and known.unbuilt:
            unbuilt[contender.name] = known.unbuilt
            continue
        spec = check.name_exactly(contender, known)
        key = spec, contender.modules
        if key not in kernels:
            try:
                found = kind.kernel(spec, cache=cache, progress=progress, offline=offline, modules=contender.modules)
            except NotMeasuredError as error:
                kernels[key] = error
            else:
                kind.check_architecture(chosen.settings, found.spec, found.architecture)
                kernels[key] = found
        kernel = kernels[key]
        if not isinstance(kernel, NotMeasuredError):
            arms.append(Arm(contender, kernel))
        elif index == 0 or len(study.contenders) - len(unbuilt) <= 2:
            raise kernel
        else:
            unbuilt[contender.name] = str(kernel)
            progress.warn(f"{contender.name} is left out: {kernel}")
    return structs.replace(chosen, study=study, arms=arms, unbuilt=unbuilt, begun=begun)


def collect_needs(chosen: ResolvedStudy, dress: TrialSetup) -> Needs:
    return dress.add_needs(check.needs_of(chosen.prepared))


def prepare_early(chosen: ResolvedStudy, *, cache: Cache, progress: Progress, offline: bool = False) -> None:
    """Make what the machine needs and no kernel determines, beside `get_kernels`. Raises what machines raise."""
    needs = collect_needs(chosen, TrialSetup(chosen.study, (), chosen.prepared, cache=cache))
    chosen.kind.prepare_early(chosen.settings, needs, cache=cache, progress=progress, offline=offline)


def get_machine(chosen: ResolvedStudy, *, cache: Cache, progress: Progress, offline: bool = False) -> Ready:
    """Prepare the machine for the kernels. Raises what machines raise."""
    study, arms, prepared = chosen.study, chosen.arms, chosen.prepared
    dress = TrialSetup(study, arms, prepared, cache=cache)
    needs = collect_needs(chosen, dress)
    machine = chosen.kind.prepare(chosen.settings, arms, needs, cache=cache, progress=progress, offline=offline)
    check.check_unit(study, machine.reboots)
    blocks = structs.replace(
        study.blocks, turns=choose_turns(study, machine, len(arms), progress, begun=chosen.begun)
    )
    study = structs.replace(study, blocks=blocks.follow_turns())
    if chosen.kind.exact and not machine.timing_warning and has_timings(prepared):
        machine.timing_warning = VIRTUAL_TIME
    steps = [step.on(machine.emulated) for step in study.steps]
    if machine.behaviour_only:
        steps = [
            structs.replace(step, primary=[name for name in step.primary if name not in times_of(benchmark, given)])
            for step, (_, benchmark, given) in zip(steps, prepared, strict=True)
        ]
    study = structs.replace(study, steps=steps)
    # In turns steps may be cut otherwise than was known before.
    dress.study, dress.prepared = study, PreparedSteps(steps, study.blocks)
    return Ready(
        study=study, arms=arms, machine=machine, prepared=dress.prepared, setup=dress, unbuilt=chosen.unbuilt
    )


def choose_turns(study: Study, machine: Machine, guests: int, progress: Progress, *, begun: bool = False) -> Turns:
    """The turns of a run's guests: those of the study, or DEFAULT_MS where the machine can take them, as far as the host has room
    for all guests of a block. Raises InputError where the study asks for turns that the machine cannot take, HostError where a run
    that was `begun` in turns has no room any more."""
    wanted = study.blocks.turns
    if study.blocks.unit == "load":
        return "off" if wanted is None else wanted
    length = DEFAULT_MS if wanted is None else wanted
    if length == "off" or (wanted is None and (guests < 2 or not machine.emulated)):
        return "off"
    reason = machine.why_no_turns()
    if reason and wanted is None:
        return "off"
    if reason:
        raise check.refused_turns(study, reason)
    if (reason := machine.why_no_room(guests)) and begun:
        raise HostError(
            f"the contenders of this run take turns, for which all are alive at once, and {reason}",
            "Free memory, and go on with the same command; or start a new run with another --out and --turns off.",
        )
    if reason:
        progress.warn(f"No turns, one boot after the other: {reason}.")
        return "off"
    return length


def describe_turns(blocks: Blocks, contenders: int) -> str:
    """A sentence on the turns that a run takes; empty where it takes none."""
    if not blocks.in_turns:
        return ""
    if not blocks.side_by_side:
        return "The contenders of a boot take turns of whole slices: each sets what is its own for a slice, and takes it back."
    how = f"turns of {blocks.turns} ms" if blocks.turns else "turns of whole slices"
    return (
        f"The {contenders} contenders of a block are alive at once and take {how}: in a step one runs at any moment."
    )


def has_timings(prepared: PreparedSteps) -> bool:
    """True if a benchmark gives times or rates, and not counts of instructions."""
    return any(times_of(chosen, given) for _, chosen, given in prepared if not chosen.counts_instructions(given))


def times_of(benchmark: Benchmark[Any], given: Any) -> set[str]:
    return {metric.name for metric in benchmark.metrics(given) if is_of_time(metric.unit)}


def open_run(ready: Ready, path: Path, *, origin: str, seed: int) -> RunDir:
    """The run in `path`, made where there is none. Raises InputError where `path` holds another run."""
    new = make_lock(ready, seed, origin)
    if not (path / "lock.json").is_file():
        return RunDir.create(path, ready.study.text, new, make_plan(ready.study, seed))
    run = RunDir.open(path)
    old = run.lock(prepared=False)
    lock = old if old.prepared else add_machine(old, ready)
    check_same_run(lock, new, path)
    if not old.prepared:
        run.complete(lock)
    return run


def open_early(chosen: ResolvedStudy, path: Path, *, origin: str, seed: int) -> RunDir:
    """The run in `path`, made where there is none, before the machine is prepared: for a run with an exact part."""
    if (path / "lock.json").is_file():
        return RunDir.open(path)
    lock = make_early_lock(chosen.study, chosen.arms, chosen.unbuilt, seed, origin)
    return RunDir.create(path, chosen.study.text, lock, make_plan(chosen.study, seed))


def make_lock(ready: Ready, seed: int, origin: str) -> Lock:
    return add_machine(make_early_lock(ready.study, ready.arms, ready.unbuilt, seed, origin), ready)


def make_early_lock(study: Study, arms: Sequence[Arm], unbuilt: dict[str, str], seed: int, origin: str) -> Lock:
    """lock.json before the machine is prepared."""
    kernels = {arm.contender.name: arm.kernel for arm in arms}
    return Lock(
        kduel=full_version(), seed=seed, origin=origin, directory=str(Path.cwd()), study=study.about,
        blocks=study.blocks, settle=study.settle,
        machine=MachineRecord(kind=study.machine, settings=study.machine_settings), contenders=study.contenders,
        kernels=[kernel_record(one, kernels.get(one.name), unbuilt.get(one.name, "")) for one in study.contenders],
        steps=study.steps, design=study.design, bound=study.bound, edition=EDITION, host=host_record(),
        prepared=False,
    )  # fmt: skip


def add_machine(lock: Lock, ready: Ready) -> Lock:
    """The lock with what is known once the machine is prepared."""
    study, machine = ready.study, ready.machine
    kernels = {arm.contender.name: arm.kernel for arm in ready.arms}
    return structs.replace(
        lock,
        blocks=study.blocks,
        machine=structs.replace(
            lock.machine, exact=machine.exact, timing_warning=machine.timing_warning, facts=machine.facts
        ),
        kernels=[
            structs.replace(
                record,
                modules=machine.modules(kernels[one.name]) if one.name in kernels else None,
                scheduler=ready.setup.setups[one.name].facts,
            )
            for one, record in zip(lock.contenders, lock.kernels, strict=True)
        ],
        steps=study.steps,
        disturbance=disturbance_rule(study, machine),
        covariates=[OTHER_WORK] if study.host.covariate and not machine.exact else [],
        prepared=True,
    )


def disturbance_rule(study: Study, machine: Machine) -> Disturbance | None:
    """Rule for `host-disturbed` trials: the study's own, else the machine's default; None where nothing does."""
    if machine.exact:
        return None
    check.check_load_of_host(study, machine.max_wait_pct is not None)
    allowed = machine.max_wait_pct if study.host.max_wait is None else study.host.max_wait
    if allowed is None or study.host.max_wait == 100:
        return None
    declared = study.host.quiet_seconds
    return Disturbance(
        max_wait_pct=allowed,
        repeats=study.host.repeats,
        quiet_seconds=QUIET_SECONDS if declared is None else declared,
        between_bursts_seconds=BETWEEN_BURSTS_SECONDS if declared is None else 0.0,
        strict=study.host.max_wait is not None,
    )


def kernel_record(contender: Contender, kernel: Kernel | None, unbuilt: str) -> KernelRecord:
    """Record of a contender's kernel, without paths, since the run may travel."""
    return KernelRecord(
        spec=kernel.spec if kernel else contender.kernel, release=kernel.release if kernel else "",
        architecture=kernel.architecture if kernel else "", sha256=kernel.sha256 if kernel else "",
        provenance=kernel.provenance if kernel else {}, unbuilt=unbuilt, sysctl=contender.sysctl,
        machine=contender.machine,
    )  # fmt: skip


def host_record() -> HostRecord:
    """The host, as far as it may matter to a reader of the run."""
    return HostRecord(
        system=platform.platform(), kernel=platform.release(), python=platform.python_version(), cpus=os.cpu_count(),
        cpu=cpu_model(), machine=machine_hash(), load=os.getloadavg()[0], architecture=platform.machine(),
    )  # fmt: skip


def cpu_model() -> str:
    """The host's CPU by its name, or empty where the kernel does not report."""
    lines = text_of(Path("/proc/cpuinfo")).splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
