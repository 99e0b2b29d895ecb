"""Measuring a commit of a kernel tree: built, booted on a machine, one benchmark run in that boot."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kduel.benchmarks.support.operations import OPERATIONS
from kduel.core.cache import Cache
from kduel.core.errors import InputError, NotMeasuredError
from kduel.core.progress import Once, Progress
from kduel.machines import Trial, machine_kind
from kduel.run.bisect.build import Builder, Unbuildable
from kduel.run.bisect.kernels import CommitKernels
from kduel.run.bisect.terms import Unmeasurable
from kduel.run.prepare import Ready, make_ready
from kduel.run.script import BOOT_ALLOWANCE
from kduel.store.collect import Prepared
from kduel.study.load import Study, assemble, parse_study

ATTEMPTS = 2
"""Boots of a commit before it counts as one that does not boot: a guest may fail by chance."""
MOST_WHY = 300
"""Characters of the reason why a commit is skipped; the console log has the rest."""
STUDY = """[study]
name = "bisect"
[blocks]
fixed = 1
[[benchmark]]
{benchmark}
primary = "*"
"""
CONTENDER = """[[contender]]
name = {name}
kernel = {kernel}
"""


def quoted(text: str) -> str:
    """As a TOML string: a JSON string is one too."""
    return msgspec.json.encode(text).decode()


def study_for(benchmark: str, machine: str, kernel: Path | None = None) -> Study:
    """A study of one benchmark; a study has two contenders, of which only the first is booted. `benchmark` may
    be an operation of kbench. Raises InputError."""
    if benchmark in OPERATIONS:
        use = f'use = "kbench"\noperation = {quoted(benchmark)}'
    else:
        use = f"use = {quoted(benchmark)}"
    text = STUDY.format(benchmark=use)
    image = str(kernel) if kernel else "debian:6.1"
    for name in ("measured", "spare"):
        text += CONTENDER.format(name=quoted(name), kernel=quoted(image))
    return assemble(parse_study(text, "bisect"), text, "bisect", machine=machine)


def chosen_metric(study: Study, metric: str) -> str:
    """The metric's name, or that of the only one where none is given. Raises InputError that lists what there is, or for
    a machine that is not one."""
    machine_kind(study.machine).read_settings(study.machine_settings)
    names = [one.name for one in Prepared(study.steps).metrics(0)]
    if metric in names:
        return metric
    if not metric and len(names) == 1:
        return names[0]
    benchmark = study.steps[0].benchmark
    what = f"{benchmark} has no metric {metric!r}" if metric else f"{benchmark} has several metrics"
    raise InputError(what, f"Choose one with --metric: {', '.join(names)}.")


class Boots:
    """Measures commits; each call is one boot, its raw files are kept below `trials`."""

    def __init__(
        self, builder: Builder, machine: str, benchmark: str, metric: str, trials: Path, *, cache: Cache,
        progress: Progress,
    ) -> None:  # fmt: skip
        self.kernels, self.trials = CommitKernels(builder, cache=cache, progress=progress), trials
        self.machine, self.benchmark, self.metric = machine, benchmark, metric
        self.cache, self.progress = cache, Once(progress)
        self.ready: dict[str, Ready] = {}

    def __call__(self, commit: str) -> float:
        """One boot's value. Raises Unmeasurable where the commit does not build, boot or give the metric."""
        ready = self.made_ready(commit)
        why = ""
        for _ in range(ATTEMPTS):
            with self.progress.task(f"booting {commit[:12]}"):
                value, why = self.boot(ready, commit)
            if value is not None:
                return value
        raise Unmeasurable(why)

    def made_ready(self, commit: str) -> Ready:
        """The commit's kernel, built unless the cache has it, and the machine for it."""
        if commit not in self.ready:
            kernel = self.kernel(commit)
            study = study_for(self.benchmark, self.machine, kernel)
            try:
                self.ready[commit] = make_ready(study, cache=self.cache, progress=self.progress)
            except NotMeasuredError as error:
                raise Unmeasurable(error.message, error.remedy) from error
        return self.ready[commit]

    def kernel(self, commit: str) -> Path:
        """The commit's kernel. Raises Unmeasurable where it does not build."""
        try:
            return self.kernels(commit)
        except Unbuildable as error:
            raise Unmeasurable(f"does not build: {error}") from error

    def boot(self, ready: Ready, commit: str) -> tuple[float | None, str]:
        """A trial's value, or why there is none."""
        self.trials.mkdir(parents=True, exist_ok=True)
        number = 1 + max((int(path.name.split("-")[0]) for path in self.trials.glob("[0-9]*-*")), default=0)
        into = self.trials / f"{number:04}-{commit[:12]}"
        into.mkdir()
        arm = ready.arms[0]
        script = ready.dress.script(arm.contender, range(len(ready.study.steps)))
        (into / "guest.sh").write_text(script.text, "utf-8")
        outcome = ready.machine.boot(
            Trial(id=into.name, arm=arm, script=script.text, deadline=BOOT_ALLOWANCE + script.deadline, into=into)
        )
        if void := outcome.why or ready.dress.gate(into, arm.contender.name):
            return None, " ".join(str(void).split())[:MOST_WHY]
        values, failed = ready.prepared.parse_trial(into)
        if failed:
            return None, next(iter(failed.values()))
        if self.metric not in values.get(0, {}):
            return None, f"{self.benchmark} gave no {self.metric}"
        return values[0][self.metric], ""

    def close(self) -> None:
        """Give the machines back."""
        for one in self.ready.values():
            one.machine.close()
