"""Explaining the slowest wake-ups of a step on exact CPUs: a boot in which the plug-in keeps each switch between tasks."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from kduel.benchmarks import ParseError, Raw, benchmark
from kduel.benchmarks.support.varied import read_conditions
from kduel.benchmarks.tasks import PLUGIN as TASKS
from kduel.benchmarks.tasks import read_ktasks
from kduel.benchmarks.wakeup import PLUGIN as WAKEUP
from kduel.benchmarks.wakeup import read_kwake
from kduel.core.errors import InputError, NotMeasuredError, unknown_name
from kduel.core.experiment import RESOLUTION, Step
from kduel.core.progress import Progress
from kduel.core.temporary import temporary_directory
from kduel.explain.sharing.btf import BrokenBtfError, Btf
from kduel.explain.waits import BrokenSwitchesError, Switches, Told, Waits, WaitsExplanation, find_waits
from kduel.guest import boots
from kduel.machines.guests import turns
from kduel.machines.guests.proofs import check_not_killed
from kduel.machines.icount import IcountMachine
from kduel.run.exact.measure import exact_machine, make_trial
from kduel.run.exact.subject import Subject
from kduel.store.collect import step_directory

SWITCHES = "@SWITCHES@"
READERS: dict[str, Callable[..., Any]] = {WAKEUP.name: read_kwake, TASKS.name: read_ktasks}
"""Readers of the output of each benchmark that tells its slowest wake-ups."""
BTF_BEGINS = re.compile(rb"\x9f\xeb\x01\x00\x18\x00\x00\x00")


def explain_waits(chosen: Subject, wanted: str, *, progress: Progress) -> WaitsExplanation:
    """The slowest wake-ups of a step in both kernels. Raises InputError, NotMeasuredError, HostError."""
    known = [step.label for step in chosen.ready.study.steps if step.benchmark in READERS]
    if not known:
        raise InputError(
            "on CPUs with scheduling = true only wake-ups can be explained, and no step of the study has any",
            "Run the kernels with --benchmark wakeup, or --benchmark tasks:mix=audio.",
        )
    if wanted not in known:
        raise unknown_name(f"no step of the study is called {wanted!r} and has wake-ups", wanted, known)
    machine, index = exact_machine(chosen.ready), [step.label for step in chosen.ready.study.steps].index(wanted)

    def watch(name: str) -> Waits:
        found = find_slowest(machine, chosen, name, index)
        task.advance()
        return found

    with (
        progress.task(f"watching {wanted} in {' and '.join(chosen.names)}", len(chosen.names)) as task,
        boots.pool(min(2, machine.parallel)) as threads,
    ):
        return WaitsExplanation(wanted, list(threads.map(watch, chosen.names)))


def find_slowest(machine: IcountMachine, chosen: Subject, name: str, index: int) -> Waits:
    """The slowest wake-ups in one kernel, by a boot of the step alone. Raises NotMeasuredError, HostError."""
    ready, step = chosen.ready, chosen.ready.study.steps[index]
    arm = next(arm for arm in ready.arms if arm.contender.name == name)
    pid, comm = offsets(machine.images[arm.kernel.sha256].read_bytes(), name)
    with temporary_directory() as place:
        trial = make_trial(arm, ready.setup.script(arm.contender, [index], chosen.seed), 1, place)
        trial.into.mkdir()
        kept = place / "switches"
        outcome = machine.boot_once(trial, f",switches={SWITCHES},pid={pid},comm={comm}", writes={SWITCHES: kept})
        check_not_killed(outcome.facts.get("killed_by", ""), name)
        if outcome.void:
            raise NotMeasuredError(f"the wake-ups of {name} could not be watched: {outcome.void}: {outcome.message}")
        cpus, shift = machine.settings_of(arm).cpus, machine.shift_of(arm)
        slack = turns.resolution(cpus, machine.icount.quantum) << shift
        try:
            told = told_by(Raw.read(step_directory(trial.into, index, step.label)), step)
            waits = find_waits(Switches(kept.read_text(errors="replace"), shift), told, slack)
        except (ParseError, BrokenSwitchesError) as error:
            raise NotMeasuredError(f"the wake-ups of {name} cannot be told: {error}") from error
    return Waits(
        contender=name, release=arm.kernel.release, qemu=machine.facts["qemu"].split()[0], cpus=cpus,
        resolution=outcome.facts[RESOLUTION], waits=waits,
    )  # fmt: skip


def told_by(raw: Raw, step: Step) -> Sequence[Told]:
    """The slowest wake-ups as the step's program printed them. Raises ParseError."""
    parameters = benchmark(step.benchmark).read_parameters(step.parameters)
    if raw.exit_status:
        raise ParseError(f"it ended with status {raw.exit_status}: {raw.stderr.strip()[:300]}")
    parts = [("", raw.stdout)]
    if parameters.conditions:
        parts = [(str(condition), text) for condition, text, _ in read_conditions(raw.stdout, parameters.conditions)]
    printed = [(name, READERS[step.benchmark](text, parameters)) for name, text in parts]
    return [(name, out.marks, out.slowest) for name, out in printed]


def offsets(image: bytes, name: str) -> tuple[int, int]:
    """Bytes before number and name in the kernel's task_struct. Raises NotMeasuredError where it does not describe its types."""
    for match in BTF_BEGINS.finditer(image):
        try:
            btf = Btf(image[match.start() :])
        except BrokenBtfError:
            continue
        pid, comm = btf.offset("task_struct", "pid"), btf.offset("task_struct", "comm")
        if pid is not None and comm is not None:
            return pid, comm
    raise NotMeasuredError(
        f"the tasks of {name} have no names: the kernel does not describe its types",
        "Build it with CONFIG_DEBUG_INFO_BTF=y.",
    )
