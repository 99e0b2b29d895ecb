"""A fleet that does not exist: its machines finish blocks by a simulated clock, and fail as they are told to.

Everything else is real: the plan, the controller, the run's directory, the trials with their manifests.
"""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from msgspec import Struct, field, json

from kduel.core.experiment import MachineRecord, Void
from kduel.core.progress import Progress
from kduel.core.version import full_version
from kduel.fleets import IDLE, Beat, Fleet, FleetSettings, Member
from kduel.run.fleet import controller, gather, session
from kduel.run.fleet.worker import DESCRIBED, DRAFT, MemberDescription
from kduel.store.documents import HostRecord, KernelRecord, Lock, TrialRecord, read_lock
from kduel.store.rundir import RunDir
from kduel.study.file import parse_study
from kduel.study.load import Study, assemble

STUDY = """
[study]
name = "simulated"
delta = 1.0
[[contender]]
kernel = "a"
[[contender]]
kernel = "b"
[settle]
mode = "fixed"
seconds = 0
[[benchmark]]
use = "command"
label = "value"
command = "echo value: 1"
primary = ["value"]
metrics = [{ name = "value", unit = "1", better = "higher", regex = "value: ([0-9.]+)" }]
"""


class Machine(Struct):
    """How a simulated machine behaves."""

    void: float = 0.01
    """The chance that a trial is void."""
    crash: float = 0.0
    """The chance that a block ends in a failure of the worker, after its first trial."""
    seconds: float = 60.0
    """Of a trial."""
    gone_after: int = 10**9
    """Blocks after which it never answers again."""
    architecture: str = "x86_64"
    clock: float = 0.0
    """Seconds that its clock is ahead."""
    level: float = 100.0
    gain: float = 1.0
    """What the second contender's values are multiplied by."""
    apart: float = 1.0
    """What the values of a contender named twin are multiplied by."""
    void_code: str = "hang"
    accelerator: str = "tcg"
    cpu: str = ""
    kduel: str = field(default_factory=full_version)
    qemu: str = ""
    """Its version on an exact machine; empty on one that measures time."""


