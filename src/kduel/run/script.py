"""Scripts of trials, and the gates that a trial must pass before its numbers count. A boot that several contenders
share (the unit "load") runs one script after the other, or all in turns of a step or slice (guest/shared.sh)."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from kduel import schedulers
from kduel.benchmarks.support import delays, schedstat
from kduel.benchmarks.support.load import NEED_SCRATCH, of_step, wrap
from kduel.core.cache import Cache
from kduel.core.experiment import Contender, Void
from kduel.core.host import BOOT, HostStep
from kduel.core.slices import slice_label
from kduel.core.turns import draw_rounds
from kduel.guest import own_file
from kduel.guest.envelope import LATER
from kduel.guest.environment import read_environment
from kduel.guest.hostinside import step_inside
from kduel.guest.link import ALLOWANCE
from kduel.guest.script import ScriptStep, compose
from kduel.guest.topology import settle_cpus
from kduel.machines import Arm, Needs
from kduel.store.collect import PreparedSteps, step_directory
from kduel.store.documents import document_bytes
from kduel.study.load import Study
from kduel.study.plan import PlannedTrial

SECONDS_OF_LOAD = 20.0
"""Until a background load runs, and until it has ended, on a slow and busy host."""
BOOT_ALLOWANCE = 240.0
"""Seconds that a boot and the way home may take, on a slow and busy host."""


class Script(Struct, frozen=True):
    """A boot's script, and by when it must have ended, in seconds."""

    text: str
    deadline: float


class TrialSetup:
    """Setup and gates of each contender: sysctls, scheduler, policy, and the proof of them."""

    def __init__(self, study: Study, arms: Sequence[Arm], prepared: PreparedSteps, *, cache: Cache) -> None:
        self.study = study
        self.prepared = prepared
        steps = [(chosen, given) for _, chosen, given in prepared]
        self.modules = list(dict.fromkeys(module for each, given in steps for module in each.loaded_modules(given)))
        for arm in arms:
            settings = settle_cpus(study.machine_settings | arm.contender.machine, study.machine)
            schedulers.validate(arm.contender, arm.kernel, steps, cpus=settings.get("cpus"))
        self.setups = {
            contender.name: schedulers.make_setup(contender, study.contenders, cache=cache)
            for contender in study.contenders
        }

    def add_needs(self, needs: Needs) -> Needs:
        """The needs of the benchmarks with those of the schedulers."""
        files = dict(needs.files)
        packages, programs = set(needs.packages), set(needs.programs)
        for setup in self.setups.values():
            files |= dict(setup.files)
            packages |= set(setup.packages)
            programs |= set(setup.programs)
        return msgspec.structs.replace(
            needs,
            files=tuple(sorted(files.items())),
            packages=tuple(sorted(packages)),
            programs=tuple(sorted(programs)),
        )

    def script(
        self, contender: Contender, order: Sequence[int], seed: int = 0, *, recorded: bool = False, link: str = ""
    ) -> Script:
        """The script of one contender's trial; `order` is the steps' order, `seed` its block's, `recorded` whether it
        records what the machine does, `link` the lines that reach a peer."""
        setup = self.setups[contender.name]
        parts = [self.make_step(index, setup, piece) for index, piece in self.prepared.in_order(order, seed)]
        shared = in_shared_turns(self.study)
        text = compose(
            parts, settle=self.study.settle, setup=setup.before_all, undo=setup.after_all if shared else None,
            modules=self.modules, seed=seed, recorded=recorded, link=link,
        )  # fmt: skip
        services = {part.service.name: part.service.timeout for part in parts if part.service}
        seconds = sum(services.values()) + sum(part.timeout for part in parts)
        settings = setup.seconds * (len(parts) if shared else 1)
        return Script(text, self.study.settle.seconds + settings + seconds + (ALLOWANCE if link else 0.0))

    def make_step(self, index: int, setup: schedulers.SchedulerSetup, piece: int = 0) -> ScriptStep:
        """One step of the script, or a slice of one, as a contender with this setup runs it."""
        chosen, parameters = self.prepared.benchmarks[index], self.prepared.pieces[index][max(0, piece - 1)]
        own_load = self.prepared.steps[index].load
        script = setup.wrap(chosen.script(parameters), native=chosen.takes_policy)
        if self.prepared.steps[index].schedstat:
            script = schedstat.wrap(script)
        service = chosen.service(parameters)
        if service:
            service = msgspec.structs.replace(service, start=setup.wrap(service.start))
            service = delays.switch_on(service) if any(step.schedstat for step in self.prepared.steps) else service
        return ScriptStep(
            label=slice_label(self.prepared.steps[index].label, piece),
            script=wrap(own_load, f"(\n{script})\n") if own_load else script,
            timeout=chosen.timeout(parameters) + (SECONDS_OF_LOAD if own_load else 0),
            before=setup.before_each,
            after=setup.after_each,
            number=index + 1,
            service=service,
            peer=chosen.needs_peer(parameters),
        )

    def gate(self, trial: Path, contender: str) -> Void | None:
        """Reason for which the trial is void: its scheduler, policy or sysctls."""
        return self.setups[contender].check(trial, anew=in_shared_turns(self.study))


