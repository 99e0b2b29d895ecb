"""Naming the cache lines that an operation shares: a boot with the details of one region, and the guest's memory at its end."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import structs

from kduel.benchmarks.sharing import PLUGIN as SHARING
from kduel.benchmarks.sharing import SHARED_LINES, region_of, sharing_table
from kduel.core.cache import Cache
from kduel.core.errors import InputError, NotMeasuredError
from kduel.core.progress import Progress
from kduel.core.text import did_you_mean
from kduel.explain.sharing import compare
from kduel.explain.sharing.lines import Namer
from kduel.explain.sharing.memory import Data, Memory, NamelessError
from kduel.explain.symbols import Symbols
from kduel.guest import boots
from kduel.guest.size import mebibytes
from kduel.machines import Arm
from kduel.machines.guests.proofs import check_not_killed
from kduel.machines.icount import IcountMachine, digest
from kduel.run.exact.measure import exact_machine, make_trial, script_of_all_steps
from kduel.run.exact.subject import BOOT, STUDY, Subject, check_operation
from kduel.run.prepare import Ready
from kduel.run.script import Script
from kduel.study.contenders import as_toml, contender_tables
from kduel.study.file import parse_study
from kduel.study.load import Study, assemble

NAMED = "named-lines"
"""The cache's entries of named lines."""
NAMING = 9
"""Version of the way in which lines are named: another one names them again."""
KEEP_ALLOCATIONS = f"slub_debug=U,{compare.KMALLOC}*"
"""Words of the command line with which the kernel keeps who allocated an object of kmalloc."""
SNAPSHOT = "@SNAPSHOT@"


def sharing_study(kernels: list[str], wanted: str) -> Study:
    """A study of one operation on two CPUs, as `sharing_table` reads it. Raises InputError."""
    for name in filter(None, wanted.partition("/")[0].split("+", 1)):
        check_operation(name)
        if name == BOOT:
            raise InputError("a boot is no operation that two CPUs call", "Name an operation, such as mmap/threads.")
    step = "".join(f"{key} = {as_toml(value)}\n" for key, value in sharing_table(wanted).items())
    text = STUDY.replace('kind = "icount"', 'kind = "icount"\ncpus = 2')
    text += f'[[benchmark]]\n{step}primary = ["lines"]\n' + contender_tables(
        kernels, len(set(kernels)) < len(kernels)
    )
    return assemble(parse_study(text, "explain"), text, "explain")


def step_index(ready: Ready, wanted: str) -> int:
    """The step that a user means by its label, with dashes or slashes. Raises InputError."""
    steps = ready.study.steps
    known = [step.label for step in steps if step.benchmark == SHARING.name]
    if len(steps) == 1 and known:
        return 0
    label = wanted.replace("/", "-")
    for index, step in enumerate(steps):
        if step.benchmark == SHARING.name and step.label == label:
            return index
    raise InputError(
        f"no step of the study is called {wanted!r} and counts shared lines",
        f"{did_you_mean(label, known)}There are: {', '.join(known)}."
        if known
        else "Run the kernels with --suite exact-sharing, or name them: kduel explain A B -b OPERATION --sharing.",
    )


def explain_sharing(
    chosen: Subject, names: Sequence[str], wanted: str, *, cache: Cache, progress: Progress
) -> compare.SharingExplanation:
    """The lines of a step in these contenders' kernels, named. Raises InputError, NotMeasuredError, HostError."""
    ready = chosen.ready
    machine, index = exact_machine(ready), step_index(ready, wanted)
    arms = {arm.contender.name: arm for arm in ready.arms}

    def count(name: str) -> compare.SharedBy:
        number = region_number(ready, index)
        found = name_lines(
            machine, arms[name], script_of_all_steps(ready, arms[name], chosen.seed), number, cache=cache
        )
        chosen.check_same(index, name, lambda trial: medians(trial, number) == (found.median, found.mean))
        task.advance()
        return found

    with (
        progress.task(f"naming the lines of {', '.join(names)}", len(names)) as task,
        boots.pool(min(2, machine.parallel)) as threads,
    ):
        kernels = list(threads.map(count, names))
    return compare.compare_kernels(ready.study.steps[index].label, kernels, machine.facts["qemu"].split()[0])