class Clock:
    """Time that passes only where somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def module(self) -> SimpleNamespace:
        """What stands for the module `time`."""

        def sleep(seconds: float) -> None:
            self.now += seconds

        return SimpleNamespace(monotonic=lambda: self.now, time=lambda: 1.7e9 + self.now, sleep=sleep)


class SimulatedFleet(Fleet):
    """Machines by name. `runs` counts how often each trial was carried out."""

    def __init__(self, machines: dict[str, Machine], clock: Clock, seed: int = 1) -> None:
        self.machines, self.clock, self.draw = machines, clock, random.Random(seed)
        self.members = tuple(Member(name=name) for name in machines)
        self.queue: dict[str, list[tuple[float, int, bool]]] = {name: [] for name in machines}
        """When a trial of which block ends, and whether the worker crashes then."""
        self.done = dict.fromkeys(machines, 0)
        self.runs: dict[str, int] = {}
        self.plans: dict[Path, dict[int, list[Any]]] = {}

    def start(self, name: str, directory: Path, blocks: Sequence[int]) -> None:
        if not blocks:
            draft = read_lock(directory / DRAFT)
            (directory / DESCRIBED).write_bytes(json.encode(self.describe(name, draft)))
            return
        at = self.clock.now
        trials = self.trials(directory)
        for block in blocks:
            at += len(trials[block]) * self.machines[name].seconds
            heapq.heappush(self.queue[name], (at, block, self.draw.random() < self.machines[name].crash))

    def describe(self, name: str, draft: Lock) -> MemberDescription:
        machine = self.machines[name]
        facts: dict[str, Any] = {"accelerator": machine.accelerator}
        facts |= {"qemu": machine.qemu} if machine.qemu else {"host": {"cpu": name}}
        lock = Lock(
            kduel=machine.kduel,
            seed=draft.seed,
            origin=draft.origin,
            study=draft.study,
            blocks=draft.blocks,
            settle=draft.settle,
            machine=MachineRecord(kind="icount" if machine.qemu else "qemu", exact=bool(machine.qemu), facts=facts),
            contenders=draft.contenders,
            kernels=[KernelRecord(spec=one.spec, release=one.spec, sha256="0" * 64) for one in draft.kernels],
            steps=draft.steps,
            edition=draft.edition,
            host=HostRecord(architecture=machine.architecture, cpu=machine.cpu),
        )
        return MemberDescription(lock=lock, clock=1.7e9 + self.clock.now + machine.clock)

    def beat(self, name: str, directory: Path) -> Beat:
        machine, queue = self.machines[name], self.queue[name]
        if self.done[name] >= machine.gone_after and queue:
            return Beat(active=True, message="it does not answer")
        while queue and queue[0][0] <= self.clock.now:
            _, block, crashes = heapq.heappop(queue)
            trials = self.trials(directory)[block]
            for trial in trials[: 1 if crashes else None]:
                self.carry_out(trial, machine, directory)
            if crashes:
                queue.clear()
                return Beat(active=False, failed=True, message="the worker crashed")
            self.done[name] += 1
        return Beat(active=True, working=True) if queue else IDLE

    def trials(self, directory: Path) -> dict[int, list[Any]]:
        """The member's plan, by block."""
        if directory not in self.plans:
            found: dict[int, list[Any]] = {}
            for trial in RunDir(directory).plan():
                found.setdefault(trial.block, []).append(trial)
            self.plans[directory] = found
        return self.plans[directory]

    def carry_out(self, trial: Any, machine: Machine, directory: Path) -> None:
        """A trial's raw files, once."""
        run = RunDir(directory)
        if run.directory(trial.id).exists():
            return
        self.runs[trial.id] = self.runs.get(trial.id, 0) + 1
        own = random.Random(trial.id)
        void = Void(machine.void_code, "simulated") if own.random() < machine.void else None
        staged = run.stage()
        (staged / "01-value").mkdir()
        factor = {"b": machine.gain, "twin": machine.apart}.get(trial.contender, 1.0)
        value = machine.level * factor * (1 + 0.01 * own.gauss(0, 1))
        (staged / "01-value" / "stdout").write_text(f"value: {value:.4f}\n")
        (staged / "01-value" / "stderr").write_text("")
        (staged / "01-value" / "exit.json").write_text('{"status": 0, "seconds": 1.0, "started": 1.0}')
        record = TrialRecord(
            id=trial.id,
            block=trial.block,
            position=trial.position,
            contender=trial.contender,
            status="void" if void else "ok",
            void=void,
            seconds=machine.seconds,
            boot=trial.boot,
            steps=trial.steps,
            member=trial.host,
        )
        run.keep(staged, record)

    def cancel(self, name: str, directory: Path) -> None:
        self.queue[name].clear()


class Heard(Progress):
    """What the user is told."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


TWIN = '[[contender]]\nkernel = "a"\nname = "twin"\n'
"""The first contender again, under another name."""


def study(blocks: str, also: str = "") -> Study:
    text = STUDY.replace("[settle]", also + "[settle]") + f"[blocks]\n{blocks}\n"
    return assemble(parse_study(text, "simulated"), text, "simulated")


@contextmanager
def simulated(fleet: SimulatedFleet) -> Iterator[None]:
    """The controller's clock is the fleet's, and its adapter this one."""
    kind = SimpleNamespace(read_settings=lambda table: FleetSettings(**table), open=lambda *_, **__: fleet)
    clock = fleet.clock.module()
    with (
        mock.patch.object(controller, "time", clock),
        mock.patch.object(gather, "time", clock),
        mock.patch.object(session, "fleet_kind", lambda _: kind),
        mock.patch("kduel.store.whole_files.os.fsync", lambda _: None),
    ):
        yield


def run(fleet: SimulatedFleet, path: Path, blocks: str, *, seed: int = 7, also: str = "", **settings: Any) -> Heard:
    """A run of a study with so many blocks, and `also` in its text; gives what the user was told."""
    heard = Heard()
    with simulated(fleet):
        session.run_fleet(
            study(blocks, also),
            "simulated",
            {"poll": 20.0} | settings,
            path,
            origin="simulated",
            seed=lambda _: seed,
            progress=heard,
            watch=lambda _: None,
        )
    return heard


def now() -> float:
    """The real time, for measurements."""
    return time.monotonic()
