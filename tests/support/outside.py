"""One plug-in of each kind, as another distribution would offer it.

The machine runs the very guest script in a child process of this host instead of a boot: it stands in for a guest
where a test is about the runner, and is no machine for measuring.
"""

from __future__ import annotations

import os
import subprocess
import time
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from kduel.benchmarks import Benchmark, Parameters, ParseError, Raw
from kduel.core.errors import InputError, NotMeasuredError
from kduel.core.experiment import Metric
from kduel.core.host import HostStep
from kduel.core.results import Results
from kduel.core.supervised_process import supervised_process
from kduel.core.turns import StepTurns
from kduel.guest.turns import BlockTurns
from kduel.kernels import Available, Kernel, KernelSource
from kduel.kernels.files.modules import modules_digest
from kduel.machines import Arm, Machine, MachineKind, Needs, Outcome, Trial
from kduel.report import DEFAULTS, Format, ReportOptions


class LettersParameters(Parameters, frozen=True):
    text: str = "hello"


class Letters(Benchmark[LettersParameters]):
    """Counts the letters of a text."""

    name = "outside-letters"
    summary = "letters in a text"
    label_template = "letters-{text}"
    declared_metrics = (Metric(name="letters", unit="1", better="higher"),)

    def script(self, parameters: LettersParameters) -> str:
        return f"printf %s {parameters.text} | wc -c"

    def parse(self, raw: Raw, parameters: LettersParameters) -> dict[str, float]:
        try:
            return {"letters": float(raw.stdout)}
        except ValueError as error:
            raise ParseError("no number of letters") from error


class Pretended(KernelSource):
    """`outside:NAME` is a file of that name with nothing in it that boots."""

    name = "outside"
    summary = "a kernel that is none"

    def accepts(self, spec: str) -> bool:
        return spec.startswith("outside:")

    def available(self, *, cache: Any, progress: Any, offline: bool = False) -> list[Available]:
        return [Available(spec="outside:old-and-slow", version="1", where="nowhere", cached=False)]

    def resolve(self, spec: str, *, cache: Any, progress: Any, offline: bool = False, modules: str = "") -> Kernel:
        if spec == "outside:unknown":
            raise InputError("outside knows no kernel 'unknown'", "Name another.")
        if spec == "outside:broken":
            raise NotMeasuredError("outside:broken does not build: error: no such thing", "Mend it.")
        return Kernel(spec=spec, release=spec.partition(":")[2], image=Path("/dev/null"), sha256="0" * 64)


def run_script(*command: str) -> None:
    """Carry a script out. After an interruption nothing of it lives, as when a machine is switched off, wherever the
    interruption falls: what goes on to write would keep the trial's directory from being removed."""
    nowhere = subprocess.DEVNULL
    with supervised_process(command, stdout=nowhere, stderr=nowhere, environment=os.environ) as process:
        process.wait()


class ProcessMachine(Machine):
    parallel = 1
    timing_warning = "Nothing was booted."

    def __init__(self, settings: Any) -> None:
        self.settings = settings
        self.facts = {"pretended": True}
        self.max_wait_pct = settings.max_wait
        self.exact = settings.exact
        self.emulated = settings.emulated
        self.boots: Counter[str] = Counter()

    def modules(self, kernel: Kernel) -> str | None:
        return modules_digest(kernel.modules)

    def why_no_turns(self) -> str:
        return "" if self.settings.turns else super().why_no_turns()

    def why_no_room(self, guests: int) -> str:
        room = int(os.environ.get("OUTSIDE_ROOM", self.settings.room))
        return f"{guests} guests are too many" if guests > room else ""

    def boot_block(self, trials: Sequence[Trial], turns: BlockTurns) -> list[Outcome]:
        """One after the other: nothing here can be held."""
        share = StepTurns(
            turns=1, running_seconds=1, held_seconds=0, longest_stop_seconds=0, alone_seconds=0, overlap_seconds=0
        )
        return [
            msgspec.structs.replace(self.boot(trial), turns=dict.fromkeys(turns.lengths, share)) for trial in trials
        ]

    def boot(self, trial: Trial) -> Outcome:
        start = time.monotonic()
        if trial.block <= self.settings.away.get(trial.arm.kernel.release, 0):
            return Outcome(void="unreachable", message="No route to host")
        if trial.arm.kernel.release in self.settings.panics:
            (trial.into / "console.log").write_text("[0.0] Kernel panic - not syncing\n")
            return Outcome(void="panic", message="Kernel panic - not syncing")
        (trial.into / "console.log").write_text("[0.0] Linux version\n")
        self.boots[trial.id] += 1
        if self.boots[trial.id] <= self.settings.faults.get(trial.arm.kernel.release, 0):
            return Outcome(void="emulator-fault", message="int3: 0000 [#1]")
        disturbed = self.boots[trial.id] <= self.settings.disturbed.get(trial.arm.kernel.release, 0)
        waited = HostStep(seconds=1.0, vcpu_run_s=1.0, vcpu_wait_s=1.0 if disturbed else 0.0)
        script = trial.into / "guest.sh"
        script.write_text(trial.script)
        run_script("sh", str(script), str(trial.into))
        if trial.arm.kernel.release in self.settings.shorter:
            for said in trial.into.glob("*-letters-*/stdout"):
                said.write_text("4\n")
        if self.settings.noisy:
            for said in trial.into.glob("*-letters-*/stdout"):
                said.write_text(f"{5 + zlib.crc32(trial.id.encode()) % 50}\n")
        time.sleep(self.settings.sleep)
        labels = [path.parent.name for path in sorted(trial.into.glob("*-letters-*/stdout"))]
        host = [(label, waited) for label in labels] if self.settings.max_wait else []
        return Outcome(timings={"done": time.monotonic() - start}, host=host)


class Process(MachineKind):
    name = "process"
    summary = "no boot at all"
    timed_on_host = False

    class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
        sleep: float = 0.0
        turns: bool = False
        """The trials of a block are said to be alive at once."""
        room: int = 9
        """For so many trials at once, unless OUTSIDE_ROOM in the environment says another number."""
        exact: bool = False
        """Every trial is said to give the same."""
        emulated: bool = False
        panics: list[str] = []
        shorter: list[str] = []
        """Kernels in which every text has four letters."""
        noisy: bool = False
        """Every trial counts another number of letters."""
        faults: dict[str, int] = {}
        """By kernel: how many boots of each trial end by a fault of the emulator."""
        disturbed: dict[str, int] = {}
        """By kernel: during how many boots of each trial the host has other work."""
        max_wait: float | None = None
        away: dict[str, int] = {}
        """By kernel: up to which block the machine cannot be reached when its trial is due."""

    def prepare(
        self, settings: Any, arms: Sequence[Arm], needs: Needs, *, cache: Any, progress: Any, offline: bool = False
    ) -> Machine:
        return ProcessMachine(settings)


class Shout(Format):
    name = "shout"
    summary = "the verdicts in capitals"
    suffix = ".txt"

    def render(self, results: Results, options: ReportOptions = DEFAULTS) -> str:
        return "\n".join(metric.verdict.upper() for metric in results.metrics)


BENCHMARK = Letters()
KERNELS = Pretended()
MACHINE = Process()
REPORT = Shout()