def medians(trial: Path, number: int) -> tuple[float, float]:
    """Steady and amortised lines of a region under the plain condition, as a trial of a run has them."""
    start = f'{{"region":{number},'
    line = next(line for line in (trial / SHARED_LINES).read_text().splitlines() if line.startswith(start))
    return compare.over_rounds(msgspec.json.decode(line, type=compare.Region))


def region_number(ready: Ready, index: int) -> int:
    """The number of a step's region in the plug-in."""
    p = SHARING.read_parameters(ready.study.steps[index].parameters)
    return region_of(p.operation, p.other, p.workers, p.objects)


def name_lines(machine: IcountMachine, arm: Arm, script: Script, number: int, *, cache: Cache) -> compare.SharedBy:
    """The lines of a region in one kernel, named once. Raises NotMeasuredError (void, no types), HostError (QEMU)."""
    if machine.icount.layouts:
        raise InputError("lines cannot be named with layouts, in which addresses are random", "Omit --layouts.")

    def build(into: Path) -> None:
        found, namer, symbols = boot_with_details(machine, arm, script, number, into / "counted")
        result = compare.shared_by(arm.contender.name, arm.kernel.release, found, namer, symbols)
        if any(line.name.startswith(compare.KMALLOC) for line in result.lines):
            # In a boot of its own, as what the kernel keeps of an allocation moves the lines of the objects.
            cmdline = f"{arm.contender.cmdline} {KEEP_ALLOCATIONS}".strip()
            other = structs.replace(arm, contender=structs.replace(arm.contender, cmdline=cmdline))
            try:
                known = compare.allocators(*boot_with_details(machine, other, script, number, into / "tracked"))
                result = compare.shared_by(arm.contender.name, arm.kernel.release, found, namer, symbols, known)
            except NotMeasuredError as error:
                result.note = f"{arm.contender.name}: who allocated memory of kmalloc is not known: {error.message}"
        (into / "lines.json").write_bytes(msgspec.json.encode(result))

    key = digest(machine.key(make_trial(arm, script, 1, Path())), number, NAMING)
    with (cache.entry(NAMED, key, build) / "lines.json").open("rb") as stream:
        return structs.replace(
            msgspec.json.decode(stream.read(), type=compare.SharedBy), contender=arm.contender.name
        )


def boot_with_details(
    machine: IcountMachine, arm: Arm, script: Script, number: int, into: Path
) -> tuple[compare.Region, Namer, Symbols]:
    """A boot with the details of a region, its files below `into`, and what names them. Raises as `name_lines`."""
    trial = make_trial(arm, script, 1, into)
    trial.into.mkdir(parents=True)
    memory, snapshot = mebibytes(machine.settings.memory, "memory") << 20, trial.into / "memory"
    outcome = machine.boot_once(
        trial, f",details={number},snapshot={SNAPSHOT},memory={memory}", writes={SNAPSHOT: snapshot}, variables=True
    )
    check_not_killed(outcome.facts.get("killed_by", ""), arm.contender.name)
    if outcome.void:
        raise NotMeasuredError(
            f"{arm.contender.name} could not be counted: {outcome.void}: {outcome.message}",
            "Does it boot in `kduel run --suite exact-sharing`?",
        )
    kallsyms = trial.into / "kallsyms"
    try:
        found = read_details(trial.into / SHARED_LINES)
        return found, Namer(Memory(snapshot, Data.read(kallsyms)), found.cpus), Symbols.read(kallsyms)
    except NamelessError as error:
        raise NotMeasuredError(
            f"the lines of {arm.contender.name} cannot be named: {error}",
            "Build the kernel with CONFIG_DEBUG_INFO_BTF=y and CONFIG_KALLSYMS_ALL=y. `kduel run --suite exact-sharing` counts "
            "lines without names.",
        ) from error
    finally:
        snapshot.unlink()  # What has read it holds it still.


def read_details(path: Path) -> compare.Region:
    """The region with details. Raises NotMeasuredError where it was not reached."""
    for line in path.read_text().splitlines():
        if '"sites":' in line:
            return msgspec.json.decode(line, type=compare.Region)
    raise NotMeasuredError(
        "the operation was not counted", "Did it fail? `kduel run --suite exact-sharing` shows its error."
    )
