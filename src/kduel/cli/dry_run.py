"""`kduel run --dry-run`: what a study would do, and how long that takes at least, before anything is fetched or booted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from kduel.benchmarks import benchmark
from kduel.cli.exact_first import can_be_emulated
from kduel.cli.execute import RunRequest, describe_plan, describe_progress, find_place
from kduel.cli.shortage import realtime_warning, shortage_warning
from kduel.core.cache import Cache
from kduel.core.format import duration
from kduel.core.text import plural, printable
from kduel.store.identity import as_begun
from kduel.store.rundir import EXACT, has_report
from kduel.study.first_part import first_part

if TYPE_CHECKING:
    from kduel.core.experiment import Contender
    from kduel.store.documents import Lock
    from kduel.study.load import Study

EXACT_CPUS_COST = 10.0
"""Seconds here for one of exact CPUs' by their own clock, both boots of a trial together: 7 to 10 were measured."""


def describe(request: RunRequest) -> str:
    """The run's place, contenders, steps and duration. Raises what the run raises before it fetches anything."""
    study = request.study
    path, lock = find_place(request)
    fleet, unknown = check_parts(request, lock)
    if lock is not None:
        study = replace(study, blocks=as_begun(study, lock))
    machine = f"the machine {study.machine}" + (f" of the fleet {fleet}" if fleet else "")
    most = study.blocks.count
    times = [seconds_of(step.benchmark, step.parameters) for step in study.steps]
    width = max(len(step.label) for step in study.steps)
    complete = lock is not None and has_report(path)
    lines = [f"In {path}."]
    if lock is not None:
        there = "is complete, so nothing is left to boot" if complete else f"has begun: {describe_progress(path)}"
        lines = [f"In {path}, where this run {there}."]
    lines += [f"{len(study.names)} contenders, the first one is the baseline:"]
    lines += [f"  {contender.name}: {describe_contender(contender)}" for contender in study.contenders]
    lines += ["", f"{plural(len(study.steps), 'step')} of a trial on {machine}; what decides:"]
    lines += [
        f"  {step.label:{width}}  {duration(time):>7}  {', '.join(step.primary) or 'nothing: exploratory'}"
        for step, time in zip(study.steps, times, strict=True)
    ]
    trials = most * len(study.names)
    trial = sum(times) + (study.settle.seconds if study.settle.mode == "fixed" else 0)
    blocks, whole = describe_plan(study), f"{duration(trials * trial)} or longer"
    on_top = "Boots, settling and repetitions of disturbed trials come on top"
    if study.machine_settings.get("scheduling"):
        cost = duration(EXACT_CPUS_COST * trials * trial)
        whole += f" by the guests' clock, which take some {cost} here: each boot is made twice"
    else:
        on_top += ", and an emulator takes longer"
    lines += [
        "",
        *study.left_out,
        *filter(
            None,
            [shortage_warning(study), realtime_warning(study), describe_exact_part(request) if lock is None else ""],
        ),
        f"{blocks[:1].upper()}{blocks[1:]}: at most {plural(trials, 'trial')}, each {duration(trial)} or longer; all "
        f"together {whole}{', divided among its machines' if fleet else ''}.",
        f"{on_top}.",
        *(
            [f"Not checked, as it takes a download: whether the archives have {', '.join(unknown)}."]
            if unknown
            else []
        ),
        f"Not checked, as it takes the machine {study.machine} itself: {describe_unseen(study)}.",
        f"Nothing was fetched or booted: leave out --dry-run to {'write its report again' if complete else 'begin' if lock is None else 'go on'}.",
    ]
    return printable("\n".join(lines) + "\n")


def describe_contender(contender: Contender) -> str:
    """Its kernel, and what else it is."""
    settings = [f"{name}={value}" for name, value in (contender.sysctl | contender.machine).items()]
    return ", ".join(
        filter(None, [contender.kernel, contender.cmdline, contender.scheduler, contender.policy, *settings])
    )


def describe_unseen(study: Study) -> str:
    """Checks that only the machine itself can make, in words."""
    from kduel.machines import machine_kind

    if machine_kind(study.machine).stays(study.machine_settings):
        return "whether it takes the settings of the contenders"
    return "whether it can boot these kernels, with the programs of the steps"


def check_parts(request: RunRequest, lock: Lock | None) -> tuple[str, list[str]]:
    """Kernels, settings and machines, as far as they are written: the kind of the fleet, if there is one, and the kernels of which
    only an archive knows whether it has them. `lock` is that of a run that goes on. Raises InputError and HostError."""
    from kduel.machines import machine_kind
    from kduel.run.check import check_at_once, needs_of, unchecked_kernels
    from kduel.run.fleet.session import read_fleet_study
    from kduel.run.prepare import read_study

    study = request.study
    if isinstance(request.fleet, str) and request.fleet:
        kind = machine_kind(study.machine)
        for contender in study.contenders:
            kind.check_kernel(contender.kernel, contender.modules)
        return read_fleet_study(study, request.fleet, request.origin), [one.kernel for one in study.contenders]
    if lock is not None and lock.fleet is not None:
        return "", []
    cache = Cache(make=False)
    read = read_study(study, request.origin, lock)
    check_at_once(study, read.kind, read.settings, read.prepared, cache.root, lock)
    unknown = unchecked_kernels(study, lock, cache=cache, offline=request.offline)
    if request.offline and lock is None:
        read.kind.check_kept(read.settings, needs_of(read.prepared), cache)
    return "", unknown


def describe_exact_part(request: RunRequest) -> str:
    """The exact part, in words; empty where there is none."""
    study = request.study
    asked = request.wants_exact_part
    by_default = request.exact_first is None and request.counts_by_default and not request.fleet
    if not asked and not (by_default and can_be_emulated(study)):
        return ""
    part = first_part(study)
    when = "First" if asked else "Where KVM does not work,"
    steps = f"{plural(len(part.steps), 'step')} of the suite {part.about.name} are counted exactly"
    left_out = "" if asked else "; --no-exact-first leaves that out"
    return f"{when} {steps} before anything is timed, in the directory {EXACT} of the run{left_out}."


def seconds_of(name: str, parameters: dict[str, object]) -> float:
    """Seconds that a benchmark expects to take with these parameters."""
    known = benchmark(name)
    return known.seconds(known.read_parameters(parameters))
