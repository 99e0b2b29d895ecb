"""Measuring a commit of a kernel tree: built, booted on a machine, one benchmark run in that boot."""

from pathlib import Path

import msgspec

from kduel.benchmarks.support.operations import OPERATIONS
from kduel.core.cache import Cache
from kduel.core.errors import InputError, NotMeasuredError
from kduel.core.experiment import Metric
from kduel.core.progress import Progress, UniqueMessages
from kduel.core.void_codes import never_began
from kduel.machines import machine_kind
from kduel.run.bisect.build import Builder, Unbuildable
from kduel.run.bisect.kernels import CommitKernels
from kduel.run.bisect.terms import SearchSettings, Unmeasurable
from kduel.run.prepare import Ready, disturbance_rule, make_ready
from kduel.run.repeat import EndedTrial
from kduel.run.trials import Trials
from kduel.store.collect import PreparedSteps
from kduel.store.rundir import RunDir
from kduel.store.whole_files import as_disk_error
from kduel.study.file import parse_study
from kduel.study.load import Study, assemble
from kduel.study.plan import PlannedTrial

ATTEMPTS = 2
"""Boots of a commit before it counts as one that does not boot: a guest may fail by chance."""
MOST_WHY = 300
"""Characters of the reason why a commit is skipped; the console log has the rest."""
STUDY = """[study]
name = "bisect"
[blocks]
fixed = 1
turns = "off"
[[benchmark]]
{benchmark}
primary = "*"
"""
CONTENDER = """[[contender]]
name = {name}
kernel = {kernel}
"""


def toml_string(text: str) -> str:
    """The text as a TOML string; a JSON string is one too."""
    return msgspec.json.encode(text).decode()


def boot_study(benchmark: str, machine: str, kernel: Path | None = None) -> Study:
    """A study of one `benchmark`, or operation of kbench; of its two contenders only the first is booted."""
    if benchmark in OPERATIONS:
        use = f'use = "kbench"\noperation = {toml_string(benchmark)}'
    else:
        use = f"use = {toml_string(benchmark)}"
    text = STUDY.format(benchmark=use)
    image = str(kernel) if kernel else "debian:6.1"
    for name in ("measured", "spare"):
        text += CONTENDER.format(name=toml_string(name), kernel=toml_string(image))
    return assemble(parse_study(text, "bisect"), text, "bisect", machine=machine)


def choose_metric(study: Study, metric: str) -> Metric:
    """The metric of that name, or the only one. Raises InputError that lists what there is, or for no machine."""
    machine_kind(study.machine).read_settings(study.machine_settings)
    every = PreparedSteps(study.steps).metrics(0)
    names = [one.name for one in every]
    if metric in names or (not metric and len(names) == 1):
        return every[names.index(metric or names[0])]
    benchmark = study.steps[0].benchmark
    what = f"{benchmark} has no metric {metric!r}" if metric else f"{benchmark} has several metrics"
    raise InputError(what, f"Choose one with --metric: {', '.join(names)}.")


class BootMeasurement:
    """Measures commits in fresh boots, with the rules of disturbance that a run has: `trials` and `repeated` in
    `directory` hold the raw files. `most` is how many measurements there may be."""

    def __init__(
        self, builder: Builder, machine: str, benchmark: str, metric: str, directory: Path, *, cache: Cache,
        progress: Progress, most: int = SearchSettings().most,
    ) -> None:  # fmt: skip
        self.kernels = CommitKernels(builder, cache=cache, progress=progress)
        self.run = RunDir(directory, documents=())
        self.machine, self.benchmark, self.metric, self.most = machine, benchmark, metric, most
        self.cache, self.progress = cache, UniqueMessages(progress)
        self.ready: dict[str, Ready] = {}
        self.trials: Trials | None = None

    def __call__(self, commit: str) -> float:
        """One boot's value. Raises Unmeasurable where the commit gives none, HostError without a machine."""
        if commit not in self.ready:
            kernel = self.build_kernel(commit)
            study = boot_study(self.benchmark, self.machine, kernel)
            try:
                self.ready[commit] = make_ready(study, cache=self.cache, progress=self.progress)
            except NotMeasuredError as error:
                raise Unmeasurable(error.message, error.remedy) from error
        ready = self.ready[commit]
        why = ""
        attempts = 0
        while attempts < ATTEMPTS:
            with self.progress.task(f"booting {commit[:12]}"):
                trial = self.boot(ready, commit)
            value = trial.values.get(0, {}).get(self.metric)
            if value is not None:
                return value
            why = " ".join(str(trial.record.void or f"{self.benchmark} gave no {self.metric}").split())[:MOST_WHY]
            attempts += not never_began(trial.record.void)
        raise Unmeasurable(why)

    def build_kernel(self, commit: str) -> Path:
        """The commit's kernel. Raises Unmeasurable where it does not build."""
        try:
            return self.kernels(commit)
        except Unbuildable as error:
            raise Unmeasurable(f"does not build: {error}") from error

    def boot(self, ready: Ready, commit: str) -> EndedTrial:
        """The trial of one boot, after those that were made again for a fault of the host or the emulator."""
        if self.trials is None:
            with as_disk_error(self.run.path):
                self.run.trials.mkdir(parents=True, exist_ok=True)
            self.run.sweep()
            disturbance = disturbance_rule(ready.study, ready.machine)
            self.trials = Trials(self.run, disturbance, self.most, self.progress, resume="the same command")
        number = 1 + max((int(name.split("-")[0]) for name in self.run.names()), default=0)
        planned = PlannedTrial(
            id=f"{number:04}-{commit[:12]}", block=number, position=number - 1,
            contender=ready.arms[0].contender.name, boot=number - 1, steps=list(range(len(ready.study.steps))),
        )  # fmt: skip
        kept: list[EndedTrial] = []
        self.trials.make(ready, [[planned]], kept.extend)
        return kept[0]

    def close(self) -> None:
        """Give the machines back."""
        for one in self.ready.values():
            one.machine.close()
