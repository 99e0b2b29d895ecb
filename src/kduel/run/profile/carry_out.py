"""Extra trials of two contenders of a timed run, with perf around one step; a run of its own in RUN/explain.

    RUN/explain/pipe-time.debian-6.12.8x999/{lock.json,plan.jsonl,trials/...}   profile.json  profile.svg

It has the run's kernels, machine and conditions, and an order drawn from a seed of its own. It is resumed like any run,
and does not affect the run's own trials, verdict and manifests.
"""

import hashlib
import re
import shlex
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from msgspec import Struct, structs

from kduel.analysis.profile import ProfiledArm, ProfiledTrial, TimedProfile, nanoseconds, overhead, profile, unit_of
from kduel.core.cache import Cache
from kduel.core.errors import InputError, NotMeasuredError, unknown_name
from kduel.core.experiment import Metric, Step
from kduel.core.progress import Progress
from kduel.core.slices import ALL
from kduel.core.text import did_you_mean
from kduel.core.untrusted import MalformedError, read, whole_number
from kduel.explain.samples import CLOCK, read_samples
from kduel.guest.script import ScriptStep
from kduel.machines import Arm
from kduel.report.content.profiled import as_svg
from kduel.run.prepare import Ready, make_lock, make_ready
from kduel.run.runner import run_study
from kduel.run.script import TrialSetup
from kduel.run.watch import BootStarted, Watcher
from kduel.schedulers import SchedulerSetup
from kduel.store.collect import PreparedSteps, collect, step_directory
from kduel.store.documents import Lock, document_bytes, study_of
from kduel.store.identity import check_same_run
from kduel.store.integrity import trials_of
from kduel.store.rundir import EXPLAIN, PROFILE_FILES, PROFILE_ORIGIN, RunDir
from kduel.store.whole_files import as_disk_error, write_whole
from kduel.study.file import Blocks
from kduel.study.load import Study
from kduel.study.plan import slug

PACKAGE = "linux-perf"
ALLOWANCE = 240.0
"""Seconds that perf may take to start, and to print what it recorded, in an emulator."""
SCRIPT = Path(__file__).with_name("perf.sh").read_text("utf-8")
"""The event is tried first: perf falls back from cycles to a clock without saying so in its status."""


class ProfilingSetup(TrialSetup):
    """A run's own dress, with perf around each step."""

    def __init__(
        self, study: Study, arms: Sequence[Arm], prepared: PreparedSteps, *, cache: Cache, frequency: int
    ) -> None:
        super().__init__(study, arms, prepared, cache=cache)
        self.frequency = frequency

    def make_step(self, index: int, setup: SchedulerSetup, piece: int = 0) -> ScriptStep:
        step = super().make_step(index, setup, piece)
        lines = step.script.strip("\n")
        mark = f"KDUEL_STEP_{hashlib.sha256(lines.encode()).hexdigest()[:12]}"
        put = {"PACKAGE": PACKAGE, "MARK": mark, "STEP": lines, "FREQUENCY": str(self.frequency)}
        script = re.sub("@([A-Z]+)@", lambda found: put[found[1]], SCRIPT)
        return structs.replace(step, script=script, timeout=step.timeout + ALLOWANCE)


ShowTrials = Callable[[Study, int], AbstractContextManager[tuple[Watcher, BootStarted]]]
"""Shows the trials of a study, so many at once, while they are made."""


MEASURED_OTHERWISE = "A profile is of what the run measured. Restore what differs, or measure again with `kduel run`, and explain that run."


class ProfileRequest(Struct, frozen=True, kw_only=True):
    run: RunDir
    lock: Lock
    names: tuple[str, str]
    """Baseline and contender."""
    step: Step
    metric: Metric
    blocks: int
    frequency: int

    @property
    def folder(self) -> Path:
        """Directory of the profiled trials, one directory for each set of options."""
        name = f"{self.step.label}-{self.metric.name}.{self.names[1]}.{self.blocks}x{self.frequency}"
        return self.run.path / EXPLAIN / slug(name)

    @property
    def seed(self) -> int:
        """Seed of the order of trials: follows from the run's, and differs from it."""
        digest = hashlib.sha256(f"{self.lock.seed}/explain/{self.step.label}".encode()).digest()
        return int.from_bytes(digest[:4]) >> 1


def is_timed(path: Path) -> bool:
    """True if `path` is a run whose explanation takes a profile: any but one on the exact machine."""
    run = RunDir.open(path)
    return run.single and run.lock().machine.kind != "icount"


