"""The machine `build`: nothing boots. A trial is one clean build of the contender's kernel on this host."""

import contextlib
import gzip
import os
import platform
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Unpack

from msgspec.structs import replace

from kduel.core.cache import Cache, as_cache_error
from kduel.core.errors import InputError
from kduel.core.experiment import Contender
from kduel.core.plugins import plugins
from kduel.core.progress import Progress
from kduel.core.supervised_process import supervised_process
from kduel.core.temporary import temporary_directory
from kduel.core.untrusted import MalformedError, exit_status
from kduel.kernels import Kernel, check_modules
from kduel.kernels.compile import timed as timed_script
from kduel.kernels.compile.cause import find_cause
from kduel.kernels.compile.from_source import CompilePlan, FromSource
from kduel.kernels.compile.make import Make, Unbuildable, clean_environment, tail, wants_modules
from kduel.kernels.compile.recipe import configure
from kduel.kernels.sizes import objects
from kduel.machines import ONE_BY_ONE, Arm, Machine, MachineKind, MachineSettings, Means, Needs, Outcome, Trial
from kduel.machines.host.processors import host_cpu

KEPT = "kernel"
"""In a trial of the first block: config, vmlinux and objects.gz of what was built, for `kduel sizes`."""


class BuildSettings(MachineSettings, frozen=True, forbid_unknown_fields=True, kw_only=True):
    directory: str = ""
    """Where build directories are made, and removed; by default in the cache."""


class BuildMachine(Machine):
    """Made by `Build.prepare`."""

    def __init__(self, plans: dict[str, CompilePlan], directory: Path, progress: Progress) -> None:
        self.plans, self.directory, self.progress = plans, directory, progress
        self.warned: set[str] = set()
        self.facts = {
            "jobs": len(os.sched_getaffinity(0)),
            "compilers": {plan.recipe.arch: plan.compiler for plan in plans.values()},
            "host": {"cpu": host_cpu(), "cpus": os.cpu_count(), "kernel": platform.release()},
        }

    def boot(self, trial: Trial) -> Outcome:
        """Configure into an empty directory, run the script there, keep what describes the kernel."""
        plan = self.plans[trial.arm.kernel.sha256]
        began = time.monotonic()
        with temporary_directory(self.directory, ".building-") as work:
            make = Make(
                source=plan.source.tree,
                build=work / "build",
                log=trial.into / "console.log",
                target=plan.recipe.target,
                environment=clean_environment(),
            )
            make.build.mkdir()
            try:
                missed = configure(plan.recipe, make)
            except Unbuildable as error:
                told = relative(error.why.text, work, plan)
                return not_built("not-configured", "its configuration cannot be made", told, error.why.remedy)
            if missed and plan.key not in self.warned:
                self.warned.add(plan.key)
                self.progress.warn(f"{plan.spec}: this tree did not accept {', '.join(missed)}")
            config = (make.build / ".config").read_text("utf-8", errors="replace")
            read_all(plan.source.tree)
            timings = {"ready": round(time.monotonic() - began, 3)}
            ended = run_script(trial, self.variables(plan, make, work, config))
            timings["done"] = round(time.monotonic() - began, 3)
            facts = {"not_taken": missed} if missed else {}
            told_environment(trial.into, config)
            if ended is None:
                message = f"The build did not end within {trial.deadline:.0f} s and was ended."
                return Outcome(void="deadline", message=message, timings=timings, facts=facts)
            if trouble := trouble_of(trial.into):
                message = relative(trouble.message, work, plan)
                return replace(trouble, message=message, timings=timings, facts=facts)
            if trial.block == 1 and (make.build / "vmlinux").is_file():
                kept = trial.into / KEPT
                kept.mkdir()
                (kept / "config").write_text(config, "utf-8")
                objects.keep_objects_list(make.build, kept, plan.recipe.target, plan.source.tree)
        return Outcome(timings=timings, facts=facts)

    def variables(self, plan: CompilePlan, make: Make, work: Path, config: str) -> dict[str, str]:
        """The environment of a trial's script."""
        target = plan.recipe.target
        programs = {"make": make.argv([]), "timed": [sys.executable, "-I", "-S", timed_script.__file__]}
        for name, command in programs.items():
            (work / name).write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', "utf-8")
            (work / name).chmod(0o755)
        return clean_environment() | {
            "KDUEL_WORK": str(work / "steps"),
            "KDUEL_MAKE": str(work / "make"),
            "KDUEL_TIMED": str(work / "timed"),
            "KDUEL_OBJECTS": str(make.build),
            "KDUEL_TARGETS": " ".join([target.make, *(["modules"] if wants_modules(config) else [])]),
            "KDUEL_IMAGE": target.image,
            "KDUEL_COMPRESSED": "yes" if target.compressed else "no",
            "KDUEL_CROSS": target.cross,
        }


def run_script(trial: Trial, environment: dict[str, str]) -> int | None:
    """Run the trial's script; its exit status, or None where it had to be ended at the deadline."""
    script = trial.into / "guest.sh"
    script.write_text(trial.script, "utf-8")
    with (
        (trial.into / "console.log").open("ab") as log,
        supervised_process(
            ["sh", str(script), str(trial.into)], stdout=log, stderr=log, environment=environment
        ) as process,
    ):
        try:
            return process.wait(trial.deadline)
        except subprocess.TimeoutExpired:
            return None