def set_aside(trial: Path) -> list[str]:
    """Move what a trial's script left under a name that KDuel is yet to write out of its way; gives the names."""
    names = [name for name in LATER if os.path.lexists(trial / name)]
    for name in names:
        if (trial / name).is_symlink():
            (trial / name).unlink()
        else:
            (trial / name).rename(Path(tempfile.mkdtemp(prefix="guest-", dir=trial)) / name)
    return names


def write_environment(trial: Path) -> None:
    """environment.json next to the raw files that it is read from."""
    if (trial / "environment").is_dir():
        found = read_environment(trial / "environment")
        # It was captured as the guest came up, before the contender's own settings.
        if seen := schedulers.sysctls_seen(trial):
            found["sysctl"] = found.get("sysctl", {}) | seen
        text = document_bytes(found)
        (trial / "environment.json").write_bytes(text)


def boot_script(
    study: Study, setup: TrialSetup, boot: Sequence[PlannedTrial], *, recorded: bool = False, link: str = ""
) -> Script:
    contenders = {contender.name: contender for contender in study.contenders}
    scripts = [
        setup.script(contenders[planned.contender], planned.steps, planned.seed, recorded=recorded, link=link)
        for planned in boot
    ]
    deadline = BOOT_ALLOWANCE + sum(script.deadline for script in scripts)
    if len(scripts) == 1:
        return Script(scripts[0].text, deadline)
    shared = in_shared_turns(study)
    alone = ["#!/bin/sh", "# Several contenders in one boot, one after the other: sh guest.sh OUT", 'mkdir -p "$1"']
    lines = [own_file("shared.sh").decode()] if shared else alone
    for number, (planned, script) in enumerate(zip(boot, scripts, strict=True), 1):
        mark = f"KDUEL_LOAD_{hashlib.sha256(script.text.encode()).hexdigest()[:12]}"
        lines.append(f"cat >\"$1/load-{number}.sh\" <<'{mark}'\n{script.text}\n{mark}")
        # What the contender set is put back by the contender's own lines, in a shell that may fail.
        undo = setup.setups[planned.contender].after_all or ":\n"
        if shared:
            lines.append(f"cat >\"$turns/undo-{number}\" <<'{mark}'\n{undo}{mark}\nstart {number}")
        else:
            lines.append(f'sh "$1/load-{number}.sh" "$1/load-{number}"\n(\n{undo})')
    if shared:
        lines += ["hear"] * len(boot)
        lines += [f"turn {place + 1}" for place, _ in in_order_of_turns(boot, setup.prepared)]
        lines.append(f"finish {' '.join(str(number) for number in range(1, len(boot) + 1))}")
    return Script("\n".join([*lines, "exit 0", ""]), deadline)


def in_shared_turns(study: Study) -> bool:
    return study.blocks.in_turns and study.blocks.unit == "load"