def read_request(
    path: Path, benchmark: str, metric: str, contender: str, *, blocks: int, frequency: int
) -> ProfileRequest:
    """The step and the contenders that a command line means. Raises InputError that lists what there is."""
    run = RunDir.open(path)
    lock = run.lock()
    if lock.fleet is not None or lock.blocks.unit != "boot":
        raise InputError(
            f"{path} ran on a fleet, or several contenders shared a boot: neither can be profiled",
            "Run the two contenders on one machine, one boot for each trial.",
        )
    names = [one.name for one in lock.contenders]
    if contender and contender not in names[1:]:
        raise unknown_name(f"{path} has no contender {contender!r}", contender, names[1:])
    prepared = PreparedSteps(lock.steps)
    index = find_step(lock.steps, benchmark, path)
    chosen = find_metric(prepared.metrics(index), lock.steps[index], metric)
    return ProfileRequest(
        run=run, lock=lock, names=(names[0], contender or names[1]), metric=chosen,
        step=structs.replace(lock.steps[index], slices=None),
        blocks=blocks, frequency=frequency,
    )  # fmt: skip


def find_step(steps: list[Step], name: str, path: Path) -> int:
    """A step by its label, its benchmark, or kbench's operation. Raises InputError."""
    ways = (
        [step.label for step in steps],
        [step.benchmark for step in steps],
        [str(step.parameters.get("operation", "")) for step in steps],
    )
    for names in ways:
        if names.count(name) == 1:
            return names.index(name)
    labels = ", ".join(step.label for step in steps)
    raise InputError(
        f"{path} has no single step {name!r}",
        f"{did_you_mean(name, [one for names in ways for one in names])}Choose one with --benchmark: {labels}.",
    )


def find_metric(metrics: tuple[Metric, ...], step: Step, name: str) -> Metric:
    """The named metric; else the first primary one that is a time or rate, else the first such. Raises InputError."""
    possible = [one for one in metrics if unit_of(one) is not None]
    if name:
        possible = [one for one in possible if one.name == name]
    if not possible:
        what = f"the metric {name!r} of {step.label}" if name else f"no metric of {step.label}"
        known = ", ".join(one.name for one in metrics if unit_of(one) is not None) or "none"
        raise InputError(
            f"{what} {'is not' if name else 'is'} a time or a rate of work, which a profile can divide among functions",
            f"Metrics of {step.label} that can be explained: {known}.",
        )
    return next((one for one in possible if one.name in step.primary), possible[0])


def carry_out(
    what: ProfileRequest, *, cache: Cache, progress: Progress, shown: ShowTrials, offline: bool = False
) -> TimedProfile:
    """Make missing trials, and read the profile out of them. Raises InputError (another kernel), NotMeasuredError."""
    study = study_of(what.lock, what.run.study_text())
    # Profiled guests are booted one after the other: there need not be room for all of a block.
    alone = structs.replace(study, blocks=structs.replace(study.blocks, turns="off"))
    ready = make_ready(alone, cache=cache, progress=progress, offline=offline, lock=what.lock)
    try:
        same = structs.replace(ready, study=structs.replace(ready.study, blocks=study.blocks))
        check_same_run(
            what.lock, make_lock(same, what.lock.seed, what.lock.origin), what.run.path, MEASURED_OTHERWISE
        )
        narrow = narrow_study(ready, what, cache)
        with as_disk_error(what.folder):
            what.folder.parent.mkdir(exist_ok=True)
        with shown(narrow.study, ready.machine.parallel) as (watch, boot_started):
            run = run_study(
                narrow, what.folder, origin=PROFILE_ORIGIN, seed=what.seed, progress=progress, watch=watch,
                boot_started=boot_started,
            )  # fmt: skip
    finally:
        ready.machine.close()
    found = read_profile(what, run, narrow)
    with as_disk_error(what.folder):
        for name, content in zip(PROFILE_FILES, (document_bytes(found), as_svg(found).encode()), strict=True):
            write_whole(what.folder / name, content)
    return found


def narrow_study(ready: Ready, what: ProfileRequest, cache: Cache) -> Ready:
    """Two contenders and one step of what was made ready, with perf around the step."""
    study = structs.replace(
        ready.study,
        contenders=[one for one in ready.study.contenders if one.name in what.names],
        steps=[what.step],
        blocks=Blocks(fixed=what.blocks),
    )
    arms = [arm for arm in ready.arms if arm.contender.name in what.names]
    if len(arms) < 2:
        raise NotMeasuredError(f"one of {' and '.join(what.names)} has no kernel to boot", "It does not build.")
    prepared = PreparedSteps(study.steps)
    dress = ProfilingSetup(study, arms, prepared, cache=cache, frequency=what.frequency)
    return Ready(study=study, arms=arms, machine=ready.machine, prepared=prepared, setup=dress)