def trouble_of(into: Path) -> Outcome | None:
    """Reason why nothing was built, where a step's build failed."""
    for log in sorted(into.glob("*/build.log")):
        try:
            status = exit_status(log.parent)
        except MalformedError:
            continue
        if status == 124:
            return not_built("deadline", "the build did not end in time", "raise the benchmark's patience")
        if status:
            why = find_cause(tail(log), status)
            return not_built("does-not-build", "it does not build", why.text, why.remedy)
    return None


def not_built(void: str, what: str, told: str, remedy: str = "") -> Outcome:
    """A void trial with its reason in one paragraph."""
    return Outcome(void=void, message=f"not measurable: {what}: {told}" + (f". {remedy}" if remedy else ""))


def relative(text: str, work: Path, plan: CompilePlan) -> str:
    """A log's text with paths relative to the source tree, as kernel developers write them."""
    for place in (plan.source.tree, work / "build"):
        text = text.replace(f"{place}/", "")
    return text


def told_environment(into: Path, config: str) -> None:
    """The environment that a trial reports is this host's; the configuration that counts is the one built."""
    environment = into / "environment"
    environment.mkdir(exist_ok=True)
    (environment / "dmesg").unlink(missing_ok=True)
    with gzip.GzipFile(environment / "config.gz", "wb", mtime=0) as stream:
        stream.write(config.encode())


def read_all(tree: Path) -> None:
    """Read every file once, so that each trial finds the source in memory as far as it fits."""
    for folder, _, names in os.walk(tree):
        for name in names:
            with contextlib.suppress(OSError), open(os.path.join(folder, name), "rb") as stream:  # noqa: PTH118, PTH123
                while stream.read(1 << 20):
                    pass


class Build(MachineKind[BuildSettings]):
    name: ClassVar[str] = "build"
    no_turns: ClassVar[str] = ONE_BY_ONE
    records_host: ClassVar[bool] = False
    summary: ClassVar[str] = "no boot: a trial is one clean build of the contender's kernel on this host"

    def check_kernel(self, spec: str, modules: str = "") -> str:
        return source_of(spec, modules).architecture(spec)

    def kernel(
        self, spec: str, *, cache: Cache, progress: Progress, offline: bool = False, modules: str = ""
    ) -> Kernel:
        """The source and how it will be built: the trials do the building."""
        plan = plan_of(spec, cache=cache, progress=progress, offline=offline, modules=modules)
        return Kernel(
            spec=spec, release=plan.source.version, architecture=plan.recipe.target.machine,
            image=plan.source.tree / "Makefile", sha256=plan.key, provenance=plan.facts,
        )  # fmt: skip

    def check_host(self, settings: BuildSettings) -> None:
        """The directory, where one is named, and nproc."""
        if settings.directory and not Path(settings.directory).expanduser().is_dir():
            raise InputError(
                f"machine build: there is no directory {settings.directory}", "Make it, or leave it out."
            )
        if shutil.which("nproc") is None:
            raise InputError("nproc is not installed", "Install coreutils.")

    def check_contender(self, settings: BuildSettings, contender: Contender, spec: str) -> None:
        """It sets nothing that takes a boot."""
        if contender.cmdline or contender.sysctl or contender.scheduler or contender.policy:
            raise InputError(
                f"{contender.name} sets a command line, sysctls, a scheduler or a policy, and the machine build boots nothing",
                "Leave them out.",
            )

    def check_needs(self, settings: BuildSettings, needs: Needs) -> None:
        """Nothing of a running kernel."""
        if needs.packages or needs.programs or needs.scratch:
            raise InputError(
                "the machine build boots nothing: of the study's benchmarks some need a running kernel",
                "Use kernel-build and kernel-size on this machine, and another study for benchmarks that run on the kernels.",
            )

    def prepare(self, settings: BuildSettings, arms: Sequence[Arm], needs: Needs, **means: Unpack[Means]) -> Machine:
        cache = means["cache"]
        self.check_host(settings)
        self.check_needs(settings, needs)
        for arm in arms:
            self.check_contender(settings, arm.contender, arm.kernel.spec)
        directory = Path(settings.directory).expanduser() if settings.directory else cache.root
        plans = {}
        for arm in arms:
            # Sources are in the cache by now.
            exact = arm.kernel.provenance["exact"]
            with as_cache_error(cache.root):
                plans[arm.kernel.sha256] = plan_of(exact, modules="", **means)
        return BuildMachine(plans, directory, means["progress"])


def plan_of(spec: str, *, cache: Cache, progress: Progress, offline: bool, modules: str) -> CompilePlan:
    """The build that a contender's kernel means. Raises InputError for one that is not built from source."""
    plan = source_of(spec, modules).plan(spec, cache=cache, progress=progress, offline=offline)
    if plan.recipe.ccache:
        raise InputError(
            f"{spec}: with ccache the time of a build is meaningless", "Leave out ccache=yes on the machine build."
        )
    return plan


def source_of(spec: str, modules: str = "") -> FromSource:
    """The source of a kernel that is to be built. Raises InputError for any other kernel."""
    for source in plugins("kernels").values():
        if isinstance(source, FromSource) and source.accepts(spec):
            source.check_spec(spec)
            check_modules(source, spec, modules)
            return source
    raise InputError(
        f"the machine build builds kernels, and {spec} is not given as source",
        "Give debian-source:6.1, source:FILE.tar.xz or git:DIR#REF, with ,arch= and ,config=; see docs/embedded.md.",
    )


PLUGIN = Build()