def in_order_of_turns(boot: Sequence[PlannedTrial], prepared: PreparedSteps) -> list[tuple[int, str]]:
    """(place in the boot, label of a step or slice) for each turn, in the order of time: all take a slice, in an order drawn from
    the block's seed and balanced over the slices of a step, before the next one begins."""
    rounds = {step: draw_rounds(len(boot), f"{boot[0].seed}/{prepared.steps[step].label}") for step in boot[0].steps}
    return [
        (place, slice_label(prepared.steps[step].label, piece))
        for step, piece in prepared.in_order(boot[0].steps, boot[0].seed)
        for place in next(rounds[step])
    ]


def split_host_record(
    boot: Sequence[PlannedTrial],
    prepared: PreparedSteps,
    found: Sequence[tuple[str, HostStep]],
    *,
    shared: bool = False,
) -> list[dict[str, HostStep]]:
    """For each trial of a boot what the host did, by step label, or BOOT before its first step. `found` is the boot's
    record in order, `shared`: in turns. Where one of several trials lacks a record, none can be attributed or
    kept."""
    labels = [step_labels(planned, prepared) for planned in boot]
    if [name for name, _ in found] == [BOOT]:
        return [dict(found) for _ in boot]
    if len(boot) == 1:
        return [{labels[0][name]: record for name, record in found if name in labels[0]}]
    order = [(place, label) for place, names in enumerate(labels) for label in names.values()]
    order = in_order_of_turns(boot, prepared) if shared else order
    if [name for name, _ in found] != [
        next(name for name, label in labels[place].items() if label == wanted) for place, wanted in order
    ]:
        return [{} for _ in boot]
    records: list[dict[str, HostStep]] = [{} for _ in boot]
    for (place, label), (_, record) in zip(order, found, strict=True):
        records[place][label] = record
    return records


def read_inside_records(
    boot: Sequence[PlannedTrial], prepared: PreparedSteps, parts: Sequence[Path]
) -> list[dict[str, HostStep]]:
    """For each trial of a boot that recorded its host from inside, the record by step label; `parts` has the trials' directories."""
    return [
        {
            label: record
            for name, label in step_labels(planned, prepared).items()
            if (record := step_inside(part, name)) is not None
        }
        for planned, part in zip(boot, parts, strict=True)
    ]


def step_labels(planned: PlannedTrial, prepared: PreparedSteps) -> dict[str, str]:
    """By the name of its directory, the label of each step or slice of a trial, in the order of the trial."""
    return {
        step_directory(Path(), index, prepared.steps[index].label, piece).name: slice_label(
            prepared.steps[index].label, piece
        )
        for index, piece in prepared.in_order(planned.steps, planned.seed)
    }


def turn_lengths(planned: PlannedTrial, prepared: PreparedSteps, turns: int) -> dict[str, float]:
    """By the directory of each step or slice, the seconds of its turns in a run of so many milliseconds; 0 where it is run whole."""
    lengths = {}
    for index, piece in prepared.in_order(planned.steps, planned.seed):
        step = prepared.steps[index]
        on_disk = of_step(step, prepared.parameters[index]) in NEED_SCRATCH
        by_default = turns if prepared.benchmarks[index].may_be_held() and not on_disk else 0
        length = by_default if step.turns is None else step.turns
        lengths[step_directory(Path(), index, step.label, piece).name] = length / 1000
    return lengths


def split_boot(staged: Path, boot: Sequence[PlannedTrial], stage: Callable[[], Path]) -> list[Path]:
    """The directories of a boot's trials: `staged` itself, or what a shared boot left, split up."""
    if len(boot) == 1:
        return [staged]
    parts = []
    for number in range(1, len(boot) + 1):
        part = stage()
        load = staged / f"load-{number}"
        if load.is_dir():
            for entry in load.iterdir():
                entry.rename(part / entry.name)
        for source, name in ((staged / "console.log", "console.log"), (staged / f"load-{number}.sh", "guest.sh")):
            if source.is_file():
                shutil.copyfile(source, part / name)
        parts.append(part)
    shutil.rmtree(staged)
    return parts