def read_profile(what: ProfileRequest, run: RunDir, ready: Ready) -> TimedProfile:
    """From the raw files of complete blocks. Raises NotMeasuredError where there are none."""
    found: dict[tuple[int, str], ProfiledTrial] = {}
    values: dict[str, list[float]] = {name: [] for name in what.names}
    why = ""
    for record in trials_of(run, run.lock()):
        directory = run.directory(record.id)
        if record.status == "void" or what.step.label in record.failed_steps:
            why = why or f"{record.id}: {record.void or ''}{'; '.join(record.failed_steps.values())}"
            continue
        try:
            value = metric_value(ready.prepared.parse(directory, 0), what.metric.name)
            step = step_directory(directory, 0, what.step.label)
            before, after = (read(step / f"stat.{when}", 1 << 20) for when in ("before", "after"))
            sampled = read_samples(step, whole_number(read(step / "perf.pid", 100).strip()))
            found[record.block, record.contender] = ProfiledTrial(
                time=nanoseconds(what.metric, value),
                cpus=cpus_of(before),
                idle=0.0 if sampled.event == CLOCK else idle_share(before, after),
                sampled=sampled,
            )
        except (MalformedError, OSError, ValueError, InputError) as error:
            why = why or f"{record.id}: {error}"
            continue
        values[record.contender].append(value)
    complete = [block for block in range(1, what.blocks + 1) if all((block, name) in found for name in what.names)]
    if not complete:
        raise NotMeasuredError(
            f"no block has a profile of both contenders. {why[:600]}", f"The raw files are in {run.path}."
        )
    releases = {one.name: kernel.release for one, kernel in zip(what.lock.contenders, what.lock.kernels, strict=True)}
    arms = [
        ProfiledArm(name=name, release=releases[name], trials=[found[block, name] for block in complete])
        for name in what.names
    ]
    try:
        result = profile(
            ready.prepared.step(0),
            what.metric,
            (arms[0], arms[1]),
            alpha=what.lock.study.alpha,
            frequency=what.frequency,
        )
    except ValueError as error:
        raise NotMeasuredError(f"the profiled trials cannot be compared: {error}") from error
    own = values_of_run(what)
    both = (overhead(name, what.metric, values[name], own.get(name, [])) for name in what.names)
    result.overhead = [one for one in both if one is not None]
    result.exact = exact_command(what)
    result.counts = exact_counts(what)
    return result


def metric_value(values: dict[str, float], name: str) -> float:
    """The metric that is explained. Raises MalformedError: not every output has an optional one."""
    if name not in values:
        raise MalformedError(f"it has no value of {name}")
    return values[name]


def cpus_of(text: str) -> int:
    """Number of CPUs that /proc/stat lists. Raises MalformedError where there is none."""
    count = sum(line.startswith("cpu") and line[3:4].isdigit() for line in text.splitlines())
    if not count:
        raise MalformedError("/proc/stat lists no CPU")
    return count


def idle_share(before: str, after: str) -> float:
    """The share of all CPUs' time without work between two readings of /proc/stat, from 0 to 1. Raises MalformedError."""
    first, last = ([whole_number(word) for word in text.split("\n")[0].split()[1:9]] for text in (before, after))
    spent = [late - early for early, late in zip(first, last, strict=True)]
    if len(spent) >= 5:
        spent[4] = max(0, spent[4])  # Waiting for I/O may go back, by proc_stat(5); nothing else does.
    if len(spent) < 5 or sum(spent) <= 0 or min(spent) < 0:
        raise MalformedError("/proc/stat did not advance during the step")
    return (spent[3] + spent[4]) / sum(spent)


def values_of_run(what: ProfileRequest) -> dict[str, list[float]]:
    """The run's own values of the metric, by contender; of a step in slices the mean of all, as a profile is of all moments."""
    tables = {one.metric.name: one for one in collect(what.run.path) if one.benchmark == what.step.label}
    name = what.metric.name
    if name not in tables:
        return {}
    table = tables.get(name + ALL, tables[name])
    return {name: [value for value in values if value is not None] for name, values in table.values.items()}


def exact_command(what: ProfileRequest) -> str:
    """Command that counts the same operation exactly; empty where the exact machine does not have it."""
    operation = what.step.parameters.get("operation")
    if what.step.benchmark != "kbench" or not isinstance(operation, str):
        return ""
    kernels = {one.name: one.kernel for one in what.lock.contenders}
    return shlex.join(["kduel", "explain", *(kernels[name] for name in what.names), "--benchmark", operation])


def exact_counts(what: ProfileRequest) -> tuple[float, float] | None:
    """Instructions of the same operation in both contenders, from the run's exact part."""
    part = what.run.exact_part
    if part is None or what.step.benchmark != "kbench":
        return None
    for table in collect(part):
        operation = table.step.parameters.get("operation") if table.step else None
        if table.metric.name == "instructions" and operation == what.step.parameters.get("operation"):
            found = [[v for v in table.values.get(name, []) if v is not None] for name in what.names]
            if all(found):
                return found[0][0], found[1][0]
    return None
